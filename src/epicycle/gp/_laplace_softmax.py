"""Laplace's approximation for several classes, jointly (Rasmussen and Williams, algorithm 3.3), with its gradient.

One kernel matrix K for the latent values of every class. With D_k = diag(c p_k), E_k = (K + D_k^-1)^-1, M M' = sum_k
E_k, and Q = (K + W^-1)^-1 of blocks  delta_kl E_k - E_k (M M')^-1 E_l,  at the mode f_k = K a_k

    log q = log p(N | f) - sum_k a_k'f_k / 2 - (sum_k log det B_k + log det M M' - sum_i log c_i) / 2,
    d log q = sum_k tr((a_k a_k' - Q_kk) dK) / 2 + u_k'dK a_k,     u = s - Q K s,

with s the derivative of -log det / 2 by f at fixed kernel, from the posterior covariance of the k values of every row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.gp._laplace import ExactLaplace, Mode
from epicycle.linalg._cholesky import factor
from epicycle.linalg._inverse import TILE, inverse_tiles, inverted

__all__ = ["SoftmaxLaplace"]


@dataclass
class Blocks:
    """E_k (k, n, n), the lower factor M of their sum, and the logarithm of the determinant."""

    E: np.ndarray
    M: np.ndarray
    log_det: float

    def times(self, X: np.ndarray) -> np.ndarray:
        """Q X for X of shape (n, k)."""
        EX = np.column_stack([E @ x for E, x in zip(self.E, X.T, strict=True)])
        total = scipy.linalg.cho_solve((self.M, True), EX.sum(axis=1), check_finite=False)
        return EX - np.column_stack([E @ total for E in self.E])


class SoftmaxLaplace(ExactLaplace):
    """Of as many latent values for each row as there are classes."""

    def blocks(self, K: np.ndarray, p: np.ndarray) -> Blocks:
        n, k = p.shape
        E = np.empty((k, n, n))
        log_det = -float(np.log(self.seen.total).sum())
        index = np.arange(n)
        for c in range(k):
            root = np.sqrt(self.seen.total * p[:, c])
            B = K * root
            B *= root[:, None]
            B[index, index] += 1.0
            found = factor(B, self.threads)
            log_det += found.log_determinant
            mine = E[c]

            def place(i: slice, j: slice, T: np.ndarray, root: np.ndarray = root, mine: np.ndarray = mine) -> None:
                T *= root[i][:, None]
                T *= root[j]
                mine[i, j] = T
                if i != j:
                    mine[j, i] = T.T

            inverse_tiles(inverted(found, self.threads), place, lambda done: None, self.threads)
        M = scipy.linalg.cholesky(E.sum(axis=0), lower=True, check_finite=False)
        return Blocks(E, M, log_det + 2 * float(np.log(np.diagonal(M)).sum()))

    def mode(self, K: np.ndarray) -> Mode:
        def newton(a: np.ndarray, f: np.ndarray, p: np.ndarray) -> np.ndarray:
            W = self.seen.curvature(p)
            b = np.einsum("ikl,il->ik", W, f) + self.seen.gradient(p)
            return b - self.blocks(K, p).times(self._times(K, b))

        return self._climb(K, newton)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        kernel, A, K = self._matrix(theta)
        mode = self.mode(K)
        blocks = self.blocks(K, mode.p)
        value = mode.value - 0.5 * blocks.log_det
        if not gradient:
            return value, np.empty(0)
        a, n = mode.a, self.seen.n
        s = self.seen.third(mode.p, self._covariances(K, blocks))
        u = s - blocks.times(self._times(K, s))
        Q = blocks.E.sum(axis=0)
        for E in blocks.E:
            half = scipy.linalg.solve_triangular(blocks.M, E, lower=True, check_finite=False)
            Q -= half.T @ half
        total = np.zeros(len(theta))
        for i in range(0, n, TILE):
            for j in range(0, i + 1, TILE):
                mine, other = slice(i, min(i + TILE, n)), slice(j, min(j + TILE, n))
                T = (a[mine] + u[mine]) @ a[other].T + a[mine] @ u[other].T - Q[mine, other]
                part = kernel.contract_between(A, np.arange(n)[mine], np.arange(n)[other], T, K[mine, other])
                total = total + (part / 2 if i == j else part)
        return value, total

    def _covariances(self, K: np.ndarray, blocks: Blocks) -> np.ndarray:
        """Of the latent values of every row under the posterior, (n, k, k)."""
        k, n = len(blocks.E), len(K)
        halves = np.empty((k, n, n))
        V = np.zeros((n, k, k))
        for c, E in enumerate(blocks.E):
            EK = E @ K
            V[:, c, c] = np.diagonal(K) - np.einsum("ij,ij->j", K, EK)
            halves[c] = scipy.linalg.solve_triangular(blocks.M, EK, lower=True, check_finite=False)
        for c in range(k):
            for d in range(c + 1):
                part = np.einsum("ij,ij->j", halves[c], halves[d])
                V[:, c, d] += part
                if c != d:
                    V[:, d, c] += part
        return V

    def conclude(self, theta: np.ndarray) -> tuple[Mode, dict[str, np.ndarray], float]:
        """(mode, arrays that prediction needs, log q)."""
        _, _, K = self._matrix(theta)
        mode = self.mode(K)
        blocks = self.blocks(K, mode.p)
        a = self.seen.gradient(mode.p)
        return mode, {"C": a, "E": blocks.E, "M": np.tril(blocks.M)}, mode.value - 0.5 * blocks.log_det
