"""Bagging of classifiers and of regressors; see :mod:`epicycle.ensemble._bagging_base`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from epicycle.core._exceptions import DataError
from epicycle.core.estimator._parts import where_part_has
from epicycle.data._target import as_labels, as_numeric_target
from epicycle.ensemble._bagging_base import Bagging
from epicycle.ensemble._base import label_table
from epicycle.stats._binomial import largest_rate, smallest_rate
from epicycle.tree.cart._classifier import DecisionTreeClassifier
from epicycle.tree.cart._regressor import DecisionTreeRegressor


class BaggingClassifier(ClassifierMixin, Bagging):  # type: ignore[misc]  # the mixin is untyped
    r"""Average of the probabilities of classifiers that are fitted to random samples.

    .. math:: p_k(x) = \frac1M \sum_{m=1}^M p_{mk}(x)

    Members without probabilities vote. Samples of rows with replacement are bagging, without replacement pasting;
    samples of features are random subspaces, of both random patches. Averaging lowers the variance of the members and
    leaves their bias. A sample of a single class is drawn again.

    Parameters
    ----------
    estimator : estimator, optional
        A classifier; by default :class:`DecisionTreeClassifier`. It is cloned.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted. Members are fitted to their numbers.
    n_classes_ : int
        Number of classes.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Out-of-bag probabilities, where `oob_score` is set; NaN for rows that all members drew.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from epicycle import BaggingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y)
    >>> model.oob_score_ > 0.94
    True
    """

    _docs: ClassVar[dict[str, str]] = {
        "bagging_attributes": Bagging._docs["bagging_attributes"]
        .replace("{score}", "Accuracy")
        .replace("{error}", "the share of wrong classes")
        .replace("{squared}", "of the probabilities, summed over the classes"),
    }

    classes_: np.ndarray
    oob_decision_function_: np.ndarray

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _target(self, y: Any, n: int) -> np.ndarray:
        labels = as_labels(y, n, estimator_name=type(self).__name__)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        return np.asarray(codes)

    def _is_usable(self, y: np.ndarray) -> bool:
        return len(self.classes_) == 1 or bool((y != y[0]).any())

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_fitted()
        return len(self.classes_)

    def _truth(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.eye(len(self.classes_))[y])

    def _answer(self, member: Any, X: Any, **params: Any) -> np.ndarray:
        """Probabilities of all classes by a member, or zeros and a one for its vote."""
        K = len(self.classes_)
        if not hasattr(member, "predict_proba"):
            return np.eye(K)[np.asarray(member.predict(X, **params.get("predict", {}))).astype(np.intp)]
        shares = np.asarray(member.predict_proba(X, **params.get("predict_proba", {})))
        return self._spread(member, shares, 0.0)

    def _spread(self, member: Any, shares: np.ndarray, missing: float) -> np.ndarray:
        """Columns for all classes: a member knows those in its sample."""
        if len(member.classes_) == len(self.classes_):
            return shares
        whole: np.ndarray = np.full((len(shares), len(self.classes_)), missing)
        whole[:, np.asarray(member.classes_).astype(np.intp)] = shares
        return whole

    def _score_oob(self, average: np.ndarray, y: np.ndarray, known: np.ndarray) -> tuple[float, float, float, float]:
        self.oob_decision_function_ = average
        # A row that all members drew counts for the first class in scikit-learn's score, and not at all in the error.
        chosen = np.argmax(np.nan_to_num(average), axis=1)
        wrong, n = int(np.sum(chosen[known] != y[known])), int(known.sum())
        low, high = smallest_rate(wrong, n, 0.025), largest_rate(wrong, n, 0.025)
        return float(accuracy_score(y, chosen)), wrong / n, low, high

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Predict the class of the largest average probability."""
        shares = self._shares(X, "predict", params)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the average probabilities, or the shares of the votes."""
        return self._shares(X, "predict_proba", params)

    def _shares(self, X: Any, method: str, params: dict[str, Any]) -> np.ndarray:
        self._check_fitted()
        routed = self._routed_params(method, params)
        total = self._sum(X, lambda member, rows: self._answer(member, rows, **routed))
        return np.asarray(total / len(self.estimators_))

    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the logarithms of the average probabilities."""
        self._check_fitted()
        if not hasattr(self.estimators_[0], "predict_log_proba"):
            shares = self._shares(X, "predict_log_proba", params)
            return np.asarray(np.log(shares, out=np.full(shares.shape, -np.inf), where=shares > 0))
        given = self._routed_params("predict_log_proba", params).get("predict_log_proba", {})

        def one(member: Any, rows: Any) -> _LogSum:
            return _LogSum(self._spread(member, np.asarray(member.predict_log_proba(rows, **given)), -np.inf))

        return np.asarray(self._sum(X, one).value - np.log(len(self.estimators_)))

    def _first(self) -> Any:
        return self.estimators_[0] if vars(self).get("estimators_") else self._base()

    @where_part_has("decision_function", _first)
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """Return the average scores of the members.

        Parameters
        ----------
        X : as for :meth:`fit`
        **params
            Metadata for the members, where scikit-learn's metadata routing is enabled.
        """
        self._check_fitted()
        if any(len(member.classes_) < len(self.classes_) for member in self.estimators_ if hasattr(member, "classes_")):
            raise DataError("decision_function: a member did not draw all classes, so that scores cannot be averaged")
        given = self._routed_params("decision_function", params).get("decision_function", {})
        total = self._sum(X, lambda member, rows: np.asarray(member.decision_function(rows, **given)))
        return np.asarray(total / len(self.estimators_))


class _LogSum:
    """The logarithm of a number, which adds up as the number does."""

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    def __add__(self, other: _LogSum) -> _LogSum:
        return _LogSum(np.logaddexp(self.value, other.value))


class BaggingRegressor(RegressorMixin, Bagging):  # type: ignore[misc]  # the mixin is untyped
    r"""Average of regressors that are fitted to random samples.

    .. math:: f(x) = \frac1M \sum_{m=1}^M f_m(x)

    Samples of rows with replacement are bagging, without replacement pasting; samples of features are random subspaces,
    of both random patches. Its squared error is the average one of the members less their spread around it.

    Parameters
    ----------
    estimator : estimator, optional
        A regressor; by default :class:`DecisionTreeRegressor`. It is cloned.

    Attributes
    ----------
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-bag predictions, where `oob_score` is set; NaN for rows that all members drew.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import BaggingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BaggingRegressor(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
    >>> parts = model.oob_decomposition_
    >>> bool(abs(parts["members"] - parts["ambiguity"] - parts["squared"]) < 1e-9 * parts["members"])
    True
    """

    _docs: ClassVar[dict[str, str]] = {
        "bagging_attributes": Bagging._docs["bagging_attributes"]
        .replace("{score}", "R2")
        .replace("{error}", "the mean squared error")
        .replace("{squared}", "the same"),
    }

    oob_prediction_: np.ndarray

    def _base(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def _target(self, y: Any, n: int) -> np.ndarray:
        several = label_table(y) is not None
        return as_numeric_target(y, n, multi_output=several, estimator_name=type(self).__name__)

    def _answer(self, member: Any, X: Any, **params: Any) -> np.ndarray:
        predicted = np.asarray(member.predict(X, **params.get("predict", {})), np.float64)
        return predicted.reshape(len(predicted), -1)

    def _score_oob(self, average: np.ndarray, y: np.ndarray, known: np.ndarray) -> tuple[float, float, float, float]:
        self.oob_prediction_ = average[:, 0] if y.ndim == 1 else average
        # A row that all members drew counts as predicted zero in scikit-learn's score, and not at all in the error.
        score = float(r2_score(y, np.nan_to_num(self.oob_prediction_)))
        losses = ((average[known] - self._truth(y)[known]) ** 2).sum(axis=1)
        error, n = float(losses.mean()), len(losses)
        half = float(ndtri(0.975) * losses.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
        return score, error, max(error - half, 0.0), error + half

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Predict the average of the members."""
        self._check_fitted()
        given = self._routed_params("predict", params).get("predict", {})
        total = self._sum(X, lambda member, rows: np.asarray(member.predict(rows, **given), np.float64))
        return np.asarray(total / len(self.estimators_))
