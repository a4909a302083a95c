"""OPTICS: all densities in one order of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from joblib import Memory
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS
from sklearn.utils.validation import check_memory

from epicycle.cluster.density._base import DensityClustering
from epicycle.cluster.density._cluster_optics import cluster_optics_dbscan, cluster_optics_xi, number_of_rows
from epicycle.cluster.density._reachability import checked, reached
from epicycle.core._docs import documented
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.spatial._metrics import resolve
from epicycle.spatial._options import SEARCH_DOCS, SEARCH_PARAMETERS, SearchArguments
from epicycle.spatial._rows import rows_to_search


class OPTICS(DensityClustering):
    r"""An order of the rows in which clusters of any density are valleys.

    .. math:: r(b) = \min_{a \text{ before } b,\; d(a, b) \le \epsilon} \max\bigl(c_a,\; d(a, b)\bigr)

    with :math:`c_a` the distance of a from its m-th nearest row (it counts itself). The next row is always the one of
    the least reachability r. Clusters are cut from the plot of r, at one height or between steep slopes. Memory grows
    with the number of rows, time with its square unless `max_eps` is finite.

    Parameters
    ----------
    min_samples : int > 1 or float between 0 and 1, default=5
        m, or its share of the rows.
    max_eps : float, default=inf
        :math:`\epsilon`, beyond which rows do not reach each other.
    cluster_method : {"xi", "dbscan"}, default="xi"
        Clusters between steep slopes, or of one density.
    eps : float, optional
        Radius of "dbscan", by default `max_eps`.
    xi : float, default=0.05
        Steepness of the slopes of "xi".
    predecessor_correction : bool, default=True
        Whether rows at the end of a valley that were not reached from within it leave it.
    min_cluster_size : int > 1 or float between 0 and 1, optional
        Fewest rows of a cluster of "xi", or their share; by default `min_samples`.
    memory : str or joblib.Memory, optional
        Where the order is kept for later fits with other clusters, as joblib does.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row, -1 for noise.
    reachability_ : ndarray of shape (n_samples,)
        r of every row, infinite where none before it reaches it; ``reachability_[ordering_]`` is the plot.
    ordering_ : ndarray of shape (n_samples,)
        The rows in order.
    core_distances_ : ndarray of shape (n_samples,)
        c of every row, infinite beyond `max_eps`.
    predecessor_ : ndarray of shape (n_samples,)
        The row from which each one was reached, or -1.
    cluster_hierarchy_ : ndarray of shape (n_clusters, 2)
        First and last place in the order of all clusters of "xi", the inner ones first.
    certificate_ : Certificate
        Reachability by its definition, checked by brute force for a sample of rows after the fit.

    Examples
    --------
    >>> from epicycle import OPTICS
    >>> model = OPTICS(min_samples=2).fit([[1, 2], [2, 5], [3, 6], [8, 7], [8, 8], [7, 3]])
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1])
    >>> model.ordering_
    array([0, 1, 2, 5, 3, 4])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SEARCH_PARAMETERS,
        "min_samples": AnyOf(Integer(minimum=2), Real(minimum=0, maximum=1)),
        "max_eps": Real(minimum=0, allow_inf=True),
        "cluster_method": Choice("xi", "dbscan"),
        "eps": NoneOr(Real(minimum=0, allow_inf=True)),
        "xi": Real(minimum=0, maximum=1),
        "predecessor_correction": Boolean(),
        "min_cluster_size": NoneOr(AnyOf(Integer(minimum=2), Real(minimum=0, maximum=1))),
        "memory": NoneOr(AnyOf(InstanceOf(str), InstanceOf(Memory))),
    }
    reachability_: np.ndarray
    ordering_: np.ndarray
    core_distances_: np.ndarray
    predecessor_: np.ndarray

    @stores_arguments(metric="minkowski", p=2, metric_params=None, algorithm="auto", leaf_size=30, n_jobs=None)
    def __init__(
        self,
        *,
        min_samples: float = 5,
        max_eps: float = np.inf,
        cluster_method: str = "xi",
        eps: float | None = None,
        xi: float = 0.05,
        predecessor_correction: bool = True,
        min_cluster_size: float | None = None,
        memory: Any = None,
        **shared: Unpack[SearchArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Order rows X, or rows of which X holds the distances, and find clusters."""
        self._warn_of_booleans(X)
        data, rows = rows_to_search(self, X, None, warn=False, target="none")
        for name in ("min_samples", "min_cluster_size"):
            value = getattr(self, name)
            if value is not None and isinstance(value, int | np.integer) and value < 2:
                raise ParameterError(f"{name}={value!r}; expected an integer >= 2 or a share of the rows")
        k = number_of_rows("min_samples", self.min_samples, data.n_rows)
        radius = float(self.max_eps)
        metric = resolve(self.p, self.metric, self.metric_params)
        ordered = check_memory(self.memory).cache(reached, ignore=["n_jobs"])
        found = ordered(rows, metric, k, radius, self.algorithm, self.n_jobs)
        if np.isinf(found.reach).all():
            warnings.warn(
                "All reachability values are inf. Set a larger max_eps or all data will be considered outliers.",
                UserWarning,
                stacklevel=4,
            )
        self.ordering_, self.predecessor_ = found.order.astype(np.intp), found.predecessor.astype(np.intp)
        self.core_distances_, self.reachability_ = found.core, found.reach
        self._set_labels()
        self._conclude_clusters(checked(rows, metric, k, radius, found))
        return self

    def _warn_of_booleans(self, X: Any) -> None:
        boolean = isinstance(self.metric, str) and self.metric in PAIRWISE_BOOLEAN_FUNCTIONS
        if boolean and getattr(getattr(X, "dtype", None), "kind", "O") != "b":
            warnings.warn(
                f"Data will be converted to boolean for metric {self.metric}, to avoid this warning, you may convert "
                "the data prior to calling fit.",
                DataConversionWarning,
                stacklevel=5,
            )

    def _set_labels(self) -> None:
        if self.cluster_method == "xi":
            self.labels_, self.cluster_hierarchy_ = cluster_optics_xi(
                reachability=self.reachability_,
                predecessor=self.predecessor_,
                ordering=self.ordering_,
                min_samples=self.min_samples,
                min_cluster_size=self.min_cluster_size,
                xi=self.xi,
                predecessor_correction=self.predecessor_correction,
            )
            return
        eps = self.max_eps if self.eps is None else self.eps
        if eps > self.max_eps:
            raise ParameterError(f"Specify an epsilon smaller than {self.max_eps}. Got {eps}: eps > max_eps")
        self.labels_ = cluster_optics_dbscan(
            reachability=self.reachability_, core_distances=self.core_distances_, ordering=self.ordering_, eps=eps
        )


@documented(SEARCH_DOCS)
def compute_optics_graph(
    X: Any,
    *,
    min_samples: float,
    max_eps: float,
    metric: Any,
    p: float | None,
    metric_params: dict[str, Any] | None,
    algorithm: str,
    leaf_size: int,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The order of :class:`OPTICS`, as a function.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Rows, or distances between them with metric="precomputed".
    min_samples : int > 1 or float between 0 and 1
        Number of rows, or their share, whose distance is the core distance.
    max_eps : float
        Beyond which rows do not reach each other.

    Returns
    -------
    ordering : ndarray of shape (n_samples,)
    core_distances : ndarray of shape (n_samples,)
    reachability : ndarray of shape (n_samples,)
    predecessor : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from epicycle.cluster import compute_optics_graph
    >>> ordering, core, reachability, predecessor = compute_optics_graph(
    ...     [[0.0], [1.0], [5.0], [6.5]], min_samples=2, max_eps=9.0, metric="euclidean", p=2, metric_params=None,
    ...     algorithm="auto", leaf_size=30, n_jobs=None,
    ... )
    >>> ordering, reachability
    (array([0, 1, 2, 3]), array([inf, 1. , 4. , 1.5]))
    """
    model = OPTICS(
        min_samples=min_samples, max_eps=max_eps, metric=metric, p=p, metric_params=metric_params, algorithm=algorithm,
        leaf_size=leaf_size, n_jobs=n_jobs, cluster_method="dbscan",
    ).fit(X)  # fmt: skip
    return model.ordering_, model.core_distances_, model.reachability_, model.predecessor_
