r"""Normal observations of known variance sigma2, with a normal prior N(mu, tau2) of their mean.

Precisions add up: 1/tau2' = 1/tau2 + n/sigma2, and mu' is the average of mu and the data weighted by them. The evidence
factors into that of the scatter around the mean of the data, and N(mu, tau2 + sigma2/n) at that mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from epicycle.bayes.conjugate._base import ScalarModel
from epicycle.bayes.conjugate._data import as_values, as_weights, finite, positive, require_rows
from epicycle.stats._distribution import Distribution, normal


class Scatter(NamedTuple):
    """Total weight, mean, and sum of squares around it."""

    n: float
    mean: float
    squares: float


def scatter_of(data: Any, sample_weight: Any) -> Scatter:
    """The sums that normal models of one number need."""
    x = as_values(data)
    v = as_weights(sample_weight, len(x))
    n = float(v.sum())
    if n == 0:
        return Scatter(0.0, 0.0, 0.0)
    mean = float(v @ x) / n
    return Scatter(n, mean, float(v @ (x - mean) ** 2))


@dataclass(frozen=True, eq=False)
class NormalKnownVariance(ScalarModel):
    r"""Numbers around an unknown mean, with a normal prior of it; their variance is known.

    .. math:: x_i \sim N(\theta, \sigma^2), \quad \theta \sim N(\mu, \tau^2), \quad
              \theta \mid x \sim N\Bigl(\tau_n^2 \bigl(\mu / \tau^2 + n \bar x / \sigma^2\bigr), \tau_n^2\Bigr), \quad
              \tau_n^{-2} = \tau^{-2} + n \sigma^{-2} .

    Parameters
    ----------
    mu : float, default=0.0
        Mean of the prior.
    tau2 : float, default=1.0
        Variance of the prior.
    sigma2 : float, default=1.0
        Variance of an observation.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import NormalKnownVariance
    >>> posterior = NormalKnownVariance(mu=0.0, tau2=4.0, sigma2=1.0).update([2.1, 1.9, 2.3])
    >>> print(f"{posterior.mean():.4f} {posterior.variance():.4f} {posterior.predictive().variance():.4f}")
    1.9385 0.3077 1.3077
    """

    mu: float = 0.0
    tau2: float = 1.0
    sigma2: float = 1.0

    _parameter = "mean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", finite("mu", self.mu))
        for name in ("tau2", "sigma2"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def distribution(self) -> Distribution:
        return normal(self.mu, self.tau2)

    def mode(self) -> float:
        """The mean of largest density."""
        return self.mu

    def predictive(self) -> Distribution:
        """The distribution of the next observation."""
        return normal(self.mu, self.tau2 + self.sigma2)

    def _statistics(self, data: Any, sample_weight: Any) -> Scatter:
        return scatter_of(data, sample_weight)

    def _updated(self, statistics: Scatter) -> Self:
        n, mean, _ = statistics
        share = n * self.tau2 / (self.sigma2 + n * self.tau2)  # of the data in the average
        tau2 = self.tau2 * self.sigma2 / (self.sigma2 + n * self.tau2)
        return replace(self, mu=self.mu + share * (mean - self.mu), tau2=tau2)

    def _maximum_likelihood(self, statistics: Scatter) -> float:
        require_rows(statistics.n, type(self).__name__)
        return statistics.mean

    def _log_evidence(self, statistics: Scatter) -> float:
        n, mean, squares = statistics
        of_scatter = -n / 2 * np.log(2 * np.pi * self.sigma2) - squares / (2 * self.sigma2)
        of_mean = -np.log1p(n * self.tau2 / self.sigma2) / 2
        of_mean -= n * (mean - self.mu) ** 2 / (2 * (self.sigma2 + n * self.tau2))
        return float(of_scatter + of_mean)

    def _log_likelihood(self, parameter: np.ndarray, statistics: Scatter) -> np.ndarray:
        return np.asarray(-statistics.n * (parameter - statistics.mean) ** 2 / (2 * self.sigma2))
