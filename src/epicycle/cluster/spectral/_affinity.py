"""Graphs of rows: symmetric affinities W, sparse for neighbours and dense for kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.spatial._distance_graph import distance_graph, first_of_graph
from epicycle.spatial._metric import metric_by_name
from epicycle.spatial._search import distance_block, nearest, tree_pays, within_radius, within_radius_by_tree

_EUCLIDEAN = metric_by_name("euclidean", 2)


def nearest_neighbors(X: Any, k: int, n_jobs: int | None) -> Any:
    """1 for the k rows nearest to a row, itself among them, averaged with the transpose."""
    _require_neighbors(k, X.shape[0])
    return _mean_with_transpose(nearest(X, X, k, _EUCLIDEAN, "auto", n_jobs)[1])


def given_neighbors(distances: Any, k: int) -> Any:
    """The same from distances: a dense matrix, or a sparse one in which what is not stored is far."""
    n = require_square(distances)
    _require_neighbors(k, n)
    if sp.issparse(distances):
        return _mean_with_transpose(first_of_graph(distance_graph(distances, warn=False), k)[1])
    return _mean_with_transpose(np.argsort(distances, axis=1, kind="stable")[:, :k])


def within(X: Any, radius: float, n_jobs: int | None) -> Any:
    """1 for rows at most `radius` from each other."""
    n = X.shape[0]
    if tree_pays(X, 1, _EUCLIDEAN, "auto"):
        _, rows = within_radius_by_tree(X, X, radius, _EUCLIDEAN, n_jobs)
    else:
        _, rows = within_radius(lambda Q, R: distance_block(_EUCLIDEAN, Q, R), X, X, radius, n_jobs)
    start = np.concatenate([[0], np.cumsum([len(found) for found in rows])])
    graph = sp.csr_array((np.ones(start[-1]), np.concatenate(rows), start), shape=(n, n))
    return graph.maximum(graph.T)  # rounding may put a pair on both sides of the radius


def kernel_matrix(X: Any, kernel: Any, **options: Any) -> np.ndarray:
    """k(x_i, x_j) of all pairs of rows."""
    n = X.shape[0]
    require_memory(8.0 * n * n * 3, f"the affinities of {n} x {n} rows", "take affinity='nearest_neighbors'")
    return np.asarray(pairwise_kernels(X, metric=kernel, filter_params=not callable(kernel), **options))


def symmetric(W: Any) -> Any:
    """Affinities in float64, averaged with their transpose where they differ; refuses what is no affinity."""
    require_square(W)
    W = sp.csr_array(W, dtype=np.float64) if sp.issparse(W) else np.asarray(W, dtype=np.float64)
    values = W.data if sp.issparse(W) else W
    if not np.isfinite(values).all():
        raise DataError("affinity: holds NaN or infinity; expected finite numbers >= 0")
    if values.size and values.min() < 0:
        raise DataError(f"affinity: holds {values.min():g}; expected numbers >= 0, another kernel or shifted ones")
    difference = _asymmetry(W)
    if difference == 0:
        return W
    if difference > 1e-10 * max(1.0, float(values.max())):
        warnings.warn(
            "Array is not symmetric, and will be converted to symmetric by average with its transpose.", stacklevel=7
        )
    return (W + W.T) * 0.5


def _asymmetry(W: Any) -> float:
    """max |W_ij - W_ji|, in blocks of rows where W is dense."""
    if sp.issparse(W):
        return float(abs(W - W.T).max())
    n, step = len(W), 256
    corners = [(a, b) for a in range(0, n, step) for b in range(0, a + 1, step)]
    return max(float(np.abs(W[a : a + step, b : b + step] - W[b : b + step, a : a + step].T).max()) for a, b in corners)


def require_square(W: Any) -> int:
    """The number of rows of a square matrix; anything else is refused."""
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise DataError(f"X: has shape {W.shape}; expected a square matrix with one row and column for each sample")
    return int(W.shape[0])


def _require_neighbors(k: int, n: int) -> None:
    if k > n:
        raise DataError(f"n_neighbors={k}; Expected n_neighbors <= n_samples_fit, which is {n}")


def _mean_with_transpose(rows: np.ndarray) -> Any:
    n, k = rows.shape
    C = sp.csr_array((np.ones(n * k), rows.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    W = (C + C.T) * 0.5
    W.sort_indices()
    return W
