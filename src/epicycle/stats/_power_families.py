"""Families whose variance is a power of the mean: Poisson, gamma, inverse Gaussian and Tweedie's in between.

The Gaussian family, power 0, is a special case of Tweedie's as well.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, log_wright_bessel, xlogy

from epicycle.core._exceptions import ParameterError
from epicycle.stats._family import LOG_2PI, StandardFamily

Array = NDArray[np.float64]


class Gaussian(StandardFamily):
    """Normal response, V = 1."""

    name = "gaussian"

    def log_partition(self, theta: Array) -> Array:
        return 0.5 * np.square(theta)

    def log_base(self, y: Array) -> Array:
        return -0.5 * (np.square(y) + LOG_2PI)

    def mean(self, theta: Array) -> Array:
        return np.asarray(theta, dtype=np.float64)

    def mean_variance(self, theta: Array) -> Array:
        return np.ones(np.shape(theta))

    def natural(self, mu: Array) -> Array:
        return np.asarray(mu, dtype=np.float64)

    def conjugate(self, t: Array) -> Array:
        return 0.5 * np.square(t)

    def variance(self, mu: Array) -> Array:
        return np.ones(np.shape(mu))

    def variance_slope(self, mu: Array) -> Array:
        return np.zeros(np.shape(mu))

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        return np.square(t - mu)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        with np.errstate(divide="ignore"):  # a row without weight has no part in the sum
            return 0.5 * (np.log(weight / phi) - LOG_2PI)

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        p = stats.norm.cdf(y, mu, np.sqrt(phi))
        return p, p

    def anscombe(self, y: Array, mu: Array) -> Array:
        return y - mu


class PowerVariance(StandardFamily):
    """Families with V = mu^power: their formulas in one place."""

    support, mean_range = (0.0, np.inf), (0.0, np.inf)
    closed = (False, False)
    default_link = "log"

    exponent: float

    def variance(self, mu: Array) -> Array:
        return np.power(mu, self.exponent)

    def variance_slope(self, mu: Array) -> Array:
        return self.exponent * np.power(mu, self.exponent - 1)

    def anscombe(self, y: Array, mu: Array) -> Array:
        p = self.exponent
        if p == 3:
            return (np.log(y) - np.log(mu)) / np.sqrt(mu)
        c = 1 - p / 3
        return (np.power(y, c) - np.power(mu, c)) / c / np.power(mu, p / 6)


class Poisson(PowerVariance):
    """Counts, V = mu."""

    name = "poisson"
    weighs_likelihood = True
    exponent = 1.0
    closed = (True, False)
    canonical_link = "log"
    dispersion = 1.0

    def log_partition(self, theta: Array) -> Array:
        return np.exp(theta)

    def log_base(self, y: Array) -> Array:
        return np.asarray(-gammaln(np.asarray(y) + 1))

    def mean(self, theta: Array) -> Array:
        return np.exp(theta)

    def mean_variance(self, theta: Array) -> Array:
        return np.exp(theta)

    def natural(self, mu: Array) -> Array:
        return np.log(mu)

    def conjugate(self, t: Array) -> Array:
        return np.asarray(xlogy(t, t) - t)

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        return np.asarray(2 * np.maximum(xlogy(t, t / mu) - t + mu, 0.0))

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        return np.asarray(weight * (self.conjugate(y) - gammaln(y + 1)))

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        return stats.poisson.cdf(np.ceil(y) - 1, mu), stats.poisson.cdf(y, mu)


class Gamma(PowerVariance):
    """Positive response with constant coefficient of variation, V = mu^2; the link is the logarithm by default."""

    name = "gamma"
    exponent = 2.0
    canonical_link = "inverse"  # up to its sign
    natural_range = (-np.inf, 0.0)

    def log_partition(self, theta: Array) -> Array:
        return -np.log(-theta)

    def mean(self, theta: Array) -> Array:
        return -1 / theta

    def mean_variance(self, theta: Array) -> Array:
        return 1 / np.square(theta)

    def natural(self, mu: Array) -> Array:
        return -1 / mu

    def conjugate(self, t: Array) -> Array:
        return -1 - np.log(t)

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        return 2 * np.maximum((t - mu) / mu - np.log(t / mu), 0.0)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        shape = weight / phi
        return np.asarray(shape * np.log(shape) - shape - gammaln(shape) - np.log(y))

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        p = stats.gamma.cdf(y, 1 / phi, scale=mu * phi)
        return p, p


class Exponential(Gamma):
    """Waiting times: the gamma family with dispersion 1."""

    name = "exponential"
    dispersion = 1.0


class InverseGaussian(PowerVariance):
    """Positive, skewed response, V = mu^3; the link is the logarithm by default."""

    name = "inverse_gaussian"
    exponent = 3.0
    canonical_link = "inverse_squared"  # up to the factor -1/2
    natural_range = (-np.inf, 0.0)

    def log_partition(self, theta: Array) -> Array:
        return -np.sqrt(-2 * theta)

    def mean(self, theta: Array) -> Array:
        return 1 / np.sqrt(-2 * theta)

    def mean_variance(self, theta: Array) -> Array:
        return np.power(-2 * theta, -1.5)

    def natural(self, mu: Array) -> Array:
        return -0.5 / np.square(mu)

    def conjugate(self, t: Array) -> Array:
        return 0.5 / t

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        return np.square((t - mu) / mu) / t

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        return np.asarray(0.5 * (np.log(weight / phi) - 3 * np.log(y) - LOG_2PI))

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        p = stats.invgauss.cdf(y, mu * phi, scale=1 / phi)
        return p, p


class Tweedie(PowerVariance):
    """V = mu^power: between 1 and 2 a sum of a Poisson number of gamma variables, with a mass at zero.

    Parameters
    ----------
    power : float, default=1.5
        0 is the Gaussian family, 1 Poisson, 2 gamma, 3 inverse Gaussian; no distribution has a power in (0, 1).
    """

    def __init__(self, power: float = 1.5) -> None:
        if not np.isfinite(power) or 0 < power < 1:
            raise ParameterError(f"Tweedie: power={power!r}; expected a finite number outside (0, 1)")
        self.power = float(power)

    name = "tweedie"

    @property
    def exponent(self) -> float:  # type: ignore[override]
        """The power of the mean in the variance."""
        return self.power

    @property
    def closed(self) -> tuple[bool, bool]:  # type: ignore[override]
        """Zero occurs below power 2."""
        return self.power < 2, False

    @property
    def support(self) -> tuple[float, float]:  # type: ignore[override]
        """All numbers for powers up to 0, else the positive ones."""
        return (-np.inf, np.inf) if self.power <= 0 else (0.0, np.inf)

    @property
    def mean_range(self) -> tuple[float, float]:  # type: ignore[override]
        """All numbers for power 0, else the positive ones."""
        return (-np.inf, np.inf) if self.power == 0 else (0.0, np.inf)

    @property
    def default_link(self) -> str:  # type: ignore[override]
        """The logarithm, but for power 0."""
        return "identity" if self.power == 0 else "log"

    @property
    def canonical_link(self) -> str:  # type: ignore[override]
        """A name where the canonical link has one."""
        return {0.0: "identity", 1.0: "log", 2.0: "inverse", 3.0: "inverse_squared"}.get(self.power, "")

    @property
    def natural_range(self) -> tuple[float, float]:  # type: ignore[override]
        """Of one sign but for powers 0 and 1."""
        if self.power in (0.0, 1.0):
            return (-np.inf, np.inf)
        return (-np.inf, 0.0) if self.power > 1 else (0.0, np.inf)

    def natural(self, mu: Array) -> Array:
        p = self.power
        return np.log(mu) if p == 1 else np.power(mu, 1 - p) / (1 - p)

    def mean(self, theta: Array) -> Array:
        p = self.power
        return np.exp(theta) if p == 1 else np.power((1 - p) * theta, 1 / (1 - p))

    def mean_variance(self, theta: Array) -> Array:
        return np.power(self.mean(theta), self.power)

    def log_partition(self, theta: Array) -> Array:
        mu, p = self.mean(theta), self.power
        return np.log(mu) if p == 2 else np.power(mu, 2 - p) / (2 - p)

    def conjugate(self, t: Array) -> Array:
        p = self.power
        if p == 1:
            return np.asarray(xlogy(t, t) - t)
        if p == 2:
            return -1 - np.log(t)
        return np.power(np.maximum(t, 0.0), 2 - p) / ((1 - p) * (2 - p))

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        p = self.power
        if p == 0:
            return np.square(t - mu)
        if p == 1:
            return Poisson().unit_deviance(t, mu)
        if p == 2:
            return Gamma().unit_deviance(t, mu)
        d = self.conjugate(t) - t * np.power(mu, 1 - p) / (1 - p) + np.power(mu, 2 - p) / (2 - p)
        return 2 * np.maximum(d, 0.0)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        p = self.power
        for special, family in ((0.0, Gaussian()), (1.0, Poisson()), (2.0, Gamma()), (3.0, InverseGaussian())):
            if p == special:
                return family.log_likelihood_saturated(y, weight, phi, trials)
        if not 1 < p < 2:
            return np.full(np.shape(y), np.nan)
        own = phi / weight
        out = np.zeros(np.shape(y))
        there = y > 0
        x, s = y[there], np.broadcast_to(own, np.shape(y))[there]
        rate, scale, shape = x ** (2 - p) / (s * (2 - p)), s * (p - 1) * x ** (p - 1), (2 - p) / (p - 1)
        log_argument = np.log(rate) + shape * np.log(x / scale)
        out[there] = -rate - x / scale - np.log(x) + _log_wright(shape, log_argument)
        return out

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        p = self.power
        for special, family in ((0.0, Gaussian()), (1.0, Poisson()), (2.0, Gamma()), (3.0, InverseGaussian())):
            if p == special:
                return family.distribution(y, mu, phi, trials)
        if not 1 < p < 2:
            raise ParameterError(f"quantile residuals of Tweedie(power={p:g}) are not known; expected 0, 3 or [1, 2]")
        rate, scale, shape = mu ** (2 - p) / (phi * (2 - p)), phi * (p - 1) * mu ** (p - 1), (2 - p) / (p - 1)
        above = np.exp(-rate)
        below = np.where(y > 0, above, 0.0)
        total = above.copy()
        far = int(np.ceil(rate.max(initial=0.0) + 12 * np.sqrt(rate.max(initial=0.0)) + 30))
        for k in range(1, far + 1):
            total += stats.poisson.pmf(k, rate) * stats.gamma.cdf(y, k * shape, scale=scale)
        return np.where(y > 0, total, below), np.minimum(total, 1.0)


#: Of more numbers than this the series is interpolated: cubic splines on so many knots are exact to about 1e-9.
MANY, KNOTS = 4096, 1024


def _log_wright(shape: float, log_x: Array) -> Array:
    """log of Wright's function sum_k x^k / (k! Gamma(k shape)), from log x; smooth, so that few values give many."""
    if log_x.size <= MANY:
        return np.asarray(log_wright_bessel(shape, 0.0, np.exp(log_x)))
    knots = np.linspace(log_x.min(), log_x.max(), KNOTS)
    if knots[0] == knots[-1]:
        return np.full(log_x.shape, float(log_wright_bessel(shape, 0.0, np.exp(knots[0]))))
    return np.asarray(CubicSpline(knots, log_wright_bessel(shape, 0.0, np.exp(knots)))(log_x))
