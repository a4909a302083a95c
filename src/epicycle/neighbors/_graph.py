"""Graphs of neighbours as steps of a pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle.core._parameters import Domain
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.neighbors._base import (
    MODE,
    RADIUS,
    K,
    KNeighborsSearch,
    NeighborsEstimator,
    RadiusNeighborsSearch,
)
from epicycle.spatial._options import SEARCH_PARAMETERS, SearchArguments


class _GraphTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeighborsEstimator):  # type: ignore[misc]
    """A column for each row of the fit."""

    mode: str

    _docs: ClassVar[Mapping[str, str]] = {
        "graph": """Parameters
----------
%(X)s

Returns
-------
CSR matrix of shape (n_samples, n_samples_fit)""",
    }

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows of X."""
        self._keep_rows(X, None, target="none")
        self._conclude_exact()
        return self

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """The graph of rows and those of the fit."""

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Keep the rows, and give their own graph, each row being the first of its neighbours.

        Returns
        -------
        CSR matrix of shape (n_samples, n_samples)
        """
        return self.fit(X).transform(X)


class KNeighborsTransformer(_GraphTransformer, KNeighborsSearch):
    r"""The graph of the k nearest rows, for estimators that take ``metric="precomputed"``.

    .. math:: G_{qi} = d(x_i, q) \quad \text{for the nearest rows } x_i \text{ of } q

    Distances are given of k + 1 rows, because a row of the fit is its own first neighbour.
    A fitted object keeps the training rows.

    Examples
    --------
    >>> from epicycle import KNeighborsTransformer
    >>> KNeighborsTransformer(n_neighbors=1).fit_transform([[0.0], [1.0], [3.0]]).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 2., 0.]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**SEARCH_PARAMETERS, "n_neighbors": K, "mode": MODE}

    @stores_arguments(algorithm="auto", leaf_size=30, metric="minkowski", p=2, metric_params=None, n_jobs=None)
    def __init__(self, *, mode: str = "distance", n_neighbors: int = 5, **shared: Unpack[SearchArguments]) -> None: ...

    def transform(self, X: Any) -> Any:
        """The neighbours of rows as a sparse matrix, nearest first.

        %(graph)s
        """
        self._check_fitted()
        k: Any = self.n_neighbors
        return self.kneighbors_graph(X, k + (self.mode == "distance"), mode=self.mode)


class RadiusNeighborsTransformer(_GraphTransformer, RadiusNeighborsSearch):
    r"""The graph of the rows within a radius, for estimators that take ``metric="precomputed"``.

    .. math:: G_{qi} = d(x_i, q) \quad \text{where } d(x_i, q) \leq r

    Every row of the fit is a neighbour of itself, at distance zero, which is stored.
    A fitted object keeps the training rows.

    Examples
    --------
    >>> from epicycle import RadiusNeighborsTransformer
    >>> RadiusNeighborsTransformer(radius=1.5).fit_transform([[0.0], [1.0], [3.0]]).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**SEARCH_PARAMETERS, "radius": RADIUS, "mode": MODE}

    @stores_arguments(algorithm="auto", leaf_size=30, metric="minkowski", p=2, metric_params=None, n_jobs=None)
    def __init__(self, *, mode: str = "distance", radius: float = 1.0, **shared: Unpack[SearchArguments]) -> None: ...

    def transform(self, X: Any) -> Any:
        """The rows within the radius as a sparse matrix, nearest first.

        %(graph)s
        """
        self._check_fitted()
        return self.radius_neighbors_graph(X, mode=self.mode, sort_results=True)
