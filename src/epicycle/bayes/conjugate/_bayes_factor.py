"""Bayes factors: how much better one model predicted the data than another, parameters integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from epicycle.bayes.conjugate._base import ConjugateModel
from epicycle.core._checks import open_unit
from epicycle.core._exceptions import ParameterTypeError
from epicycle.core.estimator._catalogue import in_catalogue

#: Kass and Raftery, Bayes factors, JASA 90 (1995): 2 log B, and what it is worth.
_GRADES = ((2.0, "not worth more than a mention"), (6.0, "positive"), (10.0, "strong"), (np.inf, "very strong"))


@dataclass(frozen=True)
class BayesFactor:
    """The ratio of the evidence of two models.

    Attributes
    ----------
    log_value : float
        log p(data | a) - log p(data | b).
    log_evidence_a, log_evidence_b : float
    """

    log_evidence_a: float
    log_evidence_b: float

    @property
    def log_value(self) -> float:
        """Logarithm of the factor."""
        return self.log_evidence_a - self.log_evidence_b

    @property
    def value(self) -> float:
        """The factor itself; infinite where it overflows."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_value))

    @property
    def strength(self) -> str:
        """Name of Kass and Raftery for a factor of this size, whichever model it favours."""
        return next(words for limit, words in _GRADES if 2 * abs(self.log_value) <= limit)

    def probability(self, prior: float = 0.5) -> float:
        """Posterior probability of model a, of the two, if `prior` was the one before."""
        return float(expit(self.log_value + logit(open_unit("prior", prior))))

    def __str__(self) -> str:
        winner = "a" if self.log_value >= 0 else "b"
        return f"log Bayes factor {self.log_value:.4g}: evidence for {winner}, {self.strength}"


@in_catalogue("bayes", "B3", certificate="exact")
def bayes_factor(a: ConjugateModel, b: ConjugateModel, data: Any, sample_weight: Any = None) -> BayesFactor:
    """Bayes factor of model a against model b, both with their parameters integrated out.

    Parameters
    ----------
    a, b : conjugate models
        Priors with their likelihoods. Both must be models of the same observations: counts against counts, numbers
        against numbers.
    data : array-like, data frame or sparse matrix
    sample_weight : array-like of shape (n,), optional
        An observation of weight v counts as v observations.

    Examples
    --------
    Is a coin fair, or of any probability? 61 heads of 100 say little:

    >>> from epicycle.bayes.conjugate import BetaBernoulli, bayes_factor
    >>> flips = [1] * 61 + [0] * 39
    >>> print(bayes_factor(BetaBernoulli(1, 1), BetaBernoulli(1e6, 1e6), flips))
    log Bayes factor 0.3309: evidence for a, not worth more than a mention
    """
    for name, model in (("a", a), ("b", b)):
        if not isinstance(model, ConjugateModel):
            raise ParameterTypeError(f"{name}: expected a conjugate model, got {type(model).__name__}")
    return BayesFactor(a.log_evidence(data, sample_weight), b.log_evidence(data, sample_weight))
