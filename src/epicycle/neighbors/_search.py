"""The k nearest rows: by a tree in few dimensions, by brute force otherwise; ties go to the row that comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.neighbors._brute_force import brute_force
from epicycle.neighbors._metrics import CHEBYSHEV, COSINE, EUCLIDEAN, MANHATTAN, Distance

__all__ = ["nearest", "without_self"]

_FEW = 8  # columns up to which a tree is faster


def nearest(
    X: Any, Q: Any, k: int, metric: Distance, algorithm: str, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(distances, rows) of the k rows of X nearest to every row of Q, nearest first."""
    dense = not (sp.issparse(X) or sp.issparse(Q))
    few = dense and X.shape[1] <= _FEW and metric.kind != COSINE and X.shape[0] > 4 * k
    if algorithm == "brute" or not dense or metric.kind == COSINE or (algorithm == "auto" and not few):
        return brute_force(X, Q, k, metric, n_jobs)
    return _by_tree(X, Q, k, metric, n_jobs)


def _by_tree(
    X: np.ndarray, Q: np.ndarray, k: int, metric: Distance, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    tree = cKDTree(np.asarray(X, dtype=np.float64), balanced_tree=len(X) < 1 << 15)
    order = {EUCLIDEAN: 2.0, MANHATTAN: 1.0, CHEBYSHEV: np.inf}.get(metric.kind, metric.power)
    more = min(k + 1, len(X))
    threads = n_threads(200.0 * len(Q) * k, n_jobs)
    _, rows = tree.query(np.asarray(Q, dtype=np.float64), k=more, p=order, workers=threads)
    rows = np.ascontiguousarray(rows.reshape(len(Q), more), dtype=np.int64)
    if Q.dtype != X.dtype:
        Q, X = Q.astype(np.float64), X.astype(np.float64)
    X, Q = np.ascontiguousarray(X), np.ascontiguousarray(Q)
    exact = _native.neighbors.exact_distances(Q, X, metric.kind, metric.power, rows)
    sequence = np.lexsort((rows, exact), axis=1)
    exact, rows = np.take_along_axis(exact, sequence, axis=1), np.take_along_axis(rows, sequence, axis=1)
    distances, found = metric.from_native(exact[:, :k]), rows[:, :k].copy()
    if more > k:
        # One beyond the k-th at the same distance: there may be more, and which of them comes first is not known.
        tied = np.flatnonzero(exact[:, k] <= exact[:, k - 1] * (1 + 1e-12))
        if len(tied):
            distances[tied], found[tied] = brute_force(X, Q[tied], k, metric, n_jobs)
    return distances, found


def without_self(distances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of the rows themselves: row i leaves the list of k + 1, or its last does where i is not in it."""
    n, k = rows.shape
    own = rows == np.arange(n)[:, None]
    own[~own.any(axis=1), k - 1] = True
    return distances[~own].reshape(n, k - 1), rows[~own].reshape(n, k - 1)
