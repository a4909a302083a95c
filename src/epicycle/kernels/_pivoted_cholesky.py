"""Kernel matrices of low rank: the pivoted Cholesky factor, K = G G' + a rest whose trace is known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.kernels._kernel import Kernel

__all__ = ["pivoted_cholesky"]


def pivoted_cholesky(kernel: Kernel, A: Any, rank: int, tol: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pivots, G of shape (n, r), diagonal of K - G G'), with the row that is explained least chosen at each step.

    It ends at `rank`, or when the trace of the rest is at most tol times that of K.
    """
    rest = kernel.prepared_diagonal(A).astype(np.float64).copy()
    total = float(rest.sum())
    n = A.n_rows
    G = np.empty((min(rank, n), n))
    pivots: list[int] = []
    floor = float(rest.max(initial=0.0)) * 1e-14
    while len(pivots) < len(G):
        i = int(rest.argmax())
        if rest[i] <= floor or rest[rest > 0].sum() <= tol * total:
            break
        r = len(pivots)
        column = kernel.block(A, A.take(np.array([i])))[:, 0]
        if r:
            column = column - G[:r, i] @ G[:r]
        G[r] = column / np.sqrt(rest[i])
        rest -= G[r] ** 2
        rest[i] = 0.0
        pivots.append(i)
    return np.array(pivots, dtype=np.intp), np.ascontiguousarray(G[: len(pivots)].T), np.maximum(rest, 0.0)
