"""Lengths of shortest paths in graphs of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._memory import require_memory
from epicycle.core._threads import n_threads

#: Multiply-adds that one edge is worth, for the number of threads.
_EDGE = 30.0


def shortest_paths(graph: Any, rows: np.ndarray | None = None, n_jobs: int | None = None) -> np.ndarray:
    """Distances from these nodes (default: all) to all others along edges, which go both ways; inf where none lead.

    An entry that is stored is an edge, one of length zero too. The matrix of all nodes is symmetric.
    """
    graph = sp.csr_array(graph)
    n = int(graph.shape[0])
    source = np.arange(n, dtype=np.int64) if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
    require_memory(8.0 * len(source) * n, f"shortest paths from {len(source):,} nodes", "start from fewer of them")
    return _native.manifold.shortest_paths(
        np.ascontiguousarray(graph.indptr, dtype=np.int64),
        np.ascontiguousarray(graph.indices, dtype=np.int32),
        np.ascontiguousarray(graph.data, dtype=np.float64),
        source,
        n_threads(_EDGE * len(source) * (graph.nnz + n), n_jobs),
    )
