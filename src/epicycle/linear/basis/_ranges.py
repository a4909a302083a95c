"""Ranges and quantiles of the columns of X, wherever the rows are: what places a basis on its data.

A quantile here is an element of the data: the smallest x with at least a share q of the weight at or below it. In
memory it is found by sorting, in files and on Dask by counting digits, with the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import engine
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._quantiles import digit_counts, select_by_digits

#: Quantiles that one pass counts: a batch then returns 2048 counts of each, 4 MB in all.
_COUNTED_AT_ONCE = 256
#: A share times a number of rows may be rounded up beyond a whole number; less than this it never falls short of one.
_ROUNDED_DOWN = 1 - 1e-15


@dataclass(frozen=True)
class Range:
    """Smallest and largest of every column; two add up to the range of both."""

    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: Range) -> Range:
        return Range(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _rows(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """(X of rows of positive weight, in float64; their weights)."""
    X = np.asarray(batch.X)
    if batch.weight is None:
        return X, np.ones(len(X))
    counts = batch.weight > 0
    return X[counts], batch.weight[counts]


def range_statistic(batch: Batch) -> tuple[Range]:
    X, _ = _rows(batch)
    if not len(X):
        nothing = np.full(batch.X.shape[1], np.inf)
        return (Range(nothing, -nothing),)
    return (Range(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)),)


def column_ranges(data: Data, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(smallest, largest) of every column over the rows of positive weight: one pass."""
    (found,) = engine.sum(range_statistic, data, n_jobs=n_jobs)
    return found.low, found.high


def column_quantiles(data: Data, shares: np.ndarray, n_jobs: int | None) -> list[np.ndarray]:
    """The quantiles of every column at the given shares (between 0 and 1, ascending)."""
    if isinstance(data, ArrayData):
        batch = data.rows(0, data.n_rows)
        X, w = _rows(batch)
        return [_of_array(X[:, j], w, shares, weighted=data.has_weight) for j in range(data.n_features)]
    found = []
    together = max(_COUNTED_AT_ONCE // len(shares), 1)
    for first in range(0, data.n_features, together):
        columns = slice(first, min(first + together, data.n_features))

        def count(begin: np.ndarray, shift: int, bits: int, columns: slice = columns) -> np.ndarray:
            (counts,) = engine.sum(column_digits, data, columns, begin, shift, bits, n_jobs=n_jobs)
            return np.asarray(counts)

        wanted = np.tile(shares[:, None] * _ROUNDED_DOWN, columns.stop - first)
        found += list(select_by_digits(count, wanted, relative=True).T)
    return found


def _of_array(x: np.ndarray, w: np.ndarray, shares: np.ndarray, *, weighted: bool) -> np.ndarray:
    if not weighted:
        at = np.clip(np.ceil(shares * len(x) * _ROUNDED_DOWN).astype(np.int64) - 1, 0, len(x) - 1)
        return np.partition(x, np.unique(at))[at].astype(np.float64)
    order = np.argsort(x, kind="stable")
    below = np.cumsum(w[order])
    at = np.searchsorted(below, shares * below[-1] * _ROUNDED_DOWN)
    return np.asarray(x[order[np.minimum(at, len(x) - 1)]].astype(np.float64))


def column_digits(batch: Batch, columns: slice, begin: np.ndarray, shift: int, bits: int) -> tuple[np.ndarray]:
    """Digits of some columns, for their quantiles."""
    X = np.asarray(batch.X)[:, columns].astype(np.float64)
    group = np.tile(np.arange(X.shape[1]), len(X))
    weight = None if batch.weight is None else np.repeat(batch.weight, X.shape[1])
    return (digit_counts(X.ravel(), group, weight, begin, shift, bits),)
