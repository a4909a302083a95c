r"""Factor models for expectation maximisation:  x = m + W z + e,  z ~ N(0, I),  e ~ N(0, diag(noise)).

Complete rows need their covariance S alone. Given the noise P, the best W is known: with eigenvalues s_j and
eigenvectors v_j of P^-1/2 S P^-1/2,  W = P^1/2 V (max(s - 1, 0))^1/2  and

    log L = -n/2 (p log 2 pi + log det P + sum_j (s_j > 1 ? 1 + log s_j : s_j) + sum of the other eigenvalues),

and an EM step from there leaves W as it is and takes  P = diag(S - W W'). So the noise is all that is iterated, and L
never falls.

Rows with gaps are regressed on z column by column: with u = (z, 1), E[u u'] and E[u] of every row given its entries
that are there,  (W_j, m_j) = A_j^-1 b_j  with  A_j = sum E[u u'],  b_j = sum x_j E[u]  over rows in which j is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.data import Batch
from epicycle.decomposition._scatter import Scatter
from epicycle.em import Expectation, LatentModel
from epicycle.stats._missing import patterns

LOG_2PI = float(np.log(2 * np.pi))


class FactorModel(LatentModel):
    """Complete rows, through their covariance; the parameter is the noise."""

    def __init__(self, scatter: Scatter, n_components: int) -> None:
        self.scatter, self.k = scatter, n_components
        self.variance, self.floor = scatter.variance, scatter.floor

    def loadings(self, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """(W' of shape (k, p), mean log-likelihood of a row) that are best for the noise."""
        root = np.sqrt(noise)
        s, V = self.scatter.axes(self.k, root)
        W = np.sqrt(np.maximum(s - 1.0, 0.0))[:, None] * V * root
        above = s > 1
        inside = np.where(above, 1.0 + np.log(np.where(above, s, 1.0)), s).sum()
        rest = float((self.variance / noise).sum() - s.sum())
        value = -0.5 * (len(noise) * LOG_2PI + float(np.log(noise).sum()) + float(inside) + rest)
        return W, value

    def expectation(self, data: Any, parameters: np.ndarray, n_jobs: int | None = None) -> Expectation:
        """The best loadings for the noise, and the log-likelihood; no pass over rows is needed."""
        W, value = self.loadings(parameters)
        return Expectation(self.scatter.weight * value, (W,), self.scatter.weight)

    def e_step(self, batch: Batch, parameters: np.ndarray) -> tuple[Any, ...]:
        """The log-likelihood of the rows of a batch; the statistics of all rows are in their covariance."""
        W, _ = self.loadings(parameters)
        w = np.ones(batch.n_rows) if batch.weight is None else batch.weight
        return (float(w @ row_densities(np.asarray(batch.X), self.scatter.mean, W, parameters)),)

    def m_step(self, statistics: tuple[Any, ...], parameters: np.ndarray) -> np.ndarray:
        """Variances that W does not explain."""
        W = statistics[0] if statistics else self.loadings(parameters)[0]
        return np.asarray(np.maximum(self.variance - (W**2).sum(axis=0), self.floor))

    def feasible(self, parameters: np.ndarray) -> bool:
        """Whether extrapolated noise is neither below its floor nor above the variance."""
        return bool((parameters >= self.floor).all() and (parameters <= np.maximum(self.variance, self.floor)).all())

    def to_vector(self, parameters: np.ndarray) -> np.ndarray:
        """Logarithms, which have no bound."""
        return np.asarray(np.log(parameters))

    def from_vector(self, vector: np.ndarray, like: Any) -> np.ndarray:
        """The noise of its logarithms."""
        return np.asarray(np.exp(vector))


class GapsModel(LatentModel):
    """Rows with missing entries; parameters are `components` W' (k, p), `mean` and `noise`.

    With `shared` the noise of all columns is equal.
    """

    def __init__(self, center: np.ndarray, floor: np.ndarray, shared: bool) -> None:
        self.center, self.floor, self.shared = center, floor, shared

    def e_step(self, batch: Batch, parameters: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
        """(log-likelihood of what is there, A, b, sums of squares and weights by column), about the centre."""
        W, mean, noise = parameters["components"], parameters["mean"] - self.center, parameters["noise"]
        X = np.asarray(batch.X, dtype=np.float64) - self.center
        w = np.ones(len(X)) if batch.weight is None else batch.weight
        k, p = W.shape
        value, A, b = 0.0, np.zeros((p, k + 1, k + 1)), np.zeros((p, k + 1))
        squares, weight = np.zeros(p), np.zeros(p)
        for there, rows in patterns(np.isnan(X)):
            if not len(there):
                continue
            part, v = X[np.ix_(rows, there)], w[rows]
            density, Z, C = _posterior(part - mean[there], W[:, there], noise[there])
            value += float(v @ density)
            u = np.column_stack([Z, np.ones(len(Z))])
            weighted = u * v[:, None]
            G = weighted.T @ u
            G[:k, :k] += v.sum() * C
            A[there] += G
            b[there] += part.T @ weighted
            squares[there] += v @ part**2
            weight[there] += v.sum()
        return value, A, b, squares, weight

    def m_step(self, statistics: tuple[Any, ...], parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Regressions of the columns on z and a constant."""
        A, b, squares, weight = statistics
        found = np.linalg.solve(A, b[:, :, None])[:, :, 0]
        left = np.maximum(squares - np.einsum("ij,ij->i", found, b), 0.0)
        noise = np.full(len(b), left.sum() / weight.sum()) if self.shared else left / weight
        return {
            "components": np.ascontiguousarray(found[:, :-1].T),
            "mean": found[:, -1] + self.center,
            "noise": np.maximum(noise, self.floor),
        }

    def feasible(self, parameters: Mapping[str, np.ndarray]) -> bool:
        """Whether extrapolated noise is above its floor."""
        return bool((parameters["noise"] >= self.floor).all())

    def to_vector(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """Loadings, mean, and logarithms of the noise."""
        return super().to_vector({**parameters, "noise": np.log(parameters["noise"])})

    def from_vector(self, vector: np.ndarray, like: Any) -> dict[str, np.ndarray]:
        """The parameters of a vector."""
        found = dict(super().from_vector(vector, like))
        with np.errstate(over="ignore"):
            found["noise"] = np.exp(found["noise"])
        return found


def _posterior(R: np.ndarray, W: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log-densities, E[z], cov[z]) of rows r = x - m, given all their entries."""
    k = len(W)
    scaled = W / noise
    L = np.linalg.cholesky(np.eye(k) + scaled @ W.T)
    half = (
        scipy.linalg.solve_triangular(L, scaled @ R.T, lower=True, check_finite=False) if k else np.zeros((0, len(R)))
    )
    square = np.einsum("ij,ij->i", R / noise, R) - np.einsum("ij,ij->j", half, half)
    log_det = float(np.log(noise).sum()) + 2 * float(np.log(np.diagonal(L)).sum())
    inverse = scipy.linalg.solve_triangular(L, np.eye(k), lower=True, check_finite=False) if k else np.zeros((0, 0))
    return -0.5 * (square + log_det + len(noise) * LOG_2PI), half.T @ inverse, inverse.T @ inverse


def row_densities(X: np.ndarray, mean: np.ndarray, W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """log N(x; m, W'W + diag(noise)) of every row, over the entries that are there."""
    absent = np.isnan(X)
    if not absent.any():
        return _posterior(X - mean, W, noise)[0]
    out = np.zeros(len(X))
    for there, rows in patterns(absent):
        if len(there):
            out[rows] = _posterior(X[np.ix_(rows, there)] - mean[there], W[:, there], noise[there])[0]
    return out


def row_factors(X: np.ndarray, mean: np.ndarray, W: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """E[z | entries that are there] of every row."""
    out = np.zeros((len(X), len(W)))
    for there, rows in patterns(np.isnan(X)):
        if len(there):
            out[rows] = _posterior(X[np.ix_(rows, there)] - mean[there], W[:, there], noise[there])[1]
    return out
