"""Solvers of the dual: decomposition into working sets, and coordinate descent for a function without a constant.

Decomposition. The variables that violate the optimality conditions most are optimised among themselves, in rounds. A
round takes up to 1,024 variables, or a quarter of all: half of them new, those that promise most on either side, the
others kept from the round before, the free ones first. Their own kernel matrix is small enough for the processor's
cache, where sequential minimal optimisation takes the worst violation down to a tenth. Only rows whose variable has
moved are then needed in full. The slopes are summed in double precision; where the entries are in single precision they
are computed anew from exact ones before a fit may end, and the rounds go on from there until the exact ones agree.

Coordinate descent. Without a constant the variables have no sum to keep, and one can be moved at a time: exactly to its
minimum

    b_i <- clip(b_i + v_i / k_ii, lo_i, hi_i),      v = z - K b.

A round is an epoch: it visits the rows in a random order, in sets; of each set those that violate their condition are
moved in turn until they agree with each other, and the slopes of all rows follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._monitor import Monitor
from epicycle.core._random import stream
from epicycle.svm._dual_problem import DualProblem, Evidence
from epicycle.svm._kernel_rows import KernelRows

Array = np.ndarray
_SET_SIZE = 1024  # variables of a round: their matrix of 8 MB in double precision fits into the cache
_SMALLEST_SET = 64  # variables: fewer would not pay for a round
_WHOLE_SET = 4096  # variables up to which one set has all of them, until it shows that many steps are needed
_ALWAYS_WHOLE = 1536  # variables up to which it stays so
_REDUCTION = 0.1  # of the violation, aimed at in a round
_POLISHED = 1e-11  # violation that small problems go on to, where it is cheap
_POLISHED_ROWS = 512  # up to which that is cheap
_SWEEPS = 20  # of coordinate descent over one set
_LARGEST_SQUARE = 1e300  # of |f| at the start, from which on sums of squares are not finite
_ROUNDING_SHARE = 0.3  # of the worst case of rounding in the slopes: errors of many entries partly cancel


@dataclass(frozen=True)
class Limits:
    """When to stop: tolerances of violation and relative gap, steps; and bytes for the matrix of a working set."""

    tol: float
    gap: float
    max_steps: int
    set_bytes: float = 1 << 24
    #: Whether a round takes the worst variables, or all of them where their matrix is there.
    shrinking: bool = True
    max_rounds: float = np.inf
    #: Maximum number of steps of a round, for problems that may have no solution.
    round_steps: int | None = None
    #: The square of |f| at which going on is of no use: no function separates the classes.
    least_square: float = -np.inf

    def met(self, evidence: Evidence) -> bool:
        return evidence.violation <= self.tol and evidence.gap <= self.gap


@dataclass
class DualSolution:
    """The coefficients, their exact scores, and the evidence for them."""

    b: Array
    f: Array
    evidence: Evidence
    reason: str
    rounds: int
    steps: int
    #: The least curvature k_ii + k_jj - 2 k_ij of a pair that was moved; below zero no Mercer kernel.
    curvature: float
    #: All that is needed to go on from here.
    state: Mapping[str, Any]


class Decomposition:
    """The state of the rounds.

    Parameters
    ----------
    problem : DualProblem
    rows : KernelRows
    limits : Limits
    state : mapping, optional
        State at which an earlier run stopped.
    seed : int, optional
        Of the epochs of coordinate descent; None for sequential minimal optimisation.
    """

    def __init__(
        self,
        problem: DualProblem,
        rows: KernelRows,
        limits: Limits,
        state: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.problem, self.rows, self.limits, self.seed = problem, rows, limits, seed
        n = problem.n
        self.b = np.zeros(n) if problem.start is None else problem.start.copy()
        self.rounds = self.steps = 0
        if state:
            self.b = np.array(state["b"], dtype=np.float64)
            self.rounds, self.steps = int(state["rounds"]), int(state["steps"])
            self.seed = None if seed is None else int(state["seed"])
        self.ridge = problem.ridge
        self.diagonal = rows.diagonal if self.ridge is None else rows.diagonal + self.ridge
        self.scale = float(max(rows.diagonal.max(), 0.0))
        self.largest = float(np.abs(problem.z).max())
        size = float(np.abs(self.b).sum())
        with np.errstate(over="ignore"):
            square = self.scale * np.square(size)  # |f|^2 at the most
        if not square < _LARGEST_SQUARE:
            raise DataError(
                f"C, sample_weight: coefficients that add up to {size:.1e} with kernel values up to {self.scale:.1e} "
                "make squares that overflow; expected a smaller C, or smaller weights"
            )
        f = rows.scores(self.b) if self.b.any() else np.zeros(n)
        self.v = problem.slopes(self.b, f)
        self.exact = True
        self.moved = 0.0  # since the slopes were exact
        self.curvature = 0.0
        self.tightness = 1.0
        self.set = np.empty(0, dtype=np.int64)
        # A matrix of the set is computed in every round: of few rows a quarter is enough.
        self.size = int(min(_SET_SIZE, max(_SMALLEST_SET, n // 4), max(_SMALLEST_SET, (limits.set_bytes / 8.0) ** 0.5)))
        if rows.rounding == 0 and (n <= _WHOLE_SET or not limits.shrinking):
            self.size = n

    def run(self, monitor: Monitor | None = None) -> DualSolution:
        """Rounds until violation and relative gap are within the tolerances, or there is no use in more of them."""
        done = self.rounds
        while True:
            if self.look():
                self.polish()
                if monitor is not None:
                    self.rounds += self.rounds == done  # a look at the start is a round too
                    self.record(monitor)
                return self.solution("converged")
            if self.rounds > done and monitor is not None and self.record(monitor):
                return self.solution("stopped")
            if self.limits.least_square >= 0 and float(self.b @ self.scores()) <= self.limits.least_square:
                return self.solution("diverged")
            if self.steps >= self.limits.max_steps or self.rounds - done >= self.limits.max_rounds:
                return self.solution("max_iter")
            if not self.round():
                self.rounds -= 1
                return self.solution("stalled")

    # ------------------------------------------------------------------------------------------- evidence

    def scores(self) -> Array:
        f = self.problem.z - self.v
        return np.asarray(f if self.ridge is None else f - self.ridge * self.b)

    def refresh(self) -> None:
        if not self.exact:
            self.v = self.problem.slopes(self.b, self.rows.scores(self.b))
            self.exact, self.moved = True, 0.0

    def look(self) -> bool:
        """Whether violation and gap are within the tolerances; the slopes are made exact where it may be so."""
        limits = self.limits
        self.up, self.low = self.problem.moves(self.b, self.v)
        self.violation = self.problem.violation(self.up, self.low)
        doubt = _ROUNDING_SHARE * self.rows.rounding * self.moved * self.scale
        if self.violation > max(limits.tol, doubt):
            return False
        self.refresh()
        self.up, self.low = self.problem.moves(self.b, self.v)
        evidence = self.problem.evidence(self.b, self.scores(), self.scale)
        self.violation = evidence.violation
        if evidence.violation > limits.tol:
            return False
        if evidence.gap > limits.gap:
            self.tightness *= 0.1  # the conditions hold, but not yet as well as the gap needs
            return False
        return True

    def record(self, monitor: Monitor) -> bool:
        value = self.problem.objective(self.b, self.scores())
        support = int(np.count_nonzero(self.b))
        facts = {"violation": self.violation, "steps": self.steps, "support": support}
        return monitor(self.rounds, self.b, objective=value, state=self.saved, **facts)

    def saved(self) -> dict[str, Any]:
        """All that is needed to go on from here."""
        kept = {"b": self.b.copy(), "rounds": self.rounds, "steps": self.steps}
        return kept if self.seed is None else {**kept, "seed": self.seed}

    def solution(self, reason: str) -> DualSolution:
        self.refresh()
        f = self.scores()
        evidence = self.problem.evidence(self.b, f, self.scale)
        return DualSolution(self.b, f, evidence, reason, self.rounds, self.steps, self.curvature, self.saved())

    # ------------------------------------------------------------------------------------------- a round

    def round(self) -> bool:
        """Optimise the worst variables, or all in an epoch; False where nothing could be moved."""
        self.rounds += 1
        target = max(0.5 * self.limits.tol * self.tightness, _REDUCTION * self.violation)
        rounding = np.finfo(np.float64).eps * (self.scale * float(np.abs(self.b).sum()) + self.largest)
        if target < rounding:  # of the slopes themselves: steps would follow its noise
            if self.violation <= rounding:
                return False
            target = rounding
        if self.seed is not None:
            return self._epoch(self.seed, target)
        self.choose()
        limit = self.limits.max_steps - self.steps
        if self.limits.round_steps is not None:
            limit = min(limit, self.limits.round_steps)
        return self.optimise(self.set, target, limit)

    def _epoch(self, seed: int, target: float) -> bool:
        """Visit all variables in a random order, in sets."""
        order = stream(seed, "epoch", self.rounds).permutation(self.problem.n)
        before = self.steps
        for start in range(0, len(order), self.size):
            up, low = self.problem.moves(self.b, self.v)
            part = order[start : start + self.size]
            part = part[np.maximum(up[part], -low[part]) > 0]
            if len(part):
                self.optimise(part, target, self.limits.max_steps)
        return self.steps > before

    def optimise(self, chosen: Array, target: float, limit: int) -> bool:
        """Optimise the variables `chosen` among themselves; whether any was moved."""
        p = self.problem
        if p.group is not None:
            chosen = chosen[np.argsort(p.group[chosen], kind="stable")]
        everything = len(chosen) == p.n and bool((np.diff(chosen) == 1).all())
        # Slopes of the chosen variables among themselves follow in native code, those of all others afterwards.
        before = self.b[chosen]
        b, v = before.copy(), self.v[chosen]
        ridge = None if self.ridge is None else self.ridge[chosen]
        problem = (self.rows.square(chosen), self.diagonal[chosen], ridge, p.lo[chosen], p.hi[chosen], p.epsilon)
        # b and v are updated in place
        if self.seed is not None:
            steps, _, curvature = _native.svm.coordinate_sweeps(*problem, b, v, target, _SWEEPS)
        else:
            groups = np.array([0, len(chosen)], dtype=np.int64)
            if p.group is not None:
                groups = np.searchsorted(p.group[chosen], np.arange(int(p.group.max()) + 2)).astype(np.int64)
            steps, _, curvature = _native.svm.smo(*problem, groups, b, v, target, limit)
        self.steps += steps
        self.curvature = min(self.curvature, curvature)
        change = b - before
        self.b[chosen] = b
        which = np.flatnonzero(change)
        self.moved += float(np.abs(change).sum())
        self.exact = False
        if everything:
            self.v = v
        else:
            self.rows.subtract(chosen[which], change[which], self.v)
            if self.ridge is not None:
                self.v[chosen[which]] -= self.ridge[chosen[which]] * change[which]
        return steps > 0 and len(which) > 0

    def choose(self) -> None:
        """The next working set, in the order of the variables."""
        n = self.problem.n
        if _ALWAYS_WHOLE < n <= self.size and self.limits.shrinking and self.steps > 4 * n:
            self.size = min(_SET_SIZE, max(_SMALLEST_SET, n // 4))
        if n <= self.size:
            self.set = np.arange(n)
            return
        chosen = np.zeros(n, dtype=bool)
        # Half of the set is kept: sets that change altogether undo what the rounds before have done.
        new = self.size if not len(self.set) else self.size // 2
        members = self.problem.members()
        for g in members:
            self._worst(g, max(2, new * len(g) // n), chosen)
        old = self.set[~chosen[self.set]]
        room = self.size - int(chosen.sum())
        if len(old) and room > 0:
            # Free variables are those that further rounds will move; bounded ones rarely leave their bound.
            free = np.isfinite(self.up[old]) & np.isfinite(self.low[old])
            order = np.lexsort((-self._excess(old), ~free))
            chosen[old[order[:room]]] = True
        self.set = np.flatnonzero(chosen)

    def _excess(self, which: Array) -> Array:
        """Distance of each variable beyond what the others allow."""
        top, bottom = self.up.max(), self.low.min()
        return np.asarray(np.maximum(self.up[which] - bottom, top - self.low[which]))

    def _worst(self, g: Array, count: int, chosen: Array) -> None:
        """Mark `count` variables of a group: those that gain most by growing, and lose least by shrinking."""
        up, low = self.up[g], self.low[g]
        half = min((count + 1) // 2, len(g))
        grow = _first(-up, half)
        grow = grow[up[grow] > low.min()]
        chosen[g[grow]] = True
        shrink = _first(np.where(chosen[g], np.inf, low), min(half, len(g)))
        chosen[g[shrink[low[shrink] < up.max()]]] = True
        # The pair that violates most is among them whatever the other choices.
        chosen[g[int(up.argmax())]] = chosen[g[int(low.argmin())]] = True

    # ------------------------------------------------------------------------------------------- polish

    def polish(self) -> None:
        """A small problem goes on to rounding error while that is cheap: its answer then depends on the data alone."""
        n = self.problem.n
        if n > _POLISHED_ROWS or self.rows.rounding > 0 or self.violation <= _POLISHED:
            return
        before, v = self.b.copy(), self.v.copy()
        size = float(max(np.abs(self.problem.z).max(), 1e-3))
        self.optimise(np.arange(n), _POLISHED * size, 1000 + 20 * n)
        self.refresh()
        if self.limits.met(self.problem.evidence(self.b, self.scores(), self.scale)):
            self.up, self.low = self.problem.moves(self.b, self.v)
            self.violation = self.problem.violation(self.up, self.low)
        else:  # which rounding could do
            self.b, self.v = before, v


def _first(values: Array, count: int) -> Array:
    """The `count` smallest, finite or not, the first of equal ones."""
    if count >= len(values):
        return np.argsort(values, kind="stable")
    # A partition may take any of equal values: all up to the last one are ordered, and the first are taken.
    last = np.partition(values, count - 1)[count - 1]
    candidates = np.flatnonzero(values <= last)
    return candidates[np.argsort(values[candidates], kind="stable")[:count]]
