"""Atoms, given sums over codes:  minimise  1/2 tr(D'AD) - <B, D>  over atoms of length at most 1, one at a time.

A = C'VC and B = C'VX are sums over rows. With the others fixed the best atom is the projection of
d + (b - A_k D) / A_kk  onto the ball, so that a sweep never raises the objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle._native import decomposition as native
from epicycle.core._random import stream
from epicycle.data import Batch
from epicycle.decomposition.dictionary._codes import TOLERANCE, products_of, squares_of

SWEEPS = 5
_UNUSED = 1e-12  # share of the largest use below which an atom is not used


def coded(
    batch: Batch, C: np.ndarray, D: np.ndarray, alpha: float, positive: bool, sweeps: int
) -> tuple[float, float, float, np.ndarray, np.ndarray]:
    """Move the codes C; (sum of gaps, of half squares, of |c|, C'VC, C'VX)."""
    X = batch.X
    squares = squares_of(X)
    gaps = native.lasso_codes(D @ D.T, products_of(X, D), squares, alpha, positive, sweeps, TOLERANCE, C)
    v = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    vC = v[:, None] * C
    return (
        float(v @ gaps),
        0.5 * float(v @ squares),
        float(np.abs(vC).sum()),
        C.T @ vC,
        np.asarray(X.T @ vC, dtype=np.float64).T,
    )


def fit_of(A: np.ndarray, B: np.ndarray, D: np.ndarray) -> float:
    """The part of the objective that depends on the atoms."""
    return 0.5 * float(np.vdot(A @ D, D)) - float(np.vdot(B, D))


def swept(A: np.ndarray, B: np.ndarray, D: np.ndarray, positive: bool, sweeps: int) -> np.ndarray:
    """The atoms after some sweeps."""
    D, least = D.copy(), _UNUSED * float(A.diagonal().max(initial=0.0))
    for _ in range(sweeps):
        for j in range(len(D)):
            if A[j, j] > least:
                D[j] = inside(D[j] + (B[j] - A[j] @ D) / A[j, j], positive)
    return D


def inside(d: np.ndarray, positive: bool) -> np.ndarray:
    """The nearest atom of length at most 1."""
    d = np.maximum(d, 0.0) if positive else d
    return np.asarray(d / max(float(np.linalg.norm(d)), 1.0))


def revived(A: np.ndarray, D: np.ndarray, rows: Any, positive: bool, seed: int, round_: int) -> np.ndarray:
    """Atoms that no code uses become rows of the data: the objective is the same, and they may be of use."""
    least = _UNUSED * float(A.diagonal().max(initial=0.0))
    for j in np.flatnonzero(A.diagonal() <= least):
        D[j] = drawn_atom(rows, positive, seed, round_, int(j))
    return D


def drawn_atom(rows: Any, positive: bool, seed: int, *keys: int) -> np.ndarray:
    """A row, at length 1; where it is zero, random numbers."""
    rng = stream(seed, "atom", *keys)
    i = int(rng.integers(rows.shape[0]))
    row = rows[[i]].toarray()[0] if hasattr(rows, "toarray") else np.asarray(rows[i])
    d = inside(np.asarray(row, dtype=np.float64) * 1e3, positive)
    length = float(np.linalg.norm(d))
    if not length > 0:
        d = np.abs(rng.standard_normal(len(d))) if positive else rng.standard_normal(len(d))
        length = float(np.linalg.norm(d))
    return np.asarray(d / length)
