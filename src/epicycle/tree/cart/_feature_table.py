"""Features as trees are grown from them: columns sorted once, or one byte a cell where few values differ.

A column of at most 255 distinct numbers, or of categories, becomes codes; code c stands for the numbers from
``low[c]`` to ``high[c]``, so that nothing is lost where each code has one. Other columns are sorted once, and a tree
divides the sorted lists as it grows. Sparse columns list what is not zero. Binned features are codes throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.engine import n_threads
from epicycle.tree._binning import MISSING, bin_matrix, padded

__all__ = ["FeatureTable", "binned_table", "exact_table"]

_NEW, _ROW = np.uint32(1 << 31), np.uint32((1 << 29) - 1)
_MOST_ROWS = 1 << 29


@dataclass(frozen=True)
class FeatureTable:
    """What the kernel reads. Lists are divided in place by a tree: every tree takes :meth:`fresh` ones."""

    n_rows: int
    n_features: int
    codes: np.ndarray
    coded_feature: np.ndarray
    n_codes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    categorical: np.ndarray
    lists: np.ndarray
    list_start: np.ndarray
    sorted_feature: np.ndarray
    values: Any = None
    value_rows: np.ndarray | None = None
    value_start: np.ndarray | None = None

    def fresh(self) -> FeatureTable:
        """A table whose lists may be divided."""
        return replace(self, lists=self.lists.copy()) if len(self.lists) else self

    @property
    def all_coded(self) -> bool:
        return len(self.sorted_feature) == 0


def _coded_parts(
    codes: np.ndarray,
    features: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    n_codes: np.ndarray,
    levels: dict[int, int],
) -> dict[str, np.ndarray]:
    return {
        "codes": codes,
        "coded_feature": features.astype(np.int32),
        "n_codes": n_codes.astype(np.int32),
        "low": low,
        "high": high,
        "categorical": np.isin(features, list(levels)).astype(np.uint8),
    }


def binned_table(codes: np.ndarray, cuts: list[np.ndarray], levels: dict[int, int]) -> FeatureTable:
    """Features cut into bins: a code lies between two cuts. Columns of one bin with nothing missing are left out."""
    n, p = codes.shape
    n_codes = np.array([len(c) + 1 for c in cuts])
    low, high = np.zeros((p, 256)), np.zeros((p, 256))
    for j, c in enumerate(cuts):
        if len(c):
            high[j, : len(c)], high[j, len(c)] = c, c[-1]
            low[j, 1 : len(c) + 1], low[j, 0] = c, c[0]
    return FeatureTable(n, p, **_coded_parts(codes, np.arange(p), low, high, n_codes, levels), **_no_lists())


def exact_table(X: Any, levels: dict[int, int], n_jobs: int | None) -> FeatureTable:
    """Every distinct number of every feature is told apart."""
    n, p = X.shape
    if n >= _MOST_ROWS:
        raise DataError(f"X has {n} rows; expected fewer than {_MOST_ROWS}")
    if sp.issparse(X):
        return _sparse_table(X, n_jobs)
    threads = n_threads(30.0 * n * p, n_jobs)
    numeric = np.array([j for j in range(p) if j not in levels], np.int32)
    require_memory(5.0 * n * p + 32.0 * n, "the sorted columns of X", "fit a forest, whose bins need one byte a cell")
    lists = np.empty((len(numeric), n), np.uint32)
    distinct, missing = np.empty(len(numeric), np.int64), np.empty(len(numeric), np.int64)
    _native.cart.sort_columns(X, numeric, lists, distinct, missing, threads)
    few = distinct <= MISSING
    cuts: list[np.ndarray] = [np.empty(0)] * p
    table = np.zeros((p, 256))
    for i in np.flatnonzero(few):
        j = numeric[i]
        first = lists[i][: n - missing[i]]
        values = X[(first[(first & _NEW) > 0] & _ROW), j].astype(np.float64)
        cuts[j], table[j, : len(values)] = _between(values), values
    for j, size in levels.items():
        cuts[j] = np.arange(size - 1) + 0.5
        table[j, :size] = np.arange(size)
    coded = np.sort(np.concatenate([numeric[few], np.array(list(levels), np.int32)])).astype(np.int32)
    part = X if len(coded) == p else X[:, coded] if len(coded) else X[:, :0]
    codes = bin_matrix(part, padded([cuts[j] for j in coded]), threads) if len(coded) else np.empty((n, 0), np.uint8)
    n_codes = np.array([len(cuts[j]) + 1 for j in coded], np.int32)
    low = np.ascontiguousarray(table[coded])
    if few.any():
        lists = np.ascontiguousarray(lists[~few])
    return FeatureTable(
        n, p, **_coded_parts(codes, coded, low, low, n_codes, levels), lists=lists.reshape(-1),
        list_start=np.arange(len(lists) + 1, dtype=np.int64) * n, sorted_feature=numeric[~few], values=X,
    )  # fmt: skip


def _sparse_table(X: Any, n_jobs: int | None) -> FeatureTable:
    n, p = X.shape
    require_memory(3.0 * X.nnz * (X.dtype.itemsize + 4), "the columns of X", "fit to fewer rows")
    columns = X.tocsc()
    columns.sort_indices()
    if (columns.data == 0).any():
        columns.eliminate_zeros()
    rows, start = columns.indices.astype(np.int32, copy=False), columns.indptr.astype(np.int64, copy=False)
    lists, distinct = np.empty(len(rows), np.uint32), np.empty(p, np.int64)
    _native.cart.sort_sparse_columns(columns.data, rows, start, n, lists, distinct, n_threads(30.0 * X.nnz, n_jobs))
    no_codes = np.empty(0, np.int32)
    empty = np.empty((0, 256))
    return FeatureTable(
        n, p, **_coded_parts(np.empty((n, 0), np.uint8), no_codes, empty, empty, no_codes, {}), lists=lists,
        list_start=start, sorted_feature=np.arange(p, dtype=np.int32), values=columns.data, value_rows=rows,
        value_start=start,
    )  # fmt: skip


def _between(values: np.ndarray) -> np.ndarray:
    """Numbers that tell ascending `values` apart: half-way, or the lower one where there is no such number."""
    a, b = values[:-1], values[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        half = a + (b - a) / 2
    return np.where(np.isfinite(half) & (a <= half) & (half < b), half, a)


def _no_lists() -> dict[str, np.ndarray]:
    return {
        "lists": np.empty(0, np.uint32),
        "list_start": np.zeros(1, np.int64),
        "sorted_feature": np.empty(0, np.int32),
    }
