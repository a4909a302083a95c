"""Partial Cholesky factorisation with the largest pivots:  K = R'R + a rest whose diagonal is known exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def pivoted_cholesky(
    diagonal: np.ndarray, column: Callable[[int], np.ndarray], rank: int, *, floor: float, tol: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pivots, R of shape (r, n), diagonal of K - R'R); at each step the pivot is the largest entry of the rest.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Of K; not changed.
    column : callable
        i -> column i of K.
    rank : int
        Maximum number of pivots.
    floor : float
        Share of the largest diagonal entry below which a pivot would be nothing but rounding.
    tol : float, default=0.0
        Share of the trace of K at which the trace of the rest is small enough.
    """
    rest = diagonal.astype(np.float64, copy=True)
    total, smallest = float(rest.sum()), floor * float(rest.max(initial=0.0))
    R = np.empty((min(rank, len(rest)), len(rest)))
    pivots: list[int] = []
    for r in range(len(R)):
        i = int(rest.argmax())
        if not rest[i] > smallest or (tol > 0 and rest.sum() <= tol * total):
            break
        row = column(i)
        if r:
            row = row - R[:r, i] @ R[:r]
        R[r] = row / np.sqrt(rest[i])
        rest -= R[r] * R[r]
        np.maximum(rest, 0.0, out=rest)
        rest[i] = 0.0
        pivots.append(i)
    return np.array(pivots, dtype=np.intp), R[: len(pivots)], rest
