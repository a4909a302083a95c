"""Common parts of clusterings around prototypes: the fit from several starts, labels, and the use of a fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from epicycle.cluster._descent import Descent
from epicycle.cluster._empty import warn_of_empty
from epicycle.cluster.prototypes._rounds import Dissimilarity, Rounds, first_rows
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData


class PrototypeModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):  # type: ignore[misc]  # untyped
    """Base of clusterings whose prototypes have the best value in every column.

    Equal rows count as one of their weight, in an order by content: what is repeated and what weighs more is the same.
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "fit_X": "X : array or data frame of shape (n_samples, n_features)",
        "predict_X": "%(fit_X)s",
        "predict_returns": "ndarray of shape (n_samples,)",
        "transform_X": "%(fit_X)s",
        "transform_returns": "ndarray of shape (n_samples, n_clusters)",
        "labels_": "labels_ : ndarray of shape (n_samples,)\n    The cluster of every row.",
        "inertia_": "inertia_ : float\n    J.",
        "certificate_": "certificate_ : Certificate\n    Stationarity: how many prototypes changed in the last round.",
        "history_": "history_ : History\n"
        "    J after every round, the start, and how many prototypes changed; J never rises within a start.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("labels_", "inertia_")
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory",), certificate="stationarity"
    )

    n_clusters: int
    init: Any
    n_init: int
    max_iter: int
    random_state: Any
    labels_: np.ndarray
    inertia_: float
    _prototypes_: np.ndarray

    @abstractmethod
    def _dissimilarity(self) -> Dissimilarity:
        """The dissimilarity of rows from prototypes, after `fit` has looked at the columns."""

    @abstractmethod
    def _numbers(self, X: Any) -> np.ndarray:
        """New rows as numbers and codes."""

    def _given_prototypes(self) -> np.ndarray | None:
        """Prototypes that the user brought, as numbers and codes."""
        return None if isinstance(self.init, str) else self._numbers(self.init)

    def _fit_rows(self, data: ArrayData, X: np.ndarray) -> None:
        """Fit to rows of numbers and codes."""
        weight = np.ones(len(X)) if data.weight is None else data.weight
        counted = weight > 0
        if counted.sum() < self.n_clusters:
            raise DataError(f"n_samples={counted.sum()} should be >= n_clusters={self.n_clusters}.")
        rows, number = np.unique(X[counted], axis=0, return_inverse=True)
        k, state = min(int(self.n_clusters), len(rows)), self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        rounds = Rounds(rows, np.bincount(number.ravel(), weight[counted]), self._dissimilarity())
        given = self._given_prototypes()
        if given is not None and given.shape != (self.n_clusters, X.shape[1]):
            raise DataError(f"init: {given.shape}; expected prototypes of shape {(self.n_clusters, X.shape[1])}")
        starts = int(self.n_init) if isinstance(self.init, str) and self.init != "cao" else 1
        monitor = self._monitor(starts * int(self.max_iter), lambda x: {"_prototypes_": x.reshape(-1, data.n_features)})
        descent = Descent(
            starts=starts,
            max_iter=int(self.max_iter),
            tol=0.0,
            begin=lambda start: (
                first_rows(rounds, self.init, k, stream(seed, "start", start)) if given is None else given[:k]
            ),
            rounds_from=lambda _start: rounds.begun().round,
            shown=lambda prototypes: prototypes.ravel(),
            scale=rounds.scale(),
        )
        run = descent.best(monitor, seed, state)
        # More clusters than different rows: the others repeat, and stay empty.
        self._prototypes_ = np.resize(run.centers, (int(self.n_clusters), X.shape[1]))
        d = rounds.how.between(X, self._prototypes_)
        self.labels_ = d.argmin(axis=1).astype(np.int32)
        self.inertia_ = float(weight @ d.min(axis=1))
        warn_of_empty(self.labels_[weight > 0], int(self.n_clusters))
        meaning = (
            "prototypes that changed in the last round: every row is at its nearest, and each is best for its rows"
        )
        certificate = Certificate("stationarity", run.moved, 0.0, meaning)
        found = self._prototypes_.ravel()
        self._conclude(Solution(found, run.value, monitor.history(), certificate, run.n_iter, run.reason))

    # ------------------------------------------------------------------------------------------- use of a fit

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of every row: the number of its nearest prototype."""
        return np.asarray(self.transform(X).argmin(axis=1), dtype=np.int32)

    def transform(self, X: Any) -> np.ndarray:
        """Dissimilarities of every row and all prototypes."""
        self._check_fitted()
        return self._dissimilarity().between(self._numbers(X), self._prototypes_)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return the cluster of every row."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return their dissimilarities from all prototypes."""
        self.fit(X, sample_weight=sample_weight)
        return self.transform(X)

    def _memory(self, data: Any) -> ArrayData:
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} needs its rows in memory; compute() or collect them first")
        return data

    @property
    def _n_features_out(self) -> int:
        return len(self._prototypes_)
