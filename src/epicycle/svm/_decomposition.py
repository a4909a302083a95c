"""Decomposition: the variables that violate the optimality conditions most are optimised among themselves, in rounds.

A round takes up to 1,024 variables, or a quarter of all: half of them new, those that promise most on either side, the
others kept from the round before, the free ones first. Their own kernel matrix is small enough for the processor's
cache, where sequential minimal optimisation takes the worst violation down to a tenth. Only rows whose variable has
moved are then needed in full. The slopes are summed in double precision; where the entries are in single precision they
are computed anew from exact ones before a fit may end, and the rounds go on from there until the exact ones agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._monitor import Monitor
from epicycle.svm._dual_problem import DualProblem, Evidence
from epicycle.svm._kernel_rows import KernelRows

__all__ = ["DualSolution", "Limits", "decompose"]

Array = np.ndarray
_SET = 1024  # variables of a round
_WHOLE = 4096  # up to so many variables there is one set with all of them, until it shows that many steps are needed
_SMALL = 1536  # and up to so many for good
_SHARE = 0.1  # to which the violation is taken down in a round
_POLISH = 1e-11  # violation that small problems go on to while it is cheap


@dataclass(frozen=True)
class Limits:
    """When to stop: tolerances of violation and relative gap, steps; and bytes for the matrix of a working set."""

    tol: float
    gap: float
    max_steps: int
    set_bytes: float = 1 << 24
    #: Whether a round takes the worst variables, or all of them where their matrix is there.
    shrinking: bool = True
    #: Steps of a round at most, for problems that may have no solution.
    round_steps: int | None = None

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


def step_limit(max_iter: int, n: int) -> int:
    """Steps at most: as asked for, or a number that only a hopeless problem needs."""
    return max_iter if max_iter > 0 else max(10_000_000, 100 * n)


def decompose(
    problem: DualProblem,
    rows: KernelRows,
    limits: Limits,
    *,
    monitor: Monitor | None = None,
    state: Mapping[str, Any] | None = None,
    stop: Callable[[Array, Array], bool] | None = None,
) -> DualSolution:
    """Rounds until violation and relative gap are within the tolerances.

    Parameters
    ----------
    problem : DualProblem
    rows : KernelRows
    limits : Limits
    monitor : Monitor, optional
        Told of every round; may ask to stop.
    state : mapping, optional
        Where an earlier run stopped.
    stop : callable, optional
        ``stop(b, f)`` says that going on is of no use.
    """
    return Rounds(problem, rows, limits, state).until_done(monitor, stop)


class Rounds:
    """Where the rounds are."""

    def __init__(self, problem: DualProblem, rows: KernelRows, limits: Limits, state: Mapping[str, Any] | None) -> None:
        self.problem, self.rows, self.limits = problem, rows, limits
        n = problem.n
        self.b = np.zeros(n) if problem.start is None else problem.start.copy()
        self.rounds = self.steps = 0
        if state:
            self.b = np.array(state["b"], dtype=np.float64)
            self.rounds, self.steps = int(state["rounds"]), int(state["steps"])
        self.ridge = problem.ridge
        self.diagonal = rows.diagonal if self.ridge is None else rows.diagonal + self.ridge
        self.scale = float(max(rows.diagonal.max(), 0.0))
        f = rows.scores(self.b) if self.b.any() else np.zeros(n)
        self.v = problem.slopes(self.b, f)
        self.exact = True
        self.moved = 0.0  # since the slopes were exact
        self.curvature = 0.0
        self.tightness = 1.0
        self.set = np.empty(0, dtype=np.int64)
        # A matrix of the set is computed in every round: of few rows a quarter is enough.
        self.size = int(min(_SET, max(64, n // 4), max(64, (limits.set_bytes / 8.0) ** 0.5)))
        if rows.rounding == 0 and (n <= _WHOLE or not limits.shrinking):
            self.size = n
        self.share = _SHARE
        self.look_at = (np.inf, -np.inf)

    def until_done(self, monitor: Monitor | None, stop: Callable[[Array, Array], bool] | None) -> DualSolution:
        """Rounds until the evidence is within the tolerance, or there is no use in more of them."""
        done = self.rounds
        while True:
            evidence = self.look()
            if evidence is not None and self.limits.met(evidence):
                self.polish()
                if monitor is not None:
                    self.rounds += self.rounds == done  # a look at the start is a round too
                    self.record(monitor)
                return self.solution("converged")
            if self.rounds > done and monitor is not None and self.record(monitor):
                return self.solution("stopped")
            if stop is not None and stop(self.b, self.scores()):
                return self.solution("diverged")
            if self.steps >= self.limits.max_steps:
                return self.solution("max_iter")
            if not self.round():
                self.rounds -= 1
                return self.solution("stalled")

    # ------------------------------------------------------------------------------------------- evidence

    def scores(self) -> Array:
        f = self.problem.z - self.v
        return f if self.ridge is None else f - self.ridge * self.b

    def refresh(self) -> None:
        if not self.exact:
            self.v = self.problem.slopes(self.b, self.rows.scores(self.b))
            self.exact, self.moved = True, 0.0

    def look(self) -> Evidence | None:
        """The evidence, where the slopes promise that it holds; the slopes are exact then."""
        self.up, self.low = self.problem.moves(self.b, self.v)
        self.violation = self.problem.violation(self.up, self.low)
        doubt = 0.3 * self.rows.rounding * self.moved * self.scale
        if self.violation > max(self.limits.tol, doubt):
            return None
        self.refresh()
        self.up, self.low = self.problem.moves(self.b, self.v)
        evidence = self.problem.evidence(self.b, self.scores(), self.scale)
        self.violation = evidence.violation
        if evidence.violation <= self.limits.tol and evidence.gap > self.limits.gap:
            self.tightness *= 0.1  # the conditions hold, but not yet as well as the gap needs
        return evidence

    def record(self, monitor: Monitor) -> bool:
        value = self.problem.objective(self.b, self.scores())
        return monitor(
            self.rounds, self.b, objective=value, violation=self.violation, steps=self.steps,
            support=int(np.count_nonzero(self.b)), state=self.saved,
        )  # fmt: skip

    def saved(self) -> dict[str, Any]:
        """All that is needed to go on from here."""
        return {"b": self.b.copy(), "rounds": self.rounds, "steps": self.steps}

    def solution(self, reason: str) -> DualSolution:
        self.refresh()
        f = self.scores()
        evidence = self.problem.evidence(self.b, f, self.scale)
        return DualSolution(self.b, f, evidence, reason, self.rounds, self.steps, self.curvature, self.saved())

    # ------------------------------------------------------------------------------------------- a round

    def round(self) -> bool:
        """Optimise the worst variables; False where nothing could be moved."""
        self.rounds += 1
        self.choose()
        target = max(0.5 * self.limits.tol * self.tightness, self.share * self.violation)
        limit = self.limits.max_steps - self.steps
        if self.limits.round_steps is not None:
            limit = min(limit, self.limits.round_steps)
        steps, moved = self.optimise(self.set, target, limit)
        return steps > 0 and moved

    def inner(self, G: Array, chosen: Array, b: Array, v: Array, target: float, limit: int) -> tuple[int, float]:
        """Optimise the variables `chosen` among themselves, b and v in place: (steps, least curvature)."""
        p = self.problem
        groups = np.array([0, len(chosen)], dtype=np.int64)
        if p.group is not None:
            groups = np.searchsorted(p.group[chosen], np.arange(int(p.group.max()) + 2)).astype(np.int64)
        ridge = None if self.ridge is None else self.ridge[chosen]
        steps, _, curvature = _native.svm.smo(
            G, self.diagonal[chosen], ridge, p.lo[chosen], p.hi[chosen], p.epsilon, groups, b, v, target, limit
        )
        return steps, curvature

    def optimise(self, chosen: Array, target: float, limit: int) -> tuple[int, bool]:
        p = self.problem
        if p.group is not None:
            chosen = chosen[np.argsort(p.group[chosen], kind="stable")]
        everything = len(chosen) == p.n and bool((np.diff(chosen) == 1).all())
        G = self.rows.square(chosen)
        before = self.b[chosen]
        b, v = before.copy(), self.v[chosen]
        steps, curvature = self.inner(G, chosen, b, v, target, limit)
        self.steps += steps
        self.curvature = min(self.curvature, curvature)
        change = b - before
        self.b[chosen] = b
        which = np.flatnonzero(change)
        self.moved += float(np.abs(change).sum())
        self.exact = False
        if everything:
            self.v = v
            return steps, bool(len(which))
        self.rows.subtract(chosen[which], change[which], self.v)
        if self.ridge is not None:
            self.v[chosen[which]] -= self.ridge[chosen[which]] * change[which]
        return steps, bool(len(which))

    def choose(self) -> None:
        """The next working set, in the order of the variables."""
        n = self.problem.n
        if _SMALL < n <= self.size and self.limits.shrinking and self.steps > 4 * n:
            self.size = min(_SET, max(64, n // 4))
        if n <= self.size:
            self.set = np.arange(n)
            return
        chosen = np.zeros(n, dtype=bool)
        new = self.size if not len(self.set) else self.size // 2
        members = self.problem.members()
        for g in members:
            self._worst(g, max(2, new * len(g) // n), chosen)
        old = self.set[~chosen[self.set]]
        room = self.size - int(chosen.sum())
        if len(old) and room > 0:
            free = np.isfinite(self.up[old]) & np.isfinite(self.low[old])
            order = np.lexsort((-self._excess(old), ~free))
            chosen[old[order[:room]]] = True
        self.set = np.flatnonzero(chosen)

    def _excess(self, which: Array) -> Array:
        """How far each variable is beyond what the others allow."""
        top, bottom = self.up.max(), self.low.min()
        return np.maximum(self.up[which] - bottom, top - self.low[which])

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
        if n > 512 or self.rows.rounding > 0 or self.violation <= _POLISH:
            return
        before, v = self.b.copy(), self.v.copy()
        size = float(max(np.abs(self.problem.z).max(), 1e-3))
        self.optimise(np.arange(n), _POLISH * size, 1000 + 20 * n)
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
