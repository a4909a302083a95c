"""Scores of rows: log P(c) + log N(x; m_c, C_c) without terms that all classes share.

A missing entry is integrated out: the marginal of a normal is the normal of the columns that are there. Rows with the
same missing columns are scored together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.data import Batch
from epicycle.discriminant._whitening import SingularCovarianceError, whitening
from epicycle.stats._class_scatter import dense_rows
from epicycle.stats._class_scores import log_probabilities
from epicycle.stats._missing import patterns


@dataclass(frozen=True)
class Normals:
    """Normal distributions of K classes, with covariances of shape (K, p, p), or (1, p, p) where they share one.

    `tol` is the standard deviation below which a direction is left out, for columns of unit variance.
    """

    mean: np.ndarray
    covariance: np.ndarray
    log_prior: np.ndarray
    tol: float

    def marginal_scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of rows with missing entries, NaN: shape (n, K)."""
        out = np.empty((len(X), len(self.mean)))
        for there, rows in patterns(np.isnan(X)):
            out[rows] = self._scores(X[np.ix_(rows, there)], there) if len(there) else self.log_prior
        return out

    def _scores(self, X: np.ndarray, there: np.ndarray) -> np.ndarray:
        block = np.ix_(there, there)
        if len(self.covariance) == 1:
            # the quadratic term in x is the same for all classes
            W = whitening(self.covariance[0][block], self.tol).W
            Z, M = X @ W, self.mean[:, there] @ W
            return np.asarray(Z @ M.T - 0.5 * np.sum(M * M, axis=1) + self.log_prior)
        columns = []
        for mean, C, log_prior in zip(self.mean, self.covariance, self.log_prior, strict=True):
            found = whitening(C[block], self.tol)
            if found.rank < len(there):
                raise SingularCovarianceError("X: a covariance of the columns that are there is singular")
            Z = (X - mean[there]) @ found.W
            columns.append(log_prior - 0.5 * (np.sum(Z * Z, axis=1) + found.log_det))
        return np.stack(columns, axis=1)

    def expected_rows(self, X: np.ndarray) -> np.ndarray:
        """Rows with missing entries replaced by their expectation, given the others; for one covariance."""
        out = X.copy()
        for there, rows in patterns(np.isnan(X)):
            gone = np.setdiff1d(np.arange(X.shape[1]), there)
            part = X[np.ix_(rows, there)]
            scores = self._scores(part, there) if len(there) else np.tile(self.log_prior, (len(rows), 1))
            centre = np.exp(log_probabilities(scores)) @ self.mean if scores.shape[1] > 1 else self.mean
            filled = np.broadcast_to(centre[:, gone], (len(rows), len(gone)))
            if len(there):
                C = self.covariance[0]
                W = whitening(C[np.ix_(there, there)], self.tol).W
                filled = filled + ((part - centre[:, there]) @ W) @ (W.T @ C[np.ix_(there, gone)])
            out[np.ix_(rows, gone)] = filled
        return out


def linear_scores(X: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return np.asarray(X @ coef.T + intercept)


def quadratic_scores(X: np.ndarray, mean: np.ndarray, W: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """-1/2 ||W_k'(x - m_k)||^2 + offset_k, for W of shape (K, p, p)."""
    out = np.empty((len(X), len(mean)))
    for k, (m, axes) in enumerate(zip(mean, W, strict=True)):
        Z = (X - m) @ axes
        out[:, k] = -0.5 * np.einsum("ij,ij->i", Z, Z) + offset[k]
    return out


Scores = Callable[..., np.ndarray]


def score_batch(
    batch: Batch, scores: Scores, parameters: tuple[Any, ...], normals: Normals, last: Callable[[np.ndarray], Any]
) -> Any:
    """`last` of the scores of a batch; one column for two classes, K otherwise."""
    X = dense_rows(batch.X)
    with np.errstate(over="ignore", invalid="ignore"):
        out = scores(X, *parameters)
    if len(normals.mean) == 2 and out.shape[1] == 2:
        out = out[:, 1:] - out[:, :1]
    if not np.isfinite(out).all():
        incomplete = incomplete_rows(X)
        if len(incomplete):
            marginal = normals.marginal_scores(X[incomplete])
            out[incomplete] = marginal[:, 1:] - marginal[:, :1] if len(normals.mean) == 2 else marginal
        out = np.nan_to_num(out, nan=0.0, posinf=1e300, neginf=-1e300)  # of squares that overflow
    return last(out)


def incomplete_rows(X: np.ndarray) -> np.ndarray:
    """Rows with missing entries; infinity is refused."""
    if np.isinf(X).any():
        raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
    return np.flatnonzero(np.isnan(X).any(axis=1))
