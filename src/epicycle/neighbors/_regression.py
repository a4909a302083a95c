"""Regression by the mean of the nearest rows, or of those within a radius."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core.estimator._estimator import fitting
from epicycle.data._matrix import in_type_if_it_fits
from epicycle.neighbors._base import NeighborsEstimator
from epicycle.neighbors._voters import KNeighborsPredictor, RadiusNeighborsPredictor, Voters


class _AveragingRegressor(MultiOutputMixin, RegressorMixin, NeighborsEstimator):  # type: ignore[misc]  # untyped mixins
    """Targets of the rows, and means of those of neighbours."""

    _takes_any_size: ClassVar[bool] = True  # targets are averaged
    _docs: ClassVar[Mapping[str, str]] = {"predictions": "ndarray of shape (n_queries,) or (n_queries, n_targets)"}

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep rows X and targets y."""
        data = self._keep_rows(X, y, target="numeric", multi_output=True)
        self._targets_ = np.array(data.y)
        self._conclude_exact()
        return self

    @abstractmethod
    def _voters(self, X: Any) -> Voters:
        """The neighbours of the queries."""

    def predict(self, X: Any = None) -> np.ndarray:
        """The weighted mean of the neighbours' targets.

        %(prediction)s
        """
        voters = self._voters(X)
        if not voters.counts.all():
            warnings.warn(
                "One or more samples have no neighbors within specified radius; predicting NaN.", stacklevel=3
            )
        return in_type_if_it_fits(voters.means(self._targets_), voters.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; X may be None for the rows of the fit, each predicted from the others."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))


class KNeighborsRegressor(KNeighborsPredictor, _AveragingRegressor):
    r"""The mean of the targets of the k nearest rows.

    .. math:: f(q) = \frac{\sum_{i \in N_k(q)} w_i \, y_i}{\sum_{i \in N_k(q)} w_i}

    With one neighbour, or weights by distance, it interpolates. A fitted object keeps the training rows.

    Examples
    --------
    >>> from epicycle import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.4]])
    array([0.5])
    >>> model.predict()  # every row of the fit from the others
    array([0.5, 0.5, 0.5, 0.5])
    """


class RadiusNeighborsRegressor(RadiusNeighborsPredictor, _AveragingRegressor):
    r"""The mean of the targets of the rows within a radius.

    .. math:: f(q) = \frac{\sum_{i: d(x_i, q) \leq r} w_i \, y_i}{\sum_{i: d(x_i, q) \leq r} w_i}

    A query without a row in its radius gets NaN, and a warning says so. A fitted object keeps the training rows.

    Examples
    --------
    >>> from epicycle import RadiusNeighborsRegressor
    >>> model = RadiusNeighborsRegressor(radius=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0])
    >>> model.predict([[1.5]])
    array([0.5])
    """
