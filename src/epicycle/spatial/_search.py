"""Exact search for the k nearest rows: by a tree in few dimensions, otherwise by products of matrices.

Ties go to the row that comes first. Products give all scores, in float32 where that is enough, and exact distances are
computed of the few rows that are left. With rows about their mean, c_j = |b_j|^2 / 2 and u the unit of rounding, a
score c_j - a'b_j has an error of at most

    u ((p + 4) |a| B + B^2),       B the longest row:

products of p terms in any order, rows rounded to the precision, one subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from epicycle import _native
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.data._array_data import csr_rows
from epicycle.engine._ordered import in_order
from epicycle.kernels._prepared import squared_lengths

METRICS = ("minkowski", "euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "cosine")
EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, COSINE = range(5)  # as the native code numbers them

_TREE_COLUMNS = 8  # up to which a tree is faster
_QUERIES, _ROWS = 256, 1024  # of a block of scores: 1 MB in float32 stays in cache
_COLUMNS = {MANHATTAN: 1, CHEBYSHEV: 2, MINKOWSKI: 3}  # the sums over columns of the native code
_SAFETY = 1.05  # factor on the bound of the error, for the rounding of the bound itself
# Powers of ten of |d|^p that floating point holds, and how much smaller than the largest a difference that matters is.
_RANGE, _DIGITS = 290.0, 16.0
_TIE = 1e-12  # relative difference of distances below which a tree may order rows either way
# Longest row relative to a typical one, squared, and lengths, beyond which float32 would not tell the others apart.
_FAR_SQUARE, _FAR_LENGTH = 1e4, 1e15

Found = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Metric:
    """A metric: its number, and the power of Minkowski's."""

    kind: int
    power: float

    def to_native(self, distance: float) -> float:
        """A distance as native code compares it, without the last root."""
        if self.kind not in (EUCLIDEAN, MINKOWSKI):
            return distance
        with np.errstate(over="ignore"):  # a radius whose power is beyond all numbers holds everything
            return min(float(np.float64(distance) ** self.power), float(np.finfo(np.float64).max))

    def from_native(self, values: np.ndarray) -> np.ndarray:
        """Distances from the values of native code, which leaves out the last root."""
        if self.kind == EUCLIDEAN:
            return np.asarray(np.sqrt(values))
        if self.kind != MINKOWSKI:
            return values
        with np.errstate(over="ignore"):  # roots of tiny p: what is beyond all numbers is as far as the largest
            return np.minimum(values ** (1 / self.power), np.finfo(values.dtype).max)


def metric_by_name(metric: str, p: Any) -> Metric:
    """The metric of this name; `p` is for "minkowski"."""
    if metric == "minkowski":
        p = float(p)
        known = {1.0: MANHATTAN, 2.0: EUCLIDEAN, math.inf: CHEBYSHEV}
        return Metric(known.get(p, MINKOWSKI), 1.0 if math.isinf(p) else p)
    kinds = {"manhattan": MANHATTAN, "cityblock": MANHATTAN, "l1": MANHATTAN, "chebyshev": CHEBYSHEV, "cosine": COSINE}
    return Metric(kinds.get(metric, EUCLIDEAN), 2.0)


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
    return _brute_force(X, Q, k, metric, n_jobs)


def tree_pays(X: Any, k: int, metric: Metric, algorithm: str) -> bool:
    """Whether a tree of the rows X is walked for k neighbours."""
    if algorithm == "brute" or sp.issparse(X) or metric.kind == COSINE or metric.power < 1:
        return False
    return algorithm != "auto" or (X.shape[1] <= _TREE_COLUMNS and X.shape[0] > 4 * k)


def nearest_in_blocks(
    block: Callable[[Any, Any], np.ndarray], X: Any, Q: Any, k: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The same for distances that `block(queries, rows)` computes."""
    n, m = int(Q.shape[0]), int(X.shape[0])
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.int64)

    def work(span: tuple[int, int]) -> None:
        start, stop = span
        D = block(_chunk(Q, start, stop, sparse=sp.issparse(X)), X)
        lists = _short_lists(stop - start, k)
        _native.neighbors.update_given(D, 0, m, k, lists)
        found, which = _native.neighbors.settle_given(m, k, lists)
        distances[start:stop], rows[start:stop] = found, which.reshape(found.shape)

    _over_queries(X, n, work, n_jobs)
    return distances, rows


def _over_queries(X: Any, n: int, work: Callable[[tuple[int, int]], None], n_jobs: int | None) -> None:
    """Blocks of the n queries, whose distances to all rows of X stay small."""
    step = max(1, min(_QUERIES, (1 << 21) // max(int(X.shape[0]), 1)))
    spans = ((start, min(start + step, n)) for start in range(0, n, step))
    in_order(spans, work, lambda _done: None, n_threads(float(n) * X.shape[0] * X.shape[1], n_jobs))


def power_overflows(X: Any, Q: Any, metric: Metric) -> bool:
    """Whether |d|^p could leave the range of floating point for differences that matter."""
    if metric.kind not in (EUCLIDEAN, MINKOWSKI):
        return False
    largest = max(_largest(X), _largest(Q))
    if largest == 0.0:
        return False
    exponent = np.log10(largest) + np.log10(2.0)
    return bool(metric.power * exponent > _RANGE or metric.power * (exponent - _DIGITS) < -_RANGE)


def to_unit(X: Any, Q: Any) -> tuple[Any, Any, int]:
    """X and Q in float64, divided by the power of two that brings the largest element below one, and its exponent."""
    exponent = math.frexp(max(_largest(X), _largest(Q)))[1]
    return (*(_scaled_rows(A, -exponent) for A in (X, Q)), exponent)


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
        radius = math.ldexp(radius, -exponent)
        if power_overflows(X, Q, metric):
            return np.asarray(_scaled_block(metric.power, Q, X) <= radius)
    return np.asarray(_native_block(metric, Q, X) <= metric.to_native(radius))


def _native_block(metric: Metric, Q: Any, X: Any) -> np.ndarray:
    which = (metric.kind, metric.power)
    if sp.issparse(X):
        A, B = _like(*(_unit_sparse(M) if metric.kind == COSINE else M for M in (sp.csr_array(Q), sp.csr_array(X))))
        return _native.neighbors.csr_distances(A, B, *which)
    A, B = _same_type(*(_unit_rows(M) if metric.kind == COSINE else np.ascontiguousarray(M) for M in (Q, X)))
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
        D = block(_chunk(Q, start, stop, sparse=sp.issparse(X)), X)
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
    A, B = _same_type(np.ascontiguousarray(Q), np.ascontiguousarray(X))
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
    tree = cKDTree(np.asarray(X, dtype=np.float64), balanced_tree=len(X) < 1 << 15)
    order = {EUCLIDEAN: 2.0, MANHATTAN: 1.0, CHEBYSHEV: np.inf}.get(metric.kind, metric.power)
    # One neighbour more than asked for shows whether the k-th has ties.
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
        tied = np.flatnonzero(exact[:, k] <= exact[:, k - 1] * (1 + _TIE))
        if len(tied):
            distances[tied], found[tied] = _brute_force(X, Q[tied], k, metric, n_jobs)
    return distances, found


def without_self(distances: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of the rows themselves: row i leaves the list of k + 1, or its last does where i is not in it."""
    n, k = rows.shape
    own = rows == np.arange(n)[:, None]
    own[~own.any(axis=1), k - 1] = True
    return distances[~own].reshape(n, k - 1), rows[~own].reshape(n, k - 1)


# ------------------------------------------------------------------------------------------- brute force


def _short_lists(n: int, k: int) -> _native.neighbors.Lists:
    """Room for the candidates of n queries of which k are wanted: lists that native code fills and prunes."""
    room = 2 * k + 96  # a list is pruned when it is full: not too often for small k
    row, count = np.zeros((n, room), dtype=np.int64), np.zeros(n, dtype=np.int64)
    return _native.neighbors.Lists(np.empty((n, room)), row, count, np.full(n, np.inf))


def _brute_force(X: Any, Q: Any, k: int, metric: Metric, n_jobs: int | None) -> Found:
    """(distances, rows) of the k rows of X nearest to every row of Q, both of shape (n, k), nearest first."""
    if sp.issparse(X):
        Q = sp.csr_array(Q)
        search: Any = _SparseSearch(X, metric)
    elif metric.kind in (EUCLIDEAN, COSINE):
        search = _ProductSearch(X, metric)
    else:
        search = _ColumnSearch(X, metric)
    n = int(Q.shape[0])
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.int64)
    step = _QUERIES if not sp.issparse(X) else max(8, min(_QUERIES, (1 << 22) // X.shape[0]))

    def work(start: int) -> None:
        stop = min(start + step, n)
        found, which = search(_chunk(Q, start, stop, sparse=sp.issparse(X)), k)
        distances[start:stop], rows[start:stop] = found, which.reshape(found.shape)

    width = X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1]
    with single_threaded_blas():
        in_order(iter(range(0, n, step)), work, lambda _done: None, n_threads(float(n) * X.shape[0] * width, n_jobs))
    return metric.from_native(distances), rows


def _chunk(Q: Any, start: int, stop: int, *, sparse: bool) -> Any:
    if sp.issparse(Q):
        part = csr_rows(Q.tocsr(), start, stop)
        return part if sparse else part.toarray()
    return np.ascontiguousarray(Q[start:stop])


def _same_type(Q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Queries and rows in one type, in which no query loses digits."""
    return (Q, X) if Q.dtype == X.dtype else (Q.astype(np.float64, copy=False), X.astype(np.float64, copy=False))


class _ProductSearch:
    """Euclidean and cosine distances of dense rows."""

    def __init__(self, X: np.ndarray, metric: Metric) -> None:
        self.metric = metric
        self.cosine = metric.kind == COSINE
        self.X = _unit_rows(X) if self.cosine else np.ascontiguousarray(X)
        self.shift = None if self.cosine else X.mean(axis=0, dtype=np.float64)
        centred = self.X if self.shift is None else self.X - self.shift
        squares = squared_lengths(centred)
        self.longest = float(np.sqrt(squares.max(initial=0.0)))
        typical = float(np.median(squares))
        # A few rows far away would make the error of float32 larger than all other distances.
        far = self.longest**2 > _FAR_SQUARE * max(typical, 1e-30) or self.longest > _FAR_LENGTH
        far = far or 0 < self.longest < 1 / _FAR_LENGTH
        self.dtype: Any = np.float64 if far else np.float32
        self.unit = float(np.finfo(self.dtype).eps) / 2
        self.B = np.ascontiguousarray(centred, dtype=self.dtype)
        self.c = (np.zeros(len(squares)) if self.cosine else squares / 2).astype(self.dtype)

    def __call__(self, Q: np.ndarray, k: int) -> Found:
        Q = _unit_rows(Q) if self.cosine else Q
        centred = Q if self.shift is None else Q - self.shift
        squares = squared_lengths(np.asarray(centred, dtype=np.float64))
        A = np.ascontiguousarray(centred, dtype=self.dtype)
        if not np.isfinite(A).all():  # beyond the range of float32
            self = _product_in_double(self)
            A = np.ascontiguousarray(centred, dtype=np.float64)
        p = A.shape[1]
        slack = _SAFETY * self.unit * ((p + 4) * np.sqrt(squares) * self.longest + self.longest**2)
        base = np.ones(len(Q)) if self.cosine else squares
        scale = 1.0 if self.cosine else 2.0
        bounds = _native.neighbors.Bounds(base, slack, scale)
        which = (self.metric.kind, self.metric.power)
        own, X = _same_type(Q, self.X)
        lists = _short_lists(len(Q), k)
        G = np.empty((len(Q), _ROWS), dtype=self.dtype)
        for first in range(0, len(X), _ROWS):
            last = min(first + _ROWS, len(X))
            out = G if last - first == _ROWS else np.empty((len(Q), last - first), dtype=self.dtype)
            np.matmul(A, self.B[first:last].T, out=out)
            _native.neighbors.update(out, self.c[first:last], first, own, X, *which, bounds, k, lists)
        return _native.neighbors.settle(own, X, *which, k, lists)


def _product_in_double(search: _ProductSearch) -> _ProductSearch:
    found = object.__new__(_ProductSearch)
    found.__dict__.update(vars(search))
    found.dtype = np.float64
    found.B, found.c = search.B.astype(np.float64), search.c.astype(np.float64)
    # The rows had been rounded to float32 before: their error stays.
    found.unit = search.unit
    return found


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows of length one in float64; rows of zeros stay."""
    X = np.asarray(X, dtype=np.float64)
    longest = np.abs(X).max(axis=1, initial=0.0)
    scaled = X / np.where(longest > 0, longest, 1.0)[:, None]
    lengths = np.sqrt(squared_lengths(scaled))
    return scaled / np.where(lengths > 0, lengths, 1.0)[:, None]


class _ColumnSearch:
    """Distances that are sums over columns, of dense rows."""

    def __init__(self, X: np.ndarray, metric: Metric) -> None:
        self.metric, self.n = metric, len(X)
        rows = [np.asarray(X[start : start + _ROWS], dtype=np.float64) for start in range(0, len(X), _ROWS)]
        self.blocks = [np.ascontiguousarray(block.T) for block in rows]

    def __call__(self, Q: np.ndarray, k: int) -> Found:
        lists = _short_lists(len(Q), k)
        A = np.ascontiguousarray(Q, dtype=np.float64)
        kind = _COLUMNS[self.metric.kind]
        for number, block in enumerate(self.blocks):
            D = _native.kernel.columns_block(A, block, kind, self.metric.power)
            _native.neighbors.update_given(D, number * _ROWS, self.n, k, lists)
        return _native.neighbors.settle_given(self.n, k, lists)


class _SparseSearch:
    """All distances of sparse rows."""

    def __init__(self, X: Any, metric: Metric) -> None:
        self.metric = metric
        self.X = _unit_sparse(X) if metric.kind == COSINE else X.tocsr()
        self.squares = squared_lengths(self.X.astype(np.float64))
        self.unit = float(np.finfo(np.float64).eps) / 2

    def __call__(self, Q: Any, k: int) -> Found:
        cosine = self.metric.kind == COSINE
        Q = _unit_sparse(Q) if cosine else Q
        A, B = _like(Q, self.X)
        lists = _short_lists(A.shape[0], k)
        if self.metric.kind not in (EUCLIDEAN, COSINE):
            D = _native.neighbors.csr_distances(A, B, self.metric.kind, self.metric.power)
            _native.neighbors.update_given(D, 0, B.shape[0], k, lists)
            return _native.neighbors.settle_given(B.shape[0], k, lists)
        squares = squared_lengths(A.astype(np.float64))
        longest = float(np.sqrt(self.squares.max(initial=0.0)))
        terms = float(np.diff(A.indptr).max(initial=0))
        slack = _SAFETY * self.unit * ((terms + 4) * np.sqrt(squares) * longest + longest**2)
        G = np.ascontiguousarray((A.astype(np.float64) @ B.astype(np.float64).T).toarray())
        c = np.zeros(B.shape[0]) if cosine else self.squares / 2
        base, scale = (np.ones(A.shape[0]), 1.0) if cosine else (squares, 2.0)
        which = (self.metric.kind, self.metric.power)
        bounds = _native.neighbors.Bounds(base, slack, scale)
        _native.neighbors.update(G, c, 0, A, B, *which, bounds, k, lists)
        return _native.neighbors.settle(A, B, *which, k, lists)


def _unit_sparse(X: Any) -> Any:
    X = sp.csr_array(X).astype(np.float64)
    squares = squared_lengths(X)
    if ((squares > 10.0**_RANGE) | ((squares < 10.0**-_RANGE) & (np.diff(X.indptr) > 0))).any():
        # Squares that overflow or vanish: divide by the largest element of the row first.
        longest = np.asarray(abs(X).max(axis=1).todense()).ravel()
        X.data = X.data / np.repeat(np.where(longest > 0, longest, 1.0), np.diff(X.indptr))
        squares = squared_lengths(X)
    lengths = np.sqrt(squares)
    X.data = X.data / np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
    return X


def _like(Q: Any, X: Any) -> tuple[Any, Any]:
    """Both with the same types of numbers and indices."""
    if Q.dtype != X.dtype:
        Q, X = Q.astype(np.float64), X.astype(np.float64)
    if Q.indices.dtype == X.indices.dtype and Q.indptr.dtype == X.indptr.dtype == X.indices.dtype:
        return Q, X
    both = []
    for matrix in (Q, X):
        wide = sp.csr_array(matrix.shape, dtype=matrix.dtype)
        wide.data = matrix.data
        wide.indices, wide.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        both.append(wide)
    return both[0], both[1]
