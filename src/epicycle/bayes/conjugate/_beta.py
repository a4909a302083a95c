r"""Beta priors of a probability theta:  p(theta) = theta^(alpha-1) (1-theta)^(beta-1) / B(alpha, beta).

After s successes and f failures the parameters are alpha + s and beta + f, and the evidence is
B(alpha + s, beta + f) / B(alpha, beta), times binomial coefficients where only totals were observed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from epicycle.bayes.conjugate._base import ScalarModel
from epicycle.bayes.conjugate._data import as_columns, as_values, as_weights, positive, require_counts, require_rows
from epicycle.core._checks import count
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.stats._distribution import Distribution, bernoulli, beta, beta_binomial


class _Successes(NamedTuple):
    successes: float
    failures: float
    #: Sum of the logarithms of the binomial coefficients.
    log_coefficients: float


@dataclass(frozen=True, eq=False)
class _BetaModel(ScalarModel):
    """A probability with a beta prior."""

    alpha: float = 1.0
    beta: float = 1.0

    _parameter = "probability"

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def distribution(self) -> Distribution:
        return beta(self.alpha, self.beta)

    def mode(self) -> float:
        """The probability of largest density; refused where two ends or all points have it."""
        if self.alpha <= 1 and self.beta <= 1 and (self.alpha < 1) == (self.beta < 1):
            shape = "flat" if self.alpha == 1 else "unbounded at 0 and at 1"
            raise ParameterError(f"mode: the density of {self.distribution()} is {shape}; it has no mode")
        if self.alpha <= 1 or self.beta <= 1:
            return 0.0 if self.alpha < self.beta else 1.0
        return (self.alpha - 1) / (self.alpha + self.beta - 2)

    def _updated(self, statistics: _Successes) -> Self:
        return replace(self, alpha=self.alpha + statistics.successes, beta=self.beta + statistics.failures)

    def _maximum_likelihood(self, statistics: _Successes) -> float:
        trials = statistics.successes + statistics.failures
        require_rows(trials, type(self).__name__)
        return statistics.successes / trials

    def _log_evidence(self, statistics: _Successes) -> float:
        s, f, coefficients = statistics
        return float(betaln(self.alpha + s, self.beta + f) - betaln(self.alpha, self.beta) + coefficients)

    def _log_likelihood(self, parameter: np.ndarray, statistics: _Successes) -> np.ndarray:
        return np.asarray(xlogy(statistics.successes, parameter) + xlog1py(statistics.failures, -parameter))


@dataclass(frozen=True, eq=False)
class BetaBernoulli(_BetaModel):
    r"""Yes or no, with a beta prior of the probability of yes.

    .. math:: x_i \sim \mathrm{Bernoulli}(\theta), \quad \theta \sim \mathrm{Beta}(\alpha, \beta), \quad
              \theta \mid x \sim \mathrm{Beta}(\alpha + s, \beta + n - s), \quad s = \sum_i x_i .

    Observations are 0 and 1, or booleans.

    Parameters
    ----------
    alpha, beta : float, default=1.0
        Successes and failures that the prior is worth; 1 and 1 is the uniform prior.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import BetaBernoulli
    >>> posterior = BetaBernoulli(1, 1).update([1, 0, 1, 1, 1])
    >>> posterior
    BetaBernoulli(alpha=5.0, beta=2.0)
    >>> posterior.mode()
    0.8
    >>> posterior.predictive()
    Bernoulli(0.714286)
    >>> low, high = posterior.interval(0.9, "highest-density")
    >>> print(f"{low:.3f} {high:.3f}")
    0.475 0.970
    """

    def predictive(self) -> Distribution:
        """The distribution of the next observation."""
        return bernoulli(self.alpha / (self.alpha + self.beta))

    def _statistics(self, data: Any, sample_weight: Any) -> _Successes:
        x = as_values(data)
        if not np.isin(x, (0.0, 1.0)).all():
            raise DataError(f"data: holds {x[~np.isin(x, (0.0, 1.0))][0]:g}; expected 0 and 1")
        v = as_weights(sample_weight, len(x))
        return _Successes(float(v @ x), float(v @ (1 - x)), 0.0)


@dataclass(frozen=True, eq=False)
class BetaBinomial(_BetaModel):
    r"""Successes among trials, with a beta prior of the probability of a success.

    .. math:: x_i \sim \mathrm{Binomial}(n_i, \theta), \quad \theta \sim \mathrm{Beta}(\alpha, \beta), \quad
              \theta \mid x \sim \mathrm{Beta}\Bigl(\alpha + \sum_i x_i, \beta + \sum_i (n_i - x_i)\Bigr) .

    Observations are numbers of successes among `trials` each, or rows of two columns: successes and trials.

    Parameters
    ----------
    alpha, beta : float, default=1.0
        Successes and failures that the prior is worth.
    trials : int, optional
        Trials of each observation; without it the data has to give them.

    Examples
    --------
    >>> from epicycle.bayes.conjugate import BetaBinomial
    >>> posterior = BetaBinomial(2, 2).update([[3, 10], [7, 12]])
    >>> posterior
    BetaBinomial(alpha=12.0, beta=14.0, trials=None)
    >>> print(posterior.predictive(trials=5).interval(0.8))
    (1.0, 4.0)
    """

    trials: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trials is not None:
            object.__setattr__(self, "trials", count("trials", self.trials, low=1))

    def predictive(self, trials: int | None = None) -> Distribution:
        """The distribution of the next number of successes.

        Parameters
        ----------
        trials : int, optional
            By default those of the model.
        """
        n = self.trials if trials is None else count("trials", trials, low=1)
        if n is None:
            raise ParameterError("trials: not given, and the model has none of its own")
        return beta_binomial(n, self.alpha, self.beta)

    def _statistics(self, data: Any, sample_weight: Any) -> _Successes:
        wanted = (2,) if self.trials is None else (1, 2)
        table = as_columns(data, wanted, "the two columns successes and trials, or trials=... in the model")
        require_counts(table)
        x = table[:, 0]
        n = table[:, 1] if table.shape[1] == 2 else np.full(len(x), float(self.trials or 0))
        if (x > n).any():
            row = int((x > n).argmax())
            raise DataError(f"data: {x[row]:g} successes among {n[row]:g} trials at row {row}")
        v = as_weights(sample_weight, len(x))
        coefficients = gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)
        return _Successes(float(v @ x), float(v @ (n - x)), float(v @ coefficients))
