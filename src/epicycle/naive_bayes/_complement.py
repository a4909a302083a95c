"""Complement naive Bayes (Rennie, Shih, Teevan and Karger, 2003): a class is scored by the events of all others.

With N_j - N_cj the counts outside class c,  theta_cj = (N_j - N_cj + alpha_j) / sum (...)  and the score is
-sum_j x_j log theta_cj: the class whose complement fits the row worst. It suits classes of very different sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Boolean, Domain
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.naive_bayes._base import LEAST_LOG, Statistic
from epicycle.naive_bayes._discrete import (
    DISCRETE_DEFAULTS,
    DiscreteArguments,
    DiscreteNaiveBayes,
    log_of_counts,
    weighted_counts,
)
from epicycle.naive_bayes._multinomial import MultinomialNB


class ComplementNB(MultinomialNB):
    r"""Naive Bayes for counts that scores a class by the events outside it.

    .. math:: \hat c(x) = \arg\max_c \, - \sum_j x_j \log \theta_{cj} ,
       \qquad \theta_{cj} = \frac{N_j - N_{cj} + \alpha_j}{\sum_l (N_l - N_{cl} + \alpha_l)}

    Parameters
    ----------
    fit_prior : bool, default=True
        Used only where the fit sees one class: scores of complements have no prior.
    class_prior : array-like of shape (n_classes,), optional
        The same.
    norm : bool, default=False
        Whether the weights of every class are divided by their sum, so that long texts do not weigh more.

    Attributes
    ----------
    feature_count_ : ndarray of shape (n_classes, n_features)
        The counts N of the events of every class.
    feature_all_ : ndarray of shape (n_features,)
        The counts of all classes.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        The weights of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import ComplementNB
    >>> X = np.array([[3, 0, 1], [2, 0, 0], [0, 2, 1], [4, 1, 0]])
    >>> ComplementNB().fit(X, [0, 0, 1, 0]).predict([[0, 3, 1]])
    array([1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**DiscreteNaiveBayes._parameters, "norm": Boolean()}

    norm: bool

    @stores_arguments(**DISCRETE_DEFAULTS)
    def __init__(self, *, norm: bool = False, **shared: Unpack[DiscreteArguments]) -> None: ...

    def _learn(self, statistic: Statistic) -> float:
        self.feature_count_ = statistic[1]
        self.feature_all_ = self.feature_count_.sum(axis=0)
        outside = self.feature_all_ + self._pseudo_counts(len(self.feature_count_)) - self.feature_count_
        log_theta = log_of_counts(outside, outside.sum(axis=1, keepdims=True))
        finite = np.maximum(log_theta, LEAST_LOG)
        total = finite.sum(axis=1, keepdims=True)  # zero for a single feature, which says nothing
        self.feature_log_prob_ = finite / np.where(total < 0, total, 1.0) if self.norm else -log_theta
        return float(np.max(np.abs(np.exp(log_theta).sum(axis=1) - 1.0)[outside.any(axis=1)], initial=0.0))

    def _prior_of_scores(self) -> np.ndarray:
        return self.class_log_prior_ if len(self.classes_) == 1 else np.zeros(len(self.classes_))

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        return weighted_counts, (np.minimum(self.feature_log_prob_, -LEAST_LOG), np.zeros(len(self.feature_log_prob_)))

    def _log_likelihood(self) -> float:
        return float(np.sum(self.feature_count_ * np.minimum(self.feature_log_prob_, -LEAST_LOG)))
