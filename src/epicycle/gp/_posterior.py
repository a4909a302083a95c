"""The posterior of f at new rows, given targets at others: mean, variance, covariance; batches of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from epicycle.data import Batch
from epicycle.gp._mean_functions import MeanFunction
from epicycle.kernels._gram import block_rows, kernel_product
from epicycle.kernels._kernel import Kernel
from epicycle.linalg._cholesky import Factor
from epicycle.linalg._inverse import factor_of

__all__ = ["ExactPosterior", "Posterior", "predict_batch", "predict_rows"]


@dataclass(frozen=True)
class Posterior(ABC):
    """What prediction needs.

    kernel, B : the kernel and the rows that it compares new ones with
    C : (n, t), coefficients of those rows
    mean : the mean function, with coefficients beta (q, t)
    SH, LA : S^-1 H and the factor of H'S^-1 H, for what is unknown of beta
    scale : (t,), the unit of the targets
    """

    kernel: Kernel
    B: Any
    C: np.ndarray
    mean: MeanFunction
    beta: np.ndarray
    SH: np.ndarray
    LA: np.ndarray
    scale: np.ndarray

    @abstractmethod
    def reduction(self, K: np.ndarray) -> np.ndarray:
        """What the observations take from the prior variances, for K = k(new, B) of shape (b, n)."""

    @abstractmethod
    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        """The same for the covariance, of shape (b, b)."""

    def means(self, A: Any, X: Any) -> np.ndarray:
        """Of shape (n, t)."""
        found = kernel_product(self.kernel, A, self.B, self.C)
        if self.mean.kind == "given":
            found += self.mean.offset(X, self.C.shape[1]) / self.scale
        elif len(self.beta):
            found += self.mean.basis(X) @ self.beta
        return found

    def variances(self, A: Any, X: Any) -> np.ndarray:
        """Of shape (n,): the same for all targets."""
        n = A.n_rows
        out = self.kernel.prepared_diagonal(A).copy()
        rows = block_rows(self.B.n_rows)
        H = self.mean.basis(X) if len(self.beta) else None
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            K = self.kernel.block(A.take(part), self.B)
            out[part] -= self.reduction(K)
            if H is not None:
                R = np.linalg.solve(self.LA, (H[part] - K @ self.SH).T)
                out[part] += np.einsum("ij,ij->j", R, R)
        return np.maximum(out, 0.0)

    def covariance(self, A: Any, X: Any) -> np.ndarray:
        """Of shape (n, n)."""
        K = self.kernel.block(A, self.B)
        out = self.kernel.block(A, A) - self.reduction_matrix(K)
        if len(self.beta):
            R = np.linalg.solve(self.LA, (self.mean.basis(X) - K @ self.SH).T)
            out += R.T @ R
        out = (out + out.T) / 2
        index = np.arange(len(out))
        out[index, index] = np.maximum(out[index, index], 0.0)
        return out


@dataclass(frozen=True)
class ExactPosterior(Posterior):
    """From the lower factor L of S."""

    L: np.ndarray

    @cached_property
    def _factor(self) -> Factor:
        return factor_of(self.L)

    def reduction(self, K: np.ndarray) -> np.ndarray:
        V = self._factor.half_solve(K.T)
        return np.einsum("ij,ij->j", V, V)

    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        V = self._factor.half_solve(K.T)
        return V.T @ V


def predict_rows(rows: Any, posterior: Posterior, *, variance: bool) -> np.ndarray:
    """(n, t) means, with a last column of variances where they are asked for."""
    A = posterior.kernel.prepare(rows, like=posterior.B)
    means = posterior.means(A, rows)
    return np.column_stack([means, posterior.variances(A, rows)]) if variance else means


def predict_batch(batch: Batch, posterior: Posterior, variance: bool) -> np.ndarray:
    """The same for a batch."""
    return predict_rows(batch.X, posterior, variance=variance)
