"""Ranges and quantiles of the columns of X, wherever the rows are: what places a basis on its data.

A quantile here is an element of the data: the smallest x with at least a share q of the weight at or below it. Counts
in a few thousand cells narrow the cells down until each holds one value; in memory a sort gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import engine
from epicycle.data import ArrayData, Batch, Data

__all__ = ["column_quantiles", "column_ranges"]

_CELLS = 4096


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
    low, high = column_ranges(data, n_jobs)
    return [_by_counting(data, j, float(low[j]), float(high[j]), shares, n_jobs) for j in range(data.n_features)]


def _of_array(x: np.ndarray, w: np.ndarray, shares: np.ndarray, *, weighted: bool) -> np.ndarray:
    if not weighted:
        at = np.clip(np.ceil(shares * len(x) * (1 - 1e-15)).astype(np.int64) - 1, 0, len(x) - 1)
        return np.partition(x, np.unique(at))[at].astype(np.float64)
    order = np.argsort(x, kind="stable")
    below = np.cumsum(w[order])
    at = np.searchsorted(below, shares * below[-1] * (1 - 1e-15))
    return x[order[np.minimum(at, len(x) - 1)]].astype(np.float64)


def count_statistic(batch: Batch, column: int, edges: np.ndarray) -> tuple[np.ndarray]:
    """The weight at or below every edge."""
    X, w = _rows(batch)
    cell = np.searchsorted(edges, X[:, column].astype(np.float64))
    return (np.cumsum(np.bincount(cell, weights=w, minlength=len(edges) + 1)),)


def _by_counting(
    data: Data, column: int, low: float, high: float, shares: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    below, above = np.full(len(shares), np.nextafter(low, -np.inf)), np.full(len(shares), high)
    cells = max(_CELLS // len(shares), 2)
    while True:
        edges = np.unique(np.concatenate([_between(b, a, cells) for b, a in zip(below, above, strict=True)]))
        (counts,) = engine.sum(count_statistic, data, column, edges, n_jobs=n_jobs)
        at = np.searchsorted(counts[:-1], shares * counts[-1] * (1 - 1e-15))
        at = np.minimum(at, len(edges) - 1)
        above = edges[at]
        below = np.maximum(below, np.where(at > 0, edges[at - 1], below))
        if np.array_equal(np.nextafter(below, np.inf), above):
            return above


def _between(low: float, high: float, cells: int) -> np.ndarray:
    """Numbers in (low, high], evenly spread over the floating-point numbers there; the last is `high`."""
    first, last = _ordinal(low), _ordinal(high)
    steps = min(cells, last - first)
    return np.array([_number(first + (last - first) * (i + 1) // steps) for i in range(steps)])


def _ordinal(x: float) -> int:
    """Floating-point numbers in their order as whole numbers."""
    bits = int(np.float64(x).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _number(ordinal: int) -> float:
    if ordinal >= 0:
        return float(np.int64(ordinal).view(np.float64))
    return -float(np.int64(-ordinal).view(np.float64))
