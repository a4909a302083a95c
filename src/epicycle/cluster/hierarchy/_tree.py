"""Trees by functions, with the names and results of scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.cluster.hierarchy._cut import children_of
from epicycle.cluster.hierarchy._linkage import Tree, problem_of, tree_of, warn_of_partial_tree
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, as_data


def ward_tree(
    X: Any, *, connectivity: Any = None, n_clusters: int | None = None, return_distance: bool = False
) -> tuple[Any, ...]:
    """Tree of Ward's linkage.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    connectivity : array-like or sparse matrix of shape (n_samples, n_samples), optional
        Only clusters between which it has an edge may merge.
    n_clusters : int, optional
        With a connectivity the tree ends when so many clusters are left.
    return_distance : bool, default=False
        Whether to return the heights of the merges too.

    Returns
    -------
    children : ndarray of shape (n_merges, 2)
        The nodes that each merge joins; rows are nodes 0 to n_samples - 1, merge i makes node n_samples + i.
    n_connected_components : int
        Of the graph.
    n_leaves : int
    parents : ndarray of shape (n_nodes,) or None
        The node above each node, itself for those without; None without a connectivity.
    distances : ndarray of shape (n_merges,)
        Heights; with ``return_distance=True``.

    Examples
    --------
    >>> from epicycle import ward_tree
    >>> ward_tree([[1.0], [2.0], [6.0]])[0].tolist()
    [[0, 1], [2, 3]]
    """
    return _outcome(X, connectivity, n_clusters, "ward", "euclidean", return_distance)


def linkage_tree(
    X: Any,
    connectivity: Any = None,
    n_clusters: int | None = None,
    linkage: str = "complete",
    affinity: Any = "euclidean",
    return_distance: bool = False,
) -> tuple[Any, ...]:
    """Tree of complete, average or single linkage.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or distances of shape (n_samples, n_samples)
    connectivity, n_clusters, return_distance
        As for :func:`ward_tree`.
    linkage : {"complete", "average", "single"}, default="complete"
    affinity : str or callable, default="euclidean"
        The metric, as for :class:`AgglomerativeClustering`.

    Returns
    -------
    children, n_connected_components, n_leaves, parents, distances
        As for :func:`ward_tree`.

    Examples
    --------
    >>> from epicycle import linkage_tree
    >>> children, *_, heights = linkage_tree([[1.0], [2.0], [6.0]], linkage="single", return_distance=True)
    >>> heights.tolist()
    [1.0, 4.0]
    """
    if linkage not in ("complete", "average", "single"):
        raise ParameterError(f"linkage={linkage!r}; expected 'complete', 'average' or 'single'")
    return _outcome(X, connectivity, n_clusters, linkage, affinity, return_distance)


def _outcome(
    X: Any, connectivity: Any, n_clusters: int | None, linkage: str, metric: Any, return_distance: bool
) -> tuple[Any, ...]:
    X = np.asarray(X)
    data = as_data(X[:, None] if X.ndim == 1 else X)
    assert isinstance(data, ArrayData)
    if data.n_rows < 2:
        raise DataError(f"X: {data.n_rows} rows; expected at least 2")
    if connectivity is None and n_clusters is not None:
        warn_of_partial_tree()
    problem = problem_of(data.X, metric, None, linkage, connectivity, None)
    tree = tree_of(problem, "auto", n_clusters, None)
    parents = None if connectivity is None else _parents(tree)
    out = (children_of(tree.Z).astype(np.intp), tree.n_components, tree.n_leaves, parents)
    return (*out, tree.Z[:, 2].copy()) if return_distance else out


def _parents(tree: Tree) -> np.ndarray:
    children = children_of(tree.Z)
    parent = np.arange(tree.n_leaves + len(children), dtype=np.intp)
    parent[children] = np.arange(tree.n_leaves, len(parent))[:, None]
    return parent
