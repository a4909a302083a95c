"""Predictive distributions of categories, of rows of counts and of vectors.

Those of one number are in `epicycle.stats`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from scipy.special import gammaln

from epicycle.core._checks import count
from epicycle.core._exceptions import DataError
from epicycle.core._random import Seed, stream
from epicycle.stats._distribution import Distribution, IntervalKind, beta_binomial, student_t


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of K categories. They have no order: there is no cdf and no interval.

    Attributes
    ----------
    probabilities : ndarray of shape (K,)
    """

    probabilities: np.ndarray

    def logpmf(self, x: Any) -> Any:
        """Logarithm of the probability of category x; -inf for what is none."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(x))

    def pmf(self, x: Any) -> Any:
        """Probability of category x; 0 for what is none."""
        values = np.asarray(x)
        known = (values >= 0) & (values < len(self.probabilities)) & (values == np.floor(values))
        return np.where(known, self.probabilities[np.where(known, values, 0).astype(np.intp)], 0.0)[()]

    logpdf, pdf = logpmf, pmf

    def mean(self) -> np.ndarray:
        """The mean of the indicators of the categories: their probabilities."""
        return self.probabilities

    def variance(self) -> np.ndarray:
        """The variances of the indicators."""
        return np.asarray(self.probabilities * (1 - self.probabilities))

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """Array of n categories."""
        return stream(random_state, "sample").choice(len(self.probabilities), count("n", n), p=self.probabilities)


@dataclass(frozen=True, eq=False)
class DirichletMultinomialCounts:
    """Counts of K categories among `trials`, whose probabilities are drawn from Dirichlet(alpha).

    Attributes
    ----------
    trials : int
    alpha : ndarray of shape (K,)
    """

    trials: int
    alpha: np.ndarray

    def logpmf(self, x: Any) -> Any:
        """Logarithm of the probability of counts, along the last axis; -inf for what cannot be."""
        counts = np.asarray(x, dtype=np.float64)
        if counts.shape[-1:] != self.alpha.shape:
            raise DataError(f"x: shape {counts.shape}; expected {len(self.alpha)} counts along the last axis")
        possible = ((counts >= 0) & (counts == np.floor(counts))).all(axis=-1) & (counts.sum(axis=-1) == self.trials)
        inside = np.where(possible[..., None], counts, 0.0)
        total = self.alpha.sum()
        logs = gammaln(self.trials + 1) + gammaln(total) - gammaln(self.trials + total)
        terms = gammaln(inside + self.alpha) - gammaln(self.alpha) - gammaln(inside + 1)
        return np.where(possible, logs + terms.sum(axis=-1), -np.inf)[()]

    def pmf(self, x: Any) -> Any:
        """Probability of counts, along the last axis."""
        return np.exp(self.logpmf(x))

    logpdf, pdf = logpmf, pmf

    def marginal(self, k: int) -> Distribution:
        """The distribution of the count of category k: beta-binomial."""
        a = float(self.alpha[k])
        return beta_binomial(self.trials, a, float(self.alpha.sum()) - a)

    def mean(self) -> np.ndarray:
        """Mean counts."""
        return np.asarray(self.trials * self.alpha / self.alpha.sum())

    def variance(self) -> np.ndarray:
        """The covariance matrix of the counts."""
        total, p = self.alpha.sum(), self.alpha / self.alpha.sum()
        return np.asarray(self.trials * (self.trials + total) / (1 + total) * (np.diag(p) - np.outer(p, p)))

    def cdf(self, x: Any) -> np.ndarray:
        """For each category the probability of a count of at most x_k."""
        ends = np.broadcast_to(np.asarray(x, dtype=np.float64), self.alpha.shape)
        return np.array([self.marginal(k).cdf(end) for k, end in enumerate(ends)])

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> np.ndarray:
        """For each count its interval, of shape (K, 2)."""
        return np.array([self.marginal(k).interval(level, kind) for k in range(len(self.alpha))])

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """Array of n rows of counts."""
        rng = stream(random_state, "sample")
        return rng.multinomial(self.trials, rng.dirichlet(self.alpha, count("n", n)))


@dataclass(frozen=True, eq=False)
class MultivariateT:
    """Vectors with the multivariate t distribution.

    Attributes
    ----------
    df : float
        Degrees of freedom.
    location : ndarray of shape (p,)
    scale : ndarray of shape (p, p)
        The covariance is df / (df - 2) times this.
    """

    df: float
    location: np.ndarray
    scale: np.ndarray

    def logpdf(self, x: Any) -> Any:
        """Logarithm of the density, along the last axis."""
        return self._frozen().logpdf(np.asarray(x, dtype=np.float64))

    def pdf(self, x: Any) -> Any:
        """Density, along the last axis."""
        return np.exp(self.logpdf(x))

    def cdf(self, x: Any, random_state: Seed = 0) -> Any:
        """Probability that no coordinate exceeds that of x, by quasi-Monte Carlo integration."""
        return self._frozen().cdf(np.asarray(x, dtype=np.float64), random_state=stream(random_state, "cdf"))

    def marginal(self, k: int) -> Distribution:
        """The distribution of coordinate k: Student's t."""
        return student_t(self.df, float(self.location[k]), float(np.sqrt(self.scale[k, k])))

    def mean(self) -> np.ndarray:
        """The mean; NaN where there is none."""
        return self.location if self.df > 1 else np.full(self.location.shape, np.nan)

    def variance(self) -> np.ndarray:
        """The covariance matrix; infinite on the diagonal and NaN in the other entries where there is none."""
        if self.df > 2:
            return np.asarray(self.df / (self.df - 2) * self.scale)
        return np.where(np.eye(len(self.location), dtype=bool), np.inf if self.df > 1 else np.nan, np.nan)

    def interval(self, level: float = 0.95, kind: IntervalKind = "equal-tailed") -> np.ndarray:
        """For each coordinate its interval, of shape (p, 2)."""
        return np.array([self.marginal(k).interval(level, kind) for k in range(len(self.location))])

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """Array of n rows."""
        rng, size = stream(random_state, "sample"), count("n", n)
        z = rng.standard_normal((size, len(self.location))) @ np.linalg.cholesky(self.scale).T
        return np.asarray(self.location + z * np.sqrt(self.df / rng.chisquare(self.df, size))[:, None])

    def _frozen(self) -> Any:
        return scipy.stats.multivariate_t(self.location, self.scale, self.df)
