r"""Affinities of rows:  p_{j|i} ~ exp(-beta_i d_ij^2)  of a given perplexity, or the weights of UMAP's graph, made symmetric.

A row of weight w stands for w equal rows: its copies are neighbours at distance zero of each other. With c_ij the
conditional probability of one copy of row j for one of row i and W the sum of the weights,

    P_ij = (c_ij + c_ji) / (2 W)        for a pair of copies,        sum_ij w_i w_j P_ij + sum_i w_i (w_i - 1) P_ii = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.core._memory import require_memory
from epicycle.core._threads import n_threads
from epicycle.spatial._distance_graph import distance_graph, first_of_graph
from epicycle.spatial._metric import COSINE
from epicycle.spatial._metrics import MetricInUse, resolve
from epicycle.spatial._search import nearest, nearest_in_blocks, without_self

#: Sizes of rows beyond which they are scaled first: affinities do not depend on the unit.
_LARGE = 1e100
#: Largest sum of weights whose square float32 holds with room for sums.
_HEAVIEST = 1e12


@dataclass(frozen=True)
class Affinities:
    """What attracts: for row i the entry of row j is w_j P_ij, as sparse rows; sum_ij P_ij log P_ij; the weights."""

    graph: Any
    entropy: float
    weight: np.ndarray

    def edges(self) -> _native.manifold.Edges:
        """The rows as native code takes them."""
        return edges_of(self.graph, self.weight)


def edges_of(graph: Any, weight: np.ndarray) -> _native.manifold.Edges:
    """Sparse rows, and the weights of what their columns stand for, as native code takes them."""
    first, other = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    return _native.manifold.Edges(first, other, graph.data.astype(np.float32), weight)


# ------------------------------------------------------------------------------------------- neighbours


@dataclass(frozen=True)
class Search:
    """Rows among which neighbours are sought, and the metric."""

    rows: Any
    metric: MetricInUse
    exponent: int  # rows are those of the fit, divided by its power of two
    n_jobs: int | None

    @classmethod
    def among(cls, X: Any, metric: Any, metric_params: Any, n_jobs: int | None) -> Search:
        """Rows X, brought to a size whose squares are numbers where the metric is one of differences."""
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
        if self.metric.is_given:
            queries = _distances_as_given(Q)
        else:
            queries = self.metric.scaled(_divided(Q, self.exponent))
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


def neighbor_count(perplexity: float, weight: np.ndarray) -> int:
    """Neighbours of a row that carry all but a thousandth of its probability: three perplexities of weight."""
    n, wanted = len(weight), 3.0 * perplexity + 1.0
    least = float(weight.min())
    return int(min(n - 1, wanted if least >= 1.0 else wanted / least))


def gaussian(search: Search, perplexity: float, weight: np.ndarray, k: int, n_jobs: int | None) -> Affinities:
    """Affinities of t-SNE from the k nearest of every row."""
    n = len(weight)
    require_memory(32.0 * n * (k + 1), f"affinities of {n:,} rows with {k:,} neighbours each", "a smaller perplexity")
    distances, rows = search.of_rows(k)
    p, own = conditional(distances, weight[rows] if weight.max() != 1.0 else None, weight, perplexity, n_jobs)
    heavy = weight > 1.0
    own = np.divide(own, weight - 1.0, out=np.zeros(n), where=heavy)
    return _joint(p / weight[rows] if weight.max() != 1.0 else p, rows, own, weight)


def conditional(
    distances: np.ndarray, multiplicity: np.ndarray | None, weight: np.ndarray, perplexity: float, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(probabilities of the neighbours of rows, of copies of the rows themselves)."""
    copies = np.maximum(weight - 1.0, 0.0)
    threads = n_threads(200.0 * distances.size, n_jobs)
    # Distances in float32: those that differ by rounding alone give the same bits.
    distances = np.ascontiguousarray(distances.astype(np.float32), dtype=np.float64)
    found = _native.manifold.calibrate(distances, multiplicity, copies, float(perplexity), threads)
    return found[:, :-1], found[:, -1]


def fuzzy(search: Search, n_neighbors: int, weight: np.ndarray, n_jobs: int | None) -> Affinities:
    """Affinities of UMAP: a + b - ab of the weights in both directions, divided by their sum."""
    k = min(n_neighbors, len(weight) - 1)
    distances, rows = search.of_rows(k)
    threads = n_threads(1000.0 * distances.size, n_jobs)
    target = max(math.log2(k + 1), 0.5)
    a = _sparse(_native.manifold.fuzzy(np.ascontiguousarray(distances), target, threads), rows, len(weight))
    b = sp.csr_array(a.T)
    union = sp.csr_array(a + b - a.multiply(b))
    return _with_weights(union, np.zeros(len(weight)), weight)


def _joint(c: np.ndarray, rows: np.ndarray, own: np.ndarray, weight: np.ndarray) -> Affinities:
    a = _sparse(c, rows, len(weight))
    return _with_weights(sp.csr_array(a + a.T), 2.0 * own, weight)


def _sparse(values: np.ndarray, rows: np.ndarray, n: int) -> Any:
    first = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return sp.csr_array((values.ravel(), rows.ravel().astype(np.int32), first), shape=(len(rows), n))


def _with_weights(pairs: Any, own: np.ndarray, weight: np.ndarray) -> Affinities:
    """Symmetric affinities of pairs of copies, scaled such that those of all pairs add up to one."""
    rows = np.repeat(np.arange(len(weight)), np.diff(pairs.indptr))
    mass = weight[rows] * weight[pairs.indices] * pairs.data
    copies = weight * np.maximum(weight - 1.0, 0.0) * own
    total = float(mass.sum() + copies.sum())
    entropy = 0.0
    for masses, values in ((mass, pairs.data), (copies, own)):
        seen = masses > 0
        entropy += float(np.sum(masses[seen] / total * np.log(values[seen] / total)))
    pairs.data = pairs.data / total * weight[pairs.indices]
    return Affinities(pairs, entropy, weight)


def checked_weights(weight: np.ndarray | None, n: int) -> np.ndarray:
    """Multiplicities of the rows; they have to be of a size at which rows can be counted."""
    if weight is None:
        return np.ones(n)
    total = float(weight.sum())
    if not total < _HEAVIEST:
        raise DataError(
            f"sample_weight: adds up to {total:g}; expected multiplicities of rows that add up to less than "
            f"{_HEAVIEST:g}"
        )
    return np.asarray(weight, dtype=np.float64)


def require_square(X: Any) -> None:
    """Refuse distances that are no square."""
    if X.shape[0] != X.shape[1]:
        raise DataError(f"X should be a square distance matrix, got shape {tuple(X.shape)}")


def require_dense(X: Any) -> None:
    """Refuse sparse distances where all pairs count."""
    if sp.issparse(X):
        raise DataTypeError("X: method='exact' needs all distances; a sparse precomputed matrix has only some of them")
