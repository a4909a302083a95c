"""The lasso on a Gram matrix: coordinate descent finds the signs, Newton's method on the support does the rest.

With G = X'VX, c = X'Vy and q = c - Gw = X'Vr, everything that a step needs is of the size of the working set. Once the
signs no longer change, P is a quadratic on the support S,

    (G_SS + diag(l2)) d = q_S - l2 w_S - l1 sign(w_S),

and w + d is its minimum. Along d, P is a convex function made of parabolas that meet where a coefficient changes its
sign; the step goes to its exact minimum there (feature-sign search: Lee, Battle, Raina and Ng 2007), so P never rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle import _native
from epicycle.linear.lasso._design import WORK_PER_CALL, DenseColumns
from epicycle.optim._penalties import ElasticNet

#: Largest support that Newton's method factorises: about a second for one factor.
MAX_NEWTON = 3000
#: Calls of the descent in a row that lower neither the gap nor the objective, after which rounding is all that is left:
#: a penalty far below the rounding of the correlations has no dual point that proves anything.
IDLE_CALLS = 5


@dataclass
class GramProblem:
    """Columns `slots` of G with their penalties; w is by column, q by row of G. Both are changed in place."""

    G: np.ndarray
    slots: np.ndarray
    xy: np.ndarray
    yy: float
    penalty: ElasticNet
    w: np.ndarray
    q: np.ndarray

    def value(self, w: np.ndarray, q: np.ndarray) -> float:
        """P(w), up to |y|^2 / 2."""
        fit = -0.5 * float(w @ (self.xy[self.slots] + q[self.slots]))
        return fit + float(self.penalty.l1 @ np.abs(w)) + 0.5 * float(self.penalty.l2 @ (w * w))


def minimise_on_gram(problem: GramProblem, target: float, *, max_epochs: int, finish: bool = False) -> None:
    """Minimise until the duality gap over these columns is at most `target`; with `finish` to the last digit."""
    square = np.ascontiguousarray(np.diagonal(problem.G)[problem.slots])
    penalty = _native.linear.Penalty(problem.penalty.l1, problem.penalty.l2, problem.penalty.positive)
    budget = _native.linear.Budget(rounds=20, target=target, work=WORK_PER_CALL)
    epochs, share, idle = 0, 1.0, 0
    least_gap = least_value = np.inf
    while epochs < max_epochs:
        # After a Newton step that came to its end the signs are right or nearly so; one that was cut short (or could
        # not be taken at all) says that they are not, and leaves the work to descent with extrapolation for a while.
        settle = share == 1.0
        done, gap, _ = _native.linear.gram_lasso_descend(
            problem.G, problem.slots, square, problem.xy, problem.yy, penalty, problem.w, problem.q, budget, settle
        )
        epochs += done
        if gap <= target or done == 0:
            if finish:
                _newton_step(problem)  # the signs are right: this is the minimum but for rounding
            return
        value = problem.value(problem.w, problem.q)
        idle = 0 if gap < least_gap or value < least_value - 1e-15 * abs(least_value) else idle + 1
        if idle == IDLE_CALLS:
            return
        least_gap, least_value = min(gap, least_gap), min(value, least_value)
        share = _newton_step(problem)


def _newton_step(problem: GramProblem) -> float:
    """One step on the support; returns which share of it was taken, 0 where there was none."""
    w, penalty = problem.w, problem.penalty
    S = np.flatnonzero(w)
    if not 0 < len(S) <= MAX_NEWTON:
        return 0.0
    rows = problem.slots[S]
    A = problem.G[np.ix_(rows, rows)]
    A[np.diag_indices_from(A)] += penalty.l2[S]
    gradient = problem.q[rows] - penalty.l2[S] * w[S] - penalty.l1[S] * np.sign(w[S])
    d = solve_positive(A, gradient)
    if d is None or not (slope := float(gradient @ d)) > 0:
        return 0.0
    t, at_zero = 1.0, np.empty(0, dtype=np.int64)
    crossing = np.flatnonzero((w[S] * d < 0) & (np.abs(d) > np.abs(w[S])) & ((penalty.l1[S] > 0) | penalty.positive))
    if len(crossing):  # coefficients that would change their sign
        t, at_zero = _line_search(w[S], d, penalty.l1[S], slope, penalty.positive, crossing)
    trial = w.copy()
    trial[S] += t * d
    trial[S[at_zero]] = 0.0
    q = problem.q.copy()
    _native.linear.gram_lasso_move(problem.G, rows, trial[S] - w[S], q)
    if problem.value(trial, q) > problem.value(w, problem.q):  # only by rounding
        return 0.0
    w[:], problem.q[:] = trial, q
    return t


def _line_search(
    w: np.ndarray, d: np.ndarray, l1: np.ndarray, slope: float, positive: bool, crossing: np.ndarray
) -> tuple[float, np.ndarray]:
    """The t in (0, 1] that minimises P(w + t d), and the coefficients that are zero there.

    P falls with `slope` at t = 0 and would reach its minimum at t = 1; each change of a sign on the way adds
    2 l1_j |d_j| to its derivative (t - 1) slope. Non-negative coefficients end the way where the first reaches zero.
    """
    at = -w[crossing] / d[crossing]
    order = np.argsort(at, kind="stable")
    crossing, at = crossing[order], at[order]
    if positive:
        return float(at[0]), crossing[at == at[0]]
    rise = np.cumsum(2 * l1[crossing] * np.abs(d[crossing]))
    after = (at - 1) * slope + rise  # the derivative just after each crossing
    first = int(np.argmax(after >= 0)) if (after >= 0).any() else len(crossing)
    before = rise[first - 1] if first else 0.0
    t = 1 - before / slope  # the minimum of the parabola that ends at crossing `first`
    if first < len(crossing) and t >= at[first]:
        return float(at[first]), crossing[at == at[first]]
    return float(t), np.empty(0, dtype=np.int64)


def solve_positive(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """A^-1 b for a positive definite A; a little ridge where it is not, which still gives a direction of descent."""
    for ridge in (0.0, 1e-10):
        B = A if ridge == 0 else A + ridge * np.diagonal(A).max() * np.eye(len(A))
        _, x, info = scipy.linalg.lapack.dposv(B, b, lower=1)
        if info == 0 and np.isfinite(x).all():
            return np.asarray(x)
    return None


class WorkingGram:
    """The Gram matrix of the columns that have been in a working set, built up as they come in.

    It holds a copy of these columns, centred and weighted, and keeps within `max_bytes`.
    """

    def __init__(self, design: DenseColumns, max_bytes: float) -> None:
        self.design, self.max_bytes = design, max_bytes
        self.columns = np.empty(0, dtype=np.int64)
        self.slot = np.full(design.p, -1, dtype=np.int64)
        self._A = np.empty((design.n, 0), order="F")
        self._G = np.empty((0, 0))

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def gram(self) -> np.ndarray:
        return self._G[: self.size, : self.size]

    def fits(self, count: int) -> bool:
        """Whether a working set of so many columns is held."""
        return count * 8.0 * (self.design.n + count) <= self.max_bytes

    def hold(self, working_set: np.ndarray) -> None:
        """Make sure that all columns of the working set are there."""
        new = working_set[self.slot[working_set] < 0]
        if len(new) == 0:
            return
        if self.size + len(new) > len(working_set) + len(working_set) // 4 + 64 or not self.fits(self.size + len(new)):
            self._keep(working_set[self.slot[working_set] >= 0])
        m, total = self.size, self.size + len(new)
        if total > self._A.shape[1]:
            self._grow(max(total, min(2 * total, self.design.p)) if self.fits(2 * total) else total)
        A, G = self._A, self._G
        self.design.gathered(new, A[:, m:total])
        step = max(1, int(WORK_PER_CALL * 10 / (self.design.n * total)))
        for first in range(m, total, step):
            last = min(first + step, total)
            G[first:last, :last] = A[:, first:last].T @ A[:, :last]
            G[:first, first:last] = G[first:last, :first].T
        self.slot[new] = np.arange(m, total)
        self.columns = np.concatenate([self.columns, new])

    def _keep(self, columns: np.ndarray) -> None:
        kept = self.slot[columns]
        self.slot[self.columns] = -1
        k = len(kept)
        self._A[:, :k] = self._A[:, kept]
        self._G[:k, :k] = self._G[np.ix_(kept, kept)]
        self.columns = columns
        self.slot[columns] = np.arange(k)

    def _grow(self, capacity: int) -> None:
        m = self.size
        A = np.empty((self.design.n, capacity), order="F")
        G = np.empty((capacity, capacity))
        A[:, :m], G[:m, :m] = self._A[:, :m], self._G[:m, :m]
        self._A, self._G = A, G
