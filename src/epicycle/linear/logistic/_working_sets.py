"""Working sets for logistic and softmax regression with an L1 penalty, on columns in memory.

Each round reads the correlations that may have come near their bound, takes the duality gap over all columns, screens
by the gap-safe sphere, and minimises over a working set by proximal Newton steps (compiled): for two classes at once,
for more class by class, because with the other classes held fixed the loss of one class is that of two classes with an
offset, log(1 + e^t) - y t with t_i = z_ik - log sum_{l != k} e^{z_il}. A few columns and classes together are finished
by Newton's method on all classes jointly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from epicycle import _native
from epicycle.data import ArrayData
from epicycle.linear.lasso._design import WORK_PER_CALL, Columns, DenseColumns, SparseColumns
from epicycle.linear.logistic._duality import Outcome, column_gap, dual_scales, stationary
from epicycle.linear.logistic._proximal_newton import HessianSolver

__all__ = ["ColumnLogistic"]

#: Sizes of working sets: the first (or a hundredth of all columns), and by how much the support is exceeded.
FIRST, GROWTH = 100, 400
#: Share of the columns new to a working set that come into use when the set was too small.
SATURATED = 0.5
#: Gap over the working set that ends a round, relative to that over all columns; and where the set was too small.
INNER_ACCURACY, ROUGH = 0.03, 0.3
NEWTON_STEPS = 20
#: Parameters up to which all classes are finished together.
MAX_JOINT = 600

#: (round, W, b, objective, gap, columns in the last working set, columns not screened) -> whether to stop.
Report = Callable[[int, np.ndarray, np.ndarray, float, float, int, int], bool]


class ColumnLogistic:
    """One data set; `W` (rows by features) and `beta` (intercepts about the means of the columns) are where it stands.

    Parameters
    ----------
    design : Columns
        With row weights v.
    codes : ndarray of shape (n,)
        Classes 0 .. K-1.
    n_classes : int
    total_weight : float
        Sum of all weights: the objective of a fit is that of the module's mathematics times this.
    """

    def __init__(self, design: Columns, codes: np.ndarray, n_classes: int, total_weight: float) -> None:
        self.design, self.total = design, total_weight
        self.codes = codes.astype(np.int64)
        n, p = design.n, design.p
        self.v = np.full(n, 1 / n) if design.v is None else design.v
        self.rows = 1 if n_classes == 2 else n_classes
        self.n_classes = n_classes
        members = [self.codes == 1] if self.rows == 1 else [self.codes == k for k in range(n_classes)]
        self.Y = np.array(members, dtype=np.float64)
        self.c = np.array([design.response(y).xy for y in self.Y])
        self.square, self.norm = design.square, design.norm
        self.W = np.zeros((self.rows, p))
        self.beta = self._intercepts_alone() if design.centre else np.zeros(self.rows)
        self.Z = np.repeat(self.beta[:, None], n, axis=1)
        self.U = np.zeros((self.rows, n))
        self._way, self._seen = np.zeros(self.rows), np.zeros((self.rows, p))
        self.loss, self.margin = 0.0, np.zeros(n)
        self._balance: np.ndarray | None = None
        self._look_again()
        if not design.centre:  # with an intercept, y about its mean is the residual of the intercept alone
            for k in range(self.rows):
                design.correlations(self.U[k], None, self.c[k])
        self._seen[:] = self._way[:, None]

    def _intercepts_alone(self) -> np.ndarray:
        share = self.Y @ self.v
        if self.rows == 1:
            return np.log(share) - np.log1p(-share)
        logs = np.log(share)
        return np.asarray(logs - logs.mean())

    @property
    def intercept(self) -> np.ndarray:
        """b, from the intercepts about the means."""
        return np.asarray(self.beta - self.W @ self.design.mean)

    def start_at(self, W: np.ndarray, b: np.ndarray) -> None:
        """Go on from (W, b)."""
        self.W = np.where(self.square > 0, W, 0.0)
        if self.design.centre:
            self.beta = b + self.W @ self.design.mean
        self._look_again()

    def largest_l1(self) -> float:
        """The smallest l1 (in the units of the sum over rows) at which all coefficients are zero."""
        zero = _Zero(self)
        return self.total * float(np.abs(np.where(self.square > 0, zero.c, 0.0)).max(initial=0.0))

    def minimise(self, l1: float, l2: float, tol: float, max_rounds: int, report: Report | None = None) -> Outcome:
        """Minimise sum_i w_i loss + l1 |W|_1 + l2/2 |W|^2 until the gap is at most tol times the objective."""
        l1, l2 = l1 / self.total, l2 / self.total
        p = self.design.p
        l1s, l2s = np.full(p, l1), np.full(p, l2)
        alive = np.repeat((self.square > 0).astype(np.uint8)[None], self.rows, axis=0)
        score = np.empty((self.rows, p))
        lower, last, accuracy = -np.inf, np.inf, INNER_ACCURACY
        size = worked_on = stalled = support = 0
        for done in range(max_rounds + 1):
            slack = self._refresh(l1, alive)
            objective = self.loss + l1 * float(np.abs(self.W).sum()) + l2 / 2 * float((self.W**2).sum())
            present, scale = self._gap(l1, l2, slack, alive)
            lower = max(lower, objective - present)
            gap = min(present, max(objective - lower, 1e-14 * objective))
            radius = float(np.sqrt(present / 2))
            left = 0
            for k in range(self.rows):
                left = max(left, _native.linear.lasso_screen(
                    self.c[k], slack[k], self.W[k], self.norm, l1s, l2s, False, scale, radius, alive[k], score[k]
                ))  # fmt: skip
            stop = report is not None and report(
                done, self.W, self.intercept, self.total * objective, self.total * gap, worked_on, left
            )
            stalled = stalled + 1 if gap >= last * (1 - 1e-3) else 0
            reason = (
                "converged" if gap <= tol * objective
                else "stopped" if stop
                else "max_iter" if done == max_rounds
                else "stalled" if stalled >= 10
                else ""
            )  # fmt: skip
            if reason:
                break
            before, support = support, int(np.count_nonzero(self.W.any(axis=0)))
            new = worked_on - before
            saturated = done == 0 or (new > 0 and support - before >= SATURATED * new)  # the rest lies outside the set
            slow = gap > 0.5 * last and not saturated
            accuracy = max(accuracy * 0.1, 1e-8) if slow else ROUGH if saturated else INNER_ACCURACY
            last = min(gap, last)
            best = score.min(axis=0)
            left = int(np.count_nonzero(best < np.inf))
            size = min(_next_size(size, support, saturated=saturated, slow=slow, first=max(FIRST, p // 100)), left)
            working_set = _lowest(best, size)
            worked_on = len(working_set)
            self._minimise_over(working_set, l1, l2, max(accuracy * gap, 0.3 * tol * objective))
            self._look_again()
        return Outcome(self.W.copy(), self.intercept, self.total * objective, self.total * gap, done, reason)

    # ------------------------------------------------------------------------------------------- the dual point

    def _look_again(self) -> None:
        """Margins, residuals and the balance of the classes from (W, beta)."""
        for k in range(self.rows):
            self.Z[k] = self.beta[k]
            support = np.flatnonzero(self.W[k])
            if len(support):
                self.design.subtract(support, -self.W[k, support], self.Z[k])
        U = np.empty_like(self.U)
        if self.rows == 1:
            self.loss = _native.linear.logistic_residual(self.Z[0], self.Y[0], self.v, U[0])
            self.margin = np.where(self.codes == 1, self.Z[0], -self.Z[0])
            up, down = float(U[0] @ self.Y[0]), -float(U[0] @ (1 - self.Y[0]))
            M = np.array([[down, -down], [-up, up]])
        else:
            lse = logsumexp(self.Z, axis=0)
            own = np.take_along_axis(self.Z, self.codes[None], axis=0)[0]
            self.loss = float(self.v @ (lse - own))
            np.subtract(self.Y, np.exp(self.Z - lse), out=U)
            U *= self.v
            others = self.Z.copy()
            np.put_along_axis(others, self.codes[None], -np.inf, axis=0)
            self.margin = own - logsumexp(others, axis=0)
            M = self.Y @ U.T
            M[np.diag_indices(self.rows)] = 0.0
            M[np.diag_indices(self.rows)] = -M.sum(axis=1)
        self._balance = stationary(M) if self.design.centre else np.ones(self.n_classes)
        if self._balance is not None:
            U *= self._balance[self.codes]
        squares = np.divide((U - self.U) ** 2, self.v, out=np.zeros_like(U), where=self.v > 0).sum(axis=1)
        self._way += np.sqrt(squares)
        self.U = U

    def _refresh(self, l1: float, alive: np.ndarray) -> np.ndarray:
        """Bring correlations up to date where they may matter; what the others may be off by."""
        slack = np.empty_like(self.c)
        for k in range(self.rows):
            # A correlation that was computed for earlier residuals is off by at most |x_j| times their distance.
            np.subtract(self._way[k], self._seen[k], out=slack[k])
            slack[k] *= self.norm
            need = (np.abs(self.c[k]) + slack[k] > l1) | (self.W[k] != 0)
            need &= (self._seen[k] < self._way[k]) & (alive[k] > 0)
            columns = np.flatnonzero(need)
            if len(columns):
                self.design.correlations(self.U[k], None if len(columns) == self.design.p else columns, self.c[k])
                self._seen[k, columns] = self._way[k]
                slack[k][columns] = 0.0
        return slack

    def _gap(self, l1: float, l2: float, slack: np.ndarray, alive: np.ndarray) -> tuple[float, float]:
        """The gap at the best of the dual points, and the factor of the residuals there."""
        if self._balance is None:
            return np.inf, 0.0
        on = alive > 0
        W, c, slack = self.W[on], self.c[on], slack[on]
        best, scale = np.inf, 0.0
        for s in dual_scales(W, c, slack, l1, l2).factors:
            gap = column_gap(W, c, slack, l1, l2, s)
            if gap < best:
                gap += _native.linear.coin_divergence(self.margin, self.v, s * self._balance[self.codes])
            if gap < best:
                best, scale = gap, s
        return best, scale

    # ------------------------------------------------------------------------------------------- the working set

    def _minimise_over(self, columns: np.ndarray, l1: float, l2: float, target: float) -> None:
        if self.rows == 1:
            self._descend(0, columns, l1, l2, target, self.Z[0], NEWTON_STEPS)
        elif self.rows * (len(columns) + 1) <= MAX_JOINT:
            self._jointly(columns, l1, l2, target)
        else:
            self._by_class(columns, l1, l2, target)

    def _descend(
        self, k: int, columns: np.ndarray, l1: float, l2: float, target: float, z: np.ndarray, max_steps: int
    ) -> float:
        """Proximal Newton steps in row k of W; z, the margins of that class, moves along. Returns the gap."""
        design, w = self.design, self.W[k, columns]
        y, mean = self.Y[k], design.mean[columns]
        l1s, l2s = np.full(len(columns), l1), np.full(len(columns), l2)
        X, chosen = design.X, columns
        if isinstance(design, DenseColumns) and not design.column_major:
            X, chosen = np.asfortranarray(design.X[:, columns]), np.arange(len(columns))
        steps, gap = 0, np.inf
        while steps < max_steps:
            arguments: dict[str, Any] = {
                "columns": chosen, "y": y, "v": self.v, "l1": l1s, "l2": l2s, "intercept": design.centre,
                "centre": mean, "w": w, "z": z, "max_steps": max_steps - steps, "target": target,
                "max_work": WORK_PER_CALL,
            }  # fmt: skip
            if isinstance(design, SparseColumns):
                data, indices, indptr, n = design.parts
                taken, gap, moved = _native.linear.csc_logistic_descend(data, indices, indptr, n, **arguments)
            else:
                taken, gap, moved = _native.linear.logistic_descend(X, **arguments)
            self.beta[k] += moved
            steps += taken
            if gap <= target or taken == 0:
                break
        self.W[k, columns] = w
        return gap

    def _by_class(self, columns: np.ndarray, l1: float, l2: float, target: float) -> None:
        """Cycles over the classes, until no class has much to gain by itself."""
        for _ in range(NEWTON_STEPS):
            worst = 0.0
            for k in range(self.rows):
                rest = logsumexp(np.delete(self.Z, k, axis=0), axis=0)
                t = self.Z[k] - rest
                before = t.copy()
                worst = max(worst, self._descend(k, columns, l1, l2, target / (2 * self.rows), t, 2))
                self.Z[k] += t - before
            if worst <= target / self.rows:
                return

    def _jointly(self, columns: np.ndarray, l1: float, l2: float, target: float) -> None:
        """Newton's method on all classes together, over the columns as they are."""
        X = self.design.X[:, columns]
        X = X.tocsr() if sp.issparse(X) else X
        part = ArrayData(X, self.codes, self.v)
        mean = np.asarray(self.design.mean[columns])
        solver = HessianSolver(
            part, self.n_classes, intercept=self.design.centre, shift=np.zeros(len(columns)) if sp.issparse(X) else mean
        )
        b = self.beta - (self.W[:, columns] @ mean if sp.issparse(X) else 0.0)
        W, b = solver.descend(self.W[:, columns], b, l1, l2, target, NEWTON_STEPS)
        self.W[:, columns] = W
        if self.design.centre:
            self.beta = b + (W @ mean if sp.issparse(X) else 0.0)


class _Zero:
    """Correlations at W = 0 with the intercepts alone."""

    def __init__(self, solver: ColumnLogistic) -> None:
        self.c = np.empty_like(solver.c)
        for k in range(solver.rows):
            y = solver.Y[k]
            rest = y - (float(solver.v @ y) if solver.design.centre else 1 / solver.n_classes)
            solver.design.correlations(solver.design.weighted(rest), None, self.c[k])


def _next_size(size: int, support: int, *, saturated: bool, slow: bool, first: int) -> int:
    """Columns of the next working set: four times as many where all were needed, else the support and some more."""
    if saturated:
        return max(4 * support, first)
    return max(support + min(max(support, FIRST), GROWTH), 2 * size if slow else 0)


def _lowest(score: np.ndarray, size: int) -> np.ndarray:
    """Indices of the `size` smallest finite scores, in order of index."""
    present = np.flatnonzero(score < np.inf)
    if size >= len(present):
        return present
    return np.sort(present[np.argpartition(score[present], size)[:size]])
