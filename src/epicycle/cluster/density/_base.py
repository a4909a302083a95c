"""Common parts of the estimators of dense clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin

from epicycle.core._certificate import Certificate
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.spatial._metrics import is_precomputed
from epicycle.spatial._options import SEARCH_DOCS
from epicycle.spatial._rows import takes_missing


class DensityClustering(ClusterMixin, Estimator):  # type: ignore[misc]  # untyped mixin
    """Labels of the rows of a fit, from distances."""

    _docs: ClassVar[Mapping[str, str]] = SEARCH_DOCS
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E2",), engines=("memory",), certificate="definition"
    )
    _takes_sparse: ClassVar[bool] = True

    metric: Any
    labels_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.allow_nan = takes_missing(self.metric)
        return tags

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to rows X, and return the cluster of every row."""
        labels: np.ndarray = self.fit(X).labels_
        return labels

    def _conclude_clusters(self, certificate: Certificate) -> None:
        """Set the evidence, with the numbers of clusters and of rows in none."""
        clusters, noise = int(self.labels_.max(initial=-1)) + 1, int((self.labels_ < 0).sum())
        self._conclude_directly(certificate, clusters=clusters, noise=noise)
