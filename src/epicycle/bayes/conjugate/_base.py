"""Common parts of conjugate models.

With a likelihood p(x | theta) = h(x) exp(eta(theta)'T(x) - A(theta)) and a prior whose density is
exp(eta(theta)'t - n A(theta)) / Z(t, n), the posterior has the parameters t + sum T(x_i) and n + N, and the evidence is
Z(posterior) / Z(prior) prod h(x_i). Everything a model needs of the data is thus a sum over its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, NamedTuple, Self

import numpy as np

from epicycle.bayes.conjugate._plots import plot_curves, plot_intervals
from epicycle.core._plot_style import Axes, styled
from epicycle.core._random import Seed
from epicycle.stats._distribution import Distribution, IntervalKind


class ConjugateModel(ABC):
    """A distribution of the parameter of a likelihood; immutable, equal if class and parameters are."""

    #: What the parameter is called in figures.
    _parameter: str

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name))
            for f in fields(self)  # type: ignore[arg-type]  # every model is a dataclass
        )

    __hash__ = None  # type: ignore[assignment]

    # ------------------------------------------------------------ what a model gives

    @abstractmethod
    def _statistics(self, data: Any, sample_weight: Any) -> Any:
        """Sums over the rows, checked; all that is needed of them."""

    @abstractmethod
    def _updated(self, statistics: Any) -> Self:
        """The posterior."""

    @abstractmethod
    def _maximum_likelihood(self, statistics: Any) -> Any:
        """The parameter of largest likelihood."""

    @abstractmethod
    def _log_evidence(self, statistics: Any) -> float:
        """log p(data)."""

    @abstractmethod
    def marginals(self) -> dict[str, Distribution]:
        """The distribution of every number that the parameter consists of, by name."""

    @abstractmethod
    def mode(self) -> Any:
        """The parameter of largest density: of a posterior the MAP estimate."""

    @abstractmethod
    def mean(self) -> Any:
        """The mean of the parameter."""

    @abstractmethod
    def variance(self) -> Any:
        """The variance of the parameter, of each of its numbers."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """Draws of the parameter, n along the first axis."""

    @abstractmethod
    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> Any:
        """The credible interval of the parameter, of each of its numbers by itself.

        Parameters
        ----------
        level : float, default=0.95
        kind : {"equal-tailed", "highest-density"}, default="equal-tailed"
            The same probability on both sides, or the shortest interval.
        """

    # ------------------------------------------------------------ the same for all

    def update(self, data: Any, sample_weight: Any = None) -> Self:
        """The posterior after data; this object stays as it is.

        Batches may be given one after another: the order and the sizes do not matter.

        Parameters
        ----------
        data : array-like, data frame or sparse matrix
            Observations, as the class describes them.
        sample_weight : array-like of shape (n,), optional
            An observation of weight v counts as v observations.
        """
        return self._updated(self._statistics(data, sample_weight))

    def mle(self, data: Any, sample_weight: Any = None) -> Any:
        """The parameter under which the data has the largest likelihood, whatever the prior."""
        return self._maximum_likelihood(self._statistics(data, sample_weight))

    def log_evidence(self, data: Any, sample_weight: Any = None) -> float:
        """Logarithm of the marginal likelihood, the integral of likelihood times prior.

        In batches it is the sum of those of each batch under the posterior after the ones before it.
        """
        return float(self._log_evidence(self._statistics(data, sample_weight)))

    @styled
    def plot(self, data: Any = None, sample_weight: Any = None, *, ax: Axes | None = None) -> Axes:
        """The prior, the likelihood of the data and the posterior; without data the distribution itself.

        A likelihood of one number is drawn as a density; of several, prior and posterior are drawn as intervals at 95%
        of each, beside the estimate of maximum likelihood.

        Parameters
        ----------
        data : array-like, data frame or sparse matrix, optional
        sample_weight : array-like of shape (n,), optional
        ax : matplotlib Axes, optional
            The axes to draw on; by default new ones.
        """
        if data is None:
            return self._draw(None, None, ax)
        statistics = self._statistics(data, sample_weight)
        return self._draw(self._updated(statistics), statistics, ax)

    def _draw(self, posterior: Self | None, statistics: Any, ax: Axes | None) -> Axes:
        """Intervals of every number."""
        estimates = None if posterior is None else np.ravel(self._maximum_likelihood(statistics))
        after = None if posterior is None else posterior.marginals()
        return plot_intervals(self.marginals(), after, estimates, self._parameter, ax)


class ScalarModel(ConjugateModel):
    """A model whose parameter is one number."""

    @abstractmethod
    def distribution(self) -> Distribution:
        """The distribution of the parameter."""

    @abstractmethod
    def _log_likelihood(self, parameter: np.ndarray, statistics: Any) -> np.ndarray:
        """log p(data | parameter), without what does not depend on the parameter."""

    def marginals(self) -> dict[str, Distribution]:
        return {self._parameter: self.distribution()}

    def logpdf(self, parameter: Any) -> Any:
        """Logarithm of the density of the parameter."""
        return self.distribution().logpdf(parameter)

    def pdf(self, parameter: Any) -> Any:
        """Density of the parameter."""
        return self.distribution().pdf(parameter)

    def cdf(self, parameter: Any) -> Any:
        """Probability that the parameter is at most this."""
        return self.distribution().cdf(parameter)

    def mean(self) -> float:
        return self.distribution().mean()

    def variance(self) -> float:
        return self.distribution().variance()

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        return self.distribution().sample(n, random_state)

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> tuple[float, float]:
        return self.distribution().interval(level, kind)

    def _draw(self, posterior: Self | None, statistics: Any, ax: Axes | None) -> Axes:
        after = None if posterior is None else posterior.distribution()
        return plot_curves(
            self.distribution(), after, lambda theta: self._log_likelihood(theta, statistics), self._parameter, ax
        )


class MeanVariance(NamedTuple):
    """A mean and a variance: numbers, arrays of draws, or the ends of intervals."""

    mean: Any
    variance: Any


class MeanCovariance(NamedTuple):
    """A vector of means and a covariance matrix, or draws of them."""

    mean: np.ndarray
    covariance: np.ndarray
