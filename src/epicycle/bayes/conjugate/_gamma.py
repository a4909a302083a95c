r"""Gamma priors of a rate lambda:  p(lambda) = rate^shape lambda^(shape-1) exp(-rate lambda) / Gamma(shape).

After k events in an exposure of t the parameters are shape + k and rate + t.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import gammaln, xlogy

from epicycle.bayes.conjugate._base import ScalarModel
from epicycle.bayes.conjugate._data import as_columns, as_values, as_weights, positive, require_counts, require_rows
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.stats._distribution import Distribution, gamma, lomax, negative_binomial


class _Events(NamedTuple):
    events: float
    exposure: float
    #: Sum of the logarithms of what does not depend on the rate.
    log_base: float


@dataclass(frozen=True, eq=False)
class _GammaModel(ScalarModel):
    """A rate with a gamma prior."""

    shape: float = 1.0
    rate: float = 1.0

    _parameter = "rate"

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def distribution(self) -> Distribution:
        return gamma(self.shape, self.rate)

    def mode(self) -> float:
        """The rate of largest density; 0 for a shape of at most 1, where the density falls from there."""
        return max(self.shape - 1, 0.0) / self.rate

    def _updated(self, statistics: _Events) -> Self:
        return replace(self, shape=self.shape + statistics.events, rate=self.rate + statistics.exposure)

    def _maximum_likelihood(self, statistics: _Events) -> float:
        require_rows(statistics.exposure, type(self).__name__)
        return statistics.events / statistics.exposure

    def _log_evidence(self, statistics: _Events) -> float:
        k, t, base = statistics
        # shape log rate - (shape + k) log(rate + t), without the difference of two large numbers
        logs = -self.shape * np.log1p(t / self.rate) - k * np.log(self.rate + t)
        return float(gammaln(self.shape + k) - gammaln(self.shape) + logs + base)

    def _log_likelihood(self, parameter: np.ndarray, statistics: _Events) -> np.ndarray:
        return np.asarray(xlogy(statistics.events, parameter) - statistics.exposure * parameter)


@dataclass(frozen=True, eq=False)
class GammaPoisson(_GammaModel):
    r"""Counts, with a gamma prior of their rate.

    .. math:: x_i \sim \mathrm{Poisson}(\lambda t_i), \quad \lambda \sim \mathrm{Gamma}(a, b), \quad
              \lambda \mid x \sim \mathrm{Gamma}\Bigl(a + \sum_i x_i, b + \sum_i t_i\Bigr) .

    Observations are counts, each in an exposure (time, area, population) of 1, or rows of two columns: count and
    exposure. The next count has a negative binomial distribution.

    Parameters
    ----------
    shape, rate : float, default=1.0
        Events that the prior is worth, and the exposure in which they were seen.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import GammaPoisson
    >>> posterior = GammaPoisson(2.0, 1.0).update([[3, 1.0], [9, 4.0]])
    >>> posterior
    GammaPoisson(shape=14.0, rate=6.0)
    >>> print(f"{posterior.predictive(exposure=3.0).mean():.6g}")
    7
    """

    def predictive(self, exposure: float = 1.0) -> Distribution:
        """The distribution of the next count, in an exposure."""
        t = positive_exposure(exposure)
        return negative_binomial(self.shape, self.rate / (self.rate + t))

    def _statistics(self, data: Any, sample_weight: Any) -> _Events:
        table = as_columns(data, (1, 2), "counts, or the two columns count and exposure")
        x = table[:, 0]
        t = table[:, 1] if table.shape[1] == 2 else np.ones(len(x))
        require_counts(x)
        if (t <= 0).any():
            raise DataError(f"data: an exposure of {t.min():g}; expected numbers above 0")
        v = as_weights(sample_weight, len(x))
        return _Events(float(v @ x), float(v @ t), float(v @ (xlogy(x, t) - gammaln(x + 1))))


@dataclass(frozen=True, eq=False)
class GammaExponential(_GammaModel):
    r"""Waiting times, with a gamma prior of their rate.

    .. math:: x_i \sim \mathrm{Exponential}(\lambda), \quad \lambda \sim \mathrm{Gamma}(a, b), \quad
              \lambda \mid x \sim \mathrm{Gamma}\Bigl(a + n, b + \sum_i x_i\Bigr) .

    Observations are numbers of at least 0. The next one has a Lomax distribution.

    Parameters
    ----------
    shape, rate : float, default=1.0
        Waiting times that the prior is worth, and their sum.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import GammaExponential
    >>> posterior = GammaExponential(2.0, 4.0).update([1.0, 2.5, 0.5])
    >>> posterior
    GammaExponential(shape=5.0, rate=8.0)
    >>> print(f"{posterior.predictive().mean():.6g}")
    2
    """

    def predictive(self) -> Distribution:
        """The distribution of the next waiting time."""
        return lomax(self.shape, self.rate)

    def _statistics(self, data: Any, sample_weight: Any) -> _Events:
        x = as_values(data)
        if (x < 0).any():
            raise DataError(f"data: holds {x.min():g}; expected waiting times of at least 0")
        v = as_weights(sample_weight, len(x))
        return _Events(float(v.sum()), float(v @ x), 0.0)


def positive_exposure(value: Any) -> float:
    """An exposure above zero."""
    try:
        return positive("exposure", value)
    except ParameterError as error:
        raise type(error)(f"exposure={value!r}; expected a finite number above 0") from None
