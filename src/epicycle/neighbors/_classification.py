"""Classification by a vote of the nearest rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Domain
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.neighbors._base import NEIGHBOUR_PARAMETERS, WEIGHTS, NeighboursEstimator, neighbour_weights
from epicycle.stats._class_scores import choose_class
from epicycle.stats._labels import codes, distinct

__all__ = ["KNeighborsClassifier"]


class KNeighborsClassifier(ClassifierMixin, NeighboursEstimator):
    r"""A vote of the k nearest rows.

    .. math:: P(y = c \mid q) = \frac{\sum_{i \in N_k(q)} w_i \, [y_i = c]}{\sum_{i \in N_k(q)} w_i}

    Among classes with equally many votes the first in `classes_` wins. A fitted object keeps the training rows.

    Parameters
    ----------
    n_neighbors : int, default=5
    weights : {"uniform", "distance"} or callable, default="uniform"
        Neighbours count alike, by the inverse of their distance (those at distance zero alone), or by a function that
        maps an array of distances to weights.
    algorithm : {"auto", "brute", "kd_tree"}, default="auto"
        "auto" takes a tree for up to eight columns. The result is the same.
    metric : str, default="minkowski"
        "euclidean" ("l2"), "manhattan" ("l1", "cityblock"), "chebyshev", "cosine", or "minkowski" with its `p`.
    p : float, default=2
        Power of Minkowski's distance, at least 1; infinity for the largest difference.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    X_fit_ : array or CSR matrix of shape (n_samples_fit_, n_features)
        The rows.
    n_samples_fit_ : int
    certificate_ : Certificate
        The search is exact.
    history_ : History
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from epicycle import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNeighborsClassifier(n_neighbors=5).fit(X, y)
    >>> round(model.score(X, y), 3), round(model.score(None, y), 3)  # as fitted, and with every row left out
    (0.967, 0.967)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**NEIGHBOUR_PARAMETERS, "weights": WEIGHTS}
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C5",), engines=("memory",), certificate="exact search", keeps_rows=True
    )

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        metric: str = "minkowski",
        p: float = 2,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.metric = metric
        self.p = p
        self.n_jobs = n_jobs

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep rows X and labels y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
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
        X : array, sparse matrix, data frame or Scan of shape (n_queries, n_features), optional
            Default: the rows of the fit, each predicted from the others (leave one out).

        Returns
        -------
        ndarray of shape (n_queries, n_classes)
        """
        self._check_fitted()
        distances, rows = self._neighbours_of(X)
        weights = neighbour_weights(self.weights, distances)
        n = len(rows)
        classes = len(self.classes_)
        place = (np.arange(n)[:, None] * classes + self._codes_[rows]).ravel()
        votes = np.bincount(place, weights=None if weights is None else weights.ravel(), minlength=n * classes)
        votes = votes.reshape(n, classes).astype(np.float64)
        total = votes.sum(axis=1, keepdims=True)
        if (total == 0).any():
            raise ParameterError(f"weights: are all zero for row {int((total == 0).argmax())}; expected some above")
        return votes / total

    def predict(self, X: Any = None) -> np.ndarray:
        """The class with the most votes.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_queries, n_features), optional
            Default: the rows of the fit, each predicted from the others (leave one out).

        Returns
        -------
        ndarray of shape (n_queries,)
        """
        return choose_class(self.predict_proba(X), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right predictions; X may be None for the rows of the fit, each predicted from the others."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
