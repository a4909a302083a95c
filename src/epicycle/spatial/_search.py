"""Exact search for the k nearest rows and those within a radius: by a tree in few dimensions, or by brute force.

Ties go to the row that comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.spatial._brute_force import (
    QUERIES,
    brute_force,
    chunk,
    like,
    same_type,
    short_lists,
    unit_rows,
    unit_sparse,
)
from epicycle.spatial._metric import CHEBYSHEV, COSINE, EUCLIDEAN, MANHATTAN, MINKOWSKI, RANGE, Metric

_TREE_COLUMNS = 8  # up to which a tree is faster
_WIDE_COLUMNS, _MANY_ROWS = 10, 50_000  # the same for many rows, of which products have to look at all
# How many powers of ten smaller than the largest a difference that matters is.
_DIGITS = 16.0
_TIE = 1e-12  # relative difference of distances below which a tree may order rows either way


def nearest(
    X: Any, Q: Any, k: int, metric: Metric, algorithm: str, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(distances, rows) of the k rows of X nearest to every row of Q, nearest first."""
    dense = not (sp.issparse(X) or sp.issparse(Q))
    if power_overflows(X, Q, metric):
        X, Q, exponent = to_unit(X, Q)
        if power_overflows(X, Q, metric):
            distances, rows = nearest_in_blocks(partial(_scaled_block, metric.power), X, Q, k, n_jobs)
        else:
            distances, rows = nearest(X, Q, k, metric, algorithm, n_jobs)
        return _times_power_of_two(distances, exponent), rows
    if dense and tree_pays(X, k, metric, algorithm):
        return _by_tree(X, Q, k, metric, n_jobs)
    return brute_force(X, Q, k, metric, n_jobs)


def tree_pays(X: Any, k: int, metric: Metric, algorithm: str) -> bool:
    """Whether a tree of the rows X is walked for k neighbours."""
    if algorithm == "brute" or sp.issparse(X) or metric.kind == COSINE or metric.power < 1:
        return False
    n, p = X.shape
    return algorithm != "auto" or (p <= (_WIDE_COLUMNS if n >= _MANY_ROWS else _TREE_COLUMNS) and n > 4 * k)


def nearest_in_blocks(
    block: Callable[[Any, Any], np.ndarray], X: Any, Q: Any, k: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The same for distances that `block(queries, rows)` computes."""
    n, m = int(Q.shape[0]), int(X.shape[0])
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.int64)

    def work(span: tuple[int, int]) -> None:
        start, stop = span
        D = block(chunk(Q, start, stop, sparse=sp.issparse(X)), X)
        lists = short_lists(stop - start, k)
        _native.neighbors.update_given(D, 0, m, k, lists)
        found, which = _native.neighbors.settle_given(m, k, lists)
        distances[start:stop], rows[start:stop] = found, which.reshape(found.shape)

    _over_queries(X, n, work, n_jobs)
    return distances, rows


def _over_queries(X: Any, n: int, work: Callable[[tuple[int, int]], None], n_jobs: int | None) -> None:
    """Blocks of the n queries, whose distances to all rows of X stay small."""
    step = max(1, min(QUERIES, (1 << 21) // max(int(X.shape[0]), 1)))
    spans = ((start, min(start + step, n)) for start in range(0, n, step))
    in_order(spans, work, None, n_threads(float(n) * X.shape[0] * X.shape[1], n_jobs))


def power_overflows(X: Any, Q: Any, metric: Metric) -> bool:
    """Whether |d|^p could leave the range of floating point for differences that matter."""
    if metric.kind not in (EUCLIDEAN, MINKOWSKI):
        return False
    largest = max(_largest(X), _largest(Q))
    if largest == 0.0:
        return False
    exponent = np.log10(largest) + np.log10(2.0)
    return bool(metric.power * exponent > RANGE or metric.power * (exponent - _DIGITS) < -RANGE)


def to_unit(X: Any, Q: Any) -> tuple[Any, Any, int]:
    """X and Q in float64, divided by the power of two that brings the largest element below one, and its exponent."""
    exponent = math.frexp(max(_largest(X), _largest(Q)))[1]
    return (*(_scaled_rows(A, -exponent) for A in (X, Q)), exponent)


def scaled_radius(radius: float, exponent: int) -> float:
    """radius / 2^exponent, infinite where that is beyond all numbers."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(radius, -exponent))


def native_rows(X: np.ndarray, metric: Metric) -> tuple[np.ndarray, int] | None:
    """(rows, e) in float64 with X = 2^e rows, such that no |d|^p leaves the range; None where no e does that."""
    rows, exponent = np.ascontiguousarray(X, dtype=np.float64), 0
    if power_overflows(rows, rows, metric):
        rows, _, exponent = to_unit(rows, rows[:1])
        if power_overflows(rows, rows, metric):
            return None
    return np.ascontiguousarray(rows), exponent


def _scaled_rows(A: Any, exponent: int) -> Any:
    if not sp.issparse(A):
        return np.ldexp(np.asarray(A, dtype=np.float64), exponent)
    A = sp.csr_array(A, dtype=np.float64, copy=True)
    A.data = np.ldexp(A.data, exponent)
    return A


def _times_power_of_two(distances: np.ndarray, exponent: int) -> np.ndarray:
    with np.errstate(over="ignore"):  # a distance beyond the largest number there is: infinity
        return np.asarray(np.ldexp(distances, exponent))


def _largest(X: Any) -> float:
    values = X.data if sp.issparse(X) else X
    return float(max(np.max(values, initial=0.0), -np.min(values, initial=0.0)))


def _scaled_block(power: float, Q: Any, X: Any) -> np.ndarray:
    """Minkowski's distances m (sum |d / m|^p)^(1/p) with m the largest difference: nothing overflows."""
    Q, X = (A.toarray() if sp.issparse(A) else A for A in (Q, X))
    X = np.asarray(X, dtype=np.float64)
    D = np.empty((len(Q), len(X)))
    for q, row in zip(np.asarray(Q, dtype=np.float64), D, strict=True):
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            difference = np.abs(X - q)
            largest = difference.max(axis=1)
            ratios = np.divide(difference, largest[:, None], out=difference, where=largest[:, None] > 0)
            row[:] = largest * np.sum(ratios**power, axis=1, where=ratios > 0) ** (1 / power)
        row[np.isinf(largest)] = np.inf
    return D


# ------------------------------------------------------------------------------------------- within a radius


def distance_block(metric: Metric, Q: Any, X: Any) -> np.ndarray:
    """All distances of the rows of Q and X, from their differences; X is sparse where Q is."""
    if power_overflows(X, Q, metric):
        X, Q, exponent = to_unit(X, Q)
        apart = _scaled_block(metric.power, Q, X) if power_overflows(X, Q, metric) else distance_block(metric, Q, X)
        return _times_power_of_two(apart, exponent)
    return metric.from_native(_native_block(metric, Q, X))


def within_block(metric: Metric, Q: Any, X: Any, radius: float) -> np.ndarray:
    """Which of these distances are at most the radius: the last root is not taken, as in trees."""
    if power_overflows(X, Q, metric):
        X, Q, exponent = to_unit(X, Q)
        radius = scaled_radius(radius, exponent)
        if power_overflows(X, Q, metric):
            return np.asarray(_scaled_block(metric.power, Q, X) <= radius)
    return np.asarray(_native_block(metric, Q, X) <= metric.to_native(radius))


def _native_block(metric: Metric, Q: Any, X: Any) -> np.ndarray:
    which = (metric.kind, metric.power)
    if sp.issparse(X):
        A, B = like(*(unit_sparse(M) if metric.kind == COSINE else M for M in (sp.csr_array(Q), sp.csr_array(X))))
        return _native.neighbors.csr_distances(A, B, *which)
    A, B = same_type(*(unit_rows(M) if metric.kind == COSINE else np.ascontiguousarray(M) for M in (Q, X)))
    rows = np.tile(np.arange(len(B), dtype=np.int64), (len(A), 1))
    return _native.neighbors.exact_distances(A, B, *which, rows)


def within_radius(
    block: Callable[[Any, Any], np.ndarray], X: Any, Q: Any, radius: Any, n_jobs: int | None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(distances, rows) at most `radius` (a number, or one for each query) from every row of Q, rows ascending."""
    n = int(Q.shape[0])
    reach = np.broadcast_to(np.asarray(radius, dtype=np.float64), (n,))
    distances: list[Any] = [None] * n
    rows: list[Any] = [None] * n

    def work(span: tuple[int, int]) -> None:
        start, stop = span
        D = block(chunk(Q, start, stop, sparse=sp.issparse(X)), X)
        for i in range(start, stop):
            rows[i] = np.flatnonzero(D[i - start] <= reach[i])
            distances[i] = D[i - start][rows[i]]

    _over_queries(X, n, work, n_jobs)
    return distances, rows


def within_radius_by_tree(
    X: np.ndarray, Q: np.ndarray, radius: Any, metric: Metric, n_jobs: int | None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same, with candidates from a tree."""
    tree = cKDTree(np.asarray(X, dtype=np.float64), balanced_tree=len(X) < 1 << 15)
    order = {EUCLIDEAN: 2.0, MANHATTAN: 1.0, CHEBYSHEV: np.inf}.get(metric.kind, metric.power)
    reach = np.broadcast_to(np.asarray(radius, dtype=np.float64), (len(Q),))
    points = np.asarray(Q, dtype=np.float64)
    threads = n_threads(200.0 * len(Q), n_jobs)
    found = tree.query_ball_point(points, reach * (1 + 1e-9), p=order, workers=threads, return_sorted=True)
    A, B = same_type(np.ascontiguousarray(Q), np.ascontiguousarray(X))
    distances, rows = [], []
    for i, candidates in enumerate(found):
        which = np.asarray(candidates, dtype=np.int64)
        exact = _native.neighbors.exact_distances(A[i : i + 1], B, metric.kind, metric.power, which[None, :])
        D = metric.from_native(exact).ravel()
        inside = np.less_equal(D, reach[i])
        distances.append(D[inside])
        rows.append(which[inside])
    return distances, rows


def _by_tree(X: np.ndarray, Q: np.ndarray, k: int, metric: Metric, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    # One neighbour more than asked for shows whether the k-th has ties.
    more = min(k + 1, len(X))
    threads = n_threads(200.0 * len(Q) * k, n_jobs)
    points, queries = (np.ascontiguousarray(A, dtype=np.float64) for A in (X, Q))
    rows = _native.neighbors.nearest_by_tree(points, queries, metric.kind, metric.power, more, threads)
    if Q.dtype != X.dtype:
        Q, X = Q.astype(np.float64), X.astype(np.float64)
    X, Q = np.ascontiguousarray(X), np.ascontiguousarray(Q)
    exact = _native.neighbors.exact_distances(Q, X, metric.kind, metric.power, rows)
    sequence = np.lexsort((rows, exact), axis=1)
    exact, rows = np.take_along_axis(exact, sequence, axis=1), np.take_along_axis(rows, sequence, axis=1)
    distances, found = metric.from_native(exact[:, :k]), rows[:, :k].copy()
    if more > k:
        # One beyond the k-th at the same distance: there may be more, and which of them comes first is not known.
        tied = np.flatnonzero(exact[:, k] <= exact[:, k - 1] * (1 + _TIE))
        if len(tied):
            distances[tied], found[tied] = brute_force(X, Q[tied], k, metric, n_jobs)
    return distances, found


def without_self(distances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of the rows themselves: row i leaves the list of k + 1, or its last does where i is not in it."""
    n, k = rows.shape
    own = rows == np.arange(n)[:, None]
    own[~own.any(axis=1), k - 1] = True
    return distances[~own].reshape(n, k - 1), rows[~own].reshape(n, k - 1)
