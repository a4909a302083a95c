"""What the arguments of a Gaussian process mean for the data at hand: its default kernel, noise and known variances."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.gp._model import Model
from epicycle.kernels._compositions import Scaled
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._stationary import Gaussian

__all__ = ["default_kernel", "known_variances", "noise_model", "other_theta", "typical_distance"]

_NOISE = (1e-6, 1e4)  # bounds of the noise variance, in units of the variance of y


def typical_distance(X: Any) -> float:
    """The root of the summed variances of the columns: the length of a typical difference, but for a factor of 1.4."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        total = float(np.asarray(X.multiply(X).mean(axis=0)).sum() - mean @ mean)
    else:
        total = float(np.var(X, axis=0, dtype=np.float64).sum())
    return math.sqrt(total) if total > 0 and math.isfinite(total) else 1.0


def default_kernel(X: Any, variance: float) -> Kernel:
    """A Gaussian kernel in the units of the data, with bounds three (four for the variance) powers of ten around."""
    scale = typical_distance(X)
    return Scaled(
        Gaussian(scale, bounds={"length_scale": (1e-3 * scale, 1e3 * scale)}),
        variance,
        bounds={"variance": (1e-4 * variance, 1e4 * variance)},
    )


def known_variances(owner: str, alpha: Any, n: int) -> np.ndarray:
    """The argument `alpha` as one number for each row."""
    if isinstance(alpha, numbers.Real):
        return np.full(n, float(alpha))
    try:
        values = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{owner}: alpha={alpha!r:.80}; expected numbers >= 0") from None
    if values.shape != (n,):
        raise DataError(f"{owner}: alpha has shape {values.shape}; expected a number, or one for each of {n} rows")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ParameterError(f"{owner}: alpha={alpha!r:.80}; expected finite numbers >= 0")
    return values


def noise_model(owner: str, kernel: Kernel, noise: Any, bounds: Any, unit: float) -> Model:
    """The arguments `noise` and `noise_bounds`, for targets of variance `unit`."""
    start = 0.1 * unit if isinstance(noise, str) else float(noise)
    if isinstance(bounds, str) or start == 0.0:
        return Model(kernel, start, None)
    if bounds is None:
        low, high = _NOISE[0] * unit, _NOISE[1] * unit
        return Model(kernel, start, (min(low, start), max(high, start)))
    try:
        pair = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        pair = np.empty(0)
    if pair.shape != (2,) or not np.isfinite(pair).all() or not 0 < pair[0] <= pair[1]:
        raise ParameterError(
            f"{owner}: noise_bounds={bounds!r:.80}; expected two finite numbers 0 < low <= high, 'fixed' or None"
        )
    low, high = float(pair[0]), float(pair[1])
    return Model(kernel, min(max(start, low), high), (low, high))


def other_theta(model: Any, theta: Any) -> np.ndarray:
    """The hyper-parameters at which a fitted model is asked for its likelihood; None for its own."""
    if model.kernel_.takes == "precomputed" or model.method_ == "inducing":
        raise ParameterError("log_marginal_likelihood: the data of the fit was not kept; expected theta=None")
    own: np.ndarray = model.theta_
    values = own if theta is None else np.asarray(theta, dtype=np.float64)
    if values.shape != own.shape or not np.isfinite(values).all():
        raise ParameterError(f"log_marginal_likelihood: theta={theta!r:.80}; expected {len(own)} finite numbers")
    return values
