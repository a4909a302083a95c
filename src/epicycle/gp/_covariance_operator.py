"""S = K + D as an operator: products in blocks of rows, and conjugate gradients for many right sides at once.

The preconditioner is P = R'R + D with the partial, pivoted Cholesky factor R of K. In the iterations for a right side
z, the coefficients of conjugate gradients are those of Lanczos' method started at P^-1/2 z: with the tridiagonal T of
them, z'P^-1/2 f(P^-1/2 S P^-1/2) P^-1/2 z = (z'P^-1 z) e_1'f(T) e_1, exact to the accuracy of the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.core._memory import available
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.gp._inducing_rows import pivoted_factor
from epicycle.kernels._gram import block_rows, gram_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._shifted_systems import matrix_product

__all__ = ["CovarianceOperator", "Iterated"]

_STORED = 1 << 30  # bytes of a matrix that is stored rather than computed again and again


@dataclass
class Iterated:
    """Solutions X of S X = Y, their relative residuals, the number of steps, and log(T)_11 of every column."""

    X: np.ndarray
    residual: np.ndarray
    n_steps: int
    log_quadrature: np.ndarray


class CovarianceOperator:
    """K + diag(D) for prepared rows A.

    Parameters
    ----------
    kernel : Kernel
    A : prepared rows
    D : ndarray of shape (n,)
    rank : int
        Of the preconditioner.
    n_jobs : int, optional
    stored : bool, optional
        Whether K is stored; None decides by its size.
    """

    def __init__(
        self, kernel: Kernel, A: Any, D: np.ndarray, rank: int, n_jobs: int | None, stored: bool | None = None
    ) -> None:
        self.kernel, self.A, self.D, self.n = kernel, A, D, len(D)
        self.threads = n_threads(20.0 * self.n * self.n, n_jobs)
        size = 8 * self.n * self.n
        if stored is None:
            stored = size <= min(_STORED, (available() or 4 * _STORED) // 4)
        self.K = gram_matrix(kernel, A, np.dtype(np.float64), n_jobs) if stored else None
        _, self.R = pivoted_factor(kernel, A, rank)
        self._RD = self.R / D
        inner = np.eye(len(self.R)) + self._RD @ self.R.T
        self._inner = scipy.linalg.cho_factor(inner, lower=True)
        self.log_det_preconditioner = 2 * float(np.log(np.diagonal(self._inner[0])).sum()) + float(np.log(D).sum())

    def times(self, U: np.ndarray) -> np.ndarray:
        """S U."""
        if self.K is not None:
            return matrix_product(self.K, U, self.threads) + self.D[:, None] * U
        out = self.D[:, None] * U
        rows = block_rows(self.n)

        def work(start: int) -> None:
            part = slice(start, min(start + rows, self.n))
            out[part] += self.kernel.block(self.A.take(part), self.A) @ U

        in_order(iter(range(0, self.n, rows)), work, lambda done: None, self.threads)
        return out

    def precondition(self, U: np.ndarray) -> np.ndarray:
        """P^-1 U."""
        scaled = U / self.D[:, None]
        return scaled - self._RD.T @ scipy.linalg.cho_solve(self._inner, self.R @ scaled)

    def draw(self, e: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Draws of N(0, P) from standard normal e (n, s) and f (at least rank, s)."""
        return self.R.T @ f[: len(self.R)] + np.sqrt(self.D)[:, None] * e

    def solve(self, Y: np.ndarray, tol: float, most: int = 1000) -> Iterated:
        """Conjugate gradients until every relative residual is at most `tol`, or nothing more is gained."""
        size = np.linalg.norm(Y, axis=0)
        enough = tol * size
        X, R = np.zeros_like(Y), Y.copy()
        Z = self.precondition(R)
        P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
        first = rz.copy()
        going = np.linalg.norm(R, axis=0) > enough
        steps: list[np.ndarray] = []
        ratios: list[np.ndarray] = []
        running: list[np.ndarray] = []
        best = np.full(Y.shape[1], np.inf)
        waited = 0
        while going.any() and len(steps) < most:
            cols = np.flatnonzero(going)
            SP = self.times(P[:, cols])
            curvature = np.einsum("ij,ij->j", P[:, cols], SP)
            length = np.zeros(Y.shape[1])
            length[cols] = np.divide(rz[cols], curvature, out=np.zeros(len(cols)), where=curvature > 0)
            X[:, cols] += length[cols] * P[:, cols]
            R[:, cols] -= length[cols] * SP
            Z = self.precondition(R[:, cols])
            after = np.einsum("ij,ij->j", R[:, cols], Z)
            ratio = np.zeros(Y.shape[1])
            ratio[cols] = np.divide(after, rz[cols], out=np.zeros(len(cols)), where=rz[cols] > 0)
            P[:, cols] = Z + ratio[cols] * P[:, cols]
            rz[cols] = after
            steps.append(length)
            ratios.append(ratio)
            running.append(going.copy())
            left = np.linalg.norm(R, axis=0)
            gained = (left < 0.99 * best) & going
            best = np.minimum(best, left)
            waited = 0 if gained.any() else waited + 1
            going = going & (left > enough) & (length > 0)
            if waited >= 50:
                break
        true = np.linalg.norm(Y - self.times(X), axis=0)
        residual = np.divide(true, size, out=np.zeros_like(size), where=size > 0)
        quadrature = first * _log_of_first(np.array(steps), np.array(ratios), np.array(running))
        return Iterated(X, residual, len(steps), quadrature)


def _log_of_first(steps: np.ndarray, ratios: np.ndarray, running: np.ndarray) -> np.ndarray:
    """e_1'log(T) e_1 of every column; 0 where there was no iteration."""
    if not len(steps):
        return np.zeros(0)
    out = np.zeros(steps.shape[1])
    for j in range(steps.shape[1]):
        k = int((running[:, j] & (steps[:, j] > 0)).sum())
        if not k:
            continue
        a, b = steps[:k, j], ratios[:k, j]
        diagonal = 1 / a
        diagonal[1:] += b[: k - 1] / a[: k - 1]
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, np.sqrt(np.maximum(b[: k - 1], 0.0)) / a[: k - 1])
        out[j] = float(vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(np.float64).tiny)))
    return out
