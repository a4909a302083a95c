"""Regression by the mean of the nearest rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Domain
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.neighbors._base import NEIGHBOUR_PARAMETERS, WEIGHTS, NeighboursEstimator, neighbour_weights

__all__ = ["KNeighborsRegressor"]


class KNeighborsRegressor(MultiOutputMixin, RegressorMixin, NeighboursEstimator):
    r"""The mean of the targets of the k nearest rows.

    .. math:: f(q) = \frac{\sum_{i \in N_k(q)} w_i \, y_i}{\sum_{i \in N_k(q)} w_i}

    With one neighbour, or weights by distance, it interpolates. A fitted object keeps the training rows.

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
    >>> from epicycle import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.4]])
    array([0.5])
    >>> model.predict()  # every row of the fit from the others
    array([0.5, 0.5, 0.5, 0.5])
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
        """Keep rows X and targets y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        """
        data = self._keep_rows(X, y, target="numeric", multi_output=True)
        self._targets_ = data.y.copy()
        self._conclude_exact()
        return self

    def predict(self, X: Any = None) -> np.ndarray:
        """The weighted mean of the neighbours' targets.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Scan of shape (n_queries, n_features), optional
            Default: the rows of the fit, each predicted from the others (leave one out).

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_targets)
        """
        self._check_fitted()
        distances, rows = self._neighbours_of(X)
        weights = neighbour_weights(self.weights, distances)
        Y = self._targets_[rows]
        if weights is None:
            mean = Y.mean(axis=1)
        else:
            total = weights.sum(axis=1)
            if (total == 0).any():
                raise ParameterError(f"weights: are all zero for row {int((total == 0).argmax())}; expected some above")
            share = weights / total[:, None]
            mean = np.einsum("nk,nk...->n...", share, Y)
        return np.asarray(mean).astype(distances.dtype, copy=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; X may be None for the rows of the fit, each predicted from the others."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
