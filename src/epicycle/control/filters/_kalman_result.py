"""Distributions of the states of a linear Gaussian system: as time goes on, and in hindsight."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
#: Entries of docstrings that all filters share.
SERIES_DOCS = {
    "y": "y : array of shape (T, p)\n    Observations, NaN where there is none.",
    "u": "u : array of shape (T, k), optional\n    Controls.",
}


@dataclass(frozen=True)
class KalmanFilterResult:
    """Distributions of the states given the past.

    Attributes
    ----------
    mean, covariance : arrays (T, n) and (T, n, n)
        Of x(t) given y(0), ..., y(t).
    predicted_mean, predicted_covariance : arrays (T, n) and (T, n, n)
        Of x(t) given y(0), ..., y(t - 1).
    log_likelihood : float
        Log-density of all observations.
    log_densities : array (T,)
        Log-density of each time's observation given those before it.
    """

    mean: Array = field(repr=False)
    covariance: Array = field(repr=False)
    predicted_mean: Array = field(repr=False)
    predicted_covariance: Array = field(repr=False)
    log_likelihood: float
    log_densities: Array = field(repr=False)


@dataclass(frozen=True)
class KalmanSmootherResult:
    """Distributions of the states given the whole series.

    Attributes
    ----------
    mean, covariance : arrays (T, n) and (T, n, n)
        Of x(t) given all observations.
    lag_covariance : array (T - 1, n, n)
        Covariance of x(t + 1) and x(t) given all observations.
    log_likelihood : float
        Log-density of all observations.
    """

    mean: Array = field(repr=False)
    covariance: Array = field(repr=False)
    lag_covariance: Array = field(repr=False)
    log_likelihood: float
