"""The families that come with the library, each with its natural parameter, variance, deviance and likelihood.

The dispersion phi scales the variance, Var(y) = phi V(mu) / w for a row of weight w; it is known (1) for the binomial,
Poisson, exponential and negative binomial families.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import beta, betainc, expit, gammaln, hyp2f1, log_wright_bessel, logit, xlog1py, xlogy

from epicycle.exceptions import DataError, ParameterError
from epicycle.linear.glm.exponential_family import Family

__all__ = [
    "FAMILIES",
    "Binomial",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "InverseGaussian",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "StandardFamily",
    "Tweedie",
    "as_family",
]

Array = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


class StandardFamily(Family):
    """A family that is known by its mean: variance V(mu) with derivative, deviance and likelihood in closed form."""

    #: The open interval of means.
    mean_range: tuple[float, float] = (-np.inf, np.inf)
    #: Whether the response may be at the lower, upper end of `support`.
    closed: tuple[bool, bool] = (True, True)
    #: Name of the link that is used unless another is asked for, and of the canonical one where that has a name.
    default_link: str = "identity"
    canonical_link: str = "identity"
    dispersion: float | None = None
    #: Whether the saturated likelihood of single trials is the weight times a function of y.
    weighs_likelihood: bool = False

    @abstractmethod
    def variance_slope(self, mu: Array) -> Array:
        """V'(mu)."""

    @abstractmethod
    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        """log p(y; mu = y, phi / weight) for each row; half the deviance over phi less is the likelihood at any mu."""

    @abstractmethod
    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        """P(Y < y) and P(Y <= y), for quantile residuals."""

    @abstractmethod
    def anscombe(self, y: Array, mu: Array) -> Array:
        """(A(y) - A(mu)) / V(mu)^(1/6) with A the integral of V^(-1/3)."""

    def check_target(self, y: Array, first_row: int = 0) -> None:
        low, high = self.support
        bad = (y < low) | (y > high)
        bad |= ((y == low) & (not self.closed[0])) | ((y == high) & (not self.closed[1]))
        if bad.any():
            row = int(bad.argmax())
            left, right = "[" if self.closed[0] and np.isfinite(low) else "(", "]" if np.isfinite(high) else ")"
            raise DataError(
                f"y: family={self.name!r} expects responses in {left}{low:g}, {high:g}{right}; row {first_row + row} "
                f"has {y[row]:g}"
            )


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
        return 0.5 * (np.log(weight / phi) - LOG_2PI)

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        p = stats.norm.cdf(y, mu, np.sqrt(phi))
        return p, p

    def anscombe(self, y: Array, mu: Array) -> Array:
        return y - mu


class Binomial(StandardFamily):
    """Proportions of successes, V = mu (1 - mu); 0 and 1 for single trials."""

    name = "binomial"
    weighs_likelihood = True
    support, mean_range = (0.0, 1.0), (0.0, 1.0)
    default_link = canonical_link = "logit"
    dispersion = 1.0

    def log_partition(self, theta: Array) -> Array:
        return np.logaddexp(0.0, theta)

    def mean(self, theta: Array) -> Array:
        return np.asarray(expit(theta))

    def mean_variance(self, theta: Array) -> Array:
        return np.asarray(expit(theta) * expit(-np.asarray(theta)))

    def natural(self, mu: Array) -> Array:
        return np.asarray(logit(mu))

    def conjugate(self, t: Array) -> Array:
        return np.asarray(xlogy(t, t) + xlog1py(1 - t, -t))

    def variance(self, mu: Array) -> Array:
        return mu * (1 - mu)

    def variance_slope(self, mu: Array) -> Array:
        return 1 - 2 * mu

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            d = xlogy(t, t / mu) + xlogy(1 - t, (1 - t) / (1 - mu))
        return 2 * np.maximum(d, 0.0)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        n = np.ones(np.shape(y)) if trials is None else trials
        own = weight / n  # weights beyond the trials multiply the likelihood
        count = n * y
        return own * (gammaln(n + 1) - gammaln(count + 1) - gammaln(n - count + 1)) + weight * self.conjugate(y)

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        count = np.rint(trials * y)
        return stats.binom.cdf(count - 1, trials, mu), stats.binom.cdf(count, trials, mu)

    def anscombe(self, y: Array, mu: Array) -> Array:
        third = betainc(2 / 3, 2 / 3, y) - betainc(2 / 3, 2 / 3, mu)
        return np.asarray(third * beta(2 / 3, 2 / 3) / (mu * (1 - mu)) ** (1 / 6))


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
        return -gammaln(np.asarray(y) + 1)

    def mean(self, theta: Array) -> Array:
        return np.exp(theta)

    def mean_variance(self, theta: Array) -> Array:
        return np.exp(theta)

    def natural(self, mu: Array) -> Array:
        return np.log(mu)

    def conjugate(self, t: Array) -> Array:
        return np.asarray(xlogy(t, t) - t)

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        return 2 * np.maximum(xlogy(t, t / mu) - t + mu, 0.0)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        return weight * (self.conjugate(y) - gammaln(y + 1))

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
        return shape * np.log(shape) - shape - gammaln(shape) - np.log(y)

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
        return 0.5 * (np.log(weight / phi) - 3 * np.log(y) - LOG_2PI)

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


class NegativeBinomial(StandardFamily):
    """Counts that vary more than Poisson's, V = mu + alpha mu^2.

    Parameters
    ----------
    alpha : float or "estimate", default=1.0
        The dispersion of the counts; "estimate" maximises the likelihood over it as well.
    """

    name = "negative_binomial"
    weighs_likelihood = True
    support, mean_range = (0.0, np.inf), (0.0, np.inf)
    closed = (True, False)
    default_link = "log"
    canonical_link = ""
    natural_range = (-np.inf, 0.0)
    dispersion = 1.0

    def __init__(self, alpha: float | str = 1.0) -> None:
        if alpha != "estimate" and not (isinstance(alpha, int | float | np.number) and 0 < alpha < np.inf):
            raise ParameterError(f"NegativeBinomial: alpha={alpha!r}; expected a finite number > 0 or 'estimate'")
        self.alpha: Any = alpha if isinstance(alpha, str) else float(alpha)

    def log_partition(self, theta: Array) -> Array:
        return -np.log(-np.expm1(theta)) / self.alpha

    def log_base(self, y: Array) -> Array:
        size = 1 / self.alpha
        return gammaln(y + size) - gammaln(y + 1) - gammaln(size)

    def mean(self, theta: Array) -> Array:
        return 1 / (self.alpha * np.expm1(-np.asarray(theta)))

    def mean_variance(self, theta: Array) -> Array:
        return self.variance(self.mean(theta))

    def natural(self, mu: Array) -> Array:
        return -np.log1p(1 / (self.alpha * mu))

    def conjugate(self, t: Array) -> Array:
        a = self.alpha
        return np.asarray(xlogy(t, a * t) - xlogy(t + 1 / a, 1 + a * t))

    def variance(self, mu: Array) -> Array:
        return mu * (1 + self.alpha * mu)

    def variance_slope(self, mu: Array) -> Array:
        return 1 + 2 * self.alpha * mu

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        a = self.alpha
        d = xlogy(t, t / mu) - (t + 1 / a) * np.log1p(a * (t - mu) / (1 + a * mu))
        return 2 * np.maximum(d, 0.0)

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        return weight * (self.log_base(y) + self.conjugate(y))

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        law = stats.nbinom(1 / self.alpha, 1 / (1 + self.alpha * mu))
        return law.cdf(np.ceil(y) - 1), law.cdf(y)

    def anscombe(self, y: Array, mu: Array) -> Array:
        def integral(x: Array) -> Array:
            return 1.5 * x ** (2 / 3) * hyp2f1(2 / 3, 1 / 3, 5 / 3, -self.alpha * x)

        return (integral(y) - integral(mu)) / self.variance(mu) ** (1 / 6)


class Multinomial(Family):
    """One of several classes, with the softmax of one linear predictor for each: labels, not numbers."""

    name = "multinomial"

    def log_partition(self, theta: Array) -> Array:
        """log sum_k exp(theta_k), over the last axis."""
        top = np.max(theta, axis=-1)
        return np.asarray(top + np.log(np.exp(theta - top[..., None]).sum(axis=-1)))

    def mean(self, theta: Array) -> Array:
        p = np.exp(theta - np.max(theta, axis=-1, keepdims=True))
        return np.asarray(p / p.sum(axis=-1, keepdims=True))


FAMILIES: dict[str, type[Family]] = {
    "gaussian": Gaussian,
    "binomial": Binomial,
    "poisson": Poisson,
    "gamma": Gamma,
    "exponential": Exponential,
    "inverse_gaussian": InverseGaussian,
    "tweedie": Tweedie,
    "negative_binomial": NegativeBinomial,
    "multinomial": Multinomial,
}


def as_family(family: str | Family) -> Family:
    """A family from its name, with its default parameters, or as it was given."""
    return FAMILIES[family]() if isinstance(family, str) else family
