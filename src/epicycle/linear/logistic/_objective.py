"""Penalised logistic loss in summation form:

    F(W, b) = sum_i w_i loss(z_i, y_i) + lambda/2 ||W||^2,    z_i = b + W (x_i - s).

Two classes have one row of W and loss log(1 + e^z) - y z; K > 2 classes have K rows and loss log sum_k e^{z_k} - z_y.
The parameters are the matrix (W, b) of shape (rows, p + 1), flattened. The shift s is 0 unless the data lies far from
the origin.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine._row_order import minibatches
from epicycle.linear.logistic._fold_rows import FoldRows, sum_rows
from epicycle.linear.logistic._statistics import (
    binary_gradient,
    binary_hessian,
    column_square_statistic,
    gram_statistic,
    hessian_product,
    least_weight_statistic,
    leverage_statistic,
    multinomial_gradient,
    multinomial_hessian,
    square_statistic,
)
from epicycle.optim import Logistic, Metric, Multinomial, Objective

#: Up to how many parameters the Hessian is formed, and up to how many features the Gram matrix of the metric.
MAX_HESSIAN = 3000
MAX_METRIC = 3000
#: Up to how many parameters the last Hessian is kept.
MAX_KEPT = 500
#: Multiply-adds of a Hessian below which calls take longer than sums: a fraction of a millisecond.
CHEAP_HESSIAN = 1e6
#: Up to how many classes the second derivatives in b are summed with every gradient.
CHEAP_CURVATURE = 32
#: Mean loss below which nothing is concluded from curvatures: the loss of a row is about its probability of the other
#: class, and products of probabilities that small come near the smallest numbers (1e-308).
LEAST_MEAN_LOSS = 1e-50
#: Leverage, for rows of unit weight, above which curvatures are too small to conclude from, for the same reason.
LARGEST_LEVERAGE = 1e50
#: Where no margin moves by more than this, relative to the terms of its sum, features depend on each other: some
#: thousand roundings of 1e-16.
DEPENDENT_MOVE = 1e-12


def far_shift(data: Data) -> np.ndarray:
    """The mean of the first rows where it is large against their spread, else 0."""
    if data.sparse:
        return np.zeros(data.n_features)
    X = data.head().X
    with np.errstate(over="ignore"):  # an infinite spread is large enough
        mean, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    return np.where(np.abs(mean) > 10 * spread, mean, 0.0)


# ------------------------------------------------------------------------------------------------ certificates


def self_concordant_bound(decrement: float, rho: float) -> float:
    """Bound on F(x) - min F for a function with |F'''[v, v, v]| <= rho ||v||_H F''[v, v].

    With nu = ||g||_{H^-1}, the curvature along a segment falls no faster than e^{-rho t}, so

        F(x) - min F  <=  max_t  nu t - (e^{-rho t} + rho t - 1) / rho^2  =  ((1 - s) log(1 - s) + s) / rho^2

    with s = rho nu < 1.
    """
    s = rho * decrement
    if s >= 1:
        return np.inf
    if s < 1e-3:  # the closed form cancels; its series is nu^2 (1/2 + s/6 + s^2/12 + ...)
        return decrement**2 * (0.5 + s / 6 + s * s / 6)
    return float(((1 - s) * np.log1p(-s) + s) / rho**2)


class LogisticObjective(Objective):
    """F of the module's head.

    Parameters
    ----------
    data : Data
        Targets are class codes: float64 0/1 for two classes, integers 0 .. K-1 otherwise.
    n_classes : int
    penalty : float
        lambda >= 0.
    intercept : bool
        Without it the last column of (W, b) stays zero and is not a parameter.
    shift : ndarray of shape (p,)
    class_weight : ndarray of shape (n_classes,), optional
    """

    def __init__(
        self,
        data: Data,
        n_classes: int,
        penalty: float,
        *,
        intercept: bool,
        shift: np.ndarray,
        class_weight: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.data, self.penalty, self.intercept = data, penalty, intercept
        self.shift, self.class_weight, self.n_jobs = shift, class_weight, n_jobs
        self.binary = n_classes == 2
        self.smoothness = Logistic.smoothness if self.binary else Multinomial.smoothness
        self.rows = 1 if self.binary else n_classes
        self.columns = data.n_features + intercept
        self.size = self.rows * self.columns
        self.cheap_hessian = (data.n_rows or np.inf) * self.size**2 <= CHEAP_HESSIAN
        if not intercept:
            self.strong_convexity = penalty
        whole = {"hessian", "hessian_product"} if self.size <= MAX_HESSIAN else set()
        self.capabilities = frozenset({"metric", "minibatches"} | whole)
        self._sum = sum_rows if isinstance(data, FoldRows) else engine.sum
        self._gradient = binary_gradient if self.binary else multinomial_gradient
        self._hessian = binary_hessian if self.binary else multinomial_hessian
        self._curvature_in_b: tuple[bytes, np.ndarray] = (b"", np.empty((0, 0)))
        self._metric: Metric | None = None
        self._second_order: tuple[bytes, tuple[float, np.ndarray, np.ndarray]] | None = None

    def with_penalty(self, penalty: float) -> LogisticObjective:
        """The same objective with another penalty; what was summed over the rows for this one is shared."""
        other = copy.copy(self)
        other.penalty, other._second_order, other._metric = penalty, None, None
        if not self.intercept:
            other.strong_convexity = penalty
        return other

    # The gauge: adding a constant to every row of (W, b) changes nothing but the penalty. Where nothing penalises it,
    # the term gauge/2 ||sum_k||^2 is added; it is zero at the mean-free minimiser and makes the Hessian regular.
    def _gauge(self) -> np.ndarray | None:
        if self.penalty > 0 and not self.intercept:
            return None
        gauge = np.zeros(self.columns)
        gauge[slice(None) if self.penalty == 0 else slice(-1, None)] = self.total_weight / self.rows
        return gauge

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(W, b), with b = 0 where there is no intercept."""
        params = x.reshape(self.rows, self.columns)
        return params if self.intercept else np.hstack([params, np.zeros((self.rows, 1))])

    def _penalised(self, x: np.ndarray, loss: float, g: np.ndarray) -> tuple[float, np.ndarray]:
        params = x.reshape(self.rows, self.columns)
        g = g if self.intercept else g[:, :-1]
        W = params[:, : self.data.n_features]
        value = loss + self.penalty / 2 * float(np.vdot(W, W))
        g = g.copy()
        g[:, : self.data.n_features] += self.penalty * W
        if not self.binary and (gauge := self._gauge()) is not None:
            total = params.sum(axis=0)
            value += float(gauge @ total**2) / 2
            g += gauge * total
        return value, g.ravel()

    def value_and_gradient(self, x: np.ndarray, *, curvature: bool | None = None) -> tuple[float, np.ndarray]:
        """F and its gradient; with `curvature` (by default where classes are few) also keeps the Hessian in b."""
        if curvature is None:
            curvature = self.rows <= CHEAP_CURVATURE
        loss, g, in_b = self._sum(
            self._gradient, self.data, self.matrix(x), self.shift, self.class_weight, curvature, n_jobs=self.n_jobs
        )
        if curvature:
            self._curvature_in_b = (x.tobytes(), in_b)
        return self._penalised(x, loss, g)

    def second_order(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        # The certificate and the next Newton step ask at the same point: a small Hessian is kept for the second.
        if self._second_order is not None and self._second_order[0] == x.tobytes():
            value, gradient, H = self._second_order[1]
            return value, gradient.copy(), H.copy()
        params = self.matrix(x)
        loss, g, H = self._sum(self._hessian, self.data, params, self.shift, self.class_weight, n_jobs=self.n_jobs)
        K, d, p = self.rows, self.columns, self.data.n_features
        H = H.reshape(K, p + 1, K, p + 1)
        if self.intercept:
            self._curvature_in_b = (x.tobytes(), H[:, -1, :, -1].copy())
        H = np.ascontiguousarray(H[:, :d, :, :d])
        k, j = np.arange(K)[:, None], np.arange(p)
        H[k, j, k, j] += self.penalty
        if not self.binary and (gauge := self._gauge()) is not None:
            j = np.arange(d)
            H[:, j, :, j] += gauge[:, None, None]
        value, gradient = self._penalised(x, loss, g)
        H = H.reshape(self.size, self.size)
        self._second_order = None
        if self.size <= MAX_KEPT:
            self._second_order = x.tobytes(), (value, gradient.copy(), H.copy())
        return value, gradient, H

    def curvature_along(self, x: np.ndarray, move: np.ndarray) -> np.ndarray:
        """The Hessian at x times a move, in one pass and without the Hessian."""
        params, V = self.matrix(x), move.reshape(self.rows, self.columns)
        (product,) = self._sum(
            hessian_product, self.data, params, self.shift, self.class_weight, self.matrix(move), n_jobs=self.n_jobs
        )
        product = product[:, : self.columns].copy()
        product[:, : self.data.n_features] += self.penalty * V[:, : self.data.n_features]
        if not self.binary and (gauge := self._gauge()) is not None:
            product += gauge * V.sum(axis=0)
        return np.asarray(product.ravel())

    def hessian_product(self, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        H = self.second_order(x)[2]
        return lambda v: H @ v

    @property
    def separation_level(self) -> float:
        """Below this sum of losses every row of positive weight is on its own side: any other loses at least log 2."""
        if not hasattr(self, "_least_weight"):
            self._least_weight = 1.0 if self.class_weight is None else float(self.class_weight.min())
            if self.data.has_weight:
                (largest,) = self._sum(least_weight_statistic, self.data, self.class_weight, n_jobs=self.n_jobs)
                self._least_weight = -float(largest)
        return self._least_weight * float(np.log(2))

    @property
    def total_weight(self) -> float:
        return self._squares()[1]

    def _squares(self) -> tuple[float, float]:
        if not hasattr(self, "_square_sums"):
            self._square_sums = self._sum(
                square_statistic, self.data, self.shift, self.class_weight, n_jobs=self.n_jobs
            )
        return self._square_sums

    # -------------------------------------------------------------------------------------------- preconditioner

    def metric(self) -> Metric:
        """Curvature bound c (X, 1)'W(X, 1) + lambda, the same for every class; its diagonal where p is large.

        c is 1/4 for two classes and the curvature (1 - 1/K)/K of equal probabilities otherwise: a bound of Boehning's
        kind up to a constant, which a quasi-Newton method finds by itself.
        """
        p, K, d = self.data.n_features, self.rows, self.columns
        c = 0.25 if self.binary else (1 - 1 / K) / K
        ridge = np.full(d, self.penalty)
        if self.intercept:
            ridge[-1] = 0.0
        if p > MAX_METRIC:
            squares = self._column_squares()[:d] * c + ridge
            root = np.sqrt(np.where(squares > 0, squares, 1.0))

            def scale(v: np.ndarray) -> np.ndarray:
                return (v.reshape(K, d) / root).ravel()

            return Metric(lambda v: scale(scale(v)), scale, scale)
        if self._metric is not None:
            return self._metric
        M = c * self._gram()[:d, :d]
        tiny = np.finfo(float).eps * d * np.diag(M).max(initial=0.0)
        M[np.diag_indices(d)] += ridge + max(tiny, np.finfo(float).tiny)
        L = scipy.linalg.cholesky(M, lower=True, check_finite=False)

        def half(v: np.ndarray) -> np.ndarray:
            out = scipy.linalg.solve_triangular(L, v.reshape(K, d).T, lower=True, check_finite=False)
            return np.asarray(out.T.ravel())

        def half_t(v: np.ndarray) -> np.ndarray:
            out = scipy.linalg.solve_triangular(L, v.reshape(K, d).T, lower=True, trans=1, check_finite=False)
            return np.asarray(out.T.ravel())

        self._metric = Metric(lambda v: half_t(half(v)), half, half_t)
        return self._metric

    def _gram(self) -> np.ndarray:
        if not hasattr(self, "_gram_sum"):
            self._gram_sum: np.ndarray
            (self._gram_sum,) = self._sum(gram_statistic, self.data, self.shift, self.class_weight, n_jobs=self.n_jobs)
        return self._gram_sum

    def _column_squares(self) -> np.ndarray:
        squares, total = self._sum(
            column_square_statistic, self.data, self.shift, self.class_weight, n_jobs=self.n_jobs
        )
        return np.append(squares, total)

    # -------------------------------------------------------------------------------------------- rows at random

    def minibatches(
        self, batch_size: int, epoch: int, seed: int
    ) -> Iterator[Callable[[np.ndarray], tuple[float, np.ndarray]]]:
        for batch, factor in minibatches(self.data, batch_size, epoch, seed):
            yield self._estimate(batch, factor)

    def _estimate(self, batch: Batch, factor: float) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def estimate(x: np.ndarray) -> tuple[float, np.ndarray]:
            loss, g, _ = self._gradient(batch, self.matrix(x), self.shift, self.class_weight)
            return self._penalised(x, factor * loss, factor * g)

        return estimate

    def subsample(self, n_rows: int) -> LogisticObjective | None:
        """The same objective on every m-th row, with the penalty scaled to match; None where rows cannot be picked."""
        if not isinstance(self.data, ArrayData) or self.data.n_rows < 2 * n_rows:
            return None
        step = self.data.n_rows // n_rows
        pick = slice(None, None, step)
        d = self.data
        part = ArrayData(
            d.X[pick], np.ascontiguousarray(np.asarray(d.y)[pick]), None if d.weight is None else d.weight[pick].copy()
        )
        return LogisticObjective(
            part,
            2 if self.binary else self.rows,
            self.penalty / step,
            intercept=self.intercept,
            shift=self.shift,
            class_weight=self.class_weight,
            n_jobs=self.n_jobs,
        )

    # -------------------------------------------------------------------------------------------- certificate

    def certify(
        self, x: np.ndarray, tol: float, value: float | None = None, gradient: np.ndarray | None = None
    ) -> Certificate:
        if value is None or gradient is None or (self.intercept and self._curvature_in_b[0] != x.tobytes()):
            value, gradient = self.value_and_gradient(x, curvature=True)
        scale = max(abs(value), np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            kind, gap = "duality gap", float(np.divide(self._duality_gap(gradient), scale))
        few = self.binary or self.size <= 400 or self.penalty == 0  # without a penalty there is no other bound
        if not gap <= tol and few and self.size <= MAX_HESSIAN:
            squares, total = self._squares()
            largest = self.smoothness * (squares + total) + self.penalty + (0 if self.binary else total)
            # The decrement g'H^-1 g is at least |g|^2 / (largest curvature): does it pay to find it, in two passes?
            with np.errstate(over="ignore", invalid="ignore"):  # of infinite sums nothing is concluded
                near = float(gradient @ gradient) / (2 * largest) <= tol * scale
            if near:
                newton = self._newton_bound(x) / scale
                if newton < gap:
                    kind, gap = "newton decrement", newton
        return Certificate(kind, gap, tol, f"the objective is at most {gap:.1e} of its value above its minimum")

    def _duality_gap(self, gradient: np.ndarray) -> float:
        """||g_W||^2 / (2 lambda) is the gap to the dual point made of the residuals, if these sum to zero (g_b = 0).

        If not, b is first moved to its minimiser b*: self-concordance in b bounds both what that gains and how far b*
        is, and the residuals change no faster than softmax does.
        """
        if self.penalty == 0:
            return np.inf
        g = gradient.reshape(self.rows, self.columns)
        g_W = float(np.linalg.norm(g[:, : self.data.n_features]))
        if not self.intercept:
            return g_W**2 / (2 * self.penalty)
        g_b, H_b = g[:, -1], self._curvature_in_b[1]
        if not self.binary:  # along the gauge nothing moves
            g_b, H_b = g_b - g_b.mean(), H_b + self.total_weight / self.rows
        # Of two classes there is one intercept.
        values, vectors = (H_b[0], np.ones((1, 1))) if len(H_b) == 1 else scipy.linalg.eigh(H_b)
        least = float(values[0])
        if least <= 0:
            return np.inf
        rho = (1.0 if self.binary else np.sqrt(2.0)) / np.sqrt(least)
        decrement = float(np.linalg.norm((vectors.T @ g_b) / np.sqrt(values)))
        gain = self_concordant_bound(decrement, rho)
        if not np.isfinite(gain):
            return np.inf
        distance = -np.log1p(-rho * decrement) / rho / np.sqrt(least)
        squares, total = self._squares()
        lipschitz = self.smoothness * np.sqrt(squares * total)
        return float(gain + (g_W + lipschitz * distance) ** 2 / (2 * self.penalty))

    def _newton_bound(self, x: np.ndarray) -> float:
        """The Newton decrement, turned into a bound by self-concordance along any direction."""
        value, g, H = self.second_order(x)
        if value <= LEAST_MEAN_LOSS * self.total_weight:
            return np.inf
        basis, null, scale = inverse_factor(H)
        if null.shape[1] and self.penalty > 0:
            return np.inf
        shape = self.rows, self.columns
        moves = pair_factors(basis.reshape(*shape, -1)), null.reshape(*shape, -1), scale.reshape(shape)
        leverage, move, terms = self._sum(leverage_statistic, self.data, self.shift, *moves, n_jobs=self.n_jobs)
        if move > DEPENDENT_MOVE * terms or (self.penalty == 0 and leverage * self.total_weight > LARGEST_LEVERAGE):
            return np.inf
        return self_concordant_bound(float(np.linalg.norm(basis.T @ g)), float(np.sqrt(leverage)))


def pair_factors(basis: np.ndarray) -> np.ndarray:
    """F with F'F = DD' for the difference D of every two rows of a basis (rows, columns, r); of the one row itself."""
    K = len(basis)
    differences = [basis[0]] if K == 1 else [basis[k] - basis[m] for k in range(K) for m in range(k)]
    return np.array([scipy.linalg.qr(D.T, mode="r", check_finite=False)[0][: D.shape[0]] for D in differences])


def inverse_factor(H: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """B with BB' = H^-1, and N that spans the directions in which H is zero but for rounding; B leaves them out.

    The third array holds the units, parameter by parameter, in which the columns of N have length one.
    """
    scale = 1 / np.sqrt(np.where(np.diagonal(H) > 0, np.diagonal(H), 1.0))
    S, cut = H * scale * scale[:, None], 8 * len(H) * np.finfo(float).eps
    try:
        L = scipy.linalg.cholesky(S, lower=True, check_finite=False)
        rcond, _ = scipy.linalg.lapack.dpocon(L, np.abs(S).sum(axis=0).max(), uplo="L")
        if rcond > cut:
            half = scipy.linalg.solve_triangular(L, np.diag(scale), lower=True, check_finite=False)
            return half.T, np.empty((len(H), 0)), scale
    except scipy.linalg.LinAlgError:
        pass
    values, V = scipy.linalg.eigh(S, check_finite=False)
    kept = values > cut * values[-1]
    return scale[:, None] * V[:, kept] / np.sqrt(values[kept]), scale[:, None] * V[:, ~kept], scale
