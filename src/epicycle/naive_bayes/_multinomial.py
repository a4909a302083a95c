"""Multinomial naive Bayes:  log P(x | c) = sum_j x_j log theta_cj + const,  theta_c the frequencies of events."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.naive_bayes._base import LEAST_LOG, CodedRows, Statistic
from epicycle.naive_bayes._discrete import (
    DISCRETE_DEFAULTS,
    DiscreteArguments,
    DiscreteNaiveBayes,
    count_terms,
    log_of_counts,
    refuse_negative,
    weighted_counts,
)


class MultinomialNB(DiscreteNaiveBayes):
    r"""Naive Bayes for counts of events, such as words in texts.

    .. math:: P(x \mid c) \propto \prod_j \theta_{cj}^{x_j} ,
       \qquad \theta_{cj} = \frac{N_{cj} + \alpha_j}{\sum_l (N_{cl} + \alpha_l)}

    with :math:`N_{cj}` the sum of :math:`x_j` over the rows of class :math:`c`.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from epicycle import MultinomialNB
    >>> words = CountVectorizer()
    >>> X = words.fit_transform(["free prize now", "meet at noon", "free money now", "lunch at noon"])
    >>> model = MultinomialNB().fit(X, ["spam", "ham", "spam", "ham"])
    >>> model.predict(words.transform(["free lunch now"])).tolist()
    ['spam']
    """

    _documented_attributes: ClassVar[tuple[str, ...]] = ("feature_count_", "feature_log_prob_")
    feature_count_: np.ndarray
    feature_log_prob_: np.ndarray
    _fixed_tags: ClassVar[Mapping[str, Any]] = {"input_tags.positive_only": True}

    @stores_arguments(**DISCRETE_DEFAULTS)
    def __init__(self, **shared: Unpack[DiscreteArguments]) -> None: ...

    def _events(self, data: Data) -> Any:
        return partial(event_counts, name=type(self).__name__)

    def _state(self) -> Statistic:
        return self.class_count_, self.feature_count_

    def _learn(self, statistic: Statistic) -> float:
        self.feature_count_ = statistic[1]
        smoothed = self.feature_count_ + self._pseudo_counts(len(self.feature_count_))
        totals = smoothed.sum(axis=1, keepdims=True)
        self.feature_log_prob_ = log_of_counts(smoothed, totals)
        return float(np.max(np.abs(np.exp(self.feature_log_prob_).sum(axis=1) - 1.0)[totals[:, 0] > 0], initial=0.0))

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        log_theta = np.maximum(self.feature_log_prob_, LEAST_LOG)
        return weighted_counts, (log_theta, np.zeros(len(log_theta)))

    def _log_likelihood(self) -> float:
        return float(np.sum(self.feature_count_ * np.maximum(self.feature_log_prob_, LEAST_LOG)))

    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        log_theta = self._likelihood()[1][0]
        return count_terms(X, log_theta[first] - log_theta[second])


def event_counts(rows: CodedRows, name: str) -> tuple[np.ndarray]:
    """Sums of counts by class; negative ones are refused."""
    refuse_negative(rows.X, name)
    return (rows.sums(),)
