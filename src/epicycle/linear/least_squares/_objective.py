"""The least-squares objective for solvers that iterate:  F(W) = 1/2 sum_i w_i |y_i - b - W'x_i|^2 + penalty(W).

While the Gram matrix fits, F, its gradient and its Hessian come from the second moments and no row is read again
(`MomentsObjective`); otherwise every evaluation is a pass over the rows (`RowsObjective`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.data import Batch, Data
from epicycle.data._matrix import dense
from epicycle.engine._row_order import minibatches
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.optim import Metric, Objective
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import Moments, target_columns

#: Up to how many parameters, those of all targets together, the Hessian is formed.
MAX_HESSIAN = 5000
#: Sums of squares of y up to this many units of its rounding are those of a constant: no intercept could be missed.
CONSTANT_UP_TO = 256.0
#: Rounding of a sum of products, relative to the lengths of both columns.
ROUNDING = 16 * float(np.finfo(np.float64).eps)


class MomentsObjective(Objective):
    """F of W alone, from second moments, with the best b for each W. Parameters are W of shape (p, k), flattened."""

    quadratic = True

    def __init__(self, moments: Moments, data: Data, penalty: QuadraticPenalty, intercept: bool) -> None:
        self.data, self.penalty = data, penalty
        p, k = moments.p, len(penalty.alpha)
        S = moments.about_mean() if intercept else moments.about_zero()
        self.G, self.c = S[:p, :p], S[:p, p:]
        self.yy, self.lengths = np.diagonal(S)[p:], moments.lengths
        self.y_mean, self.weight = moments.mean[p:], moments.weight
        self.total = float(self.yy.sum()) / 2
        self.centre = moments.mean if intercept else np.zeros(p + k)
        self.shape, self.size = (p, k), p * k
        self.strong_convexity = float(penalty.alpha.min()) * penalty.floor
        whole = {"hessian"} if self.size <= MAX_HESSIAN else set()
        self.capabilities = frozenset({"hessian_product", "metric", "minibatches"} | whole)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        W = x.reshape(self.shape)
        GW = self.G @ W
        DW = self.penalty.gradient(W)
        value = self.total - np.vdot(W, self.c) + np.vdot(W, GW) / 2 + np.vdot(W, DW) / 2
        return float(value), (GW - self.c + DW).ravel()

    def second_order(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        p, k = self.shape
        H = np.zeros((p, k, p, k))
        for t in range(k):
            H[:, t, :, t] = self.penalty.added_to(self.G, float(self.penalty.alpha[t]))
        return *self.value_and_gradient(x), H.reshape(self.size, self.size)

    def hessian_product(self, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def product(v: np.ndarray) -> np.ndarray:
            V = v.reshape(self.shape)
            return np.asarray((self.G @ V + self.penalty.gradient(V)).ravel())

        return product

    def metric(self) -> Metric:
        p = self.shape[0]
        M = self.penalty.added_to(self.G, float(self.penalty.alpha.mean())).copy()
        M[np.diag_indices(p)] += max(np.finfo(float).eps * p * np.diagonal(M).max(initial=0.0), np.finfo(float).tiny)
        return Metric.of_matrix(M)

    def minibatches(
        self, batch_size: int, epoch: int, seed: int
    ) -> Iterator[Callable[[np.ndarray], tuple[float, np.ndarray]]]:
        p = self.shape[0]
        for batch, factor in minibatches(self.data, batch_size, epoch, seed):
            X, Y = dense(batch.X) - self.centre[:p], target_columns(batch.y) - self.centre[p:]
            yield partial(self._estimate, X, Y, batch.weight, factor)

    def _estimate(
        self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None, factor: float, x: np.ndarray
    ) -> tuple[float, np.ndarray]:
        W = x.reshape(self.shape)
        residual = X @ W - Y
        r = residual if weight is None else residual * weight[:, None]
        value = factor / 2 * np.vdot(r, residual) + self.penalty.value(W)
        return float(value), (factor * (X.T @ r) + self.penalty.gradient(W)).ravel()

    def certify(
        self, x: np.ndarray, tol: float, value: float | None = None, gradient: np.ndarray | None = None
    ) -> Certificate:
        g = (self.value_and_gradient(x)[1] if gradient is None else gradient).reshape(self.shape)
        excess = excess_of(self.G, self.c, self.yy, self.penalty, x.reshape(self.shape), g, self.lengths)
        return excess_certificate(excess, self.total, tol, mean=self.y_mean, weight=self.weight)


def excess_of(
    G: np.ndarray,
    c: np.ndarray,
    yy: np.ndarray,
    penalty: QuadraticPenalty,
    W: np.ndarray,
    gradient: np.ndarray,
    lengths: np.ndarray | None,
) -> float:
    """F(W) - min F = 1/2 g'H^-1 g, summed over targets, and what the rounding of the moments may hide of it.

    With `lengths`, those of the columns of (x, y), g is known up to about eps |x_j| (|y| + sum_k |x_k| |w_k|); None
    says that g was taken from the rows. Columns that depend on each other leave F flat along the null space of H. If F
    slopes there by more than rounding, they are only nearly dependent, and nothing is known but min F >= 0.
    """
    p, excess = len(G), 0.0
    x_lengths = np.sqrt(np.maximum(np.diagonal(G), 0.0)) if lengths is None else lengths[:p]
    y_lengths = np.sqrt(yy) if lengths is None else lengths[p:]
    for a in np.unique(penalty.alpha):
        of_a = penalty.alpha == a
        W_a, g = W[:, of_a], gradient[:, of_a]
        H = penalty.added_to(G, float(a))
        solved = solve_normal_equations(H, g)
        excess += float(np.abs((g * solved.x).sum(axis=0)).sum()) / 2
        if a > 0 and not penalty.is_diagonal:
            # alpha D w may cancel where w'Dw is small; with a diagonal D that rounding stays below that of F itself
            hidden = ROUNDING * float(a) * (np.abs(penalty.dense()) @ np.abs(W_a))
            inverse = np.abs(solve_normal_equations(H, np.eye(p)).x)
            excess += float((hidden * (inverse @ hidden)).sum()) / 2
        N = solved.null_space
        floor = float(a) * penalty.floor
        if N.shape[1] and floor == 0:
            W_a = W_a - N @ (N.T @ W_a)  # what w is made of along N says nothing
        sizes = y_lengths[of_a] + x_lengths @ np.abs(W_a)
        if not N.shape[1]:
            if lengths is not None:
                excess += p / 2 * float(((ROUNDING * sizes * solved.condition) ** 2).sum())
            continue
        rounding = ROUNDING * np.outer(np.abs(N).T @ x_lengths, sizes)
        if floor > 0:
            excess += float(((np.abs(N.T @ g) + rounding) ** 2).sum()) / (2 * floor)
        else:
            slopes = (np.abs(N.T @ (c[:, of_a] - H @ W_a)) > rounding).any(axis=0)
            excess += float(yy[of_a][slopes].sum()) / 2
    return excess


@dataclass(frozen=True)
class StorageError:
    """Distance of the stored coefficients from those that were found, as distances of F.

    moved : 1/2 dw'X'WX dw for the rounding dw of the coefficients, from above; single : whether they are float32.
    shifted : W/2 db^2 for the distance db of the stored intercept from the best one for them.
    """

    moved: float = 0.0
    shifted: float = 0.0
    single: bool = False

    @classmethod
    def of(
        cls,
        stored: Mapping[str, Any],
        coef: np.ndarray,
        *,
        mean: np.ndarray,
        lengths: np.ndarray,
        weight: float,
        intercept: bool,
    ) -> StorageError:
        """Of `coef_` and `intercept_`, for coefficients (p, k), means of (x, y) and lengths of the columns of x."""
        w, p = np.atleast_2d(stored["coef_"]).T.astype(np.float64), len(coef)
        moved = float(np.square(lengths @ np.abs(w - coef)).sum()) / 2
        shifted, single = 0.0, stored["coef_"].dtype == np.float32
        if intercept:
            x, y = mean[:p].astype(np.longdouble), mean[p:].astype(np.longdouble)
            best = y - x @ w.astype(np.longdouble)
            # The means are rounded themselves, by half a unit in their last place.
            own = np.finfo(np.float64).eps / 2 * (np.abs(mean[p:]) + np.abs(mean[:p]) @ np.abs(w))
            away = np.abs(np.asarray(stored["intercept_"], dtype=np.longdouble) - best).astype(np.float64) + own
            shifted = weight / 2 * float(np.square(away).sum())
        return cls(moved, shifted, single)


def excess_certificate(
    excess: float,
    total: float,
    tol: float,
    *,
    mean: np.ndarray,
    weight: float,
    storage: StorageError | None = None,
    claim: str = "the objective is within {:.1e} of its minimum",
) -> Certificate:
    """The excess of a quadratic, 1/2 g'H^-1 g, against half the sum of squares of y, at the coefficients as stored.

    A y that is constant but for rounding, of the given mean and total weight, counts as one that varies by that much.
    """
    resolution = weight / 2 * float(((np.finfo(np.float64).eps * mean) ** 2).sum())
    limit, why = 0.0, ""
    if storage is not None and total > CONSTANT_UP_TO * resolution:
        rounding = storage.moved + storage.shifted
        solved = excess <= tol * total
        excess = (np.sqrt(excess) + np.sqrt(storage.moved)) ** 2 + storage.shifted
        if rounding > tol * total:
            kind = "float32" if storage.single else "float64"
            why = f"; the rounding of coefficients stored as {kind} makes {rounding / total:.1e} of it"
            # float32 was asked for, and allows no less than what its rounding adds to a solved problem.
            limit = excess / total if storage.single and solved else 0.0
    total = max(total, resolution)
    relative = excess / total if total > 0 else 0.0 if excess == 0 else np.inf
    relative = np.inf if np.isnan(relative) else relative  # squares that overflow bound nothing
    meaning = f"{claim.format(relative)}, relative to half the sum of squares of y{why}"
    return Certificate("newton decrement", relative, max(tol, limit), meaning)


# ------------------------------------------------------------------------------------------------ many features


def row_statistic(batch: Batch, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """(X'r, sum r, 1/2 sum r^2) with r = X W + b - Y, weighted."""
    residual = np.asarray(batch.X @ W) + b - target_columns(batch.y)
    r = residual if batch.weight is None else residual * batch.weight[:, None]
    return np.asarray(batch.X.T @ r), r.sum(axis=0), float(np.vdot(r, residual)) / 2


def product_statistic(batch: Batch, V: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(X'u, sum u) with u = X V + v, weighted."""
    u = np.asarray(batch.X @ V) + v
    if batch.weight is not None:
        u = u * batch.weight[:, None]
    return np.asarray(batch.X.T @ u), u.sum(axis=0)


def scale_statistic(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """(sum x^2, sum x, sum y, sum y^2, sum 1), weighted."""
    w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    X, Y = batch.X, target_columns(batch.y)
    squares = X.multiply(X).T @ w if sp.issparse(X) else np.einsum("ij,ij,i->j", X, X, w)
    return np.asarray(squares), np.asarray(X.T @ w), Y.T @ w, (Y**2).T @ w, float(w.sum())


class RowsObjective(Objective):
    """F of (W, b) by passes over the rows. Parameters are (p + 1, k) with b last, or (p, k), flattened."""

    quadratic = True

    def __init__(self, data: Data, penalty: QuadraticPenalty, intercept: bool, n_jobs: int | None) -> None:
        self.data, self.penalty, self.intercept, self.n_jobs = data, penalty, intercept, n_jobs
        self.shape = (data.n_features + intercept, len(penalty.alpha))
        self.size = self.shape[0] * self.shape[1]
        self.squares, sums, y, yy, self.weight = engine.sum(scale_statistic, data, n_jobs=n_jobs)
        self.mean = sums / self.weight
        self.total = float((yy - (y**2 / self.weight if intercept else 0.0)).sum()) / 2
        if not intercept:
            self.strong_convexity = float(penalty.alpha.min()) * penalty.floor
        self.capabilities = frozenset({"hessian_product", "metric", "minibatches"})

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W, b)."""
        P = x.reshape(self.shape)
        return (P[:-1], P[-1]) if self.intercept else (P, np.zeros(self.shape[1]))

    def _join(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (np.vstack([W, b]) if self.intercept else W).ravel()

    def _penalised(self, W: np.ndarray, g: np.ndarray, in_b: np.ndarray, value: float) -> tuple[float, np.ndarray]:
        return value + self.penalty.value(W), self._join(g + self.penalty.gradient(W), in_b)

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = self.split(x)
        return self._penalised(W, *engine.sum(row_statistic, self.data, W, b, n_jobs=self.n_jobs))

    def hessian_product(self, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def product(v: np.ndarray) -> np.ndarray:
            V, c = self.split(v)
            Hv, in_b = engine.sum(product_statistic, self.data, V, c, n_jobs=self.n_jobs)
            return self._join(Hv + self.penalty.gradient(V), in_b)

        return product

    def metric(self) -> Metric:
        diagonal = self.squares[:, None] + self.penalty.diagonal[:, None] * self.penalty.alpha
        if self.intercept:
            diagonal = np.vstack([diagonal, np.full(self.shape[1], self.weight)])
        return Metric.of_diagonal(diagonal)

    def minibatches(
        self, batch_size: int, epoch: int, seed: int
    ) -> Iterator[Callable[[np.ndarray], tuple[float, np.ndarray]]]:
        for batch, factor in minibatches(self.data, batch_size, epoch, seed):
            yield partial(self._estimate, batch, factor)

    def _estimate(self, batch: Batch, factor: float, x: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = self.split(x)
        g, in_b, value = row_statistic(batch, W, b)
        return self._penalised(W, factor * g, factor * in_b, factor * value)

    def certify(
        self, x: np.ndarray, tol: float, value: float | None = None, gradient: np.ndarray | None = None
    ) -> Certificate:
        if value is None or gradient is None:
            value, gradient = self.value_and_gradient(x)
        g, in_b = self.split(gradient)
        gain = float((in_b**2).sum()) / (2 * self.weight) if self.intercept else 0.0
        g = g - np.outer(self.mean, in_b)  # the gradient in W once b is at its best
        if (self.penalty.alpha > 0).all() and self.penalty.floor > 0:
            # duality gap of ridge regression at the residuals: g'D^-1 g / (2 alpha)
            gap = gain + self.penalty.bound(g)
            relative = gap / self.total if self.total > 0 else 0.0 if gap == 0 else np.inf
            meaning = f"the objective is within {relative:.1e} of its minimum, relative to half the sum of squares of y"
            return Certificate("duality gap", relative, tol, meaning)
        lengths = np.sqrt(np.maximum(self.squares - self.weight * self.mean**2 * self.intercept, 0.0))
        cosines = np.abs(g) / np.where(lengths > 0, lengths, np.inf)[:, None] / np.sqrt(max(2 * self.total, 1e-300))
        worst = float(cosines.max(initial=0.0))
        meaning = (
            f"no feature has a product above {worst:.1e} with the residuals, relative to the lengths of both it and y"
        )
        return Certificate("gradient norm", worst, tol, meaning)
