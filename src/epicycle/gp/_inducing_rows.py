"""Rows that stand for all: greedily, where the variance given those before is largest, or drawn by squared distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._random import stream
from epicycle.kernels._gram import block_rows
from epicycle.kernels._kernel import Kernel

__all__ = ["choose_rows", "pivoted_factor"]

_FLAT = 1e-9  # share of the largest variance below which a row adds nothing but rounding


def _against(kernel: Kernel, A: Any, row: int) -> np.ndarray:
    """k(a_i, a_row) for all i."""
    one = A.take(np.array([row]))
    rows = 16 * block_rows(1)
    parts = [kernel.block(A.take(slice(s, min(s + rows, A.n_rows))), one)[:, 0] for s in range(0, A.n_rows, rows)]
    return np.concatenate(parts)


def pivoted_factor(
    kernel: Kernel, A: Any, most: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(rows chosen, R of shape (m, n)) with R'R the partial Cholesky factorisation of K with the largest pivots.

    With a weight, the pivot is the largest weighted variance that is left.
    """
    n = A.n_rows
    left = kernel.prepared_diagonal(A).astype(np.float64).copy()
    top = float(left.max(initial=0.0))
    R = np.empty((min(most, n), n))
    chosen: list[int] = []
    for m in range(len(R)):
        pivot = int(np.argmax(left if weight is None else left * weight))
        if not left[pivot] > _FLAT * top:
            break
        row = _against(kernel, A, pivot)
        if m:
            row -= R[:m, pivot] @ R[:m]
        row /= np.sqrt(left[pivot])
        R[m] = row
        left -= row * row
        np.maximum(left, 0.0, out=left)
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, dtype=np.intp), R[: len(chosen)]


def choose_rows(kernel: Kernel, A: Any, most: int, how: str, seed: int) -> np.ndarray:
    """At most so many different rows, sorted."""
    if how == "greedy":
        return np.sort(pivoted_factor(kernel, A, most)[0])
    rng = stream(seed, "inducing")
    n = A.n_rows
    own = kernel.prepared_diagonal(A)
    chosen = [int(rng.integers(n))]
    distance = np.full(n, np.inf)
    while True:
        # in the space of features: |phi(x) - phi(z)|^2
        last = chosen[-1]
        np.minimum(distance, np.maximum(own + own[last] - 2 * _against(kernel, A, last), 0.0), out=distance)
        distance[last] = 0.0
        total = float(distance.sum())
        if len(chosen) >= min(most, n) or not total > _FLAT * float(own.max()):
            return np.sort(np.array(chosen, dtype=np.intp))
        chosen.append(int(np.searchsorted(np.cumsum(distance), rng.random() * total, side="right").clip(0, n - 1)))
