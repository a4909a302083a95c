"""Regression by the mean of the nearest rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._exceptions import ParameterError
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting
from epicycle.neighbors._base import CARD, SupervisedNeighbors, neighbor_weights


class KNeighborsRegressor(MultiOutputMixin, RegressorMixin, SupervisedNeighbors):  # type: ignore[misc]  # untyped mixin
    r"""The mean of the targets of the k nearest rows.

    .. math:: f(q) = \frac{\sum_{i \in N_k(q)} w_i \, y_i}{\sum_{i \in N_k(q)} w_i}

    With one neighbour, or weights by distance, it interpolates. A fitted object keeps the training rows.

    Parameters
    ----------
    %(n_neighbors)s
    %(weights)s
    %(search_parameters)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> from epicycle import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.4]])
    array([0.5])
    >>> model.predict()  # every row of the fit from the others
    array([0.5, 0.5, 0.5, 0.5])
    """

    _card: ClassVar[MethodCard] = CARD

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep rows X and targets y."""
        data = self._keep_rows(X, y, target="numeric", multi_output=True)
        self._targets_ = np.array(data.y)
        self._conclude_exact()
        return self

    def predict(self, X: Any = None) -> np.ndarray:
        """The weighted mean of the neighbours' targets.

        Parameters
        ----------
        %(left_out)s

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_targets)
        """
        self._check_fitted()
        distances, rows = self._neighbours_of(X)
        weights = neighbor_weights(self.weights, distances)
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
