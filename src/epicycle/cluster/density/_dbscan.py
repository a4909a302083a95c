"""DBSCAN: regions of high density, and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp

from epicycle.cluster.density._base import DensityClustering
from epicycle.cluster.density._dense_regions import Density, checked, regions
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Domain, Integer, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data._target import as_partial_weight
from epicycle.spatial._metrics import resolve
from epicycle.spatial._options import SEARCH_DOCS, SEARCH_PARAMETERS, SearchArguments
from epicycle.spatial._rows import rows_to_search


class DBSCAN(DensityClustering):
    r"""Clusters of high density, of any shape, and noise.

    .. math:: i \text{ is a core row if } \sum_{j:\, d(x_i, x_j) \le \epsilon} v_j \; \ge \; m .

    Core rows within :math:`\epsilon` of each other are in one cluster. Other rows within :math:`\epsilon` of a core row
    belong to its cluster, the first where there are several; the rest is noise. No list of neighbours is stored: for up
    to eight columns a tree counts neighbours until they are enough and unites core rows, otherwise blocks of distances
    do, and memory grows with the number of rows. A fitted object keeps the training rows that are core rows.

    Parameters
    ----------
    eps : float, default=0.5
        Distance up to which rows are neighbours.
    min_samples : int, default=5
        m, the number of neighbours, or the sum of their weights, that makes a core row; it counts itself.

    Attributes
    ----------
    core_sample_indices_ : ndarray of shape (n_core_samples,)
    components_ : array or CSR matrix of shape (n_core_samples, n_features)
        The core rows.
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row, -1 for noise; clusters are numbered by their first core row.
    certificate_ : Certificate
        The definition, checked by brute force for a sample of rows after the fit.

    Examples
    --------
    >>> from epicycle import DBSCAN
    >>> model = DBSCAN(eps=3, min_samples=2).fit([[1, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]])
    >>> model.labels_
    array([ 0,  0,  0,  1,  1, -1])
    >>> model.core_sample_indices_
    array([0, 1, 2, 3, 4])
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    Weights, by default 1: a row of weight `min_samples` is a core row by itself, and one of a negative weight may keep
    its neighbours from being core rows.""",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SEARCH_PARAMETERS,
        "eps": Real(minimum=0, inclusive=False),
        "min_samples": Integer(minimum=1),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E2",), engines=("memory",), certificate="definition", keeps_rows=True
    )
    core_sample_indices_: np.ndarray
    components_: Any

    @stores_arguments(metric="euclidean", metric_params=None, algorithm="auto", leaf_size=30, p=None, n_jobs=None)
    def __init__(self, eps: float = 0.5, *, min_samples: int = 5, **shared: Unpack[SearchArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X, or of distances X between them."""
        data, rows = rows_to_search(self, X, None, warn=False, target="none")
        weight = None if sample_weight is None else as_partial_weight(sample_weight, data.n_rows, signed=True)
        if weight is not None and not weight.any():
            raise DataError("Sample weights must contain at least one non-zero number: all of sample_weight are zero")
        metric = resolve(2 if self.p is None else self.p, self.metric, self.metric_params)
        density = Density(float(self.eps), float(self.min_samples), weight)
        found = regions(rows, metric, density, self.algorithm, self.n_jobs)
        self.core_sample_indices_ = np.flatnonzero(found.core)
        self.labels_ = found.label.astype(np.intp)
        core = rows[self.core_sample_indices_]
        self.components_ = core.copy() if sp.issparse(core) else np.array(core)
        self._conclude_clusters(checked(rows, metric, density, found))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit to rows X, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_


@documented({**SEARCH_DOCS, **DBSCAN._docs})
def dbscan(
    X: Any,
    eps: float = 0.5,
    *,
    min_samples: int = 5,
    metric: Any = "minkowski",
    metric_params: dict[str, Any] | None = None,
    algorithm: str = "auto",
    leaf_size: int = 30,
    p: float | None = 2,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Core rows and clusters of :class:`DBSCAN`, as a function.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Rows, or distances between them with metric="precomputed".
    eps : float, default=0.5
        Distance up to which rows are neighbours.
    min_samples : int, default=5
        The number of neighbours, or the sum of their weights, that makes a core row.

    Returns
    -------
    core_samples : ndarray of shape (n_core_samples,)
    labels : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from epicycle.cluster import dbscan
    >>> dbscan([[0.0], [0.1], [9.0]], eps=1, min_samples=2)
    (array([0, 1]), array([ 0,  0, -1]))
    """
    model = DBSCAN(
        eps, min_samples=min_samples, metric=metric, metric_params=metric_params, algorithm=algorithm,
        leaf_size=leaf_size, p=p, n_jobs=n_jobs,
    ).fit(X, sample_weight=sample_weight)  # fmt: skip
    return model.core_sample_indices_, model.labels_
