"""Laplace's approximation of the posterior of latent values, for two classes and for several.

The mode maximises

    psi(f) = log p(N | f) - f'K^-1 f / 2,

which is concave. In coefficients a with f = K a, Newton's step leads to the maximum of the quadratic model; it is
shortened where psi does not rise enough. At the mode a = N - c p.

Two classes (Rasmussen and Williams, algorithms 3.1, 3.2 and 5.1). With B = I + W^1/2 K W^1/2 = L L' and
R = W^1/2 B^-1 W^1/2, at the mode f = K a,

    log q = log p(N | f) - a'f / 2 - log det B / 2,
    d log q = tr((a a' - R) dK) / 2 + u'dK a,     u = s - R K s,     s_i = -(1 - (B^-1)_ii) (1 - 2 p_i) / 2.

Several classes, jointly (algorithm 3.3), with one kernel matrix K for the latent values of every class. With
D_k = diag(c p_k), E_k = (K + D_k^-1)^-1, M M' = sum_k E_k, and Q = (K + W^-1)^-1 of blocks
delta_kl E_k - E_k (M M')^-1 E_l, at the mode f_k = K a_k,

    log q = log p(N | f) - sum_k a_k'f_k / 2 - (sum_k log det B_k + log det M M' - sum_i log c_i) / 2,
    d log q = sum_k tr((a_k a_k' - Q_kk) dK) / 2 + u_k'dK a_k,     u = s - Q K s,

with s the derivative of -log det / 2 by f at fixed kernel, from the posterior covariance of the k values of every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg

from epicycle.core._threads import n_threads
from epicycle.gp._observations import Counts
from epicycle.kernels._gram import gram_matrix
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import TILE, Factor, diagonal_of_inverse, factor, inverse_tiles, inverted
from epicycle.linalg._shifted_systems import matrix_product

_MODE_TOL = 1e-10  # Newton's decrement, relative to the scale of the likelihood, at which the mode is found
_ARMIJO = 1e-4  # share of the promised rise of psi that a step has to bring
_MAX_HALVINGS = 30  # of a Newton step: 2^-30 of it moves f by nothing but rounding


@dataclass
class Mode:
    """The mode: coefficients a (n, k) or of features, latent values f, probabilities p, psi, Newton's decrement."""

    a: np.ndarray
    f: np.ndarray
    p: np.ndarray
    value: float
    decrement: float
    n_steps: int


def find_mode(
    obs: Counts,
    a: np.ndarray,
    latent: Callable[[np.ndarray], np.ndarray],
    size: Callable[[np.ndarray, np.ndarray], float],
    newton: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    max_steps: int,
) -> Mode:
    """Newton's method with a line search.

    Parameters
    ----------
    a : where to begin
    latent : a -> f
    size : (a, f) -> f'K^-1 f
    newton : (a, f, p) -> the next a
    max_steps : maximum number of Newton steps
    """

    def at(a: np.ndarray) -> tuple[np.ndarray, float]:
        f = latent(a)
        return f, obs.log_likelihood(f) - 0.5 * size(a, f)

    f, value = at(a)
    start = np.zeros_like(a)
    if np.any(a):  # an earlier mode may be worse than nothing under another kernel
        f0, value0 = at(start)
        if not value >= value0:
            a, f, value = start, f0, value0
    decrement = np.inf
    steps = 0
    while True:
        p = obs.probabilities(f)
        target = newton(a, f, p)
        step = target - a
        move = latent(step)
        # the derivative of psi along the step: (N - c p - a)'K step, of which the model promises one half
        slope = float(np.vdot(obs.gradient(p), move)) - (size(target, f + move) - size(a, f) - size(step, move)) / 2
        decrement = max(slope, 0.0) / 2 / obs.scale
        if decrement <= _MODE_TOL or steps >= max_steps:
            # the last step is smaller than what rounding lets psi tell: it is taken where it does no harm
            f_new, value_new = at(target)
            if value_new >= value - _MODE_TOL * obs.scale:
                a, f, value = target, f_new, value_new
                p = obs.probabilities(f)
            return Mode(a, f, p, value, decrement, steps + 1)
        length = 1.0
        for _ in range(_MAX_HALVINGS):
            trial = a + length * step
            f_new, value_new = at(trial)
            if value_new >= value + _ARMIJO * length * slope:
                break
            length /= 2
        else:
            return Mode(a, f, p, value, decrement, steps)
        a, f, value = trial, f_new, value_new
        steps += 1


class ExactLaplace:
    """log q as a function of the kernel's theta; a mode found is where the next search for one begins."""

    def __init__(self, kernel: Kernel, obs: Counts, n_jobs: int | None, max_steps: int) -> None:
        self.kernel, self.obs, self.n_jobs, self.max_steps = kernel, obs, n_jobs, max_steps
        self.threads = n_threads(float(obs.n) ** 3 / 3, n_jobs)
        self.a = np.zeros((obs.n, obs.n_latent))
        self.scale, self.standard_error, self.evaluations = obs.scale, 0.0, 0
        self.decrement, self.newton_steps = np.inf, 0

    def subset(self, chosen: np.ndarray) -> Self:
        return type(self)(self.kernel, self.obs.take(chosen, self.kernel), self.n_jobs, self.max_steps)

    def start(self, theta: np.ndarray) -> None:
        self.a = np.zeros_like(self.a)

    def state(self) -> dict[str, Any]:
        return {"a": self.a}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.a = np.asarray(state["a"])

    def _matrix(self, theta: np.ndarray) -> tuple[Kernel, Any, np.ndarray]:
        """(kernel, prepared rows, their matrix)."""
        kernel = self.kernel.with_theta(theta)
        A = kernel.prepare(self.obs.rows)
        return kernel, A, gram_matrix(kernel, A, np.dtype(np.float64), self.n_jobs)

    def _times(self, K: np.ndarray, a: np.ndarray) -> np.ndarray:
        return matrix_product(K, a, self.threads)

    def _find_mode(self, K: np.ndarray, newton: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Mode:
        """The mode under K, from the one before."""
        mode = find_mode(
            self.obs, self.a, lambda a: self._times(K, a), lambda a, f: float(np.vdot(a, f)), newton, self.max_steps
        )
        self.a, self.decrement = mode.a, mode.decrement
        self.newton_steps += mode.n_steps
        return mode


class BinaryLaplace(ExactLaplace):
    """Laplace's approximation with one latent value for each row."""

    def _factor(self, K: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, Factor]:
        root = np.sqrt(W)
        B = K * root
        B *= root[:, None]
        index = np.arange(len(B))
        B[index, index] += 1.0
        return root, factor(B, self.threads)

    def mode(self, K: np.ndarray) -> Mode:
        def newton(_a: np.ndarray, f: np.ndarray, p: np.ndarray) -> np.ndarray:
            W = self.obs.curvature(p)[:, 0, 0]
            # a = b - W^1/2 B^-1 W^1/2 K b with b = W f + gradient (Rasmussen and Williams, algorithm 3.1).
            root, found = self._factor(K, W)
            b = W[:, None] * f + self.obs.gradient(p)
            return np.asarray(b - root[:, None] * found.solve(root[:, None] * self._times(K, b)))

        return self._find_mode(K, newton)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        kernel, A, K = self._matrix(theta)
        mode = self.mode(K)
        root, found = self._factor(K, self.obs.curvature(mode.p)[:, 0, 0])
        value = mode.value - 0.5 * found.log_determinant
        if not gradient:
            return value, np.empty(0)
        a, n = mode.a, self.obs.n
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
        root, found = self._factor(K, self.obs.curvature(mode.p)[:, 0, 0])
        a = self.obs.gradient(mode.p)  # equal to mode.a at the mode, without the rounding of K^-1
        return mode, {"C": a, "root": root, "L": np.tril(found.L)}, mode.value - 0.5 * found.log_determinant


@dataclass
class SoftmaxBlocks:
    """E_k (k, n, n), the lower factor M of their sum, and the logarithm of the determinant."""

    E: np.ndarray
    M: np.ndarray
    log_det: float

    def times(self, X: np.ndarray) -> np.ndarray:
        """Q X for X of shape (n, k)."""
        EX = np.column_stack([E @ x for E, x in zip(self.E, X.T, strict=True)])
        total = scipy.linalg.cho_solve((self.M, True), EX.sum(axis=1), check_finite=False)
        return np.asarray(EX - np.column_stack([E @ total for E in self.E]))


class SoftmaxLaplace(ExactLaplace):
    """Laplace's approximation with as many latent values for each row as there are classes."""

    def blocks(self, K: np.ndarray, p: np.ndarray) -> SoftmaxBlocks:
        n, k = p.shape
        E = np.empty((k, n, n))
        log_det = -float(np.log(self.obs.total).sum())
        index = np.arange(n)
        for c in range(k):
            root = np.sqrt(self.obs.total * p[:, c])
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

            inverse_tiles(inverted(found, self.threads), place, None, self.threads)
        M = scipy.linalg.cholesky(E.sum(axis=0), lower=True, check_finite=False)
        return SoftmaxBlocks(E, M, log_det + 2 * float(np.log(np.diagonal(M)).sum()))

    def mode(self, K: np.ndarray) -> Mode:
        def newton(_a: np.ndarray, f: np.ndarray, p: np.ndarray) -> np.ndarray:
            W = self.obs.curvature(p)
            b = np.einsum("ikl,il->ik", W, f) + self.obs.gradient(p)
            return np.asarray(b - self.blocks(K, p).times(self._times(K, b)))

        return self._find_mode(K, newton)

    def value_and_gradient(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        kernel, A, K = self._matrix(theta)
        mode = self.mode(K)
        blocks = self.blocks(K, mode.p)
        value = mode.value - 0.5 * blocks.log_det
        if not gradient:
            return value, np.empty(0)
        a, n = mode.a, self.obs.n
        s = self.obs.third(mode.p, self._covariances(K, blocks))
        u = s - blocks.times(self._times(K, s))
        # sum_k Q_kk, the only part of Q that meets dK.
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

    def _covariances(self, K: np.ndarray, blocks: SoftmaxBlocks) -> np.ndarray:
        """Posterior covariances of the latent values of every row, (n, k, k)."""
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
        a = self.obs.gradient(mode.p)
        return mode, {"C": a, "E": blocks.E, "M": np.tril(blocks.M)}, mode.value - 0.5 * blocks.log_det
