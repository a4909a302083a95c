"""The search for neighbours by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

from epicycle.core._parameters import Domain, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.neighbors._base import (
    RADIUS,
    K,
    KNeighborsSearch,
    RadiusNeighborsSearch,
)
from epicycle.spatial._options import SEARCH_PARAMETERS, SearchArguments


class NearestNeighbors(KNeighborsSearch, RadiusNeighborsSearch):
    r"""The k nearest rows, or those within a radius, exactly.

    .. math:: N_k(q) = \text{the } k \text{ rows } x_i \text{ of least } d(x_i, q)

    in float32 products of matrices that rule out nearly all rows, and exact distances of the few that are left. A
    fitted object keeps the training rows.

    Examples
    --------
    >>> from epicycle import NearestNeighbors
    >>> model = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0], [7.0]])
    >>> distances, rows = model.kneighbors([[2.0]])
    >>> distances, rows  # a tie, in the order of the rows
    (array([[1., 1.]]), array([[1, 2]]))
    >>> model.radius_neighbors([[2.0]], radius=5.0, return_distance=False)[0]
    array([0, 1, 2, 3])
    """

    _docs: ClassVar[Mapping[str, str]] = {"fit_y": "%(ignored)s"}
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SEARCH_PARAMETERS,
        "n_neighbors": NoneOr(K),
        "radius": NoneOr(RADIUS),
    }

    @stores_arguments(algorithm="auto", leaf_size=30, metric="minkowski", p=2, metric_params=None, n_jobs=None)
    def __init__(
        self, n_neighbors: int | None = 5, *, radius: float | None = 1.0, **shared: Unpack[SearchArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows of X."""
        self._keep_rows(X, None, target="none")
        self._conclude_exact()
        return self
