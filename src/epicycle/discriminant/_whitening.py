"""Coordinates in which a covariance is the identity:  W'CW = I,  so that  (x - m)'C^-1 (x - m) = ||W'(x - m)||^2.

Columns are first brought to unit variance; directions whose standard deviation is then at most `tol` are left out. The
score of the normal likelihood is W'CW - I in these coordinates, so its size measures how exact a solution is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.core._exceptions import DataError
from epicycle.linalg._spectra import singular_vectors


class SingularCovarianceError(DataError, np.linalg.LinAlgError):
    """A covariance has no inverse, and the model needs one."""


@dataclass(frozen=True)
class Whitening:
    """W of shape (p, rank), log det of C on its range, and how far W'CW is from the identity."""

    W: np.ndarray
    log_det: float
    deviation: float

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])


def resolved(C: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """C without the columns that are constant but for the rounding of numbers of the size of their mean."""
    noise = (16 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
    constant = np.diagonal(C) <= noise
    if constant.any():
        C = C.copy()
        C[constant], C[:, constant] = 0.0, 0.0
    return C


def whitening(C: np.ndarray, tol: float) -> Whitening:
    """The whitening of C on the directions that count."""
    p = len(C)
    std = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    std = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(C / np.outer(std, std))
    values, vectors = values[::-1], vectors[:, ::-1]
    least = max(tol * tol, p * np.finfo(np.float64).eps * max(float(values[0]), 0.0))
    rank = int(np.sum(values > least))
    W = vectors[:, :rank] / std[:, None] / np.sqrt(values[:rank])
    left = C @ W
    deviation = float(np.max(np.abs(W.T @ left - np.eye(rank)), initial=0.0))
    return Whitening(W, float(np.sum(np.log(values[:rank])) + 2 * np.sum(np.log(std))), deviation)


def principal_axes(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(variances along the axes, falling; axes as columns) of a covariance.

    Where C has a Cholesky factor the variances are its squared singular values: for columns of very different scales
    these are as exact as those of the rows themselves.
    """
    std = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    std = np.where(std > 0, std, 1.0)
    try:
        factor = np.linalg.cholesky(C / np.outer(std, std)) * std[:, None]
        vectors, singular, _ = singular_vectors(factor, full_matrices=True)
        return singular**2, vectors
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(C)
        return values[::-1].copy(), vectors[:, ::-1].copy()


def symmetric_definite_axes(B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(falling ratios, V) with B v = ratio C v and V'CV = I."""
    try:
        ratios, V = scipy.linalg.eigh(B, C)
    except np.linalg.LinAlgError:
        raise SingularCovarianceError(
            "X: the covariance within classes is singular, and solver='eigen' needs its inverse; set shrinkage, or use "
            "solver='svd', which leaves collinear directions out"
        ) from None
    return ratios[::-1], V[:, ::-1]
