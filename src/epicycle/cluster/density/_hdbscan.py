"""HDBSCAN: clusters of a hierarchy of density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.cluster.density._base import DensityClustering
from epicycle.cluster.density._hierarchy import Dendrogram, Reachability, checked, hierarchy, of_graph, warn_if_infinite
from epicycle.cluster.density._selection import CondensedTree, Selection
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.spatial._metrics import MetricInUse, has_tree, is_precomputed, resolve, takes_sparse
from epicycle.spatial._options import SEARCH_PARAMETERS
from epicycle.spatial._pairs import pairs_of

#: Labels of rows that are not in the hierarchy.
INFINITE, MISSING = -2, -3


class HDBSCAN(DensityClustering):
    r"""Clusters that last longest when a threshold of density rises, and noise.

    .. math:: d^*(a, b) = \max\bigl(c_a,\; c_b,\; d(a, b) / \alpha\bigr), \qquad
              S(C) = \sum_{i \in C} \Bigl(\frac{1}{d_i} - \frac{1}{d_C}\Bigr)

    with :math:`c` the distance from the m-th nearest row: single linkage of the mutual reachability distances
    :math:`d^*` is a hierarchy; what splits off with fewer than `min_cluster_size` rows falls out of its cluster. Of all
    clusters that do not overlap those of the largest total stability S are taken, where the cluster appears at
    :math:`d_C` and row i leaves it at :math:`d_i`. Memory grows with the number of rows.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Fewest rows of a cluster.
    min_samples : int, optional
        m, which counts the row itself; by default `min_cluster_size`.
    cluster_selection_epsilon : float, default=0.0
        Clusters that appear at a smaller distance are joined.
    max_cluster_size : int, optional
        Most rows of a cluster that "eom" takes.
    metric : str, callable or DistanceMetric, default="euclidean"
        As for :class:`DBSCAN`; with "precomputed" X holds distances, and a sparse X those of the neighbours.
    alpha : float, default=1.0
        Divides the distances.
    cluster_selection_method : {"eom", "leaf"}, default="eom"
        The clusters of most stability (excess of mass), or those that split no further.
    allow_single_cluster : bool, default=False
        Whether all rows may be one cluster.
    store_centers : {"centroid", "medoid", "both"}, optional
        Which centres of the clusters to compute.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row; -1 is noise, -2 a row with infinite values, -3 one with missing values.
    probabilities_ : ndarray of shape (n_samples,)
        How long a row stays in its cluster: 1 to its end, 0 for noise.
    linkage_ : ndarray of shape (n_finite - 1, 4)
        The hierarchy of the finite rows, in SciPy's form.
    centroids_ : ndarray of shape (n_clusters, n_features)
        Means of the rows of each cluster, weighted by their probabilities; with `store_centers`.
    medoids_ : ndarray of shape (n_clusters, n_features)
        The row of each cluster of the least weighted sum of distances; with `store_centers`.
    certificate_ : Certificate
        That the spanning tree is a shortest one, checked by brute force for a sample of rows after the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import HDBSCAN
    >>> line = np.linspace(0, 1, 20)
    >>> X = np.concatenate([line, 5 + 3 * line, [20.0]])[:, None]
    >>> np.unique(HDBSCAN(min_cluster_size=5).fit(X).labels_, return_counts=True)
    (array([-1,  0,  1]), array([ 1, 20, 20]))
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: domain for name, domain in SEARCH_PARAMETERS.items() if name != "p"},
        "min_cluster_size": Integer(minimum=2),
        "min_samples": NoneOr(Integer(minimum=1)),
        "cluster_selection_epsilon": Real(minimum=0),
        "max_cluster_size": NoneOr(Integer(minimum=1)),
        "alpha": Real(minimum=0, inclusive=False),
        "cluster_selection_method": Choice("eom", "leaf"),
        "allow_single_cluster": Boolean(),
        "store_centers": NoneOr(Choice("centroid", "medoid", "both")),
        "copy": Boolean(),
    }

    probabilities_: np.ndarray
    linkage_: np.ndarray

    @stores_arguments
    def __init__(
        self,
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 40,
        n_jobs: int | None = None,
        cluster_selection_method: str = "eom",
        allow_single_cluster: bool = False,
        store_centers: str | None = None,
        copy: bool = False,
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = not is_precomputed(self.metric)  # such rows stand apart
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of rows X, or of distances X between them."""
        given = is_precomputed(self.metric)
        if given and self.store_centers is not None:
            raise ParameterError("store_centers: Cannot store centers when using a precomputed distance matrix.")
        metric = self._checked_metric()
        rows, kept, outside = self._rows(X, metric)
        n = int(rows.shape[0])
        if n < 2:
            raise DataError(f"n_samples={n} while HDBSCAN requires more than one sample that is finite")
        k = int(self.min_cluster_size if self.min_samples is None else self.min_samples)
        if k > n:
            raise DataError(f"min_samples ({k}) must be at most the number of samples in X ({n})")
        reach = Reachability(k, float(self.alpha))
        if given and sp.issparse(rows):
            tree, core = of_graph(rows, reach, float((self.metric_params or {}).get("max_distance", 0.0)))
        else:
            tree, core = hierarchy(rows, metric, reach, self.algorithm, self.n_jobs)
        warn_if_infinite(tree)
        how = Selection(
            self.cluster_selection_method,
            bool(self.allow_single_cluster),
            float(self.cluster_selection_epsilon),
            self.max_cluster_size,
        )
        condensed = CondensedTree.of(tree, int(self.min_cluster_size))
        labels, strengths = condensed.labels(condensed.selected(how), how)
        self.linkage_ = tree.as_linkage()
        self.labels_, self.probabilities_ = outside.copy(), np.where(outside == MISSING, np.nan, 0.0)
        self.labels_[kept], self.probabilities_[kept] = labels, strengths
        if self.store_centers is not None:
            self._set_centers(rows, metric, labels, strengths)
        self._conclude_clusters(checked(rows, metric, reach, tree, core))
        return self

    def _checked_metric(self) -> MetricInUse:
        options = {k: v for k, v in (self.metric_params or {}).items() if k != "max_distance"}
        for algorithm, name in (("kd_tree", "KDTree"), ("ball_tree", "BallTree")):
            if self.algorithm == algorithm and not has_tree(self.metric, algorithm):
                raise ParameterError(
                    f"{self.metric} is not a valid metric for a {name}-based algorithm. Please select a different "
                    f"metric. algorithm={algorithm!r}; expected 'auto' or 'brute' with it"
                )
        return resolve(2, self.metric, options)

    def _rows(self, X: Any, metric: MetricInUse) -> tuple[Any, np.ndarray, np.ndarray]:
        """(the finite rows, where they are, labels of the others)."""
        given = metric.is_given
        data = self._fit_data(X, None, target="none", check_finite=given and sp.issparse(X))
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} needs its rows in memory; collect them first")
        rows = data.X
        if data.sparse and not given and not takes_sparse(metric):
            raise ParameterError(f"Metric {self.metric!r} not valid for sparse input; expected dense rows")
        if data.sparse and not given and self.algorithm in ("kd_tree", "ball_tree"):
            raise DataError("Sparse data matrices only support algorithm `brute`; expected algorithm='auto' or 'brute'")
        everything = np.arange(data.n_rows)
        if given:
            self._check_distances(rows)
            return rows, everything, np.zeros(data.n_rows, dtype=np.intp)
        with np.errstate(invalid="ignore", over="ignore"):
            totals = _totals(rows)
        outside = np.where(np.isnan(totals), MISSING, np.where(np.isinf(totals), INFINITE, 0)).astype(np.intp)
        kept = np.flatnonzero(outside == 0)
        return rows if len(kept) == data.n_rows else rows[kept], kept, outside

    def _check_distances(self, D: Any) -> None:
        if not sp.issparse(D) and np.isnan(D).any():
            raise DataError("np.nan values found in precomputed-dense; expected distances, or infinity")
        if D.shape[0] != D.shape[1]:
            raise DataError(
                f"The precomputed distance matrix is expected to be symmetric, however it has shape {D.shape}. "
                "Please verify that the distance matrix was constructed correctly."
            )
        apart = abs(D - D.T).max() > 1e-7 * abs(D).max() if sp.issparse(D) else not np.allclose(D, D.T)
        if apart:
            raise DataError(
                "The precomputed distance matrix is expected to be symmetric, however its values appear to be "
                "asymmetric. Please verify that the distance matrix was constructed correctly."
            )

    def _set_centers(self, rows: Any, metric: MetricInUse, labels: np.ndarray, strengths: np.ndarray) -> None:
        n_clusters = int(labels.max(initial=-1)) + 1
        pairs = pairs_of(rows, metric)
        means, medoids = (np.empty((n_clusters, rows.shape[1])) for _ in range(2))
        for cluster in range(n_clusters):
            members = np.flatnonzero(labels == cluster)
            strength = strengths[members]
            means[cluster] = np.average(_dense(rows[members]), weights=strength, axis=0)
            if self.store_centers != "centroid":
                parts = [pairs.distances(members[part], members) @ strength for part in pairs.spans(len(members))]
                best = members[np.argmin(np.concatenate(parts))]
                medoids[cluster] = _dense(rows[[best]])[0]
        if self.store_centers != "medoid":
            self.centroids_ = means
        if self.store_centers != "centroid":
            self.medoids_ = medoids

    @property
    def _single_linkage_tree_(self) -> np.ndarray:
        """The hierarchy in the form that scikit-learn's functions of it take."""
        self._check_fitted()
        names = [("left_node", np.intp), ("right_node", np.intp), ("value", np.float64), ("cluster_size", np.intp)]
        tree = Dendrogram.of_linkage(self.linkage_)
        made = np.empty(len(self.linkage_), dtype=names)
        for (name, _), values in zip(names, tree.arrays, strict=True):
            made[name] = values
        return made

    def dbscan_clustering(self, cut_distance: float, min_cluster_size: int = 5) -> np.ndarray:
        """Clusters of one density: the hierarchy cut at a distance.

        Parameters
        ----------
        cut_distance : float
            Rows that are linked at a smaller mutual reachability distance are in one cluster.
        min_cluster_size : int, default=5
            Clusters of fewer rows are noise.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_fitted()
        tree = Dendrogram.of_linkage(self.linkage_)
        labels = self.labels_.copy()
        labels[labels > MISSING + 1] = _native.cluster.labels_at_cut(
            *tree.arrays, float(cut_distance), int(min_cluster_size)
        )
        return labels


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _totals(rows: Any) -> np.ndarray:
    """Sums of the rows: nan where a value is missing, infinite where one is, finite otherwise."""
    if not sp.issparse(rows):
        total = rows.sum(axis=1, dtype=np.float64)
        finite = np.isfinite(rows).all(axis=1)
    else:
        total = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
        finite = np.asarray(abs(rows).max(axis=1).todense()).ravel() < np.inf
    return np.where(finite, 0.0, total)
