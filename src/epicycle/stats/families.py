"""The families that come with the library, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import beta, betainc, expit, gammaln, hyp2f1, logit, xlog1py, xlogy

from epicycle.core._exceptions import ParameterError
from epicycle.stats._family import Family, StandardFamily
from epicycle.stats._power_families import Exponential, Gamma, Gaussian, InverseGaussian, Poisson, Tweedie

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
        return np.asarray(2 * np.maximum(d, 0.0))

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        n = np.ones(np.shape(y)) if trials is None else trials
        own = weight / n  # weights beyond the trials multiply the likelihood
        count = n * y
        return np.asarray(
            own * (gammaln(n + 1) - gammaln(count + 1) - gammaln(n - count + 1)) + weight * self.conjugate(y)
        )

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        count = np.rint(trials * y)
        return stats.binom.cdf(count - 1, trials, mu), stats.binom.cdf(count, trials, mu)

    def anscombe(self, y: Array, mu: Array) -> Array:
        third = betainc(2 / 3, 2 / 3, y) - betainc(2 / 3, 2 / 3, mu)
        return np.asarray(third * beta(2 / 3, 2 / 3) / (mu * (1 - mu)) ** (1 / 6))


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
        return np.asarray(-np.log(-np.expm1(theta)) / self.alpha)

    def log_base(self, y: Array) -> Array:
        size = 1 / self.alpha
        return np.asarray(gammaln(y + size) - gammaln(y + 1) - gammaln(size))

    def mean(self, theta: Array) -> Array:
        return np.asarray(1 / (self.alpha * np.expm1(-np.asarray(theta))))

    def mean_variance(self, theta: Array) -> Array:
        return self.variance(self.mean(theta))

    def natural(self, mu: Array) -> Array:
        return np.asarray(-np.log1p(1 / (self.alpha * mu)))

    def conjugate(self, t: Array) -> Array:
        a = self.alpha
        return np.asarray(xlogy(t, a * t) - xlogy(t + 1 / a, 1 + a * t))

    def variance(self, mu: Array) -> Array:
        return np.asarray(mu * (1 + self.alpha * mu))

    def variance_slope(self, mu: Array) -> Array:
        return np.asarray(1 + 2 * self.alpha * mu)

    def unit_deviance(self, t: Array, mu: Array) -> Array:
        a = self.alpha
        d = xlogy(t, t / mu) - (t + 1 / a) * np.log1p(a * (t - mu) / (1 + a * mu))
        return np.asarray(2 * np.maximum(d, 0.0))

    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        return weight * (self.log_base(y) + self.conjugate(y))

    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        law = stats.nbinom(1 / self.alpha, 1 / (1 + self.alpha * mu))
        return law.cdf(np.ceil(y) - 1), law.cdf(y)

    def anscombe(self, y: Array, mu: Array) -> Array:
        def integral(x: Array) -> Array:
            return np.asarray(1.5 * x ** (2 / 3) * hyp2f1(2 / 3, 1 / 3, 5 / 3, -self.alpha * x))

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
