"""Distributions of one number, with equal-tailed and highest-density intervals.

The highest-density interval of a unimodal density f cuts off the tails p and q with p + q = 1 - level for which
f(quantile(p)) = f(quantile(1 - q)), or one tail only where f is monotone. It is the shortest interval of its level.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.stats
from scipy.optimize import brentq

from epicycle.core._checks import count, open_unit
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import Seed, stream

IntervalKind: TypeAlias = Literal["equal-tailed", "highest-density"]
INTERVAL_KINDS = ("equal-tailed", "highest-density")


def check_interval(level: float, kind: str) -> float:
    """The level of an interval, strictly between 0 and 1, for a kind that exists."""
    if kind not in INTERVAL_KINDS:
        raise ParameterError(f"kind={kind!r}; expected one of {', '.join(map(repr, INTERVAL_KINDS))}")
    return open_unit("level", level)


class Distribution:
    """A distribution of one number.

    Parameters
    ----------
    name : str
        What it is called, with its parameters.
    frozen : object
        A distribution of ``scipy.stats`` with its parameters.
    discrete : bool, default=False
        Whether it lives on whole numbers: `logpdf` and `pdf` are then probabilities, also called `logpmf` and `pmf`.
    unimodal : bool, default=True
        Whether its highest-density regions are intervals.
    """

    def __init__(self, name: str, frozen: Any, *, discrete: bool = False, unimodal: bool = True) -> None:
        self.name, self.discrete, self._frozen, self._unimodal = name, discrete, frozen, unimodal

    def __repr__(self) -> str:
        return self.name

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density at x, or of the probability of x."""
        return self._frozen.logpmf(x) if self.discrete else self._frozen.logpdf(x)

    def pdf(self, x: Any) -> Any:
        """Density at x, or probability of x."""
        return self._frozen.pmf(x) if self.discrete else self._frozen.pdf(x)

    logpmf, pmf = logpdf, pdf

    def cdf(self, x: Any) -> Any:
        """Probability of a value of at most x."""
        return self._frozen.cdf(x)

    def quantile(self, q: Any) -> Any:
        """The smallest x with a cdf of at least q."""
        return self._frozen.ppf(q)

    def mean(self) -> float:
        """Mean; infinite or NaN where there is none."""
        return float(self._frozen.mean())

    def variance(self) -> float:
        """Variance; infinite or NaN where there is none."""
        return float(self._frozen.var())

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """Array of n independent draws."""
        return np.asarray(self._frozen.rvs(size=count("n", n), random_state=stream(random_state, "sample")))

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> tuple[float, float]:
        """The interval that holds the value with probability `level`; at least that for whole numbers.

        Parameters
        ----------
        level : float, default=0.95
        kind : {"equal-tailed", "highest-density"}, default="equal-tailed"
            The same probability on both sides, or the shortest interval.
        """
        outside = 1 - check_interval(level, kind)
        if kind == "equal-tailed":
            upper = self._frozen.ppf(1 - outside / 2) if self.discrete else self._frozen.isf(outside / 2)
            return float(self._frozen.ppf(outside / 2)), float(upper)
        if not self._unimodal:
            raise ParameterError(
                f"kind='highest-density': {self.name} has a mode at each end, and its highest-density region is no "
                "interval; use 'equal-tailed'"
            )
        return self._shortest_range(level) if self.discrete else self._highest_density(outside)

    def _highest_density(self, outside: float) -> tuple[float, float]:
        def excess(p: float) -> float:
            """log f at the lower end less log f at the upper end, for a lower tail p: increasing in p."""
            ends = self._frozen.ppf(p), self._frozen.isf(outside - p)
            low, high = (self._frozen.logpdf(x) if np.isfinite(x) else -np.inf for x in ends)
            return 0.0 if low == high else float(np.clip(low - high, -100.0, 100.0))  # finite, for the search

        first, last = excess(0.0), excess(outside)
        if first == last == 0:  # a flat density: every interval is as short as any other
            p = outside / 2
        elif first >= 0:
            p = 0.0
        elif last <= 0:
            p = outside
        else:
            p = float(brentq(excess, 0.0, outside, xtol=1e-15, rtol=1e-14))
        return float(self._frozen.ppf(p)), float(self._frozen.isf(outside - p))

    def _shortest_range(self, level: float) -> tuple[float, float]:
        low = np.arange(self._frozen.support()[0], self._frozen.ppf(1 - level) + 1)
        before = self._frozen.cdf(low - 1)
        high = self._frozen.ppf(np.minimum(before + level * (1 - 1e-12), 1.0))  # not one further for a rounding error
        # Of ranges of the same length the one of the largest probability.
        best = np.lexsort((before - self._frozen.cdf(high), high - low))[0]
        return float(low[best]), float(high[best])


def beta(a: float, b: float) -> Distribution:
    """The beta distribution."""
    return Distribution(f"Beta({a:g}, {b:g})", scipy.stats.beta(a, b), unimodal=not (a < 1 and b < 1))


def gamma(shape: float, rate: float) -> Distribution:
    """The gamma distribution with mean shape / rate."""
    return Distribution(f"Gamma({shape:g}, rate {rate:g})", scipy.stats.gamma(shape, scale=1 / rate))


def inverse_gamma(shape: float, scale: float) -> Distribution:
    """The distribution of 1 / x for x of a gamma distribution with rate `scale`."""
    return Distribution(f"InverseGamma({shape:g}, scale {scale:g})", scipy.stats.invgamma(shape, scale=scale))


def normal(mean: float, variance: float) -> Distribution:
    """The normal distribution."""
    return Distribution(f"Normal({mean:g}, variance {variance:g})", scipy.stats.norm(mean, np.sqrt(variance)))


def student_t(df: float, location: float, scale: float) -> Distribution:
    """Student's t with location and scale."""
    return Distribution(f"StudentT({df:g}, {location:g}, scale {scale:g})", scipy.stats.t(df, location, scale))


def lomax(shape: float, scale: float) -> Distribution:
    """The Pareto distribution that starts at 0: density shape / scale (1 + x / scale)^-(shape + 1)."""
    return Distribution(f"Lomax({shape:g}, scale {scale:g})", scipy.stats.lomax(shape, scale=scale))


def bernoulli(p: float) -> Distribution:
    """1 with probability p, otherwise 0."""
    return Distribution(f"Bernoulli({p:g})", scipy.stats.bernoulli(p), discrete=True)


def beta_binomial(trials: int, a: float, b: float) -> Distribution:
    """Successes among trials whose common probability is drawn from Beta(a, b)."""
    two_modes = a < 1 and b < 1 and trials > 1
    name = f"BetaBinomial({trials}, {a:g}, {b:g})"
    return Distribution(name, scipy.stats.betabinom(trials, a, b), discrete=True, unimodal=not two_modes)


def negative_binomial(shape: float, p: float) -> Distribution:
    """Poisson counts whose rate is drawn from a gamma distribution: mean shape (1 - p) / p."""
    return Distribution(f"NegativeBinomial({shape:g}, {p:g})", scipy.stats.nbinom(shape, p), discrete=True)
