"""Products of tall matrices, in blocks of rows on several threads: the same bits for any number of them."""

from __future__ import annotations

import numpy as np

from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order

_ROWS = 4096  # of a block


def _blocks(rows: int) -> list[slice]:
    return [slice(start, min(start + _ROWS, rows)) for start in range(0, rows, _ROWS)]


def inner_product(V: np.ndarray, W: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """V'W."""
    total = np.zeros((V.shape[1], W.shape[1]))
    threads = n_threads(float(V.size) * W.shape[1], n_jobs)
    in_order(
        iter(_blocks(len(V))), lambda rows: V[rows].T @ W[rows], lambda part: np.add(total, part, out=total), threads
    )
    return total


def subtract_product(W: np.ndarray, V: np.ndarray, C: np.ndarray, n_jobs: int | None = None) -> None:
    """W -= V C, in place."""

    def work(rows: slice) -> None:
        W[rows] -= V[rows] @ C

    in_order(iter(_blocks(len(W))), work, lambda _: None, n_threads(float(V.size) * C.shape[1], n_jobs))


def right_product(V: np.ndarray, U: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """V U."""
    out = np.empty((len(V), U.shape[1]))

    def work(rows: slice) -> None:
        np.matmul(V[rows], U, out=out[rows])

    in_order(iter(_blocks(len(V))), work, lambda _: None, n_threads(float(V.size) * U.shape[1], n_jobs))
    return out
