"""Isomap: classical scaling of distances along a graph of neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, floyd_warshall
from sklearn.base import TransformerMixin

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.kernel import KernelPCA
from epicycle.manifold._base import EIGENVALUES, Embedding, card, to_unit_size
from epicycle.metrics._distances import Distances
from epicycle.metrics._neighborhoods import euclidean_rows
from epicycle.neighbors import NearestNeighbors
from epicycle.neighbors._base import rows_of_search
from epicycle.spatial._distance_graph import distance_graph
from epicycle.spatial._metrics import is_precomputed
from epicycle.spatial._options import SEARCH_DOCS, SEARCH_PARAMETERS, SearchArguments
from epicycle.spatial._rows import takes_missing
from epicycle.spatial._shortest_paths import shortest_paths

_BLOCK = 1 << 21  # distances held at a time


class DisconnectedError(DataError, RuntimeError):
    """A graph in parts that cannot be joined; scikit-learn raises RuntimeError for it."""


class Isomap(TransformerMixin, Embedding):  # type: ignore[misc]  # untyped mixin
    r"""Places whose distances are those along a curved surface, found from neighbour to neighbour.

    .. math:: -\tfrac12 H D^{(2)} H \approx Z Z', \qquad
              D_{ij} = \text{length of the shortest path from } i \text{ to } j

    in the graph of neighbours, with :math:`D^{(2)}` the squares and :math:`H = I - 1 1' / n`: kernel principal
    components of the geodesic distances. A new row is joined to its neighbours, and projected.
    A fitted object keeps the training rows and their distances.

    Parameters
    ----------
    n_neighbors : int or None, default=5
        Neighbours of each row; None where `radius` is given.
    radius : float, optional
        Distance up to which rows are neighbours, in the place of `n_neighbors`.
    eigen_solver : {"auto", "arpack", "dense"}, default="auto"
        As in :class:`KernelPCA`.
    tol : float, default=0
        Residual of the eigenvectors that the certificate asserts; 0 stands for 1e-8.
    max_iter : int, optional
        Maximum number of restarts of "arpack".
    path_method : {"auto", "FW", "D"}, default="auto"
        Floyd and Warshall's algorithm or Dijkstra's, which "auto" takes too. The distances are the same.
    neighbors_algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        How neighbours are searched; the search is exact.
    metric : str, callable or DistanceMetric, default="minkowski"
        Distance of neighbours, as in :class:`NearestNeighbors`; "precomputed": X holds distances, a sparse X those of
        the neighbours.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    kernel_pca_ : KernelPCA
        Of the geodesic distances.
    nbrs_ : NearestNeighbors
    dist_matrix_ : ndarray of shape (n_samples, n_samples)
        Geodesic distances.
    n_connected_components_ : int
        Parts of the graph before they were joined at their nearest rows, which is said in a warning.
    certificate_ : Certificate
        The largest residual of an eigenvector. Its meaning says how well neighbours are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import Isomap
    >>> t = np.linspace(0, 10, 200)
    >>> spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    >>> z = Isomap(n_neighbors=3, n_components=1).fit_transform(spiral)[:, 0]
    >>> length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(spiral, axis=0), axis=1))])
    >>> bool(np.allclose(np.abs(z - z[0]), length, rtol=0.01, atol=0.1))  # the length along the curve
    True
    """

    _docs: ClassVar[Mapping[str, str]] = {"p": SEARCH_DOCS["p"], "metric_params": SEARCH_DOCS["metric_params"]}
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_neighbors": NoneOr(Integer(minimum=1)),
        "radius": NoneOr(Real(minimum=0, allow_inf=True)),
        "n_components": Integer(minimum=1),
        "eigen_solver": Choice("auto", "arpack", "dense"),
        "tol": Real(minimum=0),
        "max_iter": NoneOr(Integer(minimum=1)),
        "path_method": Choice("auto", "FW", "D"),
        "neighbors_algorithm": SEARCH_PARAMETERS["algorithm"],
        "metric": SEARCH_PARAMETERS["metric"],
        "p": Real(minimum=1, allow_inf=True),
        "metric_params": NoneOr(InstanceOf(dict)),
    }
    _card: ClassVar[MethodCard] = card("E11", EIGENVALUES)
    _takes_sparse = True

    metric: Any
    nbrs_: NearestNeighbors
    kernel_pca_: KernelPCA
    dist_matrix_: np.ndarray

    @stores_arguments(tol=0, max_iter=None, n_jobs=None, metric="minkowski", p=2, metric_params=None)
    def __init__(
        self,
        *,
        n_neighbors: int | None = 5,
        radius: float | None = None,
        n_components: int = 2,
        eigen_solver: str = "auto",
        path_method: str = "auto",
        neighbors_algorithm: str = "auto",
        **shared: Unpack[SearchArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        tags.input_tags.allow_nan = takes_missing(self.metric)
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the places of rows X."""
        if self.n_neighbors is not None and self.radius is not None:
            raise ParameterError(
                f"Both n_neighbors and radius are provided: n_neighbors={self.n_neighbors}, radius={self.radius}; "
                "expected None for one of them"
            )
        if self.n_neighbors is None and self.radius is None:
            raise ParameterError("n_neighbors=None and radius=None; expected a number for one of them")
        rows = rows_of_search(X)
        if is_precomputed(self.metric) and sp.issparse(rows):
            rows = distance_graph(rows)
            data = self._table(rows.copy())  # which would put its entries into the order of columns
        else:
            data = self._table(rows, check_finite=not takes_missing(self.metric))
            rows = data.X
        n = data.n_rows
        require_memory(32.0 * n * n, f"Isomap on {n:,} rows", "take MDS with landmarks, or fewer rows")
        self.nbrs_ = NearestNeighbors(
            n_neighbors=self.n_neighbors,
            radius=self.radius,
            algorithm=self.neighbors_algorithm,
            metric=self.metric,
            p=self.p,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
        ).fit(rows)
        graph = self._joined(self._graph())
        if self.path_method == "FW":
            D = np.asarray(floyd_warshall(graph, directed=False))
        else:
            D = shortest_paths(graph, n_jobs=self.n_jobs)
        if not np.isfinite(D).all():
            raise DataError("X: lengths of paths overflow; scale the rows down")
        dtype = np.float32 if data.X.dtype == np.float32 else np.float64
        scaled, self._scale_ = to_unit_size(D)
        self.kernel_pca_ = self._components(-0.5 * np.square(scaled))
        self.dist_matrix_ = D.astype(dtype, copy=False)
        Z = self.kernel_pca_.eigenvectors_ * np.sqrt(self.kernel_pca_.eigenvalues_)
        self.embedding_ = np.asarray(Z * self._scale_, dtype=dtype)
        self._finish(data)
        return self

    def _components(self, G: np.ndarray) -> KernelPCA:
        model = KernelPCA(
            min(int(self.n_components), len(G)),
            kernel="precomputed",
            eigen_solver=self.eigen_solver,
            tol=float(self.tol),
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        try:
            return model.fit(G)
        except DataError:  # distances along a graph need not be those of points: the last eigenvalues are negative
            raise ParameterError(
                f"n_components={self.n_components}; expected fewer, because the geodesic distances of {len(G)} rows "
                "are no distances of points in so many dimensions: negative eigenvalues would be among them"
            ) from None

    def _finish(self, data: ArrayData) -> None:
        evidence = self.kernel_pca_.certificate_
        if is_precomputed(self.metric):
            quality = self._judge(lambda rows: self.dist_matrix_[rows].astype(np.float64), 1, self.n_jobs)
        else:
            plain = isinstance(self.nbrs_.effective_metric_, str) and self.nbrs_.effective_metric_ == "euclidean"
            rows = euclidean_rows(self.nbrs_.X_fit_) if plain else self._distances().block
            quality = self._judge(rows, int(data.X.shape[1]), self.n_jobs)
        kept = float(self.kernel_pca_.explained_variance_ratio_.sum())
        meaning = f"{evidence.meaning}; the coordinates hold {kept:.1%} of the trace; {quality}"
        left = float(self.kernel_pca_.history_.objective[-1])
        certificate = Certificate(evidence.kind, evidence.value, evidence.tolerance, meaning)
        self._conclude_directly(certificate, x=self.kernel_pca_.eigenvalues_, objective=left)

    # ------------------------------------------------------------------------------------------- the graph

    def _distances(self) -> Distances:
        """Distances of the rows of the fit by the metric."""
        used, options = self.nbrs_.effective_metric_, self.nbrs_.effective_metric_params_
        rows = self.nbrs_.X_fit_
        if isinstance(used, str) and options.get("w", 0) is None:
            options = {name: value for name, value in options.items() if name != "w"}
        return Distances(rows, rows, used, options)

    def _graph(self) -> sp.csr_array:
        if self.n_neighbors is not None:
            return sp.csr_array(self.nbrs_.kneighbors_graph(mode="distance"))
        return sp.csr_array(self.nbrs_.radius_neighbors_graph(mode="distance"))

    def _joined(self, graph: sp.csr_array) -> sp.csr_array:
        """The graph in one part: each two parts are joined at their nearest rows."""
        parts, label = connected_components(graph, directed=False)
        self.n_connected_components_ = int(parts)
        if parts == 1:
            return graph
        found = f"The number of connected components of the neighbors graph is {parts} > 1."
        rows = self.nbrs_.X_fit_
        if is_precomputed(self.metric) and sp.issparse(rows):
            raise DisconnectedError(
                f"X: {found} A sparse X with metric='precomputed' has no distances to join them; increase the number "
                "of neighbors, or give all distances"
            )
        warnings.warn(
            f"{found} They are joined at their nearest rows, which might be slow; increase the number of neighbors to "
            "avoid it.",
            stacklevel=4,
        )
        block = rows.__getitem__ if is_precomputed(self.metric) else self._distances().block
        ends = nearest_between(block, label, int(parts))
        n = graph.shape[0]
        more = sp.csr_array((ends[2], (ends[0].astype(np.intp), ends[1].astype(np.intp))), shape=(n, n))
        # put beside, not added: an edge of length zero stays an edge
        both = sp.coo_array(graph), sp.coo_array(more)
        data, i, j = (np.concatenate([getattr(part, name) for part in both]) for name in ("data", "row", "col"))
        return _csr(data, i, j, n)

    # ------------------------------------------------------------------------------------------- new rows

    def transform(self, X: Any) -> np.ndarray:
        """Places of new rows, by their shortest paths through their neighbours."""
        data = self._predict_data(X.copy() if sp.issparse(X) else X, missing=takes_missing(self.metric))
        if not isinstance(data, ArrayData):
            raise DataError("X: rows have to be in memory; collect them first")
        queries = distance_graph(X) if is_precomputed(self.metric) and sp.issparse(X) else data.X
        if self.n_neighbors is not None:
            distances, rows = self.nbrs_.kneighbors(queries)
        else:
            distances, rows = self.nbrs_.radius_neighbors(queries)
            alone = [i for i, near in enumerate(rows) if not len(near)]
            if alone:
                raise DataError(f"X: row {alone[0]} has no row of the fit within radius={self.radius}; raise it")
        D = np.asarray(self.dist_matrix_, dtype=np.float64)
        found = np.empty((len(rows), int(self.embedding_.shape[1])))
        step = max(1, _BLOCK // len(D))
        for start in range(0, len(rows), step):
            part = range(start, min(start + step, len(rows)))
            G = np.stack([(D[rows[i]] + np.asarray(distances[i], dtype=np.float64)[:, None]).min(axis=0) for i in part])
            found[start : start + len(part)] = self.kernel_pca_.transform(-0.5 * np.square(G / self._scale_))
        return np.asarray(found * self._scale_, dtype=np.float32 if data.X.dtype == np.float32 else np.float64)

    def reconstruction_error(self) -> float:
        r"""The root of the sum of squares of :math:`-\tfrac12 H D^{(2)} H - ZZ'`, divided by the number of rows."""
        self._check_fitted()
        G = -0.5 * np.square(np.asarray(self.dist_matrix_, dtype=np.float64) / self._scale_)
        G -= G.mean(axis=0)
        G -= G.mean(axis=1, keepdims=True)
        left = float(np.square(G).sum()) - float(np.square(self.kernel_pca_.eigenvalues_).sum())
        with np.errstate(over="ignore", under="ignore"):  # of distances whose squares are no numbers: infinity, or 0
            return float(np.float64(np.sqrt(max(left, 0.0)) / len(G)) * self._scale_ * self._scale_)


def nearest_between(block: Any, label: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, row, distance) of the nearest rows of each two parts; `block(rows)` gives distances to all."""
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(parts + 1))
    ends = np.empty((parts, parts, 2), dtype=np.intp)
    least = np.full((parts, parts), np.inf)
    step = max(1, _BLOCK // len(label))
    for part in range(parts - 1):
        rows = order[first[part] : first[part + 1]]
        for start in range(0, len(rows), step):
            at = rows[start : start + step]
            D = np.asarray(block(at), dtype=np.float64)[:, order[first[part + 1] :]]
            closest = D.argmin(axis=0)
            best = D[closest, np.arange(D.shape[1])]
            for other in range(part + 1, parts):
                columns = slice(first[other] - first[part + 1], first[other + 1] - first[part + 1])
                j = int(best[columns].argmin())
                if best[columns][j] < least[part, other]:
                    least[part, other] = best[columns][j]
                    ends[part, other] = at[closest[columns][j]], order[first[other] + j]
    pairs = np.isfinite(least)  # of the upper triangle
    return ends[pairs, 0], ends[pairs, 1], least[pairs]


def _csr(data: np.ndarray, i: np.ndarray, j: np.ndarray, n: int) -> sp.csr_array:
    """A graph of these edges, of which none is added to another."""
    order = np.argsort(i, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=n))])
    return sp.csr_array((data[order], j[order], start), shape=(n, n))
