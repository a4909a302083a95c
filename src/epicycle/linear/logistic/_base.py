"""The base of linear classifiers with class probabilities: scores, classes and probabilities of new rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin

from epicycle import engine
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Batch
from epicycle.data._matrix import dense
from epicycle.stats._class_scores import (
    class_batch,
    linear_predictor,
    log_probabilities,
    predictor_batch,
    probabilities,
)


class LinearClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scores b + W x, turned into probabilities by the logistic function or softmax."""

    n_jobs: int | None
    n_iter_: Any
    classes_: np.ndarray
    coef_: Any
    intercept_: np.ndarray

    _takes_sparse: ClassVar[bool] = True

    def decision_function(self, X: Any) -> Any:
        """Scores b + W x: one a row for two classes (positive favours ``classes_[1]``), else one for each class."""
        data = self._predict_data(X)
        scores = linear_predictor(data, dense(self.coef_), self.intercept_, self.n_jobs)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The most probable class of every row."""
        return self._map(X, class_batch, "classes_")

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`."""
        return self._map(X, _probability_batch)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, exact also where they underflow."""
        return self._map(X, _log_probability_batch)

    def sparsify(self) -> Self:
        """Turn `coef_` into a sparse matrix, which saves memory where most coefficients are zero.

        Returns
        -------
        self
        """
        self._check_fitted()
        self.coef_ = sp.csr_array(self.coef_)
        return self

    def densify(self) -> Self:
        """Turn `coef_` into an array, as it is after `fit`.

        Returns
        -------
        self
        """
        self._check_fitted()
        self.coef_ = dense(self.coef_)
        return self

    def _map(self, X: Any, function: Any, *attributes: str) -> Any:
        data = self._predict_data(X)  # raises where the model is not fitted, before an attribute is missed
        more = [getattr(self, name) for name in attributes]
        return engine.map(function, data, dense(self.coef_), self.intercept_, *more, n_jobs=self.n_jobs)


def _log_probability_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return log_probabilities(predictor_batch(batch, coef, intercept))


def _probability_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    return probabilities(predictor_batch(batch, coef, intercept))
