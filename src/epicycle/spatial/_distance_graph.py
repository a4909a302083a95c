"""Sparse matrices of distances: stored zeros are distances, and what is not stored is far."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import sort_graph_by_row_values

from epicycle.core._exceptions import DataError, DataTypeError


def distance_graph(X: Any, *, warn: bool = True) -> Any:
    """Sparse distances in CSR, every row in their order; stored zeros are distances, and what is not stored is far."""
    if X.format not in ("csr", "csc", "coo", "lil"):
        raise DataTypeError(
            f"Sparse matrix in {X.format!r} format is not supported due to its handling of explicit zeros"
        )
    graph = sp.csr_array(X, dtype=np.float32 if X.dtype == np.float32 else np.float64, copy=True)
    if not np.isfinite(graph.data).all():
        raise DataError("X: Input contains NaN or infinity; expected finite distances")
    if graph.nnz == 0:
        return graph
    return sort_graph_by_row_values(graph, warn_when_not_sorted=warn and X.format == "csr")


def first_of_graph(graph: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    stored = int(np.diff(graph.indptr).min())
    if stored < k:
        raise DataError(
            f"{k} neighbors per samples are required, but some samples have only {stored} neighbors in precomputed "
            "graph matrix. Decrease number of neighbors used or recompute the graph with more neighbors."
        )
    places = graph.indptr[:-1, None] + np.arange(k)
    return graph.data[places], graph.indices[places].astype(np.int64)


def within_graph(graph: Any, radius: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    reach = np.repeat(np.broadcast_to(radius, graph.shape[0]), np.diff(graph.indptr))
    inside = graph.data <= reach
    ends = np.concatenate([[0], np.cumsum(inside)])[graph.indptr][1:-1]
    return np.split(graph.data[inside], ends), np.split(graph.indices[inside].astype(np.int64), ends)
