"""The posterior of the latent values at new rows under Laplace's approximation, and class probabilities from it.

Probabilities are averages over normal latent values. The logistic function is a mixture of eight normal distribution
functions to 2e-9, and the average of Phi(s f) over N(m, v) is Phi(m s / sqrt(1 + v s^2)). For several classes the
average of the softmax is taken over a fixed low-discrepancy set of points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats

from epicycle.data import Batch
from epicycle.kernels._gram import block_rows, kernel_product
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import Factor


@dataclass(frozen=True)
class Latent(ABC):
    """kernel, B, C : the kernel, the rows that it compares with, and their coefficients (n, k)."""

    kernel: Kernel
    B: Any
    C: np.ndarray

    @abstractmethod
    def taken(self, K: np.ndarray) -> np.ndarray:
        """The reduction of k(x, x) I by the observations, for K = k(new, B): (b, k, k)."""

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
        return np.asarray(np.einsum("ij,ij->j", V, V)[:, None, None])


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


# Weights and scales of the mixture, after Monahan and Stefanski (1989).
_MIXTURE = np.array(
    [
        (0.003246343272134, 1.365340806296348),
        (0.051517477033972, 1.059523971016916),
        (0.195077912673858, 0.830791313765644),
        (0.315569823632818, 0.650732166639391),
        (0.274149576158423, 0.508135425366489),
        (0.131076880695470, 0.396313345166341),
        (0.027912418727972, 0.308904252267995),
        (0.001449567805354, 0.238212616409306),
    ]
)
_WEIGHTS, _SCALES = _MIXTURE.T.copy()
_LOG2_POINTS = 8  # of Sobol points, 512 with their negatives
_ROWS_AT_ONCE = 512  # rows whose 512 points are held in memory together


def average_logistic(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """E 1 / (1 + exp(-f)) for f ~ N(mean, variance)."""
    s = _SCALES[:, None]
    return np.asarray(
        np.asarray(_WEIGHTS @ scipy.special.ndtr(mean * s / np.sqrt(1 + variance * s * s))) / _WEIGHTS.sum()
    )


@cache
def _points(k: int) -> np.ndarray:
    """Normal scores of Sobol's points, and their negatives: (2^9, k)."""
    sobol = scipy.stats.qmc.Sobol(k, scramble=True, rng=np.random.default_rng(0))
    z = scipy.special.ndtri(sobol.random_base2(_LOG2_POINTS))
    return np.vstack([z, -z])


def average_softmax(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """E softmax(f) for f ~ N(mean_i, covariance_i): (n, k) from (n, k) and (n, k, k)."""
    n, k = mean.shape
    values, vectors = np.linalg.eigh(covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    z = _points(k)
    out = np.empty((n, k))
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        f = mean[part][:, None, :] + np.einsum("sj,ikj->isk", z, roots[part])
        out[part] = scipy.special.softmax(f, axis=2).mean(axis=1)
    return np.asarray(out / out.sum(axis=1, keepdims=True))
