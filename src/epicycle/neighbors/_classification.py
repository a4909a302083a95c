"""Classification by a vote of the nearest rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting
from epicycle.neighbors._base import CARD, SupervisedNeighbors, neighbor_weights
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import codes, distinct


class KNeighborsClassifier(ClassifierMixin, SupervisedNeighbors):  # type: ignore[misc]  # untyped mixin
    r"""A vote of the k nearest rows.

    .. math:: P(y = c \mid q) = \frac{\sum_{i \in N_k(q)} w_i \, [y_i = c]}{\sum_{i \in N_k(q)} w_i}

    Among classes with equally many votes the first in `classes_` wins. A fitted object keeps the training rows.

    Parameters
    ----------
    %(n_neighbors)s
    %(weights)s
    %(search_parameters)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    %(attributes)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier(n_neighbors=5).fit(X, y)
    >>> round(model.score(X, y), 3), round(model.score(None, y), 3)  # as fitted, and with every row left out
    (0.967, 0.967)
    """

    _card: ClassVar[MethodCard] = CARD

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep rows X and labels y."""
        data = self._keep_rows(X, y, target="labels")
        self.classes_ = distinct(np.asarray(data.y))
        self._codes_ = codes(np.asarray(data.y), labels=self.classes_)
        if len(self.classes_) == 1:
            self._codes_ = np.zeros(data.n_rows, dtype=np.intp)
        self._conclude_exact()
        return self

    def predict_proba(self, X: Any = None) -> np.ndarray:
        """Shares of the votes, in the order of `classes_`.

        Parameters
        ----------
        %(left_out)s

        Returns
        -------
        ndarray of shape (n_queries, n_classes)
        """
        self._check_fitted()
        distances, rows = self._neighbours_of(X)
        weights = neighbor_weights(self.weights, distances)
        n = len(rows)
        classes = len(self.classes_)
        place = (np.arange(n)[:, None] * classes + self._codes_[rows]).ravel()
        votes = np.bincount(place, weights=None if weights is None else weights.ravel(), minlength=n * classes)
        votes = votes.reshape(n, classes).astype(np.float64)
        total = votes.sum(axis=1, keepdims=True)
        if (total == 0).any():
            raise ParameterError(f"weights: are all zero for row {int((total == 0).argmax())}; expected some above")
        return np.asarray(votes / total)

    def predict(self, X: Any = None) -> np.ndarray:
        """The class with the most votes.

        Parameters
        ----------
        %(left_out)s

        Returns
        -------
        ndarray of shape (n_queries,)
        """
        return choose_class(self.predict_proba(X), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right predictions; X may be None for the rows of the fit, each predicted from the others."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
