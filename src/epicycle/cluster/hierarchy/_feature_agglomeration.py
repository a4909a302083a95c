"""Feature agglomeration:  hierarchical clusters of columns, each pooled into one column."""

from __future__ import annotations

from collections.abc import Callable as Function, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from epicycle import engine
from epicycle.cluster.hierarchy._agglomerative import AgglomerativeClustering
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._parameters import Callable, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch


class FeatureAgglomeration(ClassNamePrefixFeaturesOutMixin, TransformerMixin, AgglomerativeClustering):  # type: ignore[misc]
    r"""Columns that resemble each other, merged by hierarchical clustering.

    .. math:: z_c = \operatorname{pool} \{ x_j : j \text{ in cluster } c \}

    The tree is that of :class:`AgglomerativeClustering` with columns in the place of rows. A row of weight v counts v
    times in the distances of columns, which have to be Euclidean or Manhattan distances then.

    Parameters
    ----------
    n_clusters : int, "persistence" or None, default=2
        Number of clusters of columns; None with a `distance_threshold`.
    metric : str or callable, default="euclidean"
        Distance of columns, as for :class:`AgglomerativeClustering`.
    memory : str, joblib.Memory or None, default=None
        Where trees are kept, to be used again by fits to the same data.
    connectivity : array, sparse matrix, callable or None, default=None
        Of shape (n_features, n_features), or a function of the transposed X that returns it: only clusters between
        which it has an edge may merge.
    compute_full_tree : "auto" or bool, default="auto"
        With a connectivity, whether the tree is built beyond `n_clusters`.
    linkage : {"ward", "complete", "average", "single", "weighted", "centroid", "median"}, default="ward"
    pooling_func : callable, default=np.mean
        Called with the columns of a cluster, of shape (n_samples, m), and ``axis=1``.
    distance_threshold : float or None, default=None
        Clusters do not merge at this height or above.
    compute_distances : bool, default=False
        Whether to set `distances_` also without a `distance_threshold`.
    algorithm : {"auto", "matrix", "vectors"}, default="auto"
        As for :class:`AgglomerativeClustering`.
    metric_params : dict or None, default=None
        Parameters of the metric.

    Attributes
    ----------
    labels_ : ndarray of shape (n_features,)
    n_clusters_ : int
    linkage_ : ndarray of shape (n_merges, 4)
        SciPy's linkage matrix.
    children_ : ndarray of shape (n_merges, 2)
    distances_ : ndarray of shape (n_merges,)
        Heights; with `compute_distances` or a `distance_threshold`.
    n_leaves_ : int
        Number of columns.
    n_connected_components_ : int
        Of the connectivity.
    certificate_ : Certificate
        As for :class:`AgglomerativeClustering`.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import FeatureAgglomeration
    >>> X = np.array([[0.0, 0.1, 5.0], [1.0, 1.1, 4.0], [2.0, 2.1, 6.0]])
    >>> model = FeatureAgglomeration(2).fit(X)
    >>> model.transform(X).round(2).tolist()
    [[0.05, 5.0], [1.05, 4.0], [2.05, 6.0]]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**AgglomerativeClustering._parameters, "pooling_func": Callable()}
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E2",), engines=("memory",), certificate="linkage definition"
    )
    pooling_func: Function[..., Any]

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
        pooling_func: Function[..., Any] = np.mean,
        distance_threshold: float | None = None,
        compute_distances: bool = False,
        algorithm: str = "auto",
        metric_params: dict[str, Any] | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @property
    def fit_predict(self) -> Any:  # a transformer gives no labels of rows
        raise AttributeError(f"{type(self).__name__} clusters columns: it has labels_, and transform")

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Build the tree of the columns of X and cut it."""
        self._check_cut()
        data = self._rows(X, sample_weight)
        if data.n_features < 2:
            raise DataError(
                f"Found array with {data.n_features} feature(s) (shape={data.X.shape}) while a minimum of 2 is "
                f"required by {type(self).__name__}."
            )
        columns = self._weighted(data).T
        self._fit_rows(ArrayData(sp.csr_array(columns) if sp.issparse(columns) else np.ascontiguousarray(columns)))
        return self

    @property
    def _n_features_out(self) -> int:
        """As scikit-learn's mixin asks for it."""
        return self.n_clusters_

    def _weighted(self, data: ArrayData) -> Any:
        """Rows multiplied so that distances of columns count each as often as its weight says."""
        if data.weight is None or (data.weight == 1.0).all():
            return data.X
        power = {"euclidean": 0.5, "l2": 0.5, "manhattan": 1.0, "l1": 1.0, "cityblock": 1.0}
        if not isinstance(self.metric, str) or self.metric not in power:
            raise ParameterError(
                f"sample_weight with metric={self.metric!r}; expected 'euclidean' or 'manhattan', whose distances of "
                "columns are sums over rows"
            )
        factor = data.weight[:, None] ** power[self.metric]
        return sp.csr_array(data.X.multiply(factor)) if sp.issparse(data.X) else data.X * factor

    def transform(self, X: Any) -> Any:
        """Pool the columns of every cluster.

        Returns
        -------
        array of shape (n_samples, n_clusters_)
        """
        return engine.map(pool_batch, self._predict_data(X), self.labels_, self.pooling_func, n_jobs=self.n_jobs)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Give every column the value of its cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_clusters_) or (n_clusters_,)

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_features,)
        """
        self._check_fitted()
        pooled = np.asarray(X)
        if pooled.ndim not in (1, 2):
            raise DataTypeError(f"X: {pooled.ndim} dimensions; expected one or two")
        if pooled.shape[-1] != self.n_clusters_:
            raise DataError(f"X: {pooled.shape[-1]} columns; expected {self.n_clusters_}, one for each cluster")
        return np.asarray(pooled[..., self.labels_])


def pool_batch(batch: Batch, labels: np.ndarray, pool: Function[..., Any]) -> np.ndarray:
    """The pooled columns of a batch."""
    X = batch.X
    k = int(labels.max()) + 1
    if pool is np.mean:
        shares = sp.csr_array((1.0 / np.bincount(labels)[labels], (np.arange(len(labels)), labels)), (len(labels), k))
        means = X @ shares
        means = means.toarray() if sp.issparse(means) else means
        return np.asarray(means, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    dense = X.toarray() if sp.issparse(X) else X
    return np.stack([np.asarray(pool(dense[:, labels == c], axis=1)) for c in range(k)], axis=1)
