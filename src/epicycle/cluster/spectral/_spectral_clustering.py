"""Spectral clustering: partitions of a graph with small normalised cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from scipy.linalg import qr, svd
from sklearn.base import ClusterMixin
from sklearn.metrics.pairwise import KERNEL_PARAMS

from epicycle.cluster.kmeans._kmeans import KMeans
from epicycle.cluster.spectral._affinity import kernel_matrix
from epicycle.cluster.spectral._base import GIVEN, GraphModel
from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._estimator import fitting, stores_arguments


class SpectralClustering(ClusterMixin, GraphModel):  # type: ignore[misc]  # untyped mixin
    r"""Clusters of a graph that are cut off by few and weak edges.

    .. math:: \min \; \operatorname{Ncut} = \sum_c \frac{\operatorname{cut}(c)}{\operatorname{vol}(c)}, \qquad
              \operatorname{cut}(c) = \sum_{i \in c, \, j \notin c} W_{ij}, \quad
              \operatorname{vol}(c) = \sum_{i \in c, \, j} W_{ij} .

    Without the condition that clusters are sets this is a problem of eigenvectors of the normalised Laplacian. Their
    rows are brought back to sets by `assign_labels`. No partition has a normalised cut below the sum of the k least
    eigenvalues, which `lower_bound_` holds. Clusters may have any shape. A fitted object keeps the training rows'
    affinities.

    Parameters
    ----------
    n_components : int, optional
        Number of eigenvectors; None is `n_clusters`.
    n_init : int, default=10
        Starts of k-means.
    gamma : float, default=1.0
        Of the kernels "rbf", "poly", "sigmoid", "laplacian" and "chi2".
    affinity : str or callable, default="rbf"
        The graph: "nearest_neighbors", the mean of a matrix with 1 for the `n_neighbors` nearest rows and of its
        transpose; "radius", 1 for rows within `radius`; "precomputed", X is W; "precomputed_nearest_neighbors", X are
        distances; a kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels` by its name; or a function of two rows.
    n_neighbors : int, default=10
        A row itself counts as one.
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
        K-means of the rows of eigenvectors, the nearest partition up to a rotation, or pivoted QR, which has no
        parameters and no randomness.
    degree : float, default=3
        Of the kernel "poly".
    coef0 : float, default=1
        Of the kernels "poly" and "sigmoid".
    kernel_params : dict, optional
        Further arguments of the kernel.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row; -1 for rows of weight 0.
    normalized_cut_ : float
        Of `labels_`.
    lower_bound_ : float
        No partition into as many clusters has a smaller normalised cut.
    certificate_ : Certificate
        The largest residual of an eigenvector. Its meaning says how far the cut is from the bound.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from epicycle import SpectralClustering
    >>> X, ring = make_circles(200, factor=0.4, noise=0.03, random_state=0)
    >>> model = SpectralClustering(2, gamma=30, random_state=0).fit(X)
    >>> bool((model.labels_ == ring).all() or (model.labels_ != ring).all())
    True
    >>> model.lower_bound_ <= model.normalized_cut_ < 0.01
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **GraphModel._parameters,
        "n_components": NoneOr(Integer(minimum=1)),
        "gamma": Real(minimum=0),
        "affinity": AnyOf(Choice("nearest_neighbors", "radius", *GIVEN, *sorted(KERNEL_PARAMS)), Callable()),
        "n_neighbors": Integer(minimum=1),
        "assign_labels": Choice("kmeans", "discretize", "cluster_qr"),
        "degree": Real(minimum=0),
        "coef0": Real(),
        "kernel_params": NoneOr(InstanceOf(dict)),
    }

    n_clusters: int
    n_components: int | None
    n_init: int
    gamma: float
    assign_labels: str
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    verbose: int
    labels_: np.ndarray

    @stores_arguments(random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        eigen_solver: str | None = None,
        n_components: int | None = None,
        n_init: int = 10,
        gamma: float = 1.0,
        affinity: Any = "rbf",
        n_neighbors: int = 10,
        eigen_tol: Any = "auto",
        assign_labels: str = "kmeans",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        radius: float | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows X, or of the nodes of a graph X."""
        rows, weight, kept = self._rows(X, sample_weight)
        n, k = rows.shape[0], int(self.n_clusters)
        if k > n:
            raise DataError(f"n_samples={n} should be >= n_clusters={k}.")
        W = self._affinities(rows, int(self.n_neighbors))
        self.affinity_matrix_ = self._kernel(rows) if W is None else W
        width = min(k if self.n_components is None else int(self.n_components), n)
        seed = seed_of(self.random_state)
        graph, pairs = self._solve(rows, weight, max(width, k), seed)
        if self.verbose:
            print(f"Computing label assignment using {self.assign_labels}")
        labels = self._assigned(pairs.vectors[:, :width], weight, seed)
        self.labels_ = np.full(len(kept), -1, dtype=np.int32)
        self.labels_[kept] = labels
        self.normalized_cut_ = graph.normalized_cut(labels)
        self.lower_bound_ = float(np.sum(self.eigenvalues_[: len(np.unique(labels))]))
        more = f"; the normalised cut is {self.normalized_cut_:.3g}, and none is below {self.lower_bound_:.3g}"
        self._conclude_directly(
            self._evidence(max(width, k), more), objective=self.normalized_cut_, lower_bound=self.lower_bound_
        )
        return self

    def _kernel(self, rows: Any) -> np.ndarray:
        options = dict(self.kernel_params or {})
        if not callable(self.affinity):
            options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0, **options}
        return kernel_matrix(rows, self.affinity, **options)

    def _assigned(self, U: np.ndarray, weight: np.ndarray | None, seed: int) -> np.ndarray:
        if self.assign_labels == "cluster_qr":
            return cluster_qr(U)
        if self.assign_labels == "discretize":
            return discretize(U, stream(seed, "discretize"))
        model = KMeans(int(self.n_clusters), n_init=int(self.n_init), random_state=seed, n_jobs=self.n_jobs)
        return model.fit(U, sample_weight=weight).labels_


# Labels from the rows of eigenvectors: by a rotation to indicators, or by pivoted QR.

#: Turns of the rotation, and the change of its objective at which it has settled.
_TURNS, _SETTLED = 100, 1e-12


def cluster_qr(U: np.ndarray) -> np.ndarray:
    """The column that a row is largest in, after the rotation that is best for k pivots (Damle, Minden, Ying 2019).

    The pivots of a QR factorisation of U' are rows that are far from each other's span: one in each cluster.
    """
    k = U.shape[1]
    _, pivots = qr(U.T, mode="r", pivoting=True)
    left, _, right = svd(U[pivots[:k]].T, full_matrices=False)
    return np.asarray(np.abs(U @ (left @ right)).argmax(axis=1))


def discretize(U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The partition nearest to the rows of U up to a rotation (Yu and Shi 2003), by turns that never lower the fit.

    Rows are scaled to unit length. Given a partition Z, the best rotation R of U comes from the singular vectors of
    Z'U; given R, the best Z has the largest column of every row of UR.
    """
    length = np.linalg.norm(U, axis=1, keepdims=True)
    rows = np.divide(U, length, out=np.zeros_like(U), where=length > 0)
    n, k = rows.shape
    R = np.zeros((k, k))
    R[:, 0] = rows[rng.integers(n)]
    closeness = np.zeros(n)
    for j in range(1, k):  # rows that are least in the direction of those before
        closeness += np.abs(rows @ R[:, j - 1])
        R[:, j] = rows[closeness.argmin()]
    fit, label = -np.inf, np.zeros(n, dtype=np.intp)
    for _ in range(_TURNS):
        label = (rows @ R).argmax(axis=1)
        Z = np.zeros((n, k))
        Z[np.arange(n), label] = 1.0
        left, singular, right = svd(Z.T @ rows, full_matrices=False)
        if singular.sum() - fit <= _SETTLED * n:
            break
        fit, R = float(singular.sum()), right.T @ left.T
    return np.asarray(label)
