"""Affinities of rows:  p_j|i ~ exp(-beta_i d_ij^2)  of a given perplexity, or the weights of UMAP's graph.

Made symmetric, P_ij = (p_j|i + p_i|j) / (2 n), they add up to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._threads import n_threads
from epicycle.spatial._distance_graph import distance_graph, first_of_graph
from epicycle.spatial._metric import COSINE
from epicycle.spatial._metrics import MetricInUse, resolve
from epicycle.spatial._search import nearest, nearest_in_blocks, without_self

#: Sizes of rows beyond which they are scaled first: affinities do not depend on the unit.
_LARGE = 1e100


@dataclass(frozen=True)
class Affinities:
    """P as sparse rows, and sum_ij P_ij log P_ij."""

    graph: Any
    entropy: float

    def edges(self) -> _native.manifold.Edges:
        """The rows as native code takes them."""
        return edges_of(self.graph)


def edges_of(graph: Any) -> _native.manifold.Edges:
    """Sparse rows as native code takes them; what their columns stand for counts once."""
    first, other = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    return _native.manifold.Edges(first, other, graph.data.astype(np.float32), np.ones(graph.shape[1]))


# ------------------------------------------------------------------------------------------- neighbours


@dataclass(frozen=True)
class Search:
    """Rows among which neighbours are sought, and the metric."""

    rows: Any
    metric: MetricInUse
    exponent: int  # rows are those of the fit, divided by its power of two
    n_jobs: int | None

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    @classmethod
    def among(cls, X: Any, metric: Any, metric_params: Any, n_jobs: int | None) -> Search:
        """Rows X, brought to a size whose squares are numbers where the metric is one of differences."""
        if isinstance(metric, str) and metric == "mahalanobis" and not {"V", "VI"} & set(metric_params or {}):
            raise ParameterError("metric_params: Must provide either V or VI for Mahalanobis distance")
        found = resolve(2, metric, metric_params)
        exponent = 0
        if found.native is not None and found.native.kind != COSINE:
            exponent = _exponent(X)
        if found.is_given:
            return cls(_distances_as_given(X), found, 0, n_jobs)
        return cls(found.scaled(_divided(X, exponent)), found, exponent, n_jobs)

    def of_rows(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(distances, rows) of the k nearest others of every row."""
        return without_self(*self._checked(self._nearest(self.rows, k + 1)))

    def of_queries(self, Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(distances, rows) of the k nearest rows of new ones."""
        given = self.metric.is_given
        queries = _distances_as_given(Q) if given else self.metric.scaled(_divided(Q, self.exponent))
        return self._checked(self._nearest(queries, k))

    def _nearest(self, Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self.metric.is_given and sp.issparse(Q):
            distances, rows = first_of_graph(Q, k)
            return np.asarray(distances, dtype=np.float64), rows
        if self.metric.is_given:
            return _of_given(Q, k)
        if self.metric.native is not None:
            return nearest(self.rows, Q, k, self.metric.native, "auto", self.n_jobs)
        blocks: Any = self.metric.blocks
        return nearest_in_blocks(blocks.block, self.rows, Q, k, self.n_jobs if blocks.in_threads else 1)

    @staticmethod
    def _checked(found: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        if found[0].size and float(found[0].min()) < 0:
            raise DataError("All distances should be positive, the metric given is not correct")
        if not np.isfinite(found[0]).all():
            raise DataError("metric: a distance of rows of X is not a finite number")
        return found


def _distances_as_given(X: Any) -> Any:
    values = X.data if sp.issparse(X) else X
    if values.size and values.min() < 0:
        raise DataError(
            "X: negative entries; with metric='precomputed' X should contain positive distances, got "
            f"{float(values.min()):g}"
        )
    return distance_graph(X, warn=False) if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def _of_given(D: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The first k of every row of distances, ties going to the column that comes first."""
    rows = np.argsort(D, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(D, rows, axis=1), rows.astype(np.int64)


def _exponent(X: Any) -> int:
    values = X.data if sp.issparse(X) else X
    largest = float(max(np.max(values, initial=0.0), -np.min(values, initial=0.0)))
    return 0 if largest == 0.0 or 1 / _LARGE < largest < _LARGE else math.frexp(largest)[1]


def _divided(X: Any, exponent: int) -> Any:
    if exponent == 0:
        return X
    if sp.issparse(X):
        return sp.csr_array((np.ldexp(X.data.astype(np.float64), -exponent), X.indices, X.indptr), shape=X.shape)
    return np.ldexp(np.asarray(X, dtype=np.float64), -exponent)


# ------------------------------------------------------------------------------------------- probabilities


def neighbor_count(perplexity: float, n: int) -> int:
    """Neighbours that carry all but a thousandth of the probability: three perplexities."""
    return int(min(n, 3.0 * perplexity + 1.0))


def gaussian(search: Search, perplexity: float, k: int, n_jobs: int | None) -> Affinities:
    """Affinities of t-SNE from the k nearest of every row."""
    n = search.n_rows
    require_memory(32.0 * n * (k + 1), f"affinities of {n:,} rows with {k:,} neighbours each", "a smaller perplexity")
    distances, rows = search.of_rows(k)
    a = _sparse(conditional(distances, perplexity, n_jobs), rows, n)
    return _normalised(sp.csr_array(a + a.T))


def conditional(distances: np.ndarray, perplexity: float, n_jobs: int | None) -> np.ndarray:
    """Probabilities of the neighbours of rows."""
    threads = n_threads(200.0 * distances.size, n_jobs)
    # Distances in float32: those that differ by rounding alone give the same bits.
    distances = np.ascontiguousarray(distances.astype(np.float32), dtype=np.float64)
    return _native.manifold.calibrate(distances, float(perplexity), threads)


def fuzzy(search: Search, n_neighbors: int, n_jobs: int | None) -> Affinities:
    """Affinities of UMAP: a + b - ab of the weights in both directions, divided by their sum."""
    distances, rows = search.of_rows(min(n_neighbors, search.n_rows - 1))
    a = _sparse(memberships(distances, n_jobs), rows, search.n_rows)
    b = sp.csr_array(a.T)
    return _normalised(sp.csr_array(a + b - a.multiply(b)))


def memberships(distances: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """UMAP's weights of the neighbours of rows, which add up to log2 of their number."""
    target = math.log2(max(distances.shape[1], 2))
    return _native.manifold.fuzzy(np.ascontiguousarray(distances), target, n_threads(1000.0 * distances.size, n_jobs))


def _sparse(values: np.ndarray, rows: np.ndarray, n: int) -> Any:
    first = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return sp.csr_array((values.ravel(), rows.ravel().astype(np.int32), first), shape=(len(rows), n))


def _normalised(pairs: Any) -> Affinities:
    pairs.data = pairs.data / pairs.data.sum()
    seen = pairs.data[pairs.data > 0]
    return Affinities(pairs, float(seen @ np.log(seen)))


def require_square(X: Any) -> None:
    """Refuse distances that are no square."""
    if X.shape[0] != X.shape[1]:
        raise DataError(f"X should be a square distance matrix, got shape {tuple(X.shape)}")


def require_dense(X: Any) -> None:
    """Refuse sparse distances where all pairs count."""
    if sp.issparse(X):
        raise DataTypeError("X: method='exact' needs all distances; a sparse precomputed matrix has only some of them")
