"""The model of a Gaussian process: a kernel and a noise variance, from the arguments of an estimator and the data.

Hyper-parameters are one vector theta: logarithms of those of the kernel, then of the variance of the noise.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.kernels._compositions import Scaled
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._scikit_learn import ScikitLearnKernel
from epicycle.kernels._stationary import Gaussian

# Bounds of the noise variance in units of the variance of y: from nearly exact targets to nothing but noise. A
# logarithm far outside would only make the search longer.
_NOISE_BOUNDS = (1e-6, 1e4)
_SCIKIT_LEARN_ALPHA = 1e-10  # which scikit-learn adds to the diagonal unless told otherwise
_NOISE_START = 0.1  # where the search for it begins, in the same units


@dataclass(frozen=True)
class Model:
    """A kernel and a noise variance, of which theta = (kernel.theta, log noise) may be searched.

    noise_bounds : None where the noise variance stays as it is.
    """

    kernel: Kernel
    noise: float
    noise_bounds: tuple[float, float] | None

    @property
    def theta(self) -> np.ndarray:
        own = [] if self.noise_bounds is None else [np.log(self.noise)]
        return np.concatenate([self.kernel.theta, own])

    @property
    def bounds(self) -> np.ndarray:
        own = np.empty((0, 2)) if self.noise_bounds is None else np.log([self.noise_bounds])
        return np.concatenate([self.kernel.theta_bounds, own])

    @property
    def names(self) -> list[str]:
        return [*hyperparameter_names(self.kernel), *([] if self.noise_bounds is None else ["noise"])]

    def at(self, theta: np.ndarray) -> Model:
        """The same model with other hyper-parameters."""
        if self.noise_bounds is None:
            return Model(self.kernel.with_theta(theta), self.noise, None)
        return Model(self.kernel.with_theta(theta[:-1]), float(np.exp(theta[-1])), self.noise_bounds)


def hyperparameter_names(kernel: Kernel) -> list[str]:
    """A name for every entry of ``kernel.theta``."""
    own = kernel.hyperparameters
    return [h.name if h.size == 1 else f"{h.name}[{i}]" for h in own for i in range(h.size)]


def _typical_distance(X: Any) -> float:
    """The root of the summed variances of the columns: E|x - z|^2 is twice its square."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        total = float(np.asarray(X.multiply(X).mean(axis=0)).sum() - mean @ mean)
    else:
        total = float(np.var(X, axis=0, dtype=np.float64).sum())
    return math.sqrt(total) if total > 0 and math.isfinite(total) else 1.0


def default_kernel(X: Any, variance: float, variance_bounds: tuple[float, float]) -> Kernel:
    """A Gaussian kernel in the units of the data, its length scale bounded by three powers of ten on either side."""
    scale = _typical_distance(X)
    shape = Gaussian(scale, bounds={"length_scale": (1e-3 * scale, 1e3 * scale)})
    return Scaled(shape, variance, bounds={"variance": variance_bounds})


def known_variances(owner: str, alpha: Any, n: int, kernel: Kernel) -> np.ndarray:
    """The argument `alpha` as one number for each row."""
    if alpha is None:
        return np.full(n, _SCIKIT_LEARN_ALPHA if isinstance(kernel, ScikitLearnKernel) else 0.0)
    if isinstance(alpha, numbers.Real):
        return np.full(n, float(alpha))
    values = as_floats(alpha, ParameterError(f"{owner}: alpha={alpha!r:.80}; expected numbers >= 0"))
    if values.shape != (n,):
        raise DataError(
            f"{owner}: alpha must be a scalar or an array with same number of entries as y, {n}; got shape "
            f"{values.shape}"
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise ParameterError(f"{owner}: alpha={alpha!r:.80}; expected finite numbers >= 0")
    return values


def noise_model(owner: str, kernel: Kernel, noise: Any, bounds: Any, unit: float) -> Model:
    """The arguments `noise` and `noise_bounds`, for targets of variance `unit`."""
    start = _NOISE_START * unit if isinstance(noise, str) else float(noise)
    if isinstance(noise, str) and isinstance(kernel, ScikitLearnKernel):
        start = 0.0  # there a WhiteKernel is the noise
    # The logarithm of 0 cannot be searched: without noise it stays away.
    if isinstance(bounds, str) or start == 0.0:
        return Model(kernel, start, None)
    if bounds is None:
        low, high = _NOISE_BOUNDS[0] * unit, _NOISE_BOUNDS[1] * unit
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


def theta_argument(theta: Any, n: int) -> np.ndarray:
    """The argument `theta` of log_marginal_likelihood, which has n entries, as an array."""
    if theta is None:
        raise ParameterError("log_marginal_likelihood: theta=None; Gradient can only be evaluated for theta!=None")
    values = np.asarray(theta, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ParameterError(f"log_marginal_likelihood: theta={theta!r:.80}; expected {n} finite numbers")
    return values
