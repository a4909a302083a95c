r"""Normal observations of unknown mean m and variance v:  v ~ InverseGamma(alpha, beta),  m | v ~ N(mu, v / kappa).

After n observations with mean x and sum of squares S around it: kappa' = kappa + n, alpha' = alpha + n/2,
mu' = mu + n/kappa' (x - mu), beta' = beta + S/2 + kappa n / (2 kappa') (x - mu)^2. The normaliser is
Z = Gamma(alpha) beta^-alpha (2 pi / kappa)^(1/2), and the evidence Z' / Z (2 pi)^(-n/2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import gammaln

from epicycle.bayes.conjugate._base import ConjugateModel, MeanVariance
from epicycle.bayes.conjugate._data import finite, positive, require_rows
from epicycle.bayes.conjugate._normal_known_variance import Scatter, scatter_of
from epicycle.bayes.conjugate._plots import plot_contours
from epicycle.core._checks import count
from epicycle.core._plot_style import Axes
from epicycle.core._random import Seed, stream
from epicycle.stats._distribution import Distribution, IntervalKind, inverse_gamma, student_t


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(ConjugateModel):
    r"""Numbers of unknown mean and variance, with a normal-inverse-gamma prior of both.

    .. math:: x_i \sim N(m, v), \quad m \mid v \sim N(\mu, v / \kappa), \quad v \sim \mathrm{InvGamma}(\alpha, \beta) .

    By itself the mean has a t distribution of :math:`2 \alpha` degrees of freedom, and so has the next observation.

    Parameters
    ----------
    mu : float, default=0.0
        Prior guess of the mean.
    kappa : float, default=1.0
        Observations that this guess is worth.
    alpha, beta : float, default=1.0
        Shape and scale of the prior of the variance; `alpha` is half the observations that it is worth.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import NormalInverseGamma
    >>> posterior = NormalInverseGamma(mu=0.0, kappa=0.1, alpha=2.0, beta=2.0).update([4.8, 5.1, 5.5, 4.6])
    >>> print(f"{posterior.mean().mean:.3f} {posterior.mean().variance:.3f}")
    4.878 1.150
    >>> low, high = posterior.interval(0.9).mean
    >>> print(f"{low:.2f} {high:.2f}")
    4.03 5.73
    """

    mu: float = 0.0
    kappa: float = 1.0
    alpha: float = 1.0
    beta: float = 1.0

    _parameter = "mean and variance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", finite("mu", self.mu))
        for name in ("kappa", "alpha", "beta"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def marginals(self) -> dict[str, Distribution]:
        scale = float(np.sqrt(self.beta / (self.alpha * self.kappa)))
        return {
            "mean": student_t(2 * self.alpha, self.mu, scale),
            "variance": inverse_gamma(self.alpha, self.beta),
        }

    def logpdf(self, mean: Any, variance: Any) -> Any:
        """Logarithm of the joint density; -inf where the variance is not positive."""
        m, v = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        inside = np.where(v > 0, v, 1.0)
        logs = self.alpha * np.log(self.beta) - gammaln(self.alpha) + 0.5 * np.log(self.kappa / (2 * np.pi))
        squares = self.beta + self.kappa / 2 * (m - self.mu) ** 2
        return np.where(v > 0, logs - (self.alpha + 1.5) * np.log(inside) - squares / inside, -np.inf)[()]

    def pdf(self, mean: Any, variance: Any) -> Any:
        """The joint density."""
        return np.exp(self.logpdf(mean, variance))

    def mode(self) -> MeanVariance:
        """Mean and variance of largest joint density."""
        return MeanVariance(self.mu, self.beta / (self.alpha + 1.5))

    def mean(self) -> MeanVariance:
        """The means of both; infinite or NaN where there are none, for `alpha` up to 1/2 and 1."""
        return MeanVariance(*(d.mean() for d in self.marginals().values()))

    def variance(self) -> MeanVariance:
        """The variances of both; infinite or NaN where there are none."""
        return MeanVariance(*(d.variance() for d in self.marginals().values()))

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> MeanVariance:
        return MeanVariance(*(d.interval(level, kind) for d in self.marginals().values()))

    def sample(self, n: int = 1, random_state: Seed = None) -> MeanVariance:
        rng, size = stream(random_state, "sample"), count("n", n)
        variance = self.beta / rng.standard_gamma(self.alpha, size)
        return MeanVariance(self.mu + np.sqrt(variance / self.kappa) * rng.standard_normal(size), variance)

    def predictive(self) -> Distribution:
        """The distribution of the next observation: Student's t."""
        scale = np.sqrt(self.beta * (self.kappa + 1) / (self.alpha * self.kappa))
        return student_t(2 * self.alpha, self.mu, float(scale))

    def _statistics(self, data: Any, sample_weight: Any) -> Scatter:
        return scatter_of(data, sample_weight)

    def _updated(self, statistics: Scatter) -> Self:
        n, mean, squares = statistics
        kappa, away = self.kappa + n, mean - self.mu
        beta = self.beta + squares / 2 + self.kappa * n / (2 * kappa) * away**2
        return replace(self, mu=self.mu + n / kappa * away, kappa=kappa, alpha=self.alpha + n / 2, beta=beta)

    def _maximum_likelihood(self, statistics: Scatter) -> MeanVariance:
        """Mean, and mean square around it; the likelihood is unbounded where that is 0."""
        require_rows(statistics.n, type(self).__name__)
        return MeanVariance(statistics.mean, statistics.squares / statistics.n)

    def _log_evidence(self, statistics: Scatter) -> float:
        n, after = statistics.n, self._updated(statistics)
        gammas = gammaln(after.alpha) - gammaln(self.alpha)
        # alpha log beta - alpha' log beta', without the difference of two large numbers
        powers = -self.alpha * np.log(after.beta / self.beta) - n / 2 * np.log(after.beta)
        return float(gammas + powers + np.log(self.kappa / after.kappa) / 2 - n / 2 * np.log(2 * np.pi))

    def _draw(self, posterior: Self | None, statistics: Scatter | None, ax: Axes | None) -> Axes:
        def log_likelihood(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
            if statistics is None:
                return np.zeros(mean.shape)
            n, x, squares = statistics
            return np.asarray(-n / 2 * np.log(variance) - (squares + n * (mean - x) ** 2) / (2 * variance))

        after = None if posterior is None else (posterior.marginals(), posterior.logpdf)
        return plot_contours((self.marginals(), self.logpdf), after, log_likelihood, ax)
