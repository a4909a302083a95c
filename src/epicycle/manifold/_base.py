"""Common parts of embeddings: places of the rows of the fit, and how well they keep neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from epicycle.core._exceptions import DataError
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData
from epicycle.data._dask_data import is_dask
from epicycle.metrics._neighborhoods import Agreement, agreement, euclidean_rows, rows_drawn

EIGENVALUES = "eigenvalue residual"
#: Rows whose neighbours are compared, at most and at least, and multiply-adds that are spent on it.
_MOST, _LEAST, _WORK = 400, 50, 5e8
#: Neighbours that are compared.
_NEIGHBORS = 5
#: Largest and least size of values whose fourth powers are numbers.
_SIZE = 1e70


def card(row: str, certificate: str) -> MethodCard:
    """The card of an embedding of this row of the catalogue, which keeps rows or distances."""
    return MethodCard(
        family="manifold", catalogue=(row,), engines=("memory",), certificate=certificate, keeps_rows=True
    )


class Embedding(ClassNamePrefixFeaturesOutMixin, Estimator):  # type: ignore[misc]  # untyped mixin
    """Base of methods that give every row a place in few dimensions, `embedding_`."""

    _docs: ClassVar[Mapping[str, str]] = {
        "n_components": "n_components : int, default={default}\n    Number of coordinates.",
        "fit_y": "%(ignored)s",
        "fit_transform_y": "%(ignored)s",
        "fit_transform_returns": "array of shape (n_samples, n_components)",
        "transform_returns": "ndarray of shape (n_samples, n_components)",
        "quality": """trustworthiness_ : float
    How far neighbours in the embedding are neighbours in X, 1 at best: :func:`~epicycle.metrics.trustworthiness`
    with five neighbours, from a sample of the rows where there are many (`quality_rows_`).
continuity_ : float
    The same the other way round: :func:`~epicycle.metrics.continuity`.
neighborhood_preservation_ : float
    Share of the neighbours that are the same: :func:`~epicycle.metrics.neighborhood_preservation`.
quality_rows_ : int
    From how many rows these three were found.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("quality",)

    embedding_: np.ndarray
    trustworthiness_: float
    continuity_: float
    neighborhood_preservation_: float
    quality_rows_: int

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to rows X, and return their places."""
        return self.fit(X).embedding_

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _table(self, X: Any, sample_weight: Any = None, *, check_finite: bool = True) -> ArrayData:
        """The rows of the fit, in memory."""
        name = type(self).__name__
        if is_dask(X):
            raise DataError(f"X: {name} needs its rows in memory; compute() them first")
        data = self._fit_data(X, None, sample_weight, target="none", check_finite=check_finite)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {name} needs its rows in memory; collect them first")
        return data

    def _judge(self, distances: Callable[[Any], np.ndarray], width: int, n_jobs: int | None = None) -> str:
        """Set how well neighbours are kept, by a function that gives distances of rows in X to all; in words.

        `width` says how many multiply-adds one distance costs.
        """
        n = len(self.embedding_)
        found = compared(distances, self.embedding_, n, width, n_jobs)
        self.trustworthiness_, self.continuity_ = found.trustworthiness, found.continuity
        self.neighborhood_preservation_, self.quality_rows_ = found.preservation, found.n_rows
        seen = "" if found.n_rows == n else f", from {found.n_rows:,} rows drawn of {n:,}"
        return (
            f"trustworthiness {found.trustworthiness:.3f}, continuity {found.continuity:.3f}, "
            f"{found.preservation:.0%} of {found.n_neighbors} neighbours kept{seen}"
        )


def compared(
    distances: Callable[[Any], np.ndarray], places: np.ndarray, n: int, width: int, n_jobs: int | None = None
) -> Agreement:
    """The neighbourhoods of rows and of their places, for a sample of rows where there are many."""
    k = min(_NEIGHBORS, (n - 1) // 2)
    if k < 1:  # one or two rows: there is nothing to confuse
        return Agreement(1.0, 1.0, 1.0, 0, n)
    drawn = rows_drawn(n, int(min(_MOST, max(_LEAST, _WORK / (float(n) * max(width, 1))))), 0)
    Z = to_unit_size(places.astype(np.float64))[0]
    return agreement(distances, euclidean_rows(Z), n, drawn, k, n_jobs)


def to_unit_size(values: np.ndarray) -> tuple[np.ndarray, float]:
    """(values / scale, scale), with a power of two as scale where fourth powers would not be numbers, else 1."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0 or 1.0 / _SIZE < largest < _SIZE:
        return values, 1.0
    scale = float(2.0 ** np.clip(np.floor(np.log2(largest)), -1022, 1023))
    return values / scale, scale
