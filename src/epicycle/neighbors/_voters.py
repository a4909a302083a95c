"""Neighbours that vote or are averaged: their weights, and what the predictors of either search have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, NoneOr
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.engine._row_order import batches_in_order
from epicycle.neighbors._base import (
    RADIUS,
    K,
    KNeighborsSearch,
    RadiusNeighborsSearch,
)
from epicycle.spatial._options import SEARCH_PARAMETERS, SearchArguments

WEIGHTS: Domain = NoneOr(AnyOf(Choice("uniform", "distance"), Callable()))


@dataclass(frozen=True)
class Voters:
    """The neighbours of all queries, one query after the other."""

    #: How many neighbours each query has.
    counts: np.ndarray
    rows: np.ndarray
    #: None where all count alike.
    weights: np.ndarray | None
    #: The type of the distances.
    dtype: np.dtype[Any]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the neighbours of each query; zero for a query without any."""
        some = self.counts > 0
        sums = np.zeros((len(some), *values.shape[1:]))
        if some.any():
            sums[some] = np.add.reduceat(values, (np.cumsum(self.counts) - self.counts)[some], axis=0)
        return sums

    def means(self, targets: np.ndarray) -> np.ndarray:
        """The mean of the neighbours' targets for each query; NaN for a query without any."""
        Y = targets[self.rows]
        shape = (-1, *[1] * (Y.ndim - 1))
        if self.weights is None:
            total = self.counts.astype(np.float64)
        else:
            Y, total = self.weights.reshape(shape) * Y, self.sums(self.weights)
        with np.errstate(invalid="ignore"):  # nothing over nothing
            return np.asarray(self.sums(Y) / total.reshape(shape))

    def shares(self, codes: np.ndarray, n_classes: int) -> np.ndarray:
        """The share of each class in the votes for each query; zeros for a query without neighbours."""
        n = len(self.counts)
        query = np.repeat(np.arange(n), self.counts)
        votes = np.bincount(query * n_classes + codes[self.rows], weights=self.weights, minlength=n * n_classes)
        votes = votes.reshape(n, n_classes).astype(np.float64)
        total = votes.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(votes, total, out=np.zeros_like(votes), where=total > 0))


def is_uniform(weights: Any) -> bool:
    return weights is None or (isinstance(weights, str) and weights == "uniform")


def neighbor_weights(weights: Any, distances: np.ndarray) -> np.ndarray | None:
    """The weights of neighbours, of shape (n, k); None where all count alike.

    By distance, neighbours at distance zero count alone; so do neighbours of infinite weight.
    """
    if is_uniform(weights):
        return None
    if isinstance(weights, str):
        zero = distances == 0
        with np.errstate(divide="ignore"):
            inverse = 1.0 / distances.astype(np.float64)
        exact = zero.any(axis=1)
        inverse[exact] = zero[exact]
        # Distances near the smallest number there is have an infinite inverse.
        return _limits(inverse)
    values = np.asarray(weights(distances), dtype=np.float64)
    if values.shape != distances.shape or np.isnan(values).any() or (values < 0).any():
        raise ParameterError(
            f"weights: the function gave shape {values.shape} for distances of shape {distances.shape}; expected as "
            "many numbers >= 0"
        )
    values = _limits(np.array(values))
    if values.shape[1] and not values.any(axis=1).all():
        raise ParameterError(
            "All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this case if you "
            "are using a user-defined function."
        )
    return values


def _limits(values: np.ndarray) -> np.ndarray:
    """Weights of which the infinite ones, where a row has any, count alone."""
    beyond = np.isinf(values).any(axis=1)
    values[beyond] = np.isinf(values[beyond])
    return values


# ------------------------------------------------------------------------------------------- predictors


class KNeighborsPredictor(KNeighborsSearch):
    """Predicts from the k nearest rows."""

    _parameters: ClassVar[Mapping[str, Domain]] = {**SEARCH_PARAMETERS, "n_neighbors": K, "weights": WEIGHTS}

    weights: Any

    @stores_arguments(algorithm="auto", leaf_size=30, p=2, metric="minkowski", metric_params=None, n_jobs=None)
    def __init__(
        self, n_neighbors: int = 5, *, weights: Any = "uniform", **shared: Unpack[SearchArguments]
    ) -> None: ...

    def _voters(self, X: Any) -> Voters:
        """The neighbours for prediction, of rows in memory or in files, or of the rows of the fit, left out."""
        self._check_fitted()
        if X is None:
            found = [self.kneighbors()]
        else:
            data: Data = self._query_data(X)
            k = self._wanted(None, self.n_samples_fit_ if data.n_rows is None else data.n_rows, self_excluded=False)
            found = [self._search(batch.X, k) for batch in batches_in_order(data)]
        distances, rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
        share = neighbor_weights(self.weights, distances)
        counts = np.full(len(rows), rows.shape[1])
        return Voters(counts, rows.ravel(), None if share is None else share.ravel(), distances.dtype)


class RadiusNeighborsPredictor(RadiusNeighborsSearch):
    """Predicts from the rows within a radius."""

    _parameters: ClassVar[Mapping[str, Domain]] = {**SEARCH_PARAMETERS, "radius": RADIUS, "weights": WEIGHTS}

    weights: Any

    @stores_arguments(algorithm="auto", leaf_size=30, p=2, metric="minkowski", metric_params=None, n_jobs=None)
    def __init__(self, radius: float = 1.0, *, weights: Any = "uniform", **shared: Unpack[SearchArguments]) -> None: ...

    def _voters(self, X: Any) -> Voters:
        """The neighbours for prediction, as for the k nearest."""
        self._check_fitted()
        if X is None:
            found = [self._within(None, self.radius)]
        else:
            found = [self._search_radius(batch.X, self.radius) for batch in batches_in_order(self._query_data(X))]
        distances, rows = ([part for parts in every for part in parts] for every in zip(*found, strict=True))
        counts = np.array([len(row) for row in rows])
        share = None
        if not is_uniform(self.weights):
            parts: list[Any] = [neighbor_weights(self.weights, d[None, :]) for d in distances]
            share = np.concatenate([np.zeros(0), *(part[0] for part in parts)])
        return Voters(counts, np.concatenate(rows), share, distances[0].dtype)
