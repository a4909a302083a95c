"""Kernel matrices in blocks on several threads: the same bits for any number of them, and nothing beside the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.core._memory import require_memory
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.engine._ordered import in_order
from epicycle.linalg._pivoted_cholesky import pivoted_cholesky

if TYPE_CHECKING:
    from epicycle.kernels._kernel import Kernel

_BLOCK = 1 << 18  # entries of a block: it stays in the second-level cache
_INSTEAD = "take Nystroem or RandomFourierFeatures with a linear model, or fewer rows"


def block_rows(m: int) -> int:
    """Rows of a block against m others."""
    return int(max(16, min(4096, _BLOCK // max(m, 1))))


def gram_matrix(kernel: Kernel, A: Any, dtype: np.dtype[Any], n_jobs: int | None) -> np.ndarray:
    """k(a_i, a_j), of which only one half is computed."""
    n, size = A.n_rows, A.tile
    require_memory(n * n * dtype.itemsize, f"the kernel matrix of {n:,} rows", _INSTEAD)
    whole = kernel.whole_matrix(A)
    if whole is not None:
        return np.asarray(((whole + whole.T) / 2).astype(dtype, copy=False))
    K = np.empty((n, n), dtype=dtype)

    def work(start: int) -> None:
        stop = min(start + size, n)
        mine = A.take(slice(start, stop))
        for first in range(0, stop, size):
            last = min(first + size, n)
            tile = kernel.block(mine, mine if first == start else A.take(slice(first, last)))
            if first == start:
                tile = (tile + tile.T) / 2  # to the last bit
            K[start:stop, first:last] = tile
            if first != start:
                K[first:last, start:stop] = tile.T

    starts = range(0, n, size)
    with single_threaded_blas():
        # The longest rows of tiles first, so that the threads end together.
        in_order(reversed(starts), work, None, min(len(starts), n_threads(20.0 * n * n, n_jobs)))
    return K


def cross_matrix(kernel: Kernel, A: Any, B: Any, dtype: np.dtype[Any], n_jobs: int | None) -> np.ndarray:
    """k(a_i, b_j)."""
    n, m = A.n_rows, B.n_rows
    require_memory(n * m * dtype.itemsize, f"the kernel matrix of {n:,} by {m:,} rows", _INSTEAD)
    K = np.empty((n, m), dtype=dtype)
    rows = block_rows(m)

    def work(start: int) -> None:
        K[start : start + rows] = kernel.block(A.take(slice(start, min(start + rows, n))), B)

    with single_threaded_blas():
        in_order(range(0, n, rows), work, None, n_threads(20.0 * n * m, n_jobs))
    return K


def kernel_product(kernel: Kernel, A: Any, B: Any, C: np.ndarray) -> np.ndarray:
    """k(A, B) C, a block of rows of the matrix at a time, on this thread."""
    n, rows = A.n_rows, block_rows(B.n_rows)
    out = np.empty((n, C.shape[1]))
    for start in range(0, n, rows):
        stop = min(start + rows, n)
        out[start:stop] = kernel.block(A.take(slice(start, stop)), B) @ C
    return out


def kernel_column(kernel: Kernel, A: Any, row: int) -> np.ndarray:
    """k(a_i, a_row) for all i."""
    one = A.take(np.array([row]))
    # Single columns are cheap: larger blocks than those of matrices.
    rows = 16 * block_rows(1)
    parts = [kernel.block(A.take(slice(s, min(s + rows, A.n_rows))), one)[:, 0] for s in range(0, A.n_rows, rows)]
    return np.concatenate(parts)


def low_rank_factor(
    kernel: Kernel, A: Any, rank: int, *, floor: float = 1e-14, tol: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pivots, R of shape (r, n), diagonal of K - R'R) of the pivoted Cholesky factorisation of the kernel matrix.

    It ends at `rank`, at a pivot below `floor` times the largest, or when the trace of the rest is at most `tol` times
    that of K.
    """
    diagonal = kernel.prepared_diagonal(A)
    return pivoted_cholesky(diagonal, lambda i: kernel_column(kernel, A, i), rank, floor=floor, tol=tol)
