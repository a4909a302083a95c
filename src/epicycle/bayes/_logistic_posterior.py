r"""The posterior of logistic regression:  F(w) = sum_i v_i (log(1 + exp(z_i)) - y_i z_i) + 1/2 w'P w,  z_i = w'x_i.

P is the precision of the normal prior. F is strongly convex; its minimum is the MAP estimate, its Hessian there gives
Laplace's approximation. The bound of Jaakkola and Jordan (Statistics and Computing 10, 2000), with
lambda(s) = tanh(s / 2) / (4 s),

    -log(1 + exp(-z)) >= -log(1 + exp(-s)) + (z - s) / 2 - lambda(s) (z^2 - s^2),

is quadratic in z, and so gives a normal posterior N(m, S) with S^-1 = P + 2 sum v lambda(s_i) x_i x_i' and
m = S sum v (y_i - 1/2) x_i. The best s_i^2 is x_i'(S + m m')x_i; taking turns never lowers the bound on the evidence.
All of these are sums over rows. With weights omega_i ~ PG(1, z_i) in the place of 2 lambda(s_i) and draws in the place
of maxima it is the Gibbs sampler of Polson, Scott and Windle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, rq, solve_triangular
from scipy.special import expit, log_expit, ndtr

from epicycle import engine, optim
from epicycle.core._exceptions import DataError
from epicycle.data import Batch, Data

Array = np.ndarray

_LOSS = optim.Logistic()


def with_ones(X: Any, intercept: bool) -> Any:
    """Rows with a 1 behind them where there is an intercept, in float64."""
    if not intercept:
        return X.astype(np.float64)
    n = X.shape[0]
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, np.ones((n, 1))], format="csr"), dtype=np.float64)
    return np.concatenate([np.asarray(X, dtype=np.float64), np.ones((n, 1))], axis=1)


def scores(X: Any, w: Array) -> Array:
    """w'x of rows without their ones."""
    p = X.shape[1]
    z = np.asarray(X @ w[:p], dtype=np.float64)
    return z + w[p] if len(w) > p else z


def weighted_products(X: Any, weight: Array) -> Array:
    """X'diag(weight) X, dense."""
    if sp.issparse(X):
        return np.asarray((X.T @ X.multiply(weight[:, None]).tocsr()).toarray())
    return np.asarray((X * weight[:, None]).T @ X)


def loss_statistic(batch: Batch, w: Array) -> tuple[float, Array, Array]:
    """Value, gradient and Hessian of the sum of losses."""
    X = with_ones(batch.X, len(w) > batch.X.shape[1])
    v = np.ones(X.shape[0]) if batch.weight is None else batch.weight
    z = np.asarray(X @ w)
    gradient = np.asarray(X.T @ (v * _LOSS.gradient(z, batch.y)))
    return float(v @ _LOSS.value(z, batch.y)), gradient, weighted_products(X, v * _LOSS.curvature(z, batch.y))


def bound_statistic(batch: Batch, m: Array, half: Array) -> tuple[Array, Array, float]:
    """Of the best s for N(m, half half'): sum 2 v lambda x x', sum v (y - 1/2) x, and what the bound has of s alone."""
    X = with_ones(batch.X, len(m) > batch.X.shape[1])
    v = np.ones(X.shape[0]) if batch.weight is None else batch.weight
    s = np.sqrt((np.asarray(X @ half) ** 2).sum(axis=1) + np.asarray(X @ m) ** 2)
    slope = jaakkola_jordan(s)
    constant = float(v @ (log_expit(s) - s / 2 + slope * s**2))
    return weighted_products(X, 2 * v * slope), np.asarray(X.T @ (v * (batch.y - 0.5))), constant


def jaakkola_jordan(s: Array) -> Array:
    """lambda(s) = tanh(s / 2) / (4 s), 1/8 at 0."""
    small = s < 1e-4
    return np.where(small, 0.125 - s**2 / 96, np.tanh(s / 2) / (4 * np.where(small, 1.0, s)))


class PosteriorObjective(optim.Objective):
    """F as solvers see it."""

    cheap_hessian = True
    capabilities = frozenset({"hessian"})

    def __init__(self, data: Data, precision: Array, n_jobs: int | None) -> None:
        self.data, self.precision, self.n_jobs = data, precision, n_jobs
        self.size, self.strong_convexity = len(precision), float(precision.min())

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.second_order(x)[:2]

    def second_order(self, x: Array) -> tuple[float, Array, Array]:
        value, gradient, H = engine.sum(loss_statistic, self.data, x, n_jobs=self.n_jobs)
        H = H + np.diag(self.precision)
        return value + float(self.precision @ x**2) / 2, gradient + self.precision * x, H


def inverse_half(H: Array) -> Array:
    """Upper triangular C with H^-1 = C C', from the Cholesky factor of H with a unit diagonal."""
    if not np.isfinite(H).all():
        raise DataError("X, sample_weight: squares of columns times weights overflow; scale them down")
    scale = 1 / np.sqrt(np.diagonal(H))
    S = H * scale[:, None] * scale
    try:
        L = cholesky(S, lower=True)
    except np.linalg.LinAlgError:
        # Columns that are dependent but for the prior, which is below the rounding of H: no eigenvalue is below it.
        values, vectors = np.linalg.eigh(S)
        R = rq(vectors / np.sqrt(np.maximum(values, len(H) * np.finfo(np.float64).eps)), mode="r")
        return np.asarray(scale[:, None] * R * np.sign(np.diagonal(R)))
    return np.asarray(scale[:, None] * solve_triangular(L, np.eye(len(H)), lower=True).T)


def bound_step(data: Data, precision: Array, m: Array, half: Array, n_jobs: int | None) -> tuple[Array, Array, float]:
    """(m, half, bound on the log-evidence) after one turn: the best s for N(m, half half'), then the best normal."""
    products, c, constant = engine.sum(bound_statistic, data, m, half, n_jobs=n_jobs)
    new_half = inverse_half(products + np.diag(precision))
    projected = new_half.T @ c
    log_det = float(np.log(np.diagonal(new_half)).sum())  # half of log det S
    bound = constant + float(projected @ projected) / 2 + log_det + float(np.log(precision).sum()) / 2
    return np.asarray(new_half @ projected), new_half, bound


# ---------------------------------------------------------------- predictions

#: Nodes and weights of quadrature for N(0, 1).
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
#: Draws that are averaged at a time.
_DRAWS_AT_ONCE = 256


def averaged_batch(batch: Batch, m: Array, half: Array | None, draws: Array | None) -> Array:
    """P(y = 0) and P(y = 1) of rows: at m, or averaged over N(m, half half') or over draws; small ones exactly."""
    X, p = batch.X, batch.X.shape[1]
    if draws is not None:
        totals = np.zeros((X.shape[0], 2))
        for start in range(0, len(draws), _DRAWS_AT_ONCE):
            z = scores(X, draws[start : start + _DRAWS_AT_ONCE].T)
            totals += np.column_stack([expit(-z).sum(axis=1), expit(z).sum(axis=1)])
        return np.asarray(totals / len(draws))
    z = scores(X, m)
    if half is None:
        return np.column_stack([expit(-z), expit(z)])
    spread = np.asarray(X @ half[:p], dtype=np.float64)
    deviation = np.sqrt(((spread + half[p] if len(half) > p else spread) ** 2).sum(axis=1))
    return np.column_stack([averaged_sigmoid(-z, deviation), averaged_sigmoid(z, deviation)])


def log_odds_of_average(batch: Batch, m: Array, half: Array | None, draws: Array | None) -> Array:
    """log P(y = 1) - log P(y = 0); exact for a mode, finite also where a probability underflows."""
    if half is None and draws is None:
        return scores(batch.X, m)
    p = np.maximum(averaged_batch(batch, m, half, draws), np.finfo(float).tiny)
    return np.asarray(np.log(p[:, 1]) - np.log(p[:, 0]))


def class_of_average(batch: Batch, m: Array, half: Array | None, draws: Array | None, classes: Array) -> Array:
    """The class of larger averaged probability."""
    p = averaged_batch(batch, m, half, draws)
    return np.asarray(classes[(p[:, 1] > p[:, 0]).astype(np.intp)])


def averaged_sigmoid(mean: Array, deviation: Array) -> Array:
    """E[1 / (1 + exp(-z))] for z ~ N(mean, deviation^2): by quadrature at the nodes of the normal distribution.

    For wide normals, where the sigmoid is a step between nodes, by the difference of sigmoid and step: see `_wide`.
    """
    narrow = expit(mean[:, None] + deviation[:, None] * _NODES) @ _WEIGHTS
    wide = deviation > 1.0
    if wide.any():
        narrow[wide] = _wide(mean[wide], deviation[wide])
    return np.asarray(narrow)


_LEGENDRE, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_REACH = 37.0  # the sigmoid is a step to rounding beyond this


def _wide(mean: Array, deviation: Array) -> Array:
    """Phi(mean / deviation) + int_0^inf expit(-z) (phi(-z) - phi(z)) dz, with phi the normal density."""
    # z = reach u^3, u in (0, 1): nodes are dense near 0
    u = (_LEGENDRE + 1) / 2
    z, weight = _REACH * u**3, _LEGENDRE_WEIGHTS / 2 * 3 * _REACH * u**2

    def density(x: Array) -> Array:
        return np.asarray(np.exp(-(((x - mean[:, None]) / deviation[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi))

    correction = (expit(-z) * (density(-z) - density(z))) @ weight / deviation
    return np.asarray(ndtr(mean / deviation) + correction)
