"""Preconditioned conjugate gradients for S X = Y with many right sides at once, and the quadrature that comes with it.

For a right side z the step lengths and ratios of conjugate gradients are the entries of the tridiagonal matrix T of
Lanczos' method for P^-1/2 S P^-1/2 started at P^-1/2 z (Golub and Van Loan, section 11.3), so that

    z'P^-1/2 log(P^-1/2 S P^-1/2) P^-1/2 z = (z'P^-1 z) e_1'log(T) e_1,

exact to the accuracy of the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

_MIN_REDUCTION = 0.99  # a residual below this share of the best one before counts as progress
_PATIENCE = 50  # iterations without progress of any column: rounding has taken over


@dataclass
class IterativeSolution:
    """Solutions X of S X = Y, their relative residuals, the number of steps, and the quadrature of every column."""

    X: np.ndarray
    residual: np.ndarray
    n_steps: int
    log_quadrature: np.ndarray


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    Y: np.ndarray,
    tol: float,
    max_iter: int = 1000,
) -> IterativeSolution:
    """Iterate until every relative residual is at most `tol`, or nothing more is gained.

    Parameters
    ----------
    times : callable
        U -> S U for the columns of U.
    precondition : callable
        U -> P^-1 U.
    Y : ndarray of shape (n, t)
    tol : float
    max_iter : int, default=1000
    """
    size = np.linalg.norm(Y, axis=0)
    target = tol * size
    X, R = np.zeros_like(Y), Y.copy()
    Z = precondition(R)
    P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
    first = rz.copy()
    active = np.linalg.norm(R, axis=0) > target
    steps: list[np.ndarray] = []
    ratios: list[np.ndarray] = []
    running: list[np.ndarray] = []
    best = np.full(Y.shape[1], np.inf)
    idle = 0
    while active.any() and len(steps) < max_iter and idle < _PATIENCE:
        cols = np.flatnonzero(active)
        SP = times(P[:, cols])
        curvature = np.einsum("ij,ij->j", P[:, cols], SP)
        length = np.zeros(Y.shape[1])
        length[cols] = np.divide(rz[cols], curvature, out=np.zeros(len(cols)), where=curvature > 0)
        X[:, cols] += length[cols] * P[:, cols]
        R[:, cols] -= length[cols] * SP
        Z = precondition(R[:, cols])
        after = np.einsum("ij,ij->j", R[:, cols], Z)
        ratio = np.zeros(Y.shape[1])
        ratio[cols] = np.divide(after, rz[cols], out=np.zeros(len(cols)), where=rz[cols] > 0)
        P[:, cols] = Z + ratio[cols] * P[:, cols]
        rz[cols] = after
        steps.append(length)
        ratios.append(ratio)
        running.append(active.copy())
        left = np.linalg.norm(R, axis=0)
        idle = 0 if ((left < _MIN_REDUCTION * best) & active).any() else idle + 1
        best = np.minimum(best, left)
        active = active & (left > target) & (length > 0)
    # The recurrence of R drifts from Y - S X by rounding: the residual that is reported is computed anew.
    true = np.linalg.norm(Y - times(X), axis=0)
    residual = np.divide(true, size, out=np.zeros_like(size), where=size > 0)
    quadrature = first * _log_of_first(np.array(steps), np.array(ratios), np.array(running))
    return IterativeSolution(X, residual, len(steps), quadrature)


def _log_of_first(steps: np.ndarray, ratios: np.ndarray, running: np.ndarray) -> np.ndarray:
    """e_1'log(T) e_1 of every column; 0 where there was no iteration, nan where one overflowed."""
    if not len(steps):
        return np.zeros(0)
    out = np.zeros(steps.shape[1])
    for j in range(steps.shape[1]):
        k = int((running[:, j] & (steps[:, j] > 0)).sum())
        if not k:
            continue
        # T_ii = 1 / a_i + b_(i-1) / a_(i-1),  T_(i, i+1) = sqrt(b_i) / a_i
        a, b = steps[:k, j], ratios[:k, j]
        diagonal = 1 / a
        diagonal[1:] += b[: k - 1] / a[: k - 1]
        beside = np.sqrt(np.maximum(b[: k - 1], 0.0)) / a[: k - 1]
        if not (np.isfinite(diagonal).all() and np.isfinite(beside).all()):
            out[j] = np.nan
            continue
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside)
        out[j] = float(vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(np.float64).tiny)))
    return out
