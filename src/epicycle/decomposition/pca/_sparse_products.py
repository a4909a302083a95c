"""Products with the scatter of sparse rows in memory: A'A V for A = sqrt(w) (x - m), in one read of the rows.

Rows are never centred themselves:  A'A V = X'W (X V - 1 m'V) - m 1'W (X V - 1 m'V).
"""

from __future__ import annotations

import numpy as np

from epicycle import _native
from epicycle.core._threads import n_threads
from epicycle.data import ArrayData

_PANEL = 16  # columns that the kernel takes together
_ENTRIES = 2_000_000  # stored entries between two looks for Ctrl-C


def scatter_product(data: ArrayData, mean: np.ndarray, V: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """A'A V; no sum depends on the number of threads."""
    p, columns = V.shape
    panels = -(-columns // _PANEL)
    wide = np.zeros((p, panels * _PANEL))
    wide[:, :columns] = V
    packed = np.ascontiguousarray(wide.reshape(p, panels, _PANEL).transpose(1, 0, 2))
    shift = np.ascontiguousarray((mean @ wide).reshape(panels, _PANEL))
    out, sums = np.zeros_like(packed), np.zeros_like(shift)
    threads = min(n_threads(2.0 * data.X.nnz * columns, n_jobs), panels)
    rows = max(1, int(_ENTRIES * data.n_rows / max(data.X.nnz, 1)))
    for start in range(0, data.n_rows, rows):
        batch = data.rows(start, min(start + rows, data.n_rows))
        _native.decomposition.scatter_product(batch.X, batch.weight, shift, packed, out, sums, threads)
    found = out.transpose(1, 0, 2).reshape(p, panels * _PANEL)[:, :columns]
    return np.asarray(found - np.outer(mean, sums.ravel()[:columns]) if mean.any() else found)
