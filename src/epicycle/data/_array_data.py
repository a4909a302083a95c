"""Data in memory: views of one array (or CSR matrix), cut into fixed blocks that fit the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.data._data import Batch, Data, Matrix, TargetEncoder
from epicycle.data._matrix import aligned

_BLOCK_BYTES = 2 << 20  # of X: a block and what is computed from it stay in the second-level cache
_HEAD_ROWS = 1024  # of `head`


def block_rows(X: Any) -> int:
    """Rows of a block, from the shape, the type and the number of stored entries of X alone.

    About 2 MiB of X; at least four times as many rows as columns, so that a p x p statistic costs more to compute than
    to add; a multiple of 256.
    """
    n, p = X.shape
    if not sp.issparse(X):
        return dense_block_rows(p, X.dtype)
    stored = int(X.nnz) * (X.dtype.itemsize + X.indices.dtype.itemsize)
    # Empty rows cost an entry of indptr and of the result: 16 bytes, or blocks would have no end.
    return _round_up(max(int(_BLOCK_BYTES / max(stored / max(n, 1), 16.0)), 1024))


def dense_block_rows(p: int, dtype: np.dtype[Any]) -> int:
    """The same for a dense X of p columns."""
    return _round_up(max(_BLOCK_BYTES // (max(p, 1) * dtype.itemsize), 4 * p, 1024))


def _round_up(rows: int) -> int:
    return -(-rows // 256) * 256


def csr_rows(X: sp.csr_array | sp.csr_matrix, start: int, stop: int) -> sp.csr_array | sp.csr_matrix:
    """Rows start:stop of a CSR matrix as views of its arrays; the constructor would copy 64-bit indices down."""
    first, last = X.indptr[start], X.indptr[stop]
    rows = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    rows.data, rows.indices = X.data[first:last], X.indices[first:last]
    rows.indptr = X.indptr[start : stop + 1] - first
    rows.has_canonical_format = True
    return rows


class ArrayData(Data):
    """One array in memory with its targets and weights; blocks are views.

    The arguments are trusted: :func:`as_data` checks what users bring.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        float32 or float64.
    y : ndarray of shape (n,) or (n, k), optional
    weight : ndarray of shape (n,), optional
        float64.
    feature_names : tuple of str, optional
    """

    def __init__(
        self,
        X: Matrix,
        y: Any = None,
        weight: np.ndarray | None = None,
        *,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self.X, self.y, self.weight = X, y, weight
        self.feature_names = feature_names
        n, p = X.shape
        self.n_rows: int = int(n)
        self.n_features = int(p)
        self.dtype = X.dtype
        self.sparse = sp.issparse(X)
        self.has_weight = weight is not None
        self.target_is_vector = y is not None and y.ndim == 1
        self.n_targets = 0 if y is None else 1 if y.ndim == 1 else int(y.shape[1])
        # Even blocks: no tiny last one that a thread would be woken for.
        self.n_blocks = max(1, self.n_rows // block_rows(X))
        self._rows = max(-(-self.n_rows // self.n_blocks // 256) * 256, 256)
        self.n_blocks = max(1, -(-self.n_rows // self._rows))
        self._views: dict[int, Any] = {}  # blocks of sparse rows: making one costs as much as a short pass over it

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_views": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrays that came over a wire may lie between the words of memory, where BLAS takes other paths: move them."""
        self.__dict__.update(state)
        self.X, self.y, self.weight = aligned(self.X), aligned(self.y), aligned(self.weight)

    def rows(self, start: int, stop: int) -> Batch:
        """Rows start:stop as views."""
        X = self.X
        whole = start == 0 and stop == self.n_rows
        part = X if whole else csr_rows(X, start, stop) if self.sparse else X[start:stop]
        return self._batch(part, start, stop)

    def _batch(self, part: Matrix, start: int, stop: int) -> Batch:
        y = None if self.y is None else self.y[start:stop]
        weight = None if self.weight is None else self.weight[start:stop]
        return Batch(part, y, weight, start)

    def block(self, i: int) -> Batch:
        """Block i of `n_blocks`."""
        start = i * self._rows
        stop = min(start + self._rows, self.n_rows)
        if not self.sparse or self.n_blocks == 1:
            return self.rows(start, stop)
        if i not in self._views:
            self._views[i] = csr_rows(self.X, start, stop)
        return self._batch(self._views[i], start, stop)

    def batches(self) -> Iterator[Batch]:
        return (self.block(i) for i in range(self.n_blocks))

    def encode_target(self, function: TargetEncoder, n_columns: int | None = None) -> ArrayData:
        if self.y is None:
            raise DataError("y: there is no target to encode")
        return ArrayData(self.X, function(self.y), self.weight, feature_names=self.feature_names)

    def head(self) -> Batch:
        return self.rows(0, min(_HEAD_ROWS, self.n_rows))

    def __sizeof__(self) -> int:
        # A cluster decides by this number whether to move the work or the data.
        X: Any = self.X
        arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        return 1024 + sum(int(a.nbytes) for a in (*arrays, self.y, self.weight) if a is not None)
