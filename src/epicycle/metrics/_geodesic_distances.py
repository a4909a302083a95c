"""Distances along a graph: lengths of shortest paths between neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.data._matrix import as_matrix
from epicycle.spatial._metrics import resolve
from epicycle.spatial._search import nearest, nearest_in_blocks, without_self
from epicycle.spatial._shortest_paths import shortest_paths


@in_catalogue("metrics", "E17", certificate="exact")
def geodesic_distances(
    X: Any, *, n_neighbors: int = 10, metric: Any = "euclidean", rows: Any = None, n_jobs: int | None = None
) -> np.ndarray:
    """Lengths of the shortest paths that go from neighbour to neighbour.

    Two rows are joined where one is among the `n_neighbors` nearest of the other; an edge is as long as their distance.
    On a curved surface with enough rows these are the distances along the surface.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or sparse matrix of shape (n_samples, n_samples)
        Rows; for ``metric="precomputed"`` a graph, whose entries are the lengths of its edges.
    n_neighbors : int, default=10
    metric : str, default="euclidean"
        Distance of neighbours, as in :func:`pairwise_distances`.
    rows : array-like of int, optional
        Rows to start from; by default all.

    Returns
    -------
    array of shape (n_rows, n_samples)
        inf where no path leads.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.metrics import geodesic_distances
    >>> angle = np.linspace(0, np.pi, 101)  # half a circle
    >>> D = geodesic_distances(np.column_stack([np.cos(angle), np.sin(angle)]), n_neighbors=2, rows=[0])
    >>> round(float(D[0, -1]), 3)  # the straight line would be 2
    3.141
    """
    start = None if rows is None else np.asarray(rows)
    graph = _graph(X, n_neighbors, metric, n_jobs)
    if start is not None and (start.dtype.kind not in "iu" or start.ndim != 1):
        raise ParameterError("rows: expected a list of row numbers")
    if start is not None and len(start) and not (start.min() >= 0 and start.max() < graph.shape[0]):
        raise ParameterError(f"rows: expected numbers from 0 to {graph.shape[0] - 1}")
    return shortest_paths(graph, start, n_jobs)


def _graph(X: Any, n_neighbors: int, metric: Any, n_jobs: int | None) -> sp.csr_array:
    if isinstance(metric, str) and metric == "precomputed":
        graph = sp.csr_array(X, dtype=np.float64)
        if graph.shape[0] != graph.shape[1] or not np.isfinite(graph.data).all() or (graph.data < 0).any():
            raise DataError("X: expected a square graph with finite lengths >= 0, for metric='precomputed'")
        return graph
    A, _ = as_matrix(X, estimator_name="geodesic_distances", accept_sparse=False)
    n, k = len(A), count("n_neighbors", n_neighbors, low=1)
    if k >= n:
        raise ParameterError(f"n_neighbors={k}; expected fewer than the {n} rows of X")
    used = resolve(2, metric, None)
    A = used.scaled(A)
    if used.native is not None:
        found = nearest(A, A, k + 1, used.native, "auto", n_jobs)
    else:
        assert used.blocks is not None
        found = nearest_in_blocks(used.blocks.block, A, A, k + 1, n_jobs if used.blocks.in_threads else 1)
    distances, neighbours = without_self(*found)
    return sp.csr_array((distances.ravel(), neighbours.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
