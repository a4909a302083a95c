"""Naive Bayes:  P(c | x)  is proportional to  P(c) prod_j P(x_j | c).

Whatever the events are, a fit is one pass that adds up statistics by class, and a formula. So it is the same in memory,
from files and on a cluster, more rows only add to the statistics, and a class that appears late adds a row to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle import _native, engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import ArrayData, Batch, Data, as_data
from epicycle.naive_bayes._log_odds import LogOdds
from epicycle.naive_bayes._temperature import fit_temperature
from epicycle.optim import Solution
from epicycle.stats._class_scores import choose_class, log_probabilities
from epicycle.stats._labels import classes_of, codes, joined_classes, labels_among

#: What a fit adds up: the weight of every class, then arrays or objects whose first axis is the class.
Statistic = tuple[Any, ...]

#: Deviation of the sum of probabilities from 1 that the certificate allows: 1e5 terms of machine precision.
_TOLERANCE = 1e-9

#: log of the smallest positive number: an event of probability zero counts as this rare, so that 0 * log 0 is 0.
LEAST_LOG = float(np.log(np.finfo(np.float64).smallest_subnormal))


class NaiveBayes(ClassifierMixin, Estimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Features that are independent given the class."""

    _docs: ClassVar[Mapping[str, str]] = {
        "calibration": """calibration : {"temperature"}, optional
    Divides the log-odds by a temperature that minimises the log loss of five folds, each scored by the
    statistics of the other four. Naive Bayes is over-confident where features depend on each other; which class
    is the most probable does not change.""",
        "n_jobs": """n_jobs : int, optional
    Threads. None: all processors.""",
        "naive_attributes": """classes_ : ndarray of shape (n_classes,)
class_count_ : ndarray of shape (n_classes,)
    Weight of the rows of every class.
class_log_prior_ : ndarray of shape (n_classes,)
    Logarithms of the probabilities of the classes.
temperature_ : float
    What log-odds are divided by; 1 without calibration.
certificate_ : Certificate
    The probabilities are the maximum of the posterior in closed form; what is measured is by how much the
    probabilities of a class differ from a sum of one.
history_ : History
    The negative logarithm of the joint probability of the rows and their classes, per unit of weight.
n_iter_ : int
converged_ : bool""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("naive_attributes",)
    _card: ClassVar[MethodCard] = MethodCard(
        family="naive_bayes", catalogue=("B2",), engines=("memory", "files", "dask"), certificate="closed form"
    )
    _parameters: ClassVar[Mapping[str, Domain]] = {"calibration": NoneOr(Choice("temperature"))}
    #: Whether NaN means a missing entry, which is left out.
    _takes_missing: ClassVar[bool] = False

    calibration: str | None
    n_jobs: int | None
    classes_: np.ndarray
    class_count_: np.ndarray
    class_log_prior_: np.ndarray
    temperature_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    # ------------------------------------------------------------------------------------------- what the events are

    @abstractmethod
    def _events(self, data: Data) -> Any:
        """A function of :class:`CodedRows` that returns the terms of the statistic; module-level, for clusters."""

    @abstractmethod
    def _learn(self, statistic: Statistic) -> float:
        """Set the parameters from the statistic; returns by how much probabilities miss a sum of one."""

    @abstractmethod
    def _state(self) -> Statistic:
        """The statistic of the rows so far, from the fitted attributes."""

    @abstractmethod
    def _likelihood(self) -> tuple[Any, tuple[Any, ...]]:
        """(function, parameters) with function(X, *parameters) = log P(x | c) of shape (n, n_classes); module-level."""

    @abstractmethod
    def _log_likelihood(self) -> float:
        """sum_i w_i log P(x_i | c_i) over the rows of the fit, from the statistic."""

    @abstractmethod
    def _terms(self, X: Any, first: int, second: int) -> tuple[Any, np.ndarray]:
        """Log-odds of two classes by feature, and the sum of those that are not stored."""

    @abstractmethod
    def _log_prior(self, count: np.ndarray) -> np.ndarray:
        """log P(c) from the weights of the classes."""

    def _prior_of_scores(self) -> np.ndarray:
        """The term that is added to log P(x | c)."""
        return self.class_log_prior_

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with labels y."""
        data = self._training_data(X, y, sample_weight, reset=True)
        self._conclude_fit(classes_of(data, self.n_jobs), data, None)
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit: the result is that of one fit to all of them.

        Parameters
        ----------
        classes : array-like of shape (n_classes,), optional
            All classes, for the first call: those of its rows and those to come. Whether it is given or not, a
            class that comes later is added.
        """
        first = not hasattr(self, "classes_")
        data = self._training_data(X, y, sample_weight, reset=first)
        seen = labels_among(data, classes, self.n_jobs).labels
        together = joined_classes(seen, classes, None if first else self.classes_)
        self._conclude_fit(together, data, None if first else (self.classes_, self._state()))
        return self

    def _training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Data:
        missing = self._takes_missing
        data = self._fit_data(
            X, y, sample_weight, target="labels", reset=reset, check_finite=not missing, missing=missing
        )
        return _without_infinity(data)

    def _conclude_fit(self, classes: np.ndarray, data: Data, before: tuple[np.ndarray, Statistic] | None) -> None:
        coded = data.encode_target(partial(codes, labels=classes))
        statistic = total(self._events(data), coded, len(classes), self.n_jobs)
        if before is not None:
            at = np.searchsorted(classes, before[0])
            statistic = tuple(placed(b, at, len(classes)) + s for b, s in zip(before[1], statistic, strict=True))
        self.classes_, self.class_count_ = classes, statistic[0]
        deviation = self._learn(statistic)
        self.class_log_prior_ = self._log_prior(self.class_count_)
        self.temperature_ = fit_temperature(self, coded, statistic_of) if self.calibration else 1.0
        weight = float(self.class_count_.sum())
        prior = np.where(self.class_count_ > 0, self.class_log_prior_, 0.0)
        value = -(self._log_likelihood() + float(self.class_count_ @ np.maximum(prior, LEAST_LOG))) / max(
            weight, 1e-300
        )
        monitor = self._monitor(1, lambda _x: {})
        monitor(1, np.zeros(0), objective=value)
        certificate = Certificate(
            "closed form", deviation, _TOLERANCE, "the probabilities of every class add up to one, relative deviation"
        )
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(Solution(np.zeros(0), value, monitor.history(), certificate, 1, reason))

    # ------------------------------------------------------------------------------------------- use of a fit

    def _rows(self, X: Any) -> Data:
        """New rows; missing entries stay NaN where they are allowed."""
        if not self._takes_missing:
            return self._predict_data(X)
        self._check_fitted()
        data = as_data(
            self._coded(X),
            estimator_name=type(self).__name__,
            accept_sparse=self._takes_sparse,
            check_finite=False,
            missing=True,
        )
        self._check_features(X, data, reset=False)
        return _without_infinity(data)

    def _coded(self, X: Any) -> Any:
        """X with codes in the place of levels, where the model learnt any."""
        return X

    def _map(self, X: Any, last: Any) -> Any:
        function, parameters = self._likelihood()
        return engine.map(
            _apply, self._rows(X), function, parameters, self._prior_of_scores(), last, n_jobs=self.n_jobs
        )

    def predict_joint_log_proba(self, X: Any) -> Any:
        """log P(x, c) of every row and class, before calibration."""
        self._check_fitted()
        return self._map(X, np.asarray)

    def predict_log_proba(self, X: Any) -> Any:
        """log P(c | x) of every row and class, in the order of `classes_`."""
        self._check_fitted()
        return self._map(X, partial(_log_posterior, temperature=self.temperature_))

    def predict_proba(self, X: Any) -> Any:
        """P(c | x) of every row and class, in the order of `classes_`."""
        self._check_fitted()
        return self._map(X, partial(_posterior, temperature=self.temperature_))

    def predict(self, X: Any) -> Any:
        """The most probable class of every row."""
        self._check_fitted()
        return self._map(X, partial(_most_probable, classes=self.classes_))

    def explain(self, X: Any, positive: Any = None, negative: Any = None) -> LogOdds:
        """Log-odds of one class against another by feature.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        positive, negative : labels, optional
            The two classes; by default the second and the first of `classes_`.
        """
        data = self._rows(X)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: explain needs rows in memory, got {type(X).__name__}")
        if len(self.classes_) < 2:
            raise DataError("explain needs two classes; the fit saw one")
        first, second = self._class_at(positive, 1, "positive"), self._class_at(negative, 0, "negative")
        features, absent = self._terms(data.X, first, second)
        log_prior = self._prior_of_scores()
        prior = float(log_prior[first] - log_prior[second])
        pair = (self.classes_[first].item(), self.classes_[second].item())
        return LogOdds(pair, prior, features, absent, self._names())

    def _class_at(self, label: Any, default: int, name: str) -> int:
        if label is None:
            return default
        found = np.flatnonzero(self.classes_ == label)
        if not len(found):
            raise ParameterError(f"{name}={label!r}; expected one of the classes {self.classes_.tolist()}")
        return int(found[0])


def _without_infinity(data: Data) -> Data:
    """The data, if what it holds in memory is finite or missing; batches of files and partitions were checked."""
    if isinstance(data, ArrayData):
        values = data.X.data if data.sparse else data.X
        if np.isinf(values).any():
            raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
    return data


@dataclass(frozen=True)
class CodedRows:
    """Rows with the codes of their classes, and how many threads may work on them."""

    X: Any
    code: np.ndarray
    weight: np.ndarray | None
    n_classes: int
    threads: int = 1

    def columns(self, X: Any) -> CodedRows:
        """The same rows with other features."""
        return replace(self, X=X)

    def sums(self) -> np.ndarray:
        """sum_i w_i x_i over the rows of every class: shape (n_classes, n_features)."""
        return _native.bayes.class_sums(self.X, self.code, self.weight, self.n_classes, self.threads)


def statistic_of(batch: Batch, events: Any, n_classes: int, threads: int = 1) -> Statistic:
    """The weight of every class in a batch, and what its events add up to."""
    code = np.ascontiguousarray(batch.y, dtype=np.int64)
    count = np.bincount(code, weights=batch.weight, minlength=n_classes).astype(np.float64)
    return (count, *events(CodedRows(batch.X, code, batch.weight, n_classes, threads)))


def total(events: Any, data: Data, n_classes: int, n_jobs: int | None) -> Statistic:
    """The statistic of all rows.

    A CSR matrix in memory is one batch: its sums are large, and threads share them by class.
    """
    if isinstance(data, ArrayData) and data.sparse:
        threads = engine.n_threads(float("inf"), n_jobs)
        return statistic_of(Batch(data.X, data.y, data.weight), events, n_classes, threads)
    return engine.sum(statistic_of, data, events, n_classes, n_jobs=n_jobs)


def placed(term: Any, at: np.ndarray, n_classes: int) -> Any:
    """A term of a statistic with its classes at other positions, among others that have nothing yet."""
    if not isinstance(term, np.ndarray):
        return term.placed(at, n_classes)
    out = np.zeros((n_classes, *term.shape[1:]))
    out[at] = term
    return out


# ---------------------------------------------------------------------------------------------- functions of a batch


def _apply(batch: Batch, function: Any, parameters: tuple[Any, ...], log_prior: np.ndarray, last: Any) -> Any:
    return last(function(batch.X, *parameters) + log_prior)


def _log_posterior(scores: np.ndarray, temperature: float) -> np.ndarray:
    if scores.shape[1] == 1:
        return np.zeros_like(scores)
    return log_probabilities(scores / temperature)


def _posterior(scores: np.ndarray, temperature: float) -> np.ndarray:
    return np.asarray(np.exp(_log_posterior(scores, temperature)))


def _most_probable(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return choose_class(scores, classes)
