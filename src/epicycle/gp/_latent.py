"""The posterior of the latent values at new rows under Laplace's approximation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from epicycle.data import Batch
from epicycle.kernels._gram import block_rows, kernel_product
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import Factor

__all__ = ["BinaryLatent", "Latent", "LowRankLatent", "SoftmaxLatent", "latent_batch", "latent_rows"]


@dataclass(frozen=True)
class Latent(ABC):
    """kernel, B, C : the kernel, the rows that it compares with, and their coefficients (n, k)."""

    kernel: Kernel
    B: Any
    C: np.ndarray

    @abstractmethod
    def taken(self, K: np.ndarray) -> np.ndarray:
        """What is taken from k(x, x) I, for K = k(new, B): (b, k, k)."""

    def covariances(self, A: Any) -> np.ndarray:
        """(n, k, k)."""
        n, k = A.n_rows, self.C.shape[1]
        prior = self.kernel.prepared_diagonal(A)
        out = np.empty((n, k, k))
        rows = block_rows(self.B.n_rows)
        index = np.arange(k)
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            out[part] = -self.taken(self.kernel.block(A.take(part), self.B))
        out[:, index, index] += prior[:, None]
        out[:, index, index] = np.maximum(out[:, index, index], 0.0)
        return out


@dataclass(frozen=True)
class BinaryLatent(Latent):
    root: np.ndarray
    found: Factor

    def taken(self, K: np.ndarray) -> np.ndarray:
        V = self.found.half_solve((K * self.root).T)
        return np.einsum("ij,ij->j", V, V)[:, None, None]


@dataclass(frozen=True)
class SoftmaxLatent(Latent):
    E: np.ndarray
    M: np.ndarray

    def taken(self, K: np.ndarray) -> np.ndarray:
        k = len(self.E)
        out = np.zeros((len(K), k, k))
        halves = []
        for c, E in enumerate(self.E):
            EK = E @ K.T
            out[:, c, c] = np.einsum("ij,ji->i", K, EK)
            halves.append(scipy.linalg.solve_triangular(self.M, EK, lower=True, check_finite=False))
        for c in range(k):
            for d in range(k):
                out[:, c, d] -= np.einsum("ij,ij->j", halves[c], halves[d])
        return out


@dataclass(frozen=True)
class LowRankLatent(Latent):
    Lm: np.ndarray
    LH: np.ndarray

    def taken(self, K: np.ndarray) -> np.ndarray:
        m, k = len(self.Lm), self.C.shape[1]
        V = scipy.linalg.solve_triangular(self.Lm, K.T, lower=True, check_finite=False)
        halves = []
        for c in range(k):
            right = np.zeros((m * k, V.shape[1]))
            right[c * m : (c + 1) * m] = V
            halves.append(scipy.linalg.solve_triangular(self.LH, right, lower=True, check_finite=False))
        out = np.empty((len(K), k, k))
        for c in range(k):
            for d in range(k):
                out[:, c, d] = -np.einsum("ij,ij->j", halves[c], halves[d])
        out[:, np.arange(k), np.arange(k)] += np.einsum("ij,ij->j", V, V)[:, None]
        return out


def latent_rows(rows: Any, latent: Latent, *, covariance: bool) -> np.ndarray:
    """(n, k) means, or (n, k + k^2) means and covariances."""
    A = latent.kernel.prepare(rows, like=latent.B)
    means = kernel_product(latent.kernel, A, latent.B, latent.C)
    return np.hstack([means, latent.covariances(A).reshape(len(means), -1)]) if covariance else means


def latent_batch(batch: Batch, latent: Latent, covariance: bool) -> np.ndarray:
    """The same for a batch."""
    return latent_rows(batch.X, latent, covariance=covariance)
