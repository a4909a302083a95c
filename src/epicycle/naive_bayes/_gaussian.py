"""Gaussian naive Bayes:  x_j | c  is normal with mean m_cj and variance s_cj^2.

The statistic is the weight, the mean and the sum of squares about the mean of every column in every class. Two of them
add up by  n = a + b,  m = m_a + (m_b - m_a) b / n,  S = S_a + S_b + (m_b - m_a)^2 a b / n  (Chan, Golub and LeVeque,
1983), which keeps its digits for columns far from zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import ArrayLike, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.data._matrix import dense
from epicycle.naive_bayes._base import CodedRows, NaiveBayes, Statistic
from epicycle.stats._class_moments import ClassMoments, class_moments


class GaussianNB(NaiveBayes):
    r"""Naive Bayes for numbers: every feature is normal given the class.

    .. math:: P(x_j \mid c) = \frac{1}{\sqrt{2 \pi \sigma_{cj}^2}} \exp \frac{-(x_j - \mu_{cj})^2}{2 \sigma_{cj}^2}

    with the means and variances of the rows of the class, the maximum of the likelihood. NaN is a missing entry: it is
    left out, in the fit and in the prediction, which is what integrating over it gives.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        Probabilities of the classes; by default their shares of the weight.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.

    Attributes
    ----------
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Means and variances.
    epsilon_ : float
        What was added to the variances.
    class_prior_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> print(f"{model.score(X, y):.2f}", model.predict([[6.0, 3.0, float("nan"), 1.4]]))
    0.96 [1]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NaiveBayes._parameters,
        "priors": NoneOr(ArrayLike()),
        "var_smoothing": Real(minimum=0),
    }
    _takes_missing: ClassVar[bool] = True

    priors: Any
    var_smoothing: float

    @stores_arguments
    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        calibration: str | None = None,
        n_jobs: int | None = None,
    ) -> None: ...

    def _events(self, data: Data) -> Any:
        return normal_events

    def _state(self) -> Statistic:
        return self.class_count_, ClassMoments(self._weight_, self.theta_, self._square_)

    def _learn(self, statistic: Statistic) -> float:
        moments: ClassMoments = statistic[1]
        everything = moments.over_classes()
        if not np.isfinite(moments.square).all() or not np.isfinite(everything.square).all():
            raise DataError("X: contains infinity, or sums of squares of its columns overflow; scale them down")
        observed = everything.weight[0] > 0
        variance = everything.square[0, observed] / everything.weight[0, observed]
        self.epsilon_ = float(self.var_smoothing * (variance.max() if len(variance) else 0.0))
        self._weight_, self.theta_, self._square_ = moments.terms
        # A class that has no value of a feature says nothing about it: it is given that of all rows.
        seen = moments.weight > 0
        self.theta_ = np.where(seen, moments.mean, everything.mean)
        spread = np.divide(moments.square, moments.weight, out=np.zeros_like(moments.square), where=seen)
        with np.errstate(invalid="ignore", divide="ignore"):
            overall = np.nan_to_num(everything.square / everything.weight)
        self.var_ = np.where(seen, spread, overall) + self.epsilon_
        return 0.0

    def _log_prior(self, count: np.ndarray) -> np.ndarray:
        if self.priors is None:
            with np.errstate(divide="ignore"):
                prior = count / count.sum()
        else:
            prior = np.asarray(self.priors, dtype=np.float64)
            if prior.shape != count.shape:
                raise ParameterError(
                    f"priors: has shape {prior.shape}. Number of priors must match number of classes, {len(count)}"
                )
            if not np.isclose(prior.sum(), 1.0):
                raise ParameterError(f"priors: The sum of the priors should be 1. It is {prior.sum():g}")
            if (prior < 0).any():
                raise ParameterError(f"priors: Priors must be non-negative. One is {prior.min():g}")
        self.class_prior_ = prior
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(prior))

    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        # A variance of zero (var_smoothing=0 and equal values) has a density without bound: the least positive one.
        variance = np.maximum(self.var_, np.finfo(np.float64).tiny)
        return normal_likelihood, (np.ascontiguousarray(self.theta_), 1.0 / variance, np.log(2 * np.pi * variance))

    def _log_likelihood(self) -> float:
        variance = np.maximum(self.var_, np.finfo(np.float64).tiny)
        return float(-0.5 * np.sum(self._square_ / variance + self._weight_ * np.log(2 * np.pi * variance)))

    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        rows = dense(X).astype(np.float64)
        mean, precision, log_norm = self._likelihood()[1]
        score = [-0.5 * ((rows - mean[k]) ** 2 * precision[k] + log_norm[k]) for k in (first, second)]
        return np.where(np.isnan(rows), 0.0, score[0] - score[1]), np.zeros(len(rows))


def normal_events(rows: CodedRows) -> tuple[ClassMoments]:
    """Moments of the columns by class."""
    return (class_moments(dense(rows.X), rows.code, rows.weight, rows.n_classes),)


def normal_likelihood(X: Any, mean: np.ndarray, precision: np.ndarray, log_norm: np.ndarray) -> np.ndarray:
    """log P(x | c) of normal features."""
    # Squares that overflow leave the least number, so that differences of scores stay numbers.
    return np.asarray(np.maximum(_native.bayes.normal_scores(dense(X), mean, precision, log_norm), -1e300))
