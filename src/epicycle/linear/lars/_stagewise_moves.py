"""Forward stagewise regression: the moves, and what is kept of them.

With r = y - Xw and q_j = <x_j, r>, every move changes the coefficient of the feature most correlated with the residuals
by a small amount: w_j += step sign(q_j), or by a share of the way to its best value, w_j += step q_j / |x_j|^2. In
covariance form a move costs one row of the Gram matrix G: q -= d G_j. As the step goes to zero the coefficients follow
the lasso path for as long as none of them turns back (Efron et al. 2004, section 3.2; Hastie, Taylor, Tibshirani and
Walther 2007).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from epicycle import _native
from epicycle.core._memory import require_memory
from epicycle.linear.lasso._design import WORK_PER_CALL
from epicycle.linear.lasso._solver import ColumnSolver, LassoSolver, MomentSolver

#: Why compiled code came back; the numbers are those of native/stagewise.hpp.
BUDGET, LEVEL, EXHAUSTED, ROW_MISSING, TURNED = range(5)


class GramRows(ABC):
    """Rows of the Gram matrix, one for each feature that is ever moved."""

    rows: np.ndarray
    row_of: np.ndarray

    @abstractmethod
    def need(self, j: int) -> None:
        """Make sure that row j is there."""


class AllRows(GramRows):
    """The whole Gram matrix is known."""

    def __init__(self, solver: MomentSolver) -> None:
        self.rows, self.row_of = solver.G, np.arange(solver.p)

    def need(self, j: int) -> None:
        """All rows are there."""


class RowsOnDemand(GramRows):
    """Rows are computed from columns in memory when they are first needed."""

    def __init__(self, solver: ColumnSolver) -> None:
        self._design, self._flat, self._count = solver.design, solver.square == 0, 0
        self.rows, self.row_of = np.empty((0, solver.p)), np.full(solver.p, -1, dtype=np.int64)

    def need(self, j: int) -> None:
        if self.row_of[j] >= 0:
            return
        design, k = self._design, self._count
        if k == len(self.rows):
            capacity = min(max(8, 2 * k), design.p)
            what = f"{capacity} rows of the Gram matrix of {design.p} features"
            require_memory(8.0 * capacity * design.p, what, "end the fit earlier by alpha or max_iter")
            grown = np.empty((capacity, design.p))
            grown[:k] = self.rows[:k]
            self.rows = grown
        x = np.zeros(design.n)
        design.subtract(np.array([j]), np.array([-1.0]), x)
        design.correlations(design.weighted(x), None, self.rows[k])
        self.rows[k, self._flat] = 0.0
        self.row_of[j] = k
        self._count += 1


def gram_rows(solver: LassoSolver) -> GramRows:
    """Rows of the Gram matrix behind a solver."""
    if isinstance(solver, MomentSolver):
        return AllRows(solver)
    assert isinstance(solver, ColumnSolver)
    return RowsOnDemand(solver)


@dataclass
class Moves:
    """All moves in order: feature + 1, negative where the coefficient fell; `sizes` where they are not all equal."""

    codes: list[np.ndarray] = field(default_factory=list)
    sizes: list[np.ndarray] = field(default_factory=list)

    @property
    def n(self) -> int:
        return sum(len(part) for part in self.codes)

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """(codes, sizes), the latter empty where all are equal."""
        codes = np.concatenate([np.empty(0, dtype=np.int32), *self.codes])
        return codes, np.concatenate([np.empty(0), *self.sizes])


@dataclass(frozen=True)
class Leg:
    """Moves up to the next feature that goes where it has not gone before, and that feature (-1: none)."""

    feature: int
    new: bool
    finished: bool


class StagewiseRun:
    """The state of a run; :meth:`leg` goes on with it."""

    def __init__(self, solver: LassoSolver, *, step: float | None, proportional: bool, alpha: float) -> None:
        self.solver, self.rows, self.proportional, self.alpha = solver, gram_rows(solver), proportional, alpha
        self.w, self.q = np.zeros(solver.p), np.where(solver.square > 0, solver.xy, 0.0)
        self.ways, self.moves = np.zeros(solver.p, dtype=np.uint8), Moves()
        self.half_square = solver.yy / 2
        self.step = _default_step(solver, self.q, proportional) if step is None else float(step)

    @property
    def largest(self) -> float:
        """The largest correlation."""
        return float(np.abs(self.q).max(initial=0.0))

    def leg(self, budget: int) -> Leg:
        """At most `budget` moves."""
        before = self.moves.n
        while True:
            most = min(budget - (self.moves.n - before), max(1, int(WORK_PER_CALL / self.solver.p)))
            codes = np.empty(most, dtype=np.int32)
            sizes = np.empty(most) if self.proportional else None
            made, end, j, gained = _native.linear.stagewise(
                self.rows.rows,
                self.rows.row_of,
                self.solver.square,
                self.step,
                self.proportional,
                self.alpha,
                self.q,
                self.w,
                self.ways,
                codes,
                sizes,
            )
            self.half_square -= gained
            if made:
                self.moves.codes.append(codes[:made].copy())
                if sizes is not None:
                    self.moves.sizes.append(sizes[:made].copy())
            if end == ROW_MISSING:
                self.rows.need(j)
                continue
            turned = end == TURNED
            new = turned and self.ways[j] != 3
            return Leg(j if turned else -1, new, end in (LEVEL, EXHAUSTED))


def _default_step(solver: LassoSolver, q: np.ndarray, proportional: bool) -> float:
    """A hundredth of the way, or a thousandth of the first feature's own least-squares coefficient."""
    if proportional:
        return 0.01
    j = int(np.argmax(np.abs(q)))
    own = float(abs(q[j]) / solver.square[j]) if solver.square[j] > 0 else 0.0
    return 1e-3 * own if own > 0 else 1.0
