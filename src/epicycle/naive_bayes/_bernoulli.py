"""Bernoulli naive Bayes:  log P(x | c) = sum_j x_j log theta_cj + (1 - x_j) log(1 - theta_cj)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
import scipy.sparse as sp

from epicycle.core._parameters import Domain, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.naive_bayes._base import LEAST_LOG, CodedRows, Statistic
from epicycle.naive_bayes._discrete import (
    DISCRETE_DEFAULTS,
    DiscreteArguments,
    DiscreteNaiveBayes,
    count_terms,
    log_of_counts,
    weighted_counts,
)


class BernoulliNB(DiscreteNaiveBayes):
    r"""Naive Bayes for features that are there or not.

    .. math:: P(x \mid c) = \prod_j \theta_{cj}^{x_j} (1 - \theta_{cj})^{1 - x_j} ,
       \qquad \theta_{cj} = \frac{N_{cj} + \alpha_j}{N_c + 2 \alpha_j}

    with :math:`N_{cj}` the weight of the rows of class :math:`c` in which :math:`x_j = 1`, and :math:`N_c` that of all
    its rows. NaN in a dense array is a missing entry: it is left out, in the fit and in the prediction.

    Parameters
    ----------
    binarize : float or None, default=0.0
        Entries above it are 1, others 0. With None they are taken as they are.

    Examples
    --------
    >>> from epicycle import BernoulliNB
    >>> X = [[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 0]]
    >>> model = BernoulliNB().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[1, 0, 0]]).tolist(), model.explain([[1, 0, 0]], "a", "b").top(n=1)
    (['a'], [('x0', 1.09...)])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**DiscreteNaiveBayes._parameters, "binarize": NoneOr(Real())}
    _takes_missing: ClassVar[bool] = True

    binarize: float | None
    _documented_attributes: ClassVar[tuple[str, ...]] = ("feature_count_", "feature_log_prob_")
    feature_count_: np.ndarray
    feature_log_prob_: np.ndarray

    @stores_arguments(**DISCRETE_DEFAULTS)
    def __init__(self, *, binarize: float | None = 0.0, **shared: Unpack[DiscreteArguments]) -> None: ...

    def _events(self, data: Data) -> Any:
        return partial(presence_counts, threshold=self.binarize)

    def _state(self) -> Statistic:
        return self.class_count_, self.feature_count_, self._missing_

    def _learn(self, statistic: Statistic) -> float:
        count, self.feature_count_, self._missing_ = statistic
        alpha = self._pseudo_counts(len(count))
        present = count[:, None] - self._missing_  # rows of the class in which the feature is known
        ones, totals = self.feature_count_ + alpha, present + 2 * alpha
        self.feature_log_prob_ = log_of_counts(ones, totals)
        self._log_absence_ = log_of_counts(totals - ones, totals)
        both = np.exp(self.feature_log_prob_) + np.exp(self._log_absence_)
        return float(np.max(np.abs(both - 1.0)[totals > 0], initial=0.0))

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        return np.maximum(self.feature_log_prob_, LEAST_LOG), np.maximum(self._log_absence_, LEAST_LOG)

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        return bernoulli_likelihood, (*self._weights(), self.binarize)

    def _log_likelihood(self) -> float:
        log_theta, log_absence = self._weights()
        zeros = self.class_count_[:, None] - self._missing_ - self.feature_count_
        return float(np.sum(self.feature_count_ * log_theta + zeros * log_absence))

    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        log_theta, log_absence = self._weights()
        ones, zeros = (a[first] - a[second] for a in (log_theta, log_absence))
        X = presence(X, self.binarize)
        if not sp.issparse(X):
            return np.where(np.isnan(X), 0.0, np.nan_to_num(X) * (ones - zeros) + zeros), np.zeros(len(X))
        features, absent = count_terms(X, ones)
        return features, absent + zeros.sum() - np.asarray(X @ zeros)


def presence(X: Any, threshold: float | None) -> Any:
    """1 where an entry is above the threshold, 0 where it is not, NaN where it is missing."""
    if threshold is None:
        return X
    if not sp.issparse(X):
        return np.where(np.isnan(X), np.nan, threshold < X)
    if threshold < 0:  # what is not stored is present
        return presence(X.toarray(), threshold)
    found = X.copy()
    found.data = (X.data > threshold).astype(X.dtype)
    found.eliminate_zeros()
    return found


def presence_counts(rows: CodedRows, threshold: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the rows with a feature, and of those in which it is missing, by class."""
    X = presence(rows.X, threshold)
    if sp.issparse(X):
        return rows.columns(X).sums(), np.zeros((rows.n_classes, X.shape[1]))
    missing = np.isnan(X)
    lost = rows.columns(missing.astype(np.float64)).sums() if missing.any() else np.zeros((rows.n_classes, X.shape[1]))
    return rows.columns(np.nan_to_num(X)).sums(), lost


def bernoulli_likelihood(X: Any, log_theta: np.ndarray, log_absence: np.ndarray, threshold: float | None) -> np.ndarray:
    """log P(x | c) of features that are there or not; missing ones add nothing."""
    X = presence(X, threshold)
    absent = log_absence.sum(axis=1)
    if sp.issparse(X):
        return weighted_counts(X, log_theta - log_absence, absent)
    missing = np.isnan(X)
    scores = weighted_counts(np.nan_to_num(X), log_theta - log_absence, absent)
    return scores - missing.astype(np.float64) @ log_absence.T if missing.any() else scores
