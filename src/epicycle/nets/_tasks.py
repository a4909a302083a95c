"""Networks that classify and networks that predict numbers: losses, scores on held-out rows, predictions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from epicycle.core._exceptions import ParameterError
from epicycle.data._target import as_labels, as_weight, require_target
from epicycle.nets._base import NetEstimator
from epicycle.nets.training._torch import require_torch
from epicycle.optim import Logistic, Loss, Multinomial
from epicycle.optim._losses import Squared
from epicycle.stats._class_scores import choose_class, log_probabilities, probabilities
from epicycle.stats._labels import codes, encode_array


class NetClassifier(ClassifierMixin, NetEstimator):  # type: ignore[misc]  # untyped mixin
    """Base of the networks that give one of several classes to each row.

    A subclass sets `classes_` and gives targets 0 .. K - 1 in `_training_rows`, and scores in `_scores`: of two classes
    one column, of more one for each.
    """

    classes_: Any

    @abstractmethod
    def _scores(self, X: Any) -> np.ndarray:
        """Outputs of the module for X, of shape (n, 1) or (n, K)."""

    def _learn_labels(self, y: Any, n_rows: int, sample_weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """(targets, weights) of labels, as many as there are rows; sets the classes."""
        name = type(self).__name__
        require_target(y, name)
        labels, weight = as_labels(y, n_rows, estimator_name=name), as_weight(sample_weight, n_rows)
        return self._learn_classes(labels, weight), weight

    def _learn_classes(self, labels: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The targets of labels, having set the classes to those of the rows that count."""
        v = np.ones(len(labels)) if weight is None else weight
        self.classes_ = encode_array(labels[v > 0], v[v > 0], type(self).__name__)[0]
        return self._targets(labels)

    def _targets(self, labels: np.ndarray) -> np.ndarray:
        """The numbers of the classes, of float32 where there are two, for the logistic loss."""
        target = codes(labels, self.classes_)
        return target.astype(np.float32) if len(self.classes_) == 2 else target

    def _begins_stream(self, classes: Any) -> bool:
        """Whether a call of `partial_fit` is the first, which has to name the classes."""
        require_torch(type(self).__name__)
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ParameterError("classes must be passed on the first call to partial_fit.")
        return first

    def _loss(self) -> Loss:
        return Logistic() if len(self.classes_) == 2 else Multinomial()

    def _strata(self, rows: Any) -> np.ndarray | None:
        return np.asarray(rows.targets())

    def _held_out_errors(self, outputs: np.ndarray, rows: Any) -> np.ndarray | None:
        found = choose_class(outputs, np.arange(len(self.classes_)))
        return np.asarray(found != rows.targets())

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        wrong = self._held_out_errors(outputs, rows)
        assert wrong is not None
        return {"validation_score": 1.0 - float(np.average(wrong, weights=rows.weights()))}

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        return choose_class(self._scores(X), self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`."""
        return probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        return log_probabilities(self._scores(X))


class NetRegressor(RegressorMixin, NetEstimator):  # type: ignore[misc]  # untyped mixin
    """Base of the networks that predict one number for each row, or several."""

    #: Whether y was a vector.
    _vector_: bool

    @abstractmethod
    def _predictions(self, X: Any) -> np.ndarray:
        """Outputs of the module for X, of shape (n, k)."""

    def _loss(self) -> Loss:
        return Squared()

    def _held_out_scores(self, outputs: np.ndarray, rows: Any) -> dict[str, float]:
        from sklearn.metrics import r2_score

        y = rows.targets()
        return {"validation_score": float(r2_score(y, outputs.reshape(y.shape), sample_weight=rows.weights()))}

    def predict(self, X: Any) -> Any:
        """The predicted numbers, of the shape of y in `fit`."""
        found = self._predictions(X)
        return found[:, 0] if self._vector_ else found
