"""Laplace's approximation for two classes (Rasmussen and Williams, algorithms 3.1, 3.2 and 5.1).

With B = I + W^1/2 K W^1/2 = L L' and R = W^1/2 B^-1 W^1/2, at the mode f = K a,

    log q = log p(N | f) - a'f / 2 - log det B / 2,
    d log q = tr((a a' - R) dK) / 2 + u'dK a,     u = s - R K s,     s_i = -(1 - (B^-1)_ii) (1 - 2 p_i) / 2.
"""

from __future__ import annotations

import numpy as np

from epicycle.gp._laplace import ExactLaplace, Mode
from epicycle.linalg._cholesky import Factor, factor
from epicycle.linalg._inverse import diagonal_of_inverse, inverse_tiles, inverted

__all__ = ["BinaryLaplace"]


class BinaryLaplace(ExactLaplace):
    """Of one latent value for each row."""

    def _factor(self, K: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, Factor]:
        root = np.sqrt(W)
        B = K * root
        B *= root[:, None]
        index = np.arange(len(B))
        B[index, index] += 1.0
        return root, factor(B, self.threads)

    def mode(self, K: np.ndarray) -> Mode:
        def newton(a: np.ndarray, f: np.ndarray, p: np.ndarray) -> np.ndarray:
            W = self.seen.curvature(p)[:, 0, 0]
            root, found = self._factor(K, W)
            b = W[:, None] * f + self.seen.gradient(p)
            return b - root[:, None] * found.solve(root[:, None] * self._times(K, b))

        return self._climb(K, newton)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        kernel, A, K = self._matrix(theta)
        mode = self.mode(K)
        root, found = self._factor(K, self.seen.curvature(mode.p)[:, 0, 0])
        value = mode.value - 0.5 * found.log_determinant
        if not gradient:
            return value, np.empty(0)
        a, n = mode.a, self.seen.n
        inverse = inverted(found, self.threads)
        # posterior variance times W, (1 - (B^-1)_ii), without a division by a small W
        s = -0.5 * (1 - diagonal_of_inverse(inverse)) * (1 - 2 * mode.p[:, 0])
        Ks = self._times(K, s[:, None])
        u = s[:, None] - root[:, None] * found.solve(root[:, None] * Ks)
        del found
        total = np.zeros(len(theta))

        def tile(mine: slice, other: slice, T: np.ndarray) -> np.ndarray:
            T *= root[mine][:, None]
            T *= -root[other]
            T += (a[mine] + u[mine]) @ a[other].T + a[mine] @ u[other].T
            part = kernel.contract_between(A, np.arange(n)[mine], np.arange(n)[other], T, K[mine, other])
            return part / 2 if mine == other else part

        def add(part: np.ndarray) -> None:
            nonlocal total
            total = total + part

        if len(total):
            inverse_tiles(inverse, tile, add, self.threads)
        return value, total

    def conclude(self, theta: np.ndarray) -> tuple[Mode, dict[str, np.ndarray], float]:
        """(mode, arrays that prediction needs, log q)."""
        _, _, K = self._matrix(theta)
        mode = self.mode(K)
        root, found = self._factor(K, self.seen.curvature(mode.p)[:, 0, 0])
        a = self.seen.gradient(mode.p)  # equal to mode.a at the mode, without the rounding of K^-1
        return mode, {"C": a, "root": root, "L": np.tril(found.L)}, mode.value - 0.5 * found.log_determinant
