"""The posterior of f at new rows, given targets at others: mean, variance, covariance; and leave-one-out predictions.

Leave one out, from the factor of all observations. With P = S^-1 (less the part of a basis), the mean of group i given
all other groups is y_i - a_i / P_ii and its variance 1 / P_ii, noise of the group included. Where a group of equal rows
has lost only one of them, the others are added to that again: precisions add up.
"""

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
from epicycle.linalg._cholesky import Factor, diagonal_of_inverse, factor_of, inverted


@dataclass(frozen=True)
class Posterior(ABC):
    """All that prediction needs.

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
        """The amount by which observations reduce the prior variances, for K = k(new, B) of shape (b, n)."""

    @abstractmethod
    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        """The same for the covariance, of shape (b, b)."""

    def means(self, A: Any, X: Any) -> np.ndarray:
        """Posterior means, of shape (n, t)."""
        found = kernel_product(self.kernel, A, self.B, self.C)
        if self.mean.kind == "given":
            found += self.mean.offset(X, self.C.shape[1]) / self.scale
        elif len(self.beta):
            found += self.mean.basis(X) @ self.beta
        return found

    def variances(self, A: Any, X: Any) -> np.ndarray:
        """Posterior variances, of shape (n,): the same for all targets."""
        n = A.n_rows
        out = self.kernel.prepared_diagonal(A).copy()
        rows = block_rows(self.B.n_rows)
        H = self.mean.basis(X) if len(self.beta) else None
        for start in range(0, n, rows):
            part = slice(start, min(start + rows, n))
            K = self.kernel.block(A.take(part), self.B)
            out[part] -= self.reduction(K)
            if H is not None:
                # A flat prior of beta adds r'A^-1 r with r = h(x) - H'S^-1 k(x), A = LA LA'.
                R = np.linalg.solve(self.LA, (H[part] - K @ self.SH).T)
                out[part] += np.einsum("ij,ij->j", R, R)
        return np.asarray(np.maximum(out, 0.0))

    def covariance(self, A: Any, X: Any) -> np.ndarray:
        """Posterior covariance, of shape (n, n)."""
        K = self.kernel.block(A, self.B)
        whole = self.kernel.whole_matrix(A)
        out = (self.kernel.block(A, A) if whole is None else whole) - self.reduction_matrix(K)
        if len(self.beta):
            R = np.linalg.solve(self.LA, (self.mean.basis(X) - K @ self.SH).T)
            out += R.T @ R
        out = (out + out.T) / 2
        index = np.arange(len(out))
        out[index, index] = np.maximum(out[index, index], 0.0)
        return np.asarray(out)


@dataclass(frozen=True)
class ExactPosterior(Posterior):
    """From the lower factor L of S."""

    L: np.ndarray

    @cached_property
    def _factor(self) -> Factor:
        return factor_of(self.L)

    def reduction(self, K: np.ndarray) -> np.ndarray:
        V = self._factor.half_solve(K.T)
        return np.asarray(np.einsum("ij,ij->j", V, V))

    def reduction_matrix(self, K: np.ndarray) -> np.ndarray:
        V = self._factor.half_solve(K.T)
        return np.asarray(V.T @ V)


def predict_rows(rows: Any, posterior: Posterior, *, variance: bool) -> np.ndarray:
    """(n, t) means, with a last column of variances where they are asked for."""
    A = posterior.kernel.prepare(rows, like=posterior.B)
    means = posterior.means(A, rows)
    return np.column_stack([means, posterior.variances(A, rows)]) if variance else means


def predict_batch(batch: Batch, posterior: Posterior, variance: bool) -> np.ndarray:
    """The same for a batch."""
    return predict_rows(batch.X, posterior, variance=variance)


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of every observation by all others.

    mean, std, log_density : of shape (n_samples,) or (n_samples, n_targets)
    """

    mean: np.ndarray
    std: np.ndarray
    log_density: np.ndarray

    @property
    def log_predictive(self) -> float:
        """The sum of all log densities: a likelihood of the model by observations that it has not seen."""
        return float(self.log_density.sum())


def as_columns(values: np.ndarray) -> np.ndarray:
    """A column for each target, of what is a vector where y is one."""
    return values.reshape(len(values), -1)


def leave_one_out(model: Any) -> LeaveOneOut:
    """Predictions of every observation of an exact fit by all others, at the same hyper-parameters."""
    diagonal = diagonal_of_inverse(inverted(factor_of(model.L_), 1))
    if len(model.mean_coef_):
        U = np.linalg.solve(model._LA_, model._SH_.T)
        diagonal = diagonal - np.einsum("ij,ij->j", U, U)
    noise = model._known_ + model._noise_ + model.jitter_  # of single observations
    kept = as_columns(model.y_train_)
    means, variances = kept - as_columns(model.alpha_) / diagonal[:, None], 1 / diagonal
    group, Y, weight = model._group_, model._given_, model._given_weight_
    W, d = model._weight_[group], noise[group]
    mean, latent = means[group], np.maximum(variances - noise / model._weight_, 0.0)[group]
    rest = W - weight
    # Weights are sums of floats: a group that has lost all of its rows may keep some rounding.
    rest = np.where(rest > 1e-12 * W, rest, 0.0)
    # the mean of the targets that are left in the group
    total = W[:, None] * kept[group] - weight[:, None] * Y
    others = np.divide(total, rest[:, None], out=np.zeros_like(Y), where=rest[:, None] > 0)
    # Precisions add up: 1 / latent of the other groups and rest / d of what is left of the own one.
    gain = np.divide(latent * rest, d + latent * rest, out=np.zeros_like(latent), where=rest > 0)[:, None]
    mean = mean + gain * (others - mean)
    variance = (latent * (1 - gain[:, 0]) + d / weight)[:, None]
    log_density = -0.5 * (np.log(2 * np.pi * variance) + (Y - mean) ** 2 / variance) - np.log(model._y_scale_)
    std = np.sqrt(variance) * model._y_scale_
    mean = mean * model._y_scale_ + model._y_centre_ + model._given_offset_
    if model._vector_:
        return LeaveOneOut(mean[:, 0], std[:, 0], log_density[:, 0])
    return LeaveOneOut(mean, np.broadcast_to(std, mean.shape).copy(), log_density)
