"""Logistic and softmax regression with an L1 penalty on columns in memory, by the loop of working sets in `optim`.

A working set is minimised over by proximal Newton steps (compiled): for two classes at once, for more class by class,
because with the other classes held fixed the loss of one class is that of two classes with an offset,

    log(1 + e^t) - y t    with    t_i = z_ik - log sum_{l != k} e^{z_il}.

A few columns and classes together are finished by Newton's method on all classes jointly.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from epicycle import _native
from epicycle.data import ArrayData
from epicycle.linear.lasso._design import WORK_PER_CALL, Columns, DenseColumns
from epicycle.linear.logistic._duality import column_gap, dual_scales, stationary
from epicycle.linear.logistic._proximal_newton import HessianSolver
from epicycle.optim._likelihoods import Logistic
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._working_set import Look, Outcome, Report, Sizes, minimise_by_working_sets

#: Sizes of working sets: the first (or a hundredth of all columns), and by how much the support is exceeded.
FIRST, GROWTH = 100, 400
#: Share of the columns new to a working set that come into use when the set was too small.
SATURATION = 0.5
#: Newton steps over one working set.
NEWTON_STEPS = 20
#: Parameters up to which all classes are finished together: their joint Hessian is then cheaper than cycles.
MAX_JOINT = 600
#: In the probability of each class D is strongly concave with constant 1 / smoothness.
SMOOTHNESS = Logistic.smoothness


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

    #: Below this share of the objective a difference from the best dual value is rounding.
    rounding = 1e-14
    inner_gap_counts = True
    penalty: ElasticNet
    l1: float
    l2: float
    alive: np.ndarray

    def __init__(self, design: Columns, codes: np.ndarray, n_classes: int, total_weight: float) -> None:
        self.design, self.unit = design, total_weight
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
        self._update()
        if not design.centre:  # with an intercept, y about its mean is the residual of the intercept alone
            design.correlations(self.U, None, self.c)
        self._seen[:] = self._way[:, None]

    def _intercepts_alone(self) -> np.ndarray:
        info = np.finfo(np.float64)
        share = np.clip(self.Y @ self.v, info.tiny, 1 - info.epsneg)  # beside weights of 1e100 one of 1e-300 underflows
        if self.rows == 1:
            return np.asarray(np.log(share) - np.log1p(-share))
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
        self._update()

    def minimise(self, l1: float, l2: float, tol: float, max_rounds: int, report: Report | None = None) -> Outcome:
        """Minimise sum_i w_i loss + l1 |W|_1 + l2/2 |W|^2 until the gap is at most tol times the objective.

        The point of the outcome is (W, b), of shape (rows, p + 1).
        """
        p = self.design.p
        self.l1, self.l2 = l1 / self.unit, l2 / self.unit
        self.penalty = ElasticNet(np.full(p, self.l1), np.full(p, self.l2))
        self.alive = np.repeat((self.square > 0).astype(np.uint8)[None], self.rows, axis=0)
        sizes = Sizes(max(FIRST, p // 100), GROWTH, SATURATION, stalls=10)
        return minimise_by_working_sets(self, sizes, tol=tol, max_rounds=max_rounds, report=report)

    def look(self) -> Look:
        """The objective, the duality gap and the columns that are left at the present (W, b)."""
        slack = self._refresh()
        l1, l2 = self.l1, self.l2
        objective = self.loss + l1 * float(np.abs(self.W).sum()) + l2 / 2 * float((self.W**2).sum())
        gap, scale = self._gap(slack)
        radius = float(np.sqrt(2 * SMOOTHNESS * gap))
        penalty, left = _native.linear.Penalty(self.penalty.l1, self.penalty.l2), 0
        score = np.empty_like(self.c)
        for k in range(self.rows):
            of_class = _native.linear.lasso_screen(
                self.c[k], slack[k], self.W[k], self.norm, penalty, scale, radius, self.alive[k], score[k]
            )
            left = max(left, of_class)
        point, support = np.column_stack([self.W, self.intercept]), int(np.count_nonzero(self.W.any(axis=0)))
        return Look(point, objective, gap, objective - gap, objective, score.min(axis=0), left, support)

    def minimise_over(self, columns: np.ndarray, target: float) -> None:
        """Proximal Newton over some columns: two classes at once, few parameters jointly, else class by class."""
        if self.rows == 1:
            self._descend(0, columns, target, self.Z[0], NEWTON_STEPS)
        elif self.rows * (len(columns) + 1) <= MAX_JOINT:
            self._jointly(columns, target)
        else:
            self._by_class(columns, target)
        self._update()

    # ------------------------------------------------------------------------------------------- the dual point

    def _update(self) -> None:
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

    def _refresh(self) -> np.ndarray:
        """Bring correlations up to date where they may matter; what the others may be off by."""
        slack = np.empty_like(self.c)
        for k in range(self.rows):
            # A correlation that was computed for earlier residuals is off by at most |x_j| times their distance.
            np.subtract(self._way[k], self._seen[k], out=slack[k])
            slack[k] *= self.norm
            need = (np.abs(self.c[k]) + slack[k] > self.l1) | (self.W[k] != 0)
            need &= (self._seen[k] < self._way[k]) & (self.alive[k] > 0)
            columns = np.flatnonzero(need)
            if len(columns):
                self.design.correlations(self.U[k], None if len(columns) == self.design.p else columns, self.c[k])
                self._seen[k, columns] = self._way[k]
                slack[k][columns] = 0.0
        return slack

    def _gap(self, slack: np.ndarray) -> tuple[float, float]:
        """The gap at the best of the dual points, and the factor of the residuals there."""
        if self._balance is None:
            return np.inf, 0.0
        on, l1, l2 = self.alive > 0, self.l1, self.l2
        W, c, slack = self.W[on], self.c[on], slack[on]
        best, scale = np.inf, 0.0
        for s in dual_scales(W, c, slack, l1, l2):
            gap = column_gap(W, c, slack, l1, l2, s)
            if gap < best:
                gap += _native.linear.coin_divergence(self.margin, self.v, s * self._balance[self.codes])
            if gap < best:
                best, scale = gap, s
        return best, scale

    # ------------------------------------------------------------------------------------------- the working set

    def _descend(self, k: int, columns: np.ndarray, target: float, z: np.ndarray, max_steps: int) -> float:
        """Proximal Newton steps in row k of W; z, the margins of that class, moves along. Returns the gap."""
        design, w = self.design, self.W[k, columns]
        y, mean = self.Y[k], design.mean[columns]
        penalty = self.penalty.on(columns)
        weights = _native.linear.Penalty(penalty.l1, penalty.l2)
        X, chosen = design.X, columns
        if isinstance(design, DenseColumns) and not design.column_major:
            X, chosen = np.asfortranarray(design.X[:, columns]), np.arange(len(columns))
        steps, gap = 0, np.inf
        while steps < max_steps:
            budget = _native.linear.Budget(rounds=max_steps - steps, target=target, work=WORK_PER_CALL)
            taken, gap, moved = _native.linear.logistic_descend(
                X, chosen, y, self.v, weights, design.centre, mean, w, z, budget
            )
            self.beta[k] += moved
            steps += taken
            if gap <= target or taken == 0:
                break
        self.W[k, columns] = w
        return gap

    def _by_class(self, columns: np.ndarray, target: float) -> None:
        """Cycles over the classes, until no class has much to gain by itself."""
        for _ in range(NEWTON_STEPS):
            worst = 0.0
            for k in range(self.rows):
                rest = logsumexp(np.delete(self.Z, k, axis=0), axis=0)
                t = self.Z[k] - rest
                before = t.copy()
                worst = max(worst, self._descend(k, columns, target / (2 * self.rows), t, 2))
                self.Z[k] += t - before
            if worst <= target / self.rows:
                return

    def _jointly(self, columns: np.ndarray, target: float) -> None:
        """Newton's method on all classes together, over the columns as they are."""
        X = self.design.X[:, columns]
        X = X.tocsr() if sp.issparse(X) else X
        part = ArrayData(X, self.codes, self.v)
        mean = np.asarray(self.design.mean[columns])
        solver = HessianSolver(
            part, self.n_classes, intercept=self.design.centre, shift=np.zeros(len(columns)) if sp.issparse(X) else mean
        )
        b = self.beta - (self.W[:, columns] @ mean if sp.issparse(X) else 0.0)
        W, b = solver.descend(self.W[:, columns], b, self.l1, self.l2, target, NEWTON_STEPS)
        self.W[:, columns] = W
        if self.design.centre:
            self.beta = b + (W @ mean if sp.issparse(X) else 0.0)
