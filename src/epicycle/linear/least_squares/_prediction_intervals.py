"""Intervals for the mean of y at x, and for a new y at x.

With V the covariance of the coefficients for z = (x - mean, 1), the fitted mean at x has variance z'Vz, and a new y of
weight w has s^2 / w more. Where features depend on each other, only an x that depends alike has a mean that the rows
determine; any other gets an interval of infinite length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.linalg._dependencies import Dependencies
from epicycle.linear.least_squares._covariances import Frame

__all__ = ["PredictionInterval", "intervals_of", "variance_root"]

#: Distance of a dependent feature from what the others make of it, relative to its parts, that counts as rounding.
ROUNDING = 1e-6


class PredictionInterval(NamedTuple):
    """Predictions with the lower and upper ends of their intervals, each of the shape of `predict`."""

    prediction: Any
    lower: Any
    upper: Any


def variance_root(covariance: np.ndarray) -> np.ndarray:
    """A with A A' = covariance."""
    values, V = scipy.linalg.eigh(covariance, check_finite=False)
    return V * np.sqrt(np.maximum(values, 0.0))


def interval_batch(
    batch: Batch,
    frame: Frame,
    roots: tuple[np.ndarray, ...],
    variances: np.ndarray,
    dependencies: Dependencies | None,
    quantile: float,
) -> np.ndarray:
    """(prediction, lower, upper) of every row and target, of shape (n, 3, k); `variances` of y about its mean."""
    X = batch.X
    p = len(frame.mean)
    mean = frame.level + frame.centred_times(X, frame.coef)
    half = np.empty_like(mean)
    for t, A in enumerate(roots):
        Z = frame.centred_times(X, A[:p])
        Z = Z + A[p] if frame.intercept else Z
        noise = variances[t] if batch.weight is None else variances[t] / batch.weight
        half[:, t] = quantile * np.sqrt(np.einsum("ij,ij->i", Z, Z) + noise)
    if dependencies is not None:
        half[~_estimable(X, frame.mean, dependencies)] = np.inf
    return np.stack([mean, mean - half, mean + half], axis=1)


def _estimable(X: Any, mean: np.ndarray, dependencies: Dependencies) -> np.ndarray:
    """Whether the dependent features of a row are what the others make of them."""
    kept, rest = dependencies.independent, dependencies.dependent
    C = dependencies.combination
    X = X.toarray() if sp.issparse(X) else X
    others, own = X[:, kept] - mean[kept], X[:, rest] - mean[rest]
    size = np.abs(others) @ np.abs(C) + np.abs(own) + np.abs(mean[rest]) + np.abs(mean[kept]) @ np.abs(C)
    return (np.abs(own - others @ C) <= ROUNDING * size).all(axis=1)


def intervals_of(
    data: Data,
    frame: Frame,
    roots: tuple[np.ndarray, ...],
    variances: np.ndarray,
    dependencies: Dependencies | None,
    quantile: float,
    n_jobs: int | None,
) -> Any:
    """Of shape (n, 3, k)."""
    return engine.map(interval_batch, data, frame, roots, variances, dependencies, quantile, n_jobs=n_jobs)
