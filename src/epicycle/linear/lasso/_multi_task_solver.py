"""The lasso for several tasks that share their features, on working sets: objective, dual, descent.

In the notation of :mod:`epicycle.linear.lasso._duality`, with W_j the coefficients of feature j in all tasks,

    minimise  P(W) = 1/2 |Y - XW|^2 + sum_j l1_j |W_j| + 1/2 sum_j l2_j |W_j|^2,

where |W_j| is the Euclidean length: a feature is used by all tasks or by none. With R = Y - XW and C_j = <x_j, R>,
which has a number for each task, W is optimal iff |C_j| <= l1_j where W_j = 0, and C_j = (l1_j / |W_j| + l2_j) W_j
elsewhere. The dual is that of one task with |C_j| in place of |c_j|,

    maximise  D(T) = <Y, T> - 1/2 |T|^2 - sum_{l2_j > 0} (|<x_j, T>| - l1_j)_+^2 / (2 l2_j),
    subject to |<x_j, T>| <= l1_j wherever l2_j = 0,

and so are the gap at a scaled residual and the gap-safe sphere, with lengths of vectors over rows and tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.linear.lasso._design import WORK_PER_CALL
from epicycle.linear.lasso._gram import IDLE_CALLS, solve_positive
from epicycle.linear.lasso._solver import (
    EPOCHS_PER_ROUND,
    EPS,
    SETTLING_EPOCHS,
    SMOOTHNESS,
    LassoSolver,
    MomentSolver,
)
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._working_set import Look, Outcome, Report

#: Features whose Gram matrix is formed at once; larger working sets are gone over piece by piece.
MAX_PIECE = 4000
#: How often, before all columns are looked at again.
CYCLES_PER_ROUND = 5
#: Coefficients on the support up to which Newton's method finishes a working set.
MAX_NEWTON = 500
#: Numbers beyond this have squares that a double cannot hold, with some room for sums of them.
LARGEST_COEFFICIENT = 1e150


class MultiTaskSolver(LassoSolver):
    """All tasks together, from one solver for each: `w`, `c` and `xy` have shape (features, tasks)."""

    def __init__(self, tasks: Sequence[LassoSolver]) -> None:
        first = tasks[0]
        xy = np.stack([task.xy for task in tasks], axis=1)
        super().__init__(first.p, first.square, xy, sum(task.yy for task in tasks), first.sizes)
        self.tasks = tasks

    def minimise(self, penalty: ElasticNet, tol: float, max_rounds: int, report: Report | None = None) -> Outcome:
        self._check_scales(penalty.l1)
        return super().minimise(penalty, tol, max_rounds, report)

    def _check_scales(self, l1: np.ndarray) -> None:
        """Refuse columns that may enter and whose coefficients, about |Y| / |x_j|, have lengths that overflow."""
        small = (self._sizes(self.xy) > l1) & (np.sqrt(self.yy) / LARGEST_COEFFICIENT > self.norm)
        if small.any():
            j = int(np.flatnonzero(small)[0])
            raise DataError(
                f"X: column {j} is too small for y: its coefficient would be about "
                f"{np.sqrt(self.yy) / self.norm[j]:.2g}, beyond {LARGEST_COEFFICIENT:g}; scale the column up or y down"
            )

    def _sizes(self, c: np.ndarray) -> np.ndarray:
        most = float(np.abs(c).max(initial=0.0))
        if most > LARGEST_COEFFICIENT:
            return most * self._sizes(c / most)
        return np.asarray(np.sqrt(np.einsum("jt,jt->j", c, c)))

    def update(self) -> None:
        for t, task in enumerate(self.tasks):
            task.start_at(self.w[:, t])
        self.rr = sum(task.rr for task in self.tasks)

    def refresh(self) -> None:
        columns = np.flatnonzero(self.alive)
        self.c[columns] = self.correlation(columns)
        if isinstance(self.tasks[0], MomentSolver):  # correlations carry the rounding of the Gram matrix
            lengths = self.norm @ np.abs(self.w) + np.sqrt([task.yy for task in self.tasks])
            self.slack = np.where(self.w.any(axis=1), 0.0, 8 * EPS * self.norm * np.linalg.norm(lengths))

    def gram(self, columns: np.ndarray) -> np.ndarray:
        return self.tasks[0].gram(columns)

    def correlation(self, columns: np.ndarray) -> np.ndarray:
        return np.stack([task.correlation(columns) for task in self.tasks], axis=1)

    def look(self) -> Look:
        if len(self.free):
            self.fit_unpenalised(self.free)
        self.refresh()
        l1, l2, alive = self.penalty.l1, self.penalty.l2, self.alive > 0
        size, length = self._sizes(self.c) + self.slack, self._sizes(self.w)
        bound = alive & ((l1 > 0) | (l2 > 0))  # the residuals are orthogonal to unpenalised columns
        objective = self.rr / 2 + float(l1 @ length) + float(l2 @ length**2) / 2
        dual, scale = self._dual_point(size, bound)
        gap = max(objective - dual, 0.0)
        radius = float(np.sqrt(2 * SMOOTHNESS * gap))
        used = length > 0
        self.alive[bound & ~used & (scale * size + radius * self.norm < l1)] = 0
        alive = self.alive > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            self.score = np.where(alive, (l1 - scale * size) / self.norm, np.inf)
        self.score[alive & (used | ~bound)] = -np.inf
        left = int(np.count_nonzero(alive))
        return Look(self.w.T, objective, gap, dual, self.total, self.score, left, int(np.count_nonzero(used)))

    def _dual_point(self, size: np.ndarray, bound: np.ndarray) -> tuple[float, float]:
        """The largest D(s R) of two scales s, and that s: as for one task."""
        l1, l2 = self.penalty.l1[bound], self.penalty.l2[bound]
        inner = float(np.einsum("jt,jt->", self.w[bound], self.c[bound]))
        shifted = self._sizes(self.c[bound] - l2[:, None] * self.w[bound]) + self.slack[bound]
        tight = float(np.divide(l1, shifted, out=np.ones_like(l1), where=shifted > l1).min(initial=1.0))
        over = (l2 == 0) & (size[bound] > l1)
        loose = float(np.divide(l1, size[bound], out=np.ones_like(l1), where=over).min(initial=1.0))
        best = (-np.inf, 1.0)
        for s in (tight, loose):
            excess = np.maximum(s * size[bound] - l1, 0.0)
            ridge = np.divide(excess**2, 2 * l2, out=np.zeros_like(l2), where=l2 > 0)
            best = max(best, (s * (self.rr + inner) - s * s * self.rr / 2 - float(ridge.sum()), s))
        return best

    def _excess(self) -> np.ndarray:
        l1, l2, length = self.penalty.l1, self.penalty.l2, self._sizes(self.w)
        share = np.divide(l1, length, out=np.zeros_like(l1), where=length > 0) + l2
        return np.where(length > 0, self._sizes(self.c - share[:, None] * self.w), self._sizes(self.c) - l1)

    def _can_settle(self, count: int) -> bool:
        return self.tasks[0]._can_settle(count) and count * len(self.tasks) <= MAX_NEWTON

    def _settle(self, columns: np.ndarray, target: float) -> None:
        G, Q, W = np.ascontiguousarray(self.gram(columns)), self.correlation(columns), self.w[columns]
        part = self.penalty.on(columns)
        self.w[columns] = _minimise_piece(G, Q, W, self.rr, part, target, SETTLING_EPOCHS, finish=True)
        self.update()

    def minimise_over(self, columns: np.ndarray, target: float) -> None:
        pieces = np.array_split(columns, -(-len(columns) // MAX_PIECE))
        # With several pieces each is only a step on the way: a few epochs, and on to the next.
        epochs = EPOCHS_PER_ROUND if len(pieces) == 1 else EPOCHS_PER_ROUND // 10
        for piece in pieces * (1 if len(pieces) == 1 else CYCLES_PER_ROUND):
            G, Q, W = np.ascontiguousarray(self.gram(piece)), self.correlation(piece), self.w[piece]
            penalty, finish = self.penalty.on(piece), len(pieces) == 1
            self.w[piece] = _minimise_piece(G, Q, W, self.rr, penalty, target, epochs, finish=finish)
            self.update()


def _minimise_piece(
    G: np.ndarray,
    Q: np.ndarray,
    W: np.ndarray,
    rr: float,
    penalty: ElasticNet,
    target: float,
    epochs: int,
    *,
    finish: bool,
) -> np.ndarray:
    """The coefficients of some features at a gap over them of `target`, from W with Q = X'R and rr = |R|^2.

    With `finish` one more step of Newton's method takes them to nearly the last digit.
    """
    if not penalty.l1.any():  # ridge regression: one linear system
        A = G + np.diag(penalty.l2)
        return np.asarray(W + scipy.linalg.lstsq(A, Q - penalty.l2[:, None] * W)[0])
    weights = _native.linear.Penalty(penalty.l1, penalty.l2)
    done = idle = 0
    least_gap, least_value = np.inf, np.inf
    while done < epochs and idle < IDLE_CALLS:
        budget = _native.linear.Budget(rounds=20, target=target, work=WORK_PER_CALL)
        n, gap, rr = _native.linear.multi_task_descend(G, weights, W, Q, rr, budget)
        done += n
        if gap <= target or n == 0:
            if finish:
                _newton_step(G, Q, W, rr, penalty)
            break
        rr = _newton_step(G, Q, W, rr, penalty)
        length = np.linalg.norm(W, axis=1)
        value = rr / 2 + float(penalty.l1 @ length) + float(penalty.l2 @ length**2) / 2
        # A gap that rounding keeps above the target: neither it nor the objective falls any more.
        idle = 0 if gap < least_gap or value < least_value * (1 - EPS) else idle + 1
        least_gap, least_value = min(gap, least_gap), min(value, least_value)
    return W


def _newton_step(G: np.ndarray, Q: np.ndarray, W: np.ndarray, rr: float, penalty: ElasticNet) -> float:
    """One step on the support, where P is smooth; W, Q and |R|^2 afterwards.

    The Hessian of |W_j| is (I - uu') / |W_j| with u = W_j / |W_j|.
    """
    S = np.flatnonzero(W.any(axis=1))
    k = W.shape[1]
    if not 0 < len(S) * k <= MAX_NEWTON:
        return rr
    w, l1, l2 = W[S], penalty.l1[S], penalty.l2[S]
    length = np.linalg.norm(w, axis=1)
    u = w / length[:, None]
    H = np.kron(G[np.ix_(S, S)], np.eye(k)).reshape(len(S), k, len(S), k)
    curvature = (l1 / length)[:, None, None] * (np.eye(k) - u[:, :, None] * u[:, None, :])
    H[np.arange(len(S)), :, np.arange(len(S)), :] += curvature + l2[:, None, None] * np.eye(k)
    gradient = l2[:, None] * w + l1[:, None] * u - Q[S]
    d = solve_positive(H.reshape(len(S) * k, -1), -gradient.ravel())
    if d is None:
        return rr
    d = d.reshape(len(S), k)
    before = rr / 2 + float(l1 @ length) + float(l2 @ length**2) / 2
    for t in (1.0, 0.5, 0.1):
        new = w + t * d
        moved = Q - G[:, S] @ (t * d)
        square = rr - float(np.sum(t * d * (Q[S] + moved[S])))
        lengths = np.linalg.norm(new, axis=1)
        value = square / 2 + float(l1 @ lengths) + float(l2 @ lengths**2) / 2
        falls = value < before
        if not falls and t == 1 and lengths.all() and value <= before + 8 * EPS * abs(before):
            # Rounding hides the last digits of the objective, but not those of its gradient.
            slope = l2[:, None] * new + (l1 / lengths)[:, None] * new - moved[S]
            falls = np.linalg.norm(slope) < np.linalg.norm(gradient)
        if falls:
            W[S], Q[:] = new, moved
            return max(square, 0.0)
    return rr
