"""Graphs that say which rows may merge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from epicycle.cluster.hierarchy._distances import Distances
from epicycle.core._exceptions import DataError


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
