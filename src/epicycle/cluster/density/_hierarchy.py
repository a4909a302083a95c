"""The hierarchy of density: a minimum spanning tree of mutual reachability distances, and its single linkage."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from epicycle import _native
from epicycle.cluster.density._dense_regions import sample_of_rows
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.spatial._metric import COSINE, Metric
from epicycle.spatial._metrics import MetricInUse, has_tree
from epicycle.spatial._pairs import Pairs, pairs_of
from epicycle.spatial._search import native_rows, nearest, nearest_in_blocks, tree_pays

_PRIM_ROWS = 4096  # up to which all distances cost less than a tree
_ROUNDING = 1e-9  # relative difference of distances that are computed in two ways


@dataclass(frozen=True)
class Reachability:
    """d*(a, b) = max(core_a, core_b, d(a, b) / alpha), core the distance from the k-th nearest row, itself included."""

    k: int
    alpha: float


@dataclass(frozen=True)
class Dendrogram:
    """Merges as SciPy has them: merge i makes node n + i of the nodes left and right, at a distance, of a size."""

    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    size: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.left, self.right, self.value, self.size

    def as_linkage(self) -> np.ndarray:
        """Shape (n - 1, 4)."""
        return np.column_stack([a.astype(np.float64) for a in self.arrays])

    @classmethod
    def of_linkage(cls, linkage: np.ndarray) -> Dendrogram:
        left, right, size = (np.ascontiguousarray(linkage[:, j], dtype=np.int64) for j in (0, 1, 3))
        return cls(left, right, np.ascontiguousarray(linkage[:, 2]), size)

    @classmethod
    def of_edges(cls, a: np.ndarray, b: np.ndarray, distance: np.ndarray) -> Dendrogram:
        """Single linkage of the edges of a tree; equal ones are merged in the order in which NumPy sorts them."""
        order = np.argsort(distance)  # not stable: equal edges as in scikit-learn, which decide about equal clusterings
        first, second = (np.ascontiguousarray(rows[order], dtype=np.int64) for rows in (a, b))
        left, right, size = _native.cluster.merge_edges(first, second)
        return cls(left, right, distance[order], size)


def hierarchy(
    X: Any, metric: MetricInUse, reach: Reachability, algorithm: str, n_jobs: int | None
) -> tuple[Dendrogram, np.ndarray]:
    """(single linkage, core distances) of the rows X, or of a dense matrix X of distances."""
    native = metric.native
    if native is None or sp.issparse(X) or native.kind == COSINE or native.power < 1:
        return _by_pairs(X, metric, reach, algorithm, n_jobs)
    scaled = native_rows(metric.scaled(X), native)
    if scaled is None:
        return _by_pairs(X, metric, reach, algorithm, n_jobs)
    rows, exponent = scaled
    (a, b, distance), core = _native_tree(rows, native, reach, algorithm, n_jobs)
    a = _chain(b) if algorithm == "brute" else a
    with np.errstate(over="ignore"):
        return Dendrogram.of_edges(a, b, np.ldexp(distance, exponent)), np.ldexp(core, exponent)


def _by_pairs(
    X: Any, metric: MetricInUse, reach: Reachability, algorithm: str, n_jobs: int | None
) -> tuple[Dendrogram, np.ndarray]:
    pairs = pairs_of(X, metric)
    core = core_by_pairs(X, metric, pairs, reach.k, algorithm, n_jobs)
    a, b, distance = _prim(pairs, core, reach.alpha)
    # As in scikit-learn, where a tree of balls has the edges themselves.
    by_tree = metric.blocks is not None and has_tree(metric.blocks.metric, "ball_tree") and algorithm != "brute"
    return Dendrogram.of_edges(a if by_tree else _chain(b), b, distance), core


def _chain(order: np.ndarray) -> np.ndarray:
    """The row that Prim has reached before each of the rows in this order.

    Linking every row to the one before it, at the length of its edge, gives the same clusters at every height as the
    edges themselves; only merges of equal height come in another order.
    """
    return np.concatenate([[0], order[:-1]])


def _native_tree(
    rows: np.ndarray, native: Metric, reach: Reachability, algorithm: str, n_jobs: int | None
) -> tuple[Any, np.ndarray]:
    which, threads = (native.kind, native.power), n_threads(100.0 * rows.size, n_jobs)
    core = core_of_rows(rows, native, reach.k, algorithm, n_jobs)
    if len(rows) > _PRIM_ROWS and tree_pays(rows, 1, native, algorithm):
        return _native.cluster.reachability_tree(rows, *which, core, reach.alpha, threads), core
    columns = np.ascontiguousarray(rows.T)
    return _native.cluster.reachability_prim(columns, *which, core, reach.alpha), core


def core_of_rows(rows: np.ndarray, native: Metric, k: int, algorithm: str, n_jobs: int | None) -> np.ndarray:
    """Distance of every row from its k-th nearest, itself included, for :func:`native_rows`."""
    if tree_pays(rows, k, native, algorithm):
        threads = n_threads(100.0 * rows.size, n_jobs)
        return _native.cluster.core_distances(rows, native.kind, native.power, k, threads)
    return np.ascontiguousarray(nearest(rows, rows, k, native, "brute", n_jobs)[0][:, -1])


def core_by_pairs(X: Any, metric: MetricInUse, pairs: Pairs, k: int, algorithm: str, n_jobs: int | None) -> np.ndarray:
    """The same for any distances."""
    if metric.native is not None:
        rows = metric.scaled(X)
        return np.ascontiguousarray(nearest(rows, rows, k, metric.native, algorithm, n_jobs)[0][:, -1])
    if metric.blocks is not None and not metric.is_given:
        jobs = n_jobs if pairs.in_threads else 1
        return np.ascontiguousarray(nearest_in_blocks(metric.blocks.block, X, X, k, jobs)[0][:, -1])
    core = np.empty(pairs.n)

    def work(rows: slice) -> None:
        core[rows] = np.partition(pairs.distances(rows, slice(0, pairs.n)), k - 1, axis=1)[:, k - 1]

    pairs.over_rows(work, n_jobs)
    return core


def _prim(pairs: Pairs, core: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prim's algorithm from row 0, with the distances of one row at a time."""
    n = pairs.n
    a, b, distance = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int64), np.empty(n - 1)
    left, least, source = np.arange(1, n), np.full(n - 1, np.inf), np.zeros(n - 1, dtype=np.int64)
    row = 0
    for step in range(n - 1):
        apart = pairs.distances(np.array([row]), left)[0] / alpha
        apart = np.maximum(np.maximum(apart, core[left]), core[row])
        nearer = apart < least
        least[nearer], source[nearer] = apart[nearer], row
        at = int(np.argmin(least))
        row = int(left[at])
        a[step], b[step], distance[step] = source[at], row, least[at]
        left, least, source = (np.delete(values, at) for values in (left, least, source))
    return a, b, distance


def of_graph(graph: Any, reach: Reachability, farthest: float) -> tuple[Dendrogram, np.ndarray]:
    """The same of sparse distances; mutual distances that are infinite become `farthest` if it is positive."""
    n, stored = graph.shape[0], np.diff(graph.indptr)
    if (stored < reach.k).any():
        raise DataError(
            f"There exists points with fewer than {reach.k} neighbors: X stores {stored.min()} distances in a row. "
            f"Ensure your distance matrix has non-zero values for at least `min_sample`={reach.k} neighbors for each "
            "points (i.e. K-nn graph), or specify a `max_distance` in `metric_params` to use when distances are "
            "missing."
        )
    graph = sp.csr_array(graph, dtype=np.float64, copy=True)
    graph.data /= reach.alpha
    core = np.array([np.partition(row, reach.k - 1)[reach.k - 1] for row in np.split(graph.data, graph.indptr[1:-1])])
    mutual = np.maximum(np.maximum(np.repeat(core, stored), core[graph.indices]), graph.data)
    graph.data = np.where(np.isfinite(mutual) | (farthest <= 0), mutual, farthest)
    components = csgraph.connected_components(graph, directed=False, return_labels=False)
    if components > 1:
        raise DataError(
            f"Sparse mutual reachability matrix has {components} connected components. HDBSCAN cannot be performed on "
            "a disconnected graph. Ensure that the sparse distance matrix has only one connected component."
        )
    tree = csgraph.minimum_spanning_tree(graph).tocoo()
    if tree.nnz < n - 1:  # SciPy leaves out edges of length zero
        least = np.nextafter(0.0, 1.0)
        graph.data = np.maximum(graph.data, least)
        tree = csgraph.minimum_spanning_tree(graph).tocoo()
        tree.data[tree.data <= least] = 0.0
    return Dendrogram.of_edges(tree.row, tree.col, tree.data), core


def warn_if_infinite(tree: Dendrogram) -> None:
    if np.isinf(tree.value).any():
        warnings.warn(
            "The minimum spanning tree contains edge weights with value infinity. Potentially, you are missing too "
            "many distances in the initial distance matrix for the given neighborhood size.",
            UserWarning,
            stacklevel=5,
        )


def checked(X: Any, metric: MetricInUse, reach: Reachability, tree: Dendrogram, core: np.ndarray) -> Certificate:
    """That the spanning tree is a shortest one, by all distances of some of the rows.

    Rows are linked in the tree at a height that no direct link is below, and the first merge of a row is its shortest.
    """
    pairs, n = pairs_of(X, metric), int(X.shape[0])
    sample, wrong, graph = sample_of_rows(n), 0, metric.is_given and sp.issparse(X)
    heights = partial(_native.cluster.cophenetic, *tree.arrays)
    for i in sample:
        apart = pairs.distances(np.array([i]), slice(0, n))[0]
        if graph:  # the k-th of what is stored, after the division
            own = np.partition(X.data[X.indptr[i] : X.indptr[i + 1]], reach.k - 1)[reach.k - 1] / reach.alpha
        else:
            own = np.partition(apart, reach.k - 1)[reach.k - 1]
        mutual = np.maximum(np.maximum(apart / reach.alpha, core), own)
        others = np.arange(n) != i
        height = heights(int(i))
        with np.errstate(invalid="ignore"):
            below = height[others] <= mutual[others] * (1 + _ROUNDING)
            first = np.isclose(height[others].min(), mutual[others].min(), rtol=_ROUNDING, atol=0)
            same = np.isclose(own, core[i], rtol=_ROUNDING, atol=0)
        wrong += int(not (below.all() and first and same))
    meaning = (
        "the hierarchy is that of a minimum spanning tree of mutual reachability distances: checked by brute force "
        f"after the fit for all pairs of {len(sample)} of {n} rows"
    )
    return Certificate("definition", float(wrong), 0.0, meaning)
