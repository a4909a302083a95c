"""Agglomerative clustering:  merge the two clusters A, B with the least d(A, B), again and again.

single     min d(a, b)                     complete   max d(a, b)
average    mean d(a, b)                    weighted   (d(A', B) + d(A'', B)) / 2  for A = A' + A''
centroid   |mean A - mean B|               median     the same, with (mean A' + mean A'') / 2 for mean A
ward       sqrt(2 |A| |B| / (|A| + |B|)) |mean A - mean B|
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_memory

from epicycle.cluster.hierarchy._cut import by_height, by_number, by_persistence, children_of
from epicycle.cluster.hierarchy._distances import square_of
from epicycle.cluster.hierarchy._evidence import certificate_of
from epicycle.cluster.hierarchy._linkage import LINKAGES, Problem, Tree, problem_of, tree_of
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import (
    AnyOf,
    ArrayLike,
    Boolean,
    Callable,
    Choice,
    Described,
    Domain,
    InstanceOf,
    Integer,
    NoneOr,
    Real,
)
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.spatial._metrics import NAMES, is_precomputed

Built = tuple[np.ndarray, int, int, Certificate]


class AgglomerativeClustering(ClusterMixin, Estimator):  # type: ignore[misc]  # scikit-learn's mixin is untyped
    r"""Hierarchical clustering from the rows upwards: the two nearest clusters merge until one is left.

    .. math::

       d_{\text{single}} = \min d(a, b), \quad d_{\text{complete}} = \max d(a, b), \quad
       d_{\text{average}} = \operatorname{mean} d(a, b), \quad
       d_{\text{Ward}} = \sqrt{\tfrac{2 |A| |B|}{|A| + |B|}} \; \| \bar a - \bar b \|

    over rows a of one cluster and b of the other. `linkage_` is SciPy's linkage matrix, with merges in the order of
    SciPy also where distances are equal, as long as all pairs are held (see `algorithm`). Single, Ward's, centroid and
    median linkage of many rows need no matrix of distances.

    Sparse rows stay sparse; their distances, of all pairs, are computed in blocks.

    A row of weight v counts as v equal rows: in sizes and means of the average, Ward's and the centroid linkage. The
    other linkages are the same for any positive weights, as they are for repeated rows. Rows of weight 0 are not in the
    tree, which numbers the others in their order; their label is -1.

    Parameters
    ----------
    n_clusters : int, "persistence" or None, default=2
        Number of clusters; "persistence" takes the one (at least 2) that is kept over the longest interval of heights.
        None with a `distance_threshold`.
    metric : str or callable, default="euclidean"
        A name as for :class:`NearestNeighbors`; a function of X that returns all distances, or one of two rows; or
        "precomputed" for distances X, square or in condensed form. Ward's, centroid and median linkage take
        "euclidean" ("l2") or distances, which then have to be Euclidean.
    memory : str, joblib.Memory or None, default=None
        Where trees are kept, to be used again by fits to the same data.
    connectivity : array, sparse matrix, callable or None, default=None
        Of shape (n_samples, n_samples), or a function of X that returns it: only clusters between which it has an edge
        may merge, and distances of rows without an edge play no part. For ward, complete, average and single linkage.
    compute_full_tree : "auto" or bool, default="auto"
        With a connectivity, whether the tree is built beyond `n_clusters`; "auto": where `n_clusters` is less than 100
        or 2% of the rows. Without one it always is.
    linkage : {"ward", "complete", "average", "single", "weighted", "centroid", "median"}, default="ward"
    distance_threshold : float or None, default=None
        Clusters do not merge at this height or above. Where heights can fall (centroid, median, or a connectivity) a
        cluster has no merge at this height or above within.
    compute_distances : bool, default=False
        Whether to set `distances_` also without a `distance_threshold`.
    algorithm : {"auto", "matrix", "vectors"}, default="auto"
        Whether the distances of all pairs are held, or are computed from rows and means when they are needed (single,
        ward, centroid, median). The trees are equal but for rounding and for merges of equal height. "auto" holds them
        for up to about 4,000 rows. Single linkage never does for Euclidean, Manhattan and Chebyshev distances.
    metric_params : dict or None, default=None
        Parameters of the metric, such as ``p`` of "minkowski".

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    linkage_ : ndarray of shape (n_merges, 4)
        SciPy's linkage matrix: the two nodes, the height, the number of rows below.
    children_ : ndarray of shape (n_merges, 2)
        The two nodes of each merge.
    distances_ : ndarray of shape (n_merges,)
        Heights; with `compute_distances` or a `distance_threshold`.
    n_leaves_ : int
    n_connected_components_ : int
        Of the connectivity.
    certificate_ : Certificate
        Deviation from the definition over a sample of merges: the height, and that no cluster was nearer.
    history_ : History
        One row, with the largest height; all heights are in `linkage_`.

    Examples
    --------
    >>> from epicycle import AgglomerativeClustering
    >>> X = [[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [4.0, 2.0], [4.0, 4.0], [4.0, 0.0]]
    >>> model = AgglomerativeClustering(linkage="average").fit(X)
    >>> model.labels_.tolist()
    [1, 1, 1, 0, 0, 0]
    >>> model.linkage_[0].tolist()
    [0.0, 1.0, 2.0, 2.0]
    >>> len(set(model.cut(distance_threshold=2.5)))
    4
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_clusters": NoneOr(AnyOf(Integer(minimum=1), Choice("persistence"))),
        "metric": AnyOf(Choice(*NAMES), Callable()),
        "memory": NoneOr(
            Described("a path or a joblib.Memory", lambda value: isinstance(value, str) or hasattr(value, "cache"))
        ),
        "connectivity": NoneOr(AnyOf(ArrayLike(), Callable())),
        "compute_full_tree": AnyOf(Choice("auto"), Boolean()),
        "linkage": Choice(*LINKAGES),
        "distance_threshold": NoneOr(Real(minimum=0)),
        "compute_distances": Boolean(),
        "algorithm": Choice("auto", "matrix", "vectors"),
        "metric_params": NoneOr(InstanceOf(dict)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E2",), engines=("memory",), certificate="linkage definition"
    )
    _takes_sparse = True

    labels_: np.ndarray
    n_clusters_: int
    linkage_: np.ndarray
    children_: np.ndarray
    distances_: np.ndarray
    n_leaves_: int
    n_connected_components_: int

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        n_clusters: int | str | None = 2,
        *,
        metric: Any = "euclidean",
        memory: Any = None,
        connectivity: Any = None,
        compute_full_tree: bool | str = "auto",
        linkage: str = "ward",
        distance_threshold: float | None = None,
        compute_distances: bool = False,
        algorithm: str = "auto",
        metric_params: dict[str, Any] | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the tree of rows X, or of distances X, and cut it."""
        self._check_cut()
        if is_precomputed(self.metric) and np.ndim(X) == 1:
            X = square_of(X)
        return self._fit_rows(self._rows(X, sample_weight))

    def _check_cut(self) -> None:
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ParameterError(
                "Exactly one of n_clusters and distance_threshold has to be set, and the other needs to be None."
            )
        if self.distance_threshold is not None and self.compute_full_tree is False:
            raise ParameterError("compute_full_tree must be True if distance_threshold is set.")

    def _rows(self, X: Any, sample_weight: Any) -> ArrayData:
        data = self._fit_data(X, None, sample_weight, target="none")
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: {type(self).__name__} needs all rows in memory, got {type(X).__name__}")
        return data

    def _fit_rows(self, data: ArrayData) -> Self:
        n = data.n_rows
        kept = np.arange(n) if data.weight is None else np.flatnonzero(data.weight > 0)
        if len(kept) < 2:
            raise DataError(
                f"Found array with {len(kept)} sample(s) (shape={data.X.shape}) while a minimum of 2 is required by "
                f"{type(self).__name__}."
            )
        X = data.X
        connectivity = self.connectivity(X) if callable(self.connectivity) else self.connectivity
        if len(kept) < n:
            X, connectivity = self._without(X, connectivity, kept)
        weight = None if data.weight is None else np.ascontiguousarray(data.weight[kept], dtype=np.float64)
        if weight is not None and (weight == 1.0).all():
            weight = None
        build = check_memory(self.memory).cache(_build, ignore=["n_jobs"])
        Z, leaves, components, certificate = build(
            X, self.metric, self.metric_params, self.linkage, connectivity, weight, self.algorithm,
            self._stop_at(len(kept)), self.n_jobs,
        )  # fmt: skip
        self.linkage_, self.n_leaves_, self.n_connected_components_ = Z, leaves, components
        self.children_ = children_of(Z).astype(np.intp)
        if self.compute_distances or self.distance_threshold is not None:
            self.distances_ = Z[:, 2].copy()
        label = self.cut()
        self.labels_ = np.full(n, -1, dtype=np.intp)
        self.labels_[kept] = label
        self.n_clusters_ = int(label.max()) + 1
        self._conclude_directly(certificate, objective=float(Z[:, 2].max()), merges=len(Z))
        return self

    def _without(self, X: Any, connectivity: Any, kept: np.ndarray) -> tuple[Any, Any]:
        """Rows of weight 0 left out."""
        if is_precomputed(self.metric) and X.shape[0] != X.shape[1]:
            raise DataError(f"X: expected a square matrix of distances (metric='precomputed'), got shape {X.shape}")
        X = X[np.ix_(kept, kept)] if is_precomputed(self.metric) else X[kept]
        if connectivity is None:
            return X, None
        dense = np.asarray(connectivity) if not hasattr(connectivity, "tocsr") else connectivity.tocsr()
        return X, dense[kept][:, kept]

    def _stop_at(self, n: int) -> int | None:
        """The number of clusters at which the tree ends; None for all of it."""
        if self.connectivity is None or not isinstance(self.n_clusters, int | np.integer):
            return None
        whole = self.compute_full_tree
        if whole == "auto":
            whole = self.n_clusters < max(100, 0.02 * n)
        return None if whole else int(self.n_clusters)

    # ------------------------------------------------------------------------------------------- use of a fit

    def cut(self, n_clusters: int | str | None = None, distance_threshold: float | None = None) -> np.ndarray:
        """Labels of the leaves for another cut of the same tree.

        Parameters
        ----------
        n_clusters : int, "persistence" or None, default=None
            Number of clusters; by default that of the constructor, if no threshold is given either.
        distance_threshold : float or None, default=None
            Height at which clusters do not merge any more.

        Returns
        -------
        ndarray of shape (n_leaves_,)
        """
        if "linkage_" not in vars(self):
            self._check_fitted()
        if n_clusters is not None and distance_threshold is not None:
            raise ParameterError(
                "Exactly one of n_clusters and distance_threshold has to be set, and the other needs to be None."
            )
        if n_clusters is None and distance_threshold is None:
            n_clusters, distance_threshold = self.n_clusters, self.distance_threshold
        n = self.n_leaves_
        if distance_threshold is not None:
            return by_height(self.linkage_, n, float(distance_threshold))
        if n_clusters == "persistence":
            return by_number(self.linkage_, n, by_persistence(self.linkage_, n))
        assert isinstance(n_clusters, int | np.integer)
        return by_number(self.linkage_, n, int(n_clusters))


def _build(
    X: Any, metric: Any, metric_params: Any, linkage: str, connectivity: Any, weight: Any, algorithm: str,
    n_clusters: int | None, n_jobs: int | None,
) -> Built:  # fmt: skip
    """The tree and its certificate, as things that can be kept in files."""
    problem: Problem = problem_of(X, metric, metric_params, linkage, connectivity, weight)
    tree: Tree = tree_of(problem, algorithm, n_clusters, n_jobs)
    return tree.Z, tree.n_leaves, tree.n_components, certificate_of(problem, tree)
