"""Common parts of normal approximations of a density: draws in the user's parameters, importance weights, k-hat."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from epicycle.bayes._log_density import Layout, LogDensity
from epicycle.bayes._psis import PSISResult, psis
from epicycle.core._certificate import Certificate
from epicycle.core._checks import count
from epicycle.core._exceptions import ConvergenceError, ConvergenceWarning
from epicycle.core._history import History
from epicycle.core._random import Seed, seed_of
from epicycle.core._settings import get_config
from epicycle.stats._distribution import check_interval
from epicycle.stats._multivariate_normal import MultivariateNormal

Array = np.ndarray

#: Log-ratios that differ by less than this are equal to rounding: nothing has to be weighted.
_EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class GaussianApproximation:
    """A normal distribution of unconstrained coordinates in place of a density."""

    normal: MultivariateNormal
    layout: Layout = field(repr=False)
    density: LogDensity = field(repr=False)
    history_: History
    certificate_: Certificate

    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """Draws of the parameters, n along the first axis; a dict of them where the density takes one."""
        return self.layout.parameters(self.normal.sample(n, random_state))

    def interval(self, level: float = 0.95, n: int = 4000, random_state: Seed = 0) -> Any:
        """Equal-tailed intervals of the parameters, the ends along the last axis.

        Parameters
        ----------
        level : float, default=0.95
        n : int, default=4000
            Draws whose quantiles are taken, where parameters have constraints; without them the intervals are exact.
        random_state : int, Generator, RandomState or None, default=0
        """
        outside = 1 - check_interval(level, "equal-tailed")
        ends = (outside / 2, 1 - outside / 2)
        if not self.layout.constrained:
            u = self.normal.mean + np.outer(ndtri(ends), np.sqrt(self.normal.variance))
            found = self.layout.parameters(u)
        else:
            draws = self.sample(n, random_state)
            named = draws if isinstance(draws, dict) else {"": draws}
            quantiles = {name: np.quantile(values, ends, axis=0) for name, values in named.items()}
            found = quantiles if isinstance(draws, dict) else quantiles[""]
        moved = {k: np.moveaxis(v, 0, -1) for k, v in (found if isinstance(found, dict) else {"": found}).items()}
        return moved if isinstance(found, dict) else moved[""]

    def log_ratios(self, n: int = 1000, random_state: Seed = None) -> tuple[Array, Array]:
        """(u, log p(u) - log q(u)) for n draws u of the unconstrained coordinates."""
        u = self.normal.sample(count("n", n, low=1), seed_of(random_state))
        return u, np.array([self.density.value(row) for row in u]) - self.normal.logpdf(u)

    def psis(self, n: int = 1000, random_state: Seed = None) -> PSISResult:
        """Pareto smoothed importance weights of n draws, and the k-hat of their tail."""
        return smoothed(self.log_ratios(n, random_state)[1])


def smoothed(log_ratios: Array) -> PSISResult:
    """Pareto smoothing; ratios that are all the same have a k-hat of 0."""
    finite = log_ratios[np.isfinite(log_ratios)]
    if len(finite) == len(log_ratios) and np.ptp(finite) <= _EQUAL * max(1.0, float(np.abs(finite).max())):
        return PSISResult(np.full(len(log_ratios), -math.log(len(log_ratios))), 0.0)
    return psis(log_ratios)


def evidence_of(log_ratios: Array, weights: PSISResult) -> float:
    """log of the mean ratio, its tail smoothed."""
    # psis gives weights that add up to 1; the largest ratio below the tail keeps its size, and so gives the scale.
    body = int(np.argsort(log_ratios)[len(log_ratios) // 2])
    return float(log_ratios[body] - weights.log_weights[body] - math.log(len(log_ratios)))


def report(certificate: Certificate, message: str) -> None:
    """Warn or raise, as the settings say, where a certificate does not hold."""
    action = get_config().on_nonconvergence
    if certificate.holds or action == "ignore":
        return
    if action == "raise":
        raise ConvergenceError(message)
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
