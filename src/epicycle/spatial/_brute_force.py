"""The k nearest rows by brute force: products of matrices, sums over columns, or all distances of sparse rows.

Products give all scores, in float32 where that is enough, and exact distances are computed of the few rows that are
left. With rows about their mean, c_j = |b_j|^2 / 2 and u the unit of rounding, a score c_j - a'b_j has an error of at
most

    u ((p + 4) |a| B + B^2),       B the longest row:

products of p terms in any order, rows rounded to the precision, one subtraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.data._array_data import csr_rows
from epicycle.engine._ordered import in_order
from epicycle.kernels._prepared import squared_lengths
from epicycle.spatial._metric import CHEBYSHEV, COSINE, EUCLIDEAN, MANHATTAN, MINKOWSKI, RANGE, Metric

QUERIES = 256  # of a block of scores
_ROWS = 1024  # with them 1 MB in float32, which stays in cache
_COLUMNS = {MANHATTAN: 1, CHEBYSHEV: 2, MINKOWSKI: 3}  # the sums over columns of the native code
_SAFETY = 1.05  # factor on the bound of the error, for the rounding of the bound itself
# Longest row relative to a typical one, squared, and lengths, beyond which float32 would not tell the others apart.
_FAR_SQUARE, _FAR_LENGTH = 1e4, 1e15

Found = tuple[np.ndarray, np.ndarray]


def short_lists(n: int, k: int) -> _native.neighbors.Lists:
    """Room for the candidates of n queries of which k are wanted: lists that native code fills and prunes."""
    room = 2 * k + 96  # a list is pruned when it is full: not too often for small k
    row, count = np.zeros((n, room), dtype=np.int64), np.zeros(n, dtype=np.int64)
    return _native.neighbors.Lists(np.empty((n, room)), row, count, np.full(n, np.inf))


def brute_force(X: Any, Q: Any, k: int, metric: Metric, n_jobs: int | None) -> Found:
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
    step = QUERIES if not sp.issparse(X) else max(8, min(QUERIES, (1 << 22) // X.shape[0]))

    def work(start: int) -> None:
        stop = min(start + step, n)
        found, which = search(chunk(Q, start, stop, sparse=sp.issparse(X)), k)
        distances[start:stop], rows[start:stop] = found, which.reshape(found.shape)

    width = X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1]
    with single_threaded_blas():
        in_order(range(0, n, step), work, None, n_threads(float(n) * X.shape[0] * width, n_jobs))
    return metric.from_native(distances), rows


def chunk(Q: Any, start: int, stop: int, *, sparse: bool) -> Any:
    if sp.issparse(Q):
        part = csr_rows(Q.tocsr(), start, stop)
        return part if sparse else part.toarray()
    return np.ascontiguousarray(Q[start:stop])


def same_type(Q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Queries and rows in one type, in which no query loses digits."""
    return (Q, X) if Q.dtype == X.dtype else (Q.astype(np.float64, copy=False), X.astype(np.float64, copy=False))


class _ProductSearch:
    """Euclidean and cosine distances of dense rows."""

    def __init__(self, X: np.ndarray, metric: Metric) -> None:
        self.metric = metric
        self.cosine = metric.kind == COSINE
        self.X = unit_rows(X) if self.cosine else np.ascontiguousarray(X)
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
        Q = unit_rows(Q) if self.cosine else Q
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
        own, X = same_type(Q, self.X)
        lists = short_lists(len(Q), k)
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


def unit_rows(X: np.ndarray) -> np.ndarray:
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
        lists = short_lists(len(Q), k)
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
        self.X = unit_sparse(X) if metric.kind == COSINE else X.tocsr()
        self.squares = squared_lengths(self.X.astype(np.float64))
        self.unit = float(np.finfo(np.float64).eps) / 2

    def __call__(self, Q: Any, k: int) -> Found:
        cosine = self.metric.kind == COSINE
        Q = unit_sparse(Q) if cosine else Q
        A, B = like(Q, self.X)
        lists = short_lists(A.shape[0], k)
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


def unit_sparse(X: Any) -> Any:
    X = sp.csr_array(X).astype(np.float64)
    squares = squared_lengths(X)
    if ((squares > 10.0**RANGE) | ((squares < 10.0**-RANGE) & (np.diff(X.indptr) > 0))).any():
        # Squares that overflow or vanish: divide by the largest element of the row first.
        longest = np.asarray(abs(X).max(axis=1).todense()).ravel()
        X.data = X.data / np.repeat(np.where(longest > 0, longest, 1.0), np.diff(X.indptr))
        squares = squared_lengths(X)
    lengths = np.sqrt(squares)
    X.data = X.data / np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
    return X


def like(Q: Any, X: Any) -> tuple[Any, Any]:
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
