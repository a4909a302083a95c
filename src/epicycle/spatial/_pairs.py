"""Distances between any of the rows of one table, in blocks: for methods that look at all pairs and store none.

Euclidean distances of many columns come from products of matrices about the mean of the rows,

    |a - b|^2 = |a|^2 + |b|^2 - 2 a'b,

with an error of at most u (p + 8) (|a| + |b|)^2, u the unit of rounding. Where that does not decide whether a pair is
within a radius, the differences do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.engine._ordered import in_order
from epicycle.kernels._prepared import squared_lengths
from epicycle.spatial._metric import EUCLIDEAN, Metric
from epicycle.spatial._metrics import BlockMetric, MetricInUse
from epicycle.spatial._search import distance_block, power_overflows, within_block

_BLOCK = 1 << 21  # distances of a block: 16 MB
_MOST_ROWS = 256
_PRODUCT_COLUMNS = 5  # from which products of matrices are faster than differences


class Pairs(ABC):
    """The rows of one table and the distances between them."""

    #: Whether blocks may be computed by several threads at once.
    in_threads = True

    def __init__(self, X: Any) -> None:
        self.X, self.n = X, int(X.shape[0])

    @abstractmethod
    def distances(self, rows: Any, others: Any) -> np.ndarray:
        """Distances of some rows (indices or a slice) from others, in float64."""

    def within(self, rows: Any, others: Any, radius: float) -> np.ndarray:
        """Which of them are at most the radius."""
        return np.asarray(self.distances(rows, others) <= radius)

    def spans(self, n: int | None = None) -> Iterator[slice]:
        """Slices of n rows (by default all) whose distances from all rows fill a block."""
        n = self.n if n is None else n
        step = max(1, min(_MOST_ROWS, _BLOCK // max(self.n, 1)))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def over_rows(self, work: Callable[[slice], None], n_jobs: int | None) -> None:
        """Call `work` for slices of all rows, in several threads where that pays."""
        threads = n_threads(float(self.n) ** 2 * self.X.shape[1], n_jobs) if self.in_threads else 1
        with single_threaded_blas():
            in_order(self.spans(), work, None, threads)


class NativePairs(Pairs):
    """Distances from differences."""

    def __init__(self, X: Any, metric: Metric) -> None:
        super().__init__(X.tocsr() if sp.issparse(X) else np.ascontiguousarray(X))
        self.metric = metric

    def distances(self, rows: Any, others: Any) -> np.ndarray:
        return distance_block(self.metric, self.X[rows], self.X[others])

    def within(self, rows: Any, others: Any, radius: float) -> np.ndarray:
        return within_block(self.metric, self.X[rows], self.X[others], radius)


class ProductPairs(NativePairs):
    """Euclidean distances, those within a radius by products of matrices."""

    def __init__(self, X: Any, metric: Metric) -> None:
        super().__init__(X, metric)
        wide = self.X.astype(np.float64)
        self.rows = wide if sp.issparse(X) else wide - wide.mean(axis=0)
        self.squares = squared_lengths(self.rows)
        self.unit = (X.shape[1] + 8) * float(np.finfo(np.float64).eps)

    def within(self, rows: Any, others: Any, radius: float) -> np.ndarray:
        products = self.rows[rows] @ self.rows[others].T
        products = products.toarray() if sp.issparse(products) else products
        a, b = self.squares[rows][:, None], self.squares[others][None, :]
        square = radius * radius
        above = a + b - 2.0 * products - square
        slack = self.unit * (2.0 * (a + b) + square)
        inside = above <= 0.0
        unsure = np.abs(above) <= slack
        for i in np.flatnonzero(unsure.any(axis=1)):
            which = np.flatnonzero(unsure[i])
            own = np.arange(self.n)[rows][i : i + 1]
            inside[i, which] = super().within(own, np.arange(self.n)[others][which], radius)
        return np.asarray(inside)


class BlockPairs(Pairs):
    """Distances by the name of a metric, or by a function."""

    def __init__(self, X: Any, metric: BlockMetric) -> None:
        super().__init__(X)
        self.metric, self.in_threads = metric, metric.in_threads

    def distances(self, rows: Any, others: Any) -> np.ndarray:
        return self.metric.block(self.X[rows], self.X[others])


class GivenPairs(Pairs):
    """Distances that are given as a matrix; those that a sparse one does not hold are infinite."""

    def distances(self, rows: Any, others: Any) -> np.ndarray:
        if not sp.issparse(self.X):
            return np.asarray(self.X[rows][:, others], dtype=np.float64)
        part = self.X[rows]
        block = np.full(part.shape, np.inf)
        own = np.arange(self.n)[rows]
        block[np.arange(len(own)), own] = 0.0  # where it is not stored
        block[np.repeat(np.arange(len(own)), np.diff(part.indptr)), part.indices] = part.data
        return block[:, others]


def pairs_of(X: Any, metric: MetricInUse) -> Pairs:
    """The pairs of the rows X."""
    if metric.blocks is not None:
        return GivenPairs(X) if metric.is_given else BlockPairs(X, metric.blocks)
    assert metric.native is not None
    X = metric.scaled(X)
    products = metric.native.kind == EUCLIDEAN and (sp.issparse(X) or X.shape[1] >= _PRODUCT_COLUMNS)
    if products and not power_overflows(X, X, metric.native):
        return ProductPairs(X, metric.native)
    return NativePairs(X, metric.native)
