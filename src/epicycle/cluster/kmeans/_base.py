"""Common parts of all models with centres: starts, labels, and the use of a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from epicycle import _native, engine
from epicycle.cluster._empty import warn_of_empty
from epicycle.cluster.kmeans._lloyd import distortion_statistic, nearest, squared_distances
from epicycle.cluster.kmeans._starts import given_centers, memory_start, parallel_plus_plus
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Batch, Data, as_data


class CenterModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):  # type: ignore[misc]  # untyped
    """Base of the models whose clusters are the rows nearest to each of k centres."""

    _takes_sparse = True
    #: Starts where n_init is "auto" and the first centres are rows at random.
    _random_starts = 10

    n_clusters: int
    init: Any
    n_init: int | str
    n_jobs: int | None = None
    cluster_centers_: np.ndarray
    labels_: np.ndarray
    inertia_: float

    # ------------------------------------------------------------------------------------------- parts of a fit

    def _require_rows(self, count: int) -> None:
        if count < self.n_clusters:
            raise DataError(f"n_samples={count} should be >= n_clusters={self.n_clusters}.")

    def _n_starts(self) -> int:
        if not isinstance(self.init, str) and not callable(self.init):
            if self.n_init not in ("auto", 1):
                warnings.warn(
                    f"Explicit initial center position passed: performing only one init in {type(self).__name__} "
                    f"instead of n_init={self.n_init}.",
                    RuntimeWarning,
                    stacklevel=5,
                )
            return 1
        if self.n_init == "auto":
            return self._random_starts if callable(self.init) or self.init == "random" else 1
        return int(self.n_init)

    def _start(self, X: Any, data: Data, seed: int, start: int, k: int | None = None) -> np.ndarray:
        """First centres, by default as many as there are clusters."""
        k, p = int(self.n_clusters) if k is None else k, data.n_features
        if callable(self.init):
            state = np.random.RandomState((seed + start) % 2**32)
            return given_centers(self.init(X, k, random_state=state), k, p)
        if not isinstance(self.init, str):
            return given_centers(self.init, k, p)
        if not isinstance(data, ArrayData) or self.init == "k-means||":
            return parallel_plus_plus(data, k, seed + start, self.n_jobs)
        return memory_start(data, self.init, k, seed, start, self.n_jobs)

    def _set_labels(self, data: Data) -> None:
        """Labels of the rows, and J, at the centres as they are stored."""
        centers = self.cluster_centers_.astype(np.float64)
        if not isinstance(data, ArrayData):
            (self.inertia_,) = engine.sum(distortion_statistic, data, centers, n_jobs=self.n_jobs)
            return
        threads = n_threads(float(data.n_rows) * centers.size, self.n_jobs)
        label = nearest(data.X, centers, threads)
        distance = blockwise_distances(data.X, centers, label)
        self.inertia_ = float(distance.sum() if data.weight is None else distance @ data.weight)
        self.labels_ = label.astype(np.int32)
        warn_of_empty(label, len(centers))

    # ------------------------------------------------------------------------------------------- use of a fit

    def predict(self, X: Any) -> Any:
        """The cluster of every row: the number of its nearest centre."""
        return engine.map(_labels_of_batch, self._predict_data(X), self._centers(), n_jobs=self.n_jobs)

    def transform(self, X: Any) -> Any:
        """Distances of every row from all centres.

        Returns
        -------
        array of shape (n_samples, n_clusters)
        """
        return engine.map(_distances_of_batch, self._predict_data(X), self._centers(), n_jobs=self.n_jobs)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the cluster of every row."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if "labels_" in vars(self) else self.predict(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their distances from all centres."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the distortion of rows X."""
        self._check_fitted()
        data = as_data(X, None, sample_weight, estimator_name=type(self).__name__, accept_sparse=True)
        self._check_features(X, data, reset=False)
        (value,) = engine.sum(distortion_statistic, data, self._centers(), n_jobs=self.n_jobs)
        return -float(value)

    def _centers(self) -> np.ndarray:
        self._check_fitted()
        return self.cluster_centers_.astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def blockwise_distances(X: Any, centers: np.ndarray, label: np.ndarray) -> np.ndarray:
    """|x - c|^2 of every row and its centre, with temporary memory for some rows only."""
    stored = X.shape[1] if isinstance(X, np.ndarray) else 1 + X.nnz // max(1, X.shape[0])
    step = max(1, 2**20 // max(1, stored))
    parts = [squared_distances(X[a : a + step], centers, label[a : a + step]) for a in range(0, len(label), step)]
    return np.concatenate([np.zeros(0), *parts])


def _labels_of_batch(batch: Batch, centers: np.ndarray) -> np.ndarray:
    return nearest(batch.X, centers).astype(np.int32)


def _distances_of_batch(batch: Batch, centers: np.ndarray) -> np.ndarray:
    if isinstance(batch.X, np.ndarray):  # from differences: zero at a centre
        return np.asarray(cdist(batch.X, centers), dtype=batch.X.dtype)
    squares = _native.cluster.closest_distances(batch.X, np.zeros(centers.shape[1]), centers, None, 1)
    return np.asarray(np.sqrt(squares).T, dtype=batch.X.dtype)
