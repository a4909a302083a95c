"""The tree of a hierarchical clustering, as SciPy's linkage matrix.

Every row of Z is a merge: the two nodes, the height, the number of rows below. Over all pairs of distances the bits are
SciPy's, also the order of merges of equal height. Ward's, the centroid and the median linkage of many rows work on the
means of clusters and single linkage on the rows, with memory for the rows only.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from epicycle import _native
from epicycle.cluster.hierarchy._distances import Distances, RowDistances, distances_of
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._threads import n_threads

LINKAGES = ("ward", "complete", "average", "single", "weighted", "centroid", "median")
#: Linkages of means of clusters, for which distances have to be Euclidean.
MEAN_LINKAGES = ("ward", "centroid", "median")
GRAPH_LINKAGES = ("ward", "complete", "average", "single")
#: Rows up to which all pairs are held: more where a distance costs much, and never more than this (1.6 GB).
_MATRIX_ROWS, _CHEAP_COLUMNS, _MOST_MATRIX_ROWS = 4096, 16, 20_000

#: Half the binary exponent from which weights are scaled, and what is left of those that then vanish.
_HALF_EXPONENT, _LEAST_WEIGHT = 50, 1e-290
#: Rows from which, and columns up to which, a spanning tree is found faster by a kd-tree than by Prim's algorithm.
_TREE_ROWS, _TREE_COLUMNS = 16_384, 4


@dataclass(frozen=True)
class Tree:
    """Merges as a linkage matrix, the number of leaves, and of the components that the graph had."""

    Z: np.ndarray
    n_leaves: int
    n_components: int = 1


@dataclass(frozen=True)
class Problem:
    """Data and settings of a clustering."""

    distances: Distances
    linkage: str
    weight: np.ndarray | None
    graph: sp.csr_array | None

    @property
    def n(self) -> int:
        return self.distances.n

    @property
    def means(self) -> np.ndarray | None:
        """The rows, where clusters have means."""
        rows = self.distances
        return rows.X if isinstance(rows, RowDistances) and rows.euclidean else None


def problem_of(
    X: Any, metric: Any, metric_params: Mapping[str, Any] | None, linkage: str, connectivity: Any, weight: Any
) -> Problem:
    """Rows or distances X with what else defines the tree, checked."""
    if linkage in MEAN_LINKAGES and not (isinstance(metric, str) and metric in ("euclidean", "l2", "precomputed")):
        raise ParameterError(
            f"{metric} was provided as metric. {linkage.capitalize()} can only work with euclidean distances "
            "(i.e. 'euclidean' and 'l2')."
        )
    if connectivity is not None and linkage not in GRAPH_LINKAGES:
        raise ParameterError(f"linkage={linkage!r} takes no connectivity; expected one of {GRAPH_LINKAGES}")
    distances = distances_of(X, metric, metric_params)
    graph = None if connectivity is None else checked_graph(connectivity, distances.n)
    if (
        weight is not None
    ):  # by a power of four, so that no product leaves the range; lengths of Ward's go with the root
        half = int(np.frexp(weight.max())[1]) // 2
        if abs(half) > _HALF_EXPONENT:
            weight = np.maximum(np.ldexp(weight, -2 * half), _LEAST_WEIGHT)
            distances.exponent += half if linkage == "ward" else 0
    return Problem(distances, linkage, weight, graph)


def tree_of(problem: Problem, algorithm: str, n_clusters: int | None, n_jobs: int | None) -> Tree:
    """The tree; with a graph it can stop when `n_clusters` are left."""
    if problem.graph is not None:
        return _graph_tree(problem, n_clusters)
    Z = _linkage(problem, algorithm, n_jobs)
    _unscale(Z, problem.distances)
    return Tree(Z, problem.n)


def _linkage(problem: Problem, algorithm: str, n_jobs: int | None) -> np.ndarray:
    rows, n, linkage = problem.distances, problem.n, problem.linkage
    columns = rows.X.shape[1] if isinstance(rows, RowDistances) else 1
    threads = n_threads(float(n) * n * columns / 2, n_jobs)
    vectors = _by_vectors(problem, algorithm, columns)
    if vectors and linkage == "single":
        assert isinstance(rows, RowDistances)
        return _single_linkage(rows, threads)
    if vectors:
        X = problem.means
        assert X is not None
        # About the mean, so that a common offset costs no digits.
        return _native.cluster.linkage_from_means(X - X.mean(axis=0), linkage, problem.weight, threads)
    return _native.cluster.linkage_from_distances(rows.condensed(threads), n, linkage, problem.weight)


def _by_vectors(problem: Problem, algorithm: str, columns: int) -> bool:
    possible = (problem.linkage in MEAN_LINKAGES and problem.means is not None) or (
        problem.linkage == "single" and isinstance(problem.distances, RowDistances)
    )
    if algorithm == "vectors" and not possible:
        raise ParameterError(
            f"algorithm='vectors' with linkage={problem.linkage!r} and these rows; expected 'single', or 'ward', "
            "'centroid' or 'median' of dense rows with Euclidean distances"
        )
    if algorithm != "auto" or not possible:
        return algorithm == "vectors"
    kernel = problem.distances.kernel if isinstance(problem.distances, RowDistances) else None
    if problem.linkage == "single" and kernel is not None:
        return True
    return problem.n > min(_MATRIX_ROWS * max(1.0, columns / _CHEAP_COLUMNS), _MOST_MATRIX_ROWS)


def _single_linkage(rows: RowDistances, threads: int) -> np.ndarray:
    """From a minimum spanning tree, in memory for the rows."""
    native = rows.use.native
    if rows.kernel is None or native is None:
        return _spanning_tree(rows)
    if rows.n <= _TREE_ROWS or rows.X.shape[1] > _TREE_COLUMNS:
        return _native.cluster.single_linkage(rows.X, rows.kernel, threads)
    edges = _native.cluster.reachability_tree(rows.X, native.kind, native.power, np.zeros(rows.n), 1.0, threads)
    return _native.cluster.linkage_from_edges(*edges)


def _spanning_tree(rows: RowDistances) -> np.ndarray:
    """Single linkage by Prim's algorithm, with the distances of one row at a time."""
    n = rows.n
    least, added = np.full(n, np.inf), np.zeros(n, dtype=bool)
    path, length = np.zeros(n, dtype=np.int64), np.empty(n - 1)
    for t in range(n - 1):
        x = path[t]
        added[x] = True
        np.minimum(least, rows.block(np.array([x]))[0], out=least)
        least[added] = np.inf
        path[t + 1] = least.argmin()
        length[t] = least[path[t + 1]]
    return _native.cluster.linkage_from_edges(path[:-1].copy(), path[1:].copy(), length)


def _graph_tree(problem: Problem, n_clusters: int | None) -> Tree:
    assert problem.graph is not None
    distances, n = problem.distances, problem.n
    if n_clusters is not None and n_clusters > n:
        raise DataError(
            f"Cannot provide more clusters than samples. {n_clusters} n_clusters was asked, and there are {n} samples."
        )
    graph, components = completed(problem.graph, distances)
    first, second = edges_of(graph)
    if problem.linkage == "ward":
        if problem.means is None:
            raise DataError("linkage='ward' with a connectivity needs means of rows; expected dense X, no distances")
        X, length = np.ascontiguousarray(problem.means - problem.means.mean(axis=0)), np.zeros(len(first))
    else:
        X, length = np.zeros((n, 0)), distances.pairs(first, second)
    Z = _native.cluster.linkage_of_graph(first, second, length, X, problem.linkage, problem.weight, n_clusters or 1)
    _unscale(Z, distances)
    return Tree(Z, n, components)


def _unscale(Z: np.ndarray, distances: Distances) -> None:
    if distances.exponent:
        with np.errstate(over="ignore"):
            Z[:, 2] = np.minimum(np.ldexp(Z[:, 2], distances.exponent), np.finfo(float).max)


def warn_of_partial_tree() -> None:
    """As scikit-learn's functions do."""
    warnings.warn(
        "Partial build of the tree is implemented only for structured clustering (i.e. with explicit connectivity). "
        "The algorithm will build the full tree and only retain the lower branches required for the specified number "
        "of clusters",
        stacklevel=3,
    )


# Graphs that say which rows may merge.


def checked_graph(connectivity: Any, n: int) -> sp.csr_array:
    """The edges of a connectivity matrix in both directions, without those of a row with itself."""
    if not sp.issparse(connectivity):
        connectivity = np.asarray(connectivity)
    if connectivity.ndim != 2 or connectivity.shape != (n, n):
        raise DataError(f"Wrong shape for connectivity matrix: {connectivity.shape} when X has {n} rows")
    graph = sp.csr_array(connectivity)
    if not np.isfinite(graph.data).all():
        raise DataError("connectivity: holds NaN or infinity; expected a number other than zero for each edge")
    graph = sp.csr_array(graph + graph.T)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def completed(graph: sp.csr_array, distances: Distances) -> tuple[sp.csr_array, int]:
    """The graph with the shortest edge between any two of its components, and the number of these."""
    count, component = connected_components(graph, directed=False)
    if count == 1:
        return graph, 1
    warnings.warn(
        f"the number of connected components of the connectivity matrix is {count} > 1. Completing it to avoid "
        "stopping the tree early.",
        stacklevel=2,
    )
    members = [np.flatnonzero(component == c) for c in range(count)]
    first, second = [], []
    for c in range(count):
        D = distances.block(members[c])
        for b in range(c):
            i, j = divmod(int(D[:, members[b]].argmin()), len(members[b]))
            first.append(members[c][i])
            second.append(members[b][j])
    added = sp.coo_array((np.ones(len(first)), (first, second)), shape=graph.shape)
    return sp.csr_array(graph + added + added.T), count


def edges_of(graph: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Every edge once, as (i, j) with i > j."""
    edges = sp.coo_array(sp.tril(graph, -1))
    return edges.coords[0].astype(np.int64), edges.coords[1].astype(np.int64)
