"""Proximal Newton for L1-penalised logistic and softmax regression from sums over rows: files, clusters, few columns.

One pass gives loss, gradient g and Hessian H of the sum of losses at (W, b). The intercepts are eliminated from the
quadratic model (a Schur complement), coordinate descent on the matrix that is left finds the minimum of the model with
its L1 term, and a step along the line to it is halved until the objective falls. The gap takes two passes: the
correlations of the balanced residuals, class by class, then the divergence from the dual point that follows from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Batch, Data
from epicycle.linear.lasso._gram import GramProblem, minimise_on_gram
from epicycle.linear.logistic._duality import column_gap, dual_scales, stationary
from epicycle.linear.logistic._fold_rows import sum_rows
from epicycle.linear.logistic._statistics import (
    binary_hessian,
    multinomial_hessian,
    row_weights,
    shifted_features,
    targets_of,
)
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._working_set import Outcome, Report

EPS = float(np.finfo(np.float64).eps)
#: Epochs of coordinate descent on one quadratic model, and halvings of a step before it counts as none.
EPOCHS = 200
HALVINGS = 40
#: Predicted change of the objective, relative to it, from which a last step is worth a pass.
SETTLED = 1e-15


@dataclass
class _Point:
    """(W, b) with the loss and its derivatives there."""

    params: np.ndarray  # rows x (p + 1), the last column b
    loss: float
    g: np.ndarray
    H: np.ndarray  # rows x (p + 1) x rows x (p + 1)

    def value(self, l1: float, l2: float) -> float:
        return self.loss + _penalty(self.params[:, :-1], l1, l2)


def _penalty(W: np.ndarray, l1: float, l2: float) -> float:
    return l1 * float(np.abs(W).sum()) + l2 / 2 * float((W * W).sum())


class HessianSolver:
    """One data set, with b the intercept of features taken about `shift`.

    Parameters
    ----------
    data : Data
        Targets are class codes: float64 0/1 for two classes, integers otherwise.
    n_classes : int
    intercept : bool
    shift : ndarray of shape (p,)
    class_weight : ndarray of shape (n_classes,), optional
    n_jobs : int, optional
    """

    def __init__(
        self,
        data: Data,
        n_classes: int,
        *,
        intercept: bool,
        shift: np.ndarray,
        class_weight: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.data, self.n_classes, self.intercept = data, n_classes, intercept
        self.shift, self.class_weight, self.n_jobs = shift, class_weight, n_jobs
        self.rows = 1 if n_classes == 2 else n_classes
        self._statistic = binary_hessian if n_classes == 2 else multinomial_hessian

    def minimise(
        self,
        params: np.ndarray,
        l1: float,
        l2: float,
        tol: float,
        max_iter: int,
        report: Report | None = None,
    ) -> Outcome:
        """From (W, b) until the gap is at most tol times the objective."""
        point = self._look(params)
        gap, step, stalled, reason = np.inf, 0.0, 0, "max_iter"
        for done in range(max_iter + 1):
            objective = point.value(l1, l2)
            target, predicted = self._model_minimum(point, l1, l2, 0.01 * tol * objective)
            last, gap = gap, np.inf
            if -predicted <= tol * objective or done == max_iter or stalled:
                gap = self.gap(point.params, l1, l2)
            stop = report is not None and report(
                done + 1, point.params, objective, gap=gap if np.isfinite(gap) else np.nan, step=step
            )
            stalled = stalled + 1 if gap >= last and np.isfinite(gap) else stalled
            ends = {
                "converged": gap <= tol * objective,
                "stopped": stop,
                "max_iter": done == max_iter,
                "stalled": stalled >= 4,
            }
            reason = next((name for name, true in ends.items() if true), "")
            if reason:
                break
            fresh, step = self._step(point, target, predicted, l1, l2)
            stalled += fresh is point
            point = fresh
        if not np.isfinite(gap):
            gap = self.gap(point.params, l1, l2)
        if reason == "converged":
            # An objective within 1e-8 leaves coefficients 1e-4 off: one more step with the model in hand, minimised to
            # the end. The objective falls by it, so that the gap bounds its distance from the minimum as before.
            target, predicted = self._model_minimum(point, l1, l2, SETTLED * objective)
            if -predicted > SETTLED * objective:
                point, _ = self._step(point, target, predicted, l1, l2)
                objective = point.value(l1, l2)
        return Outcome(point.params.copy(), objective, gap, done, reason)

    def descend(
        self, W: np.ndarray, b: np.ndarray, l1: float, l2: float, target: float, max_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps until the model promises less than `target`; no gap is taken."""
        point = self._look(np.column_stack([W, b]))
        for _ in range(max_steps):
            goal, predicted = self._model_minimum(point, l1, l2, 0.03 * target)
            fresh, _ = self._step(point, goal, predicted, l1, l2)
            if fresh is point or -predicted <= target:
                point = fresh
                break
            point = fresh
        return point.params[:, :-1].copy(), point.params[:, -1].copy()

    # ------------------------------------------------------------------------------------------- Newton's method

    def _look(self, params: np.ndarray) -> _Point:
        loss, g, H = sum_rows(self._statistic, self.data, params, self.shift, self.class_weight, n_jobs=self.n_jobs)
        d = self.data.n_features + 1
        return _Point(params, float(loss), g, H.reshape(self.rows, d, self.rows, d))

    def _model_minimum(self, point: _Point, l1: float, l2: float, accuracy: float) -> tuple[np.ndarray, float]:
        """The minimum of the quadratic model with its penalty, and the change of the objective that it predicts."""
        K, p = self.rows, self.data.n_features
        W = point.params[:, :-1]
        H = np.ascontiguousarray(point.H[:, :p, :, :p]).reshape(K * p, K * p)
        g = point.g[:, :p].ravel().copy()
        diagonal = np.diagonal(H).copy()
        solve_b = None
        if self.intercept:
            cross = point.H[:, :p, :, p].reshape(K * p, K)
            in_b = point.H[:, p, :, p].copy()
            if K > 1:  # a constant added to all intercepts changes nothing
                in_b += np.trace(in_b) / K**2
            half = _half_inverse(in_b)
            moved = cross @ half
            H -= moved @ moved.T
            g -= moved @ (half.T @ point.g[:, p])
            solve_b = cross, half
        flat = ~(np.diagonal(H) > 1e-12 * diagonal)  # constant: the intercept does what the column could
        if flat.any():
            H[flat], H[:, flat], g[flat] = 0.0, 0.0, 0.0
        w = W.ravel().copy()
        w[flat] = 0.0
        q = -g
        if flat.any():
            q += H @ (W.ravel() - w)
        xy = q + H @ w
        yy = float(w @ (xy + q)) + 4 * point.loss
        size = len(w)
        problem = GramProblem(H, np.arange(size), xy, yy, ElasticNet(np.full(size, l1), np.full(size, l2)), w, q)
        minimise_on_gram(problem, accuracy, max_epochs=EPOCHS)
        target = point.params.copy()
        target[:, :-1] = w.reshape(K, p)
        if solve_b is not None:
            cross, half = solve_b
            d = target[:, :-1].ravel() - W.ravel()
            target[:, -1] -= half @ (half.T @ (point.g[:, p] + cross.T @ d))
        step = target - point.params
        predicted = float((point.g * step)[:, : p + self.intercept].sum())
        return target, predicted + _penalty(target[:, :-1], l1, l2) - _penalty(W, l1, l2)

    def _step(self, point: _Point, target: np.ndarray, predicted: float, l1: float, l2: float) -> tuple[_Point, float]:
        """To the target, or part of the way: half as far again until the objective falls, but for its rounding."""
        before, t = point.value(l1, l2), 1.0
        rounding = 1e-14 * abs(before)
        if not predicted < rounding:
            return point, 0.0
        for _ in range(HALVINGS):
            params = target if t == 1 else point.params + t * (target - point.params)
            fresh = self._look(params)
            if fresh.value(l1, l2) <= before + 1e-3 * t * predicted + rounding:
                return fresh, t
            t /= 2
        return point, 0.0

    # ------------------------------------------------------------------------------------------- the certificate

    def gap(self, params: np.ndarray, l1: float, l2: float) -> float:
        """The duality gap at (W, b)."""
        p = self.data.n_features
        (by_class,) = sum_rows(
            residual_statistic, self.data, params, self.shift, self.class_weight, self.n_classes, n_jobs=self.n_jobs
        )
        factors = np.ones(self.n_classes)
        if self.intercept:
            M = by_class[:, :, p]
            if self.rows == 1:
                M = np.column_stack([-M, M])
            M = M - np.diag(np.diagonal(M))
            balance = stationary(M - np.diag(M.sum(axis=1)))
            if balance is None:
                return np.inf
            factors = balance
        c = np.tensordot(factors, by_class[:, :, :p], axes=1)
        W = params[:, :-1]
        # What rounding may have moved the correlations by: entries at zero only have to obey the bound.
        slack = 4 * EPS * np.abs(by_class[:, :, :p]).sum(axis=0)
        scales = dual_scales(W, c, slack, l1, l2)
        candidates = np.array([s * factors for s in scales])
        (divergence,) = sum_rows(
            divergence_statistic, self.data, params, self.shift, self.class_weight, candidates, n_jobs=self.n_jobs
        )
        return min(column_gap(W, c, slack, l1, l2, s) + float(d) for s, d in zip(scales, divergence, strict=True))


def _half_inverse(S: np.ndarray) -> np.ndarray:
    """B with BB' = S^-1 on the range of S."""
    values, vectors = scipy.linalg.eigh(S)
    kept = values > 1e-14 * max(float(values[-1]), np.finfo(float).tiny)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


# ------------------------------------------------------------------------------------------------ passes


def _margins(batch: Batch, params: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray | sp.csr_array, np.ndarray]:
    X = shifted_features(batch, shift)
    return X, np.asarray(X @ params[:, :-1].T) + params[:, -1]


def _own_margin(Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """log of the odds of the own class against all others."""
    if Z.shape[1] == 1:
        return np.asarray((2 * codes - 1) * Z[:, 0])
    own = np.take_along_axis(Z, codes[:, None], axis=1)
    rest = Z - own
    np.put_along_axis(rest, codes[:, None], -np.inf, axis=1)
    most = rest.max(axis=1)
    return np.asarray(-(most + np.log(np.exp(rest - most[:, None]).sum(axis=1))))


def residual_statistic(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None, n_classes: int
) -> tuple[np.ndarray]:
    """sum_{i in class y} w_i ([y_i = k] - p_ik) (x_i - s, 1), for every class y and row k of the parameters."""
    X, Z = _margins(batch, params, shift)
    codes = targets_of(batch).astype(np.intp)
    if len(params) == 1:
        s = (2 * codes - 1) * Z[:, 0]
        R = ((2 * codes - 1) / (1 + np.exp(np.minimum(s, 709.0))))[:, None]
    else:
        Z -= Z.max(axis=1, keepdims=True)
        P = np.exp(Z)
        R = -P / P.sum(axis=1, keepdims=True)
        R[np.arange(len(R)), codes] = 1 / (1 + np.exp(np.minimum(_own_margin(Z, codes), 709.0)))
    weight = row_weights(batch, class_weight)
    if weight is not None:
        R *= weight[:, None]
    out = np.zeros((n_classes, len(params), X.shape[1] + 1))
    for y in range(n_classes):
        rows = np.flatnonzero(codes == y)
        out[y, :, :-1] = np.asarray(X[rows].T @ R[rows]).T
        out[y, :, -1] = R[rows].sum(axis=0)
    return (out,)


def divergence_statistic(
    batch: Batch, params: np.ndarray, shift: np.ndarray, class_weight: np.ndarray | None, factors: np.ndarray
) -> tuple[np.ndarray]:
    """sum_i w_i KL(k q_i | q_i), k the factor of the class of row i: one number for each row of `factors`."""
    _, Z = _margins(batch, params, shift)
    codes = targets_of(batch).astype(np.intp)
    margin = np.ascontiguousarray(_own_margin(Z, codes))
    weight = row_weights(batch, class_weight)
    w = np.ones(batch.n_rows) if weight is None else np.ascontiguousarray(weight)
    return (np.array([_native.linear.coin_divergence(margin, w, of_class[codes]) for of_class in factors]),)
