"""The bases of the estimators of neighbours: the rows they keep, and the searches among them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.neighbors import BallTree, KDTree
from sklearn.neighbors._base import KNeighborsMixin, RadiusNeighborsMixin

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Choice, Domain, Integer, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Data, as_data
from epicycle.spatial._distance_graph import distance_graph, first_of_graph, within_graph
from epicycle.spatial._metrics import is_precomputed, options_of, resolve
from epicycle.spatial._options import SEARCH_DOCS
from epicycle.spatial._rows import check_values, rows_to_search, takes_missing
from epicycle.spatial._search import (
    distance_block,
    nearest,
    nearest_in_blocks,
    power_overflows,
    tree_pays,
    within_radius,
    within_radius_by_tree,
    without_self,
)

K: Domain = Integer(minimum=1)
RADIUS: Domain = Real(minimum=0, allow_inf=True)
MODE: Domain = Choice("distance", "connectivity")


class NeighborsEstimator(Estimator, ABC):
    """Rows of the fit and their neighbours."""

    _docs: ClassVar[Mapping[str, str]] = {
        "n_neighbors": """n_neighbors : int, default={default}
    Number of neighbours.""",
        "radius": """radius : float, default={default}
    Distance up to which rows are neighbours.""",
        "weights": """weights : {"uniform", "distance"}, callable or None, default={default}
    Neighbours count alike (None too), by the inverse of their distance (those at distance zero alone), or by a
    function that maps an array of distances to weights; neighbours of infinite weight count alone.""",
        **SEARCH_DOCS,
        "prediction": """Parameters
----------
%(left_out)s

Returns
-------
%(predictions)s""",
        "mode": """mode : {"distance", "connectivity"}, default={default}
    Distances, or ones.""",
        "attributes": """X_fit_ : array or CSR matrix of shape (n_samples_fit_, n_features)
    The rows.
n_samples_fit_ : int
effective_metric_ : str or callable
    The metric; "minkowski" by its own name where it has one.
effective_metric_params_ : dict
certificate_ : Certificate
    The search is exact.
%(evidence)s""",
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "queries": """X : array, sparse matrix or data frame of shape (n_queries, n_features), optional
    Default: the rows of the fit, each without itself. With metric="precomputed" distances, of shape
    (n_queries, n_samples_fit).""",
        "left_out": """X : array, sparse matrix, data frame or Scan of shape (n_queries, n_features), optional
    Default: the rows of the fit, each predicted from the others (leave one out).""",
        "k": """n_neighbors : int, optional
    Default: that of the constructor.""",
        "reach": """radius : float, optional
    Default: that of the constructor.""",
        "sort_results": """sort_results : bool, default=False
    Whether neighbours come in the order of their distances; otherwise in that of the rows.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("attributes",)
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C5",), engines=("memory",), certificate="exact search", keeps_rows=True
    )

    algorithm: str
    p: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    X_fit_: Any
    n_samples_fit_: int

    _takes_sparse: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.positive_only = tags.input_tags.pairwise
        tags.input_tags.allow_nan = takes_missing(self.metric)
        return tags

    @property
    def effective_metric_(self) -> Any:
        self._check_fitted_attribute("effective_metric_")
        return options_of(self.p, self.metric, self.metric_params)[0]

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        self._check_fitted_attribute("effective_metric_params_")
        return options_of(self.p, self.metric, self.metric_params)[1]

    @property
    def _fit_method(self) -> str:
        """The method of a search, in scikit-learn's terms."""
        self._check_fitted_attribute("_fit_method")
        native = resolve(self.p, self.metric, self.metric_params).native
        k = getattr(self, "n_neighbors", None) or 1
        return "kd_tree" if native is not None and tree_pays(self.X_fit_, k, native, self.algorithm) else "brute"

    @property
    def _fit_X(self) -> Any:  # noqa: N802 - the name by which scikit-learn's functions of graphs ask for the rows
        self._check_fitted_attribute("_fit_X")
        return self.X_fit_

    def _check_fitted_attribute(self, name: str) -> None:
        if "n_samples_fit_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}: it is not fitted yet")

    # ---------------------------------------------------------------- the rows

    def _keep_rows(self, X: Any, y: Any, **checks: Any) -> ArrayData:
        """Check and keep the rows."""
        data, rows = rows_to_search(self, rows_of_search(X), y, **checks)
        if sp.issparse(rows):
            self.X_fit_ = rows if is_precomputed(self.metric) else rows.copy()
        else:
            self.X_fit_ = np.array(rows, order="C")
        self.n_samples_fit_ = data.n_rows
        return data

    def _conclude_exact(self) -> None:
        meaning = (
            "nothing is fitted: the rows are kept, and every search is exact, ties going to the row that comes first"
        )
        self._conclude_directly(Certificate("exact search", 0.0, 0.0, meaning))

    def _query_data(self, X: Any) -> Data:
        """Queries, checked; sparse distances are :func:`distance_graph`."""
        self._check_fitted()
        if is_precomputed(self.metric) and sp.issparse(X):
            graph = distance_graph(X)
            check_values(self.metric, graph)
            data: Data = ArrayData(graph)
            self._check_features(X, data, reset=False)
            return data
        if takes_missing(self.metric):
            data = as_data(X, estimator_name=type(self).__name__, check_finite=False)
            self._check_features(X, data, reset=False)
        else:
            data = self._predict_data(X)
        if isinstance(data, ArrayData):
            check_values(self.metric, data.X)
            if data.sparse and not sp.issparse(self.X_fit_) and self.algorithm in ("kd_tree", "ball_tree"):
                raise DataError(
                    f"X: is sparse, and {type(self).__name__}(algorithm={self.algorithm!r}) was fitted to dense rows; "
                    "expected dense queries, or algorithm='brute' or 'auto'"
                )
        return data

    def _in_memory(self, X: Any) -> Any:
        data = self._query_data(X)
        if not isinstance(data, ArrayData):
            raise DataError("X: queries have to be in memory; collect them first")
        return data.X

    def _own_type(self, Q: Any, distances: np.ndarray) -> np.ndarray:
        single = self.X_fit_.dtype == np.float32 and Q.dtype == np.float32
        if not single:
            return distances.astype(np.float64, copy=False)
        # As in float64, the largest number stands for distances beyond it.
        return np.asarray(np.minimum(distances, np.finfo(np.float32).max), dtype=np.float32)

    # ---------------------------------------------------------------- searches

    def _search(self, Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        n = int(Q.shape[0])
        require_memory(16.0 * n * k, f"{k:,} neighbours of {n:,} rows", "ask for fewer, or for parts of the rows")
        if is_precomputed(self.metric) and sp.issparse(Q):
            return first_of_graph(Q, k)
        metric = resolve(self.p, self.metric, self.metric_params)
        if metric.blocks is not None:
            distances, rows = nearest_in_blocks(
                metric.blocks.block, self.X_fit_, Q, k, self.n_jobs if metric.blocks.in_threads else 1
            )
        else:
            X, Q = metric.scaled(self.X_fit_), metric.scaled(Q)
            distances, rows = nearest(X, Q, k, metric.native, self.algorithm, self.n_jobs)  # type: ignore[arg-type]
        return self._own_type(Q, distances), rows

    def _search_radius(self, Q: Any, radius: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        if is_precomputed(self.metric) and sp.issparse(Q):
            distances, rows = within_graph(Q, radius)
        else:
            metric = resolve(self.p, self.metric, self.metric_params)
            if metric.blocks is not None:
                jobs = self.n_jobs if metric.blocks.in_threads else 1
                distances, rows = within_radius(metric.blocks.block, self.X_fit_, Q, radius, jobs)
            else:
                native: Any = metric.native
                X, Q = metric.scaled(self.X_fit_), metric.scaled(Q)
                tree = not sp.issparse(Q) and tree_pays(X, 1, native, self.algorithm) and np.all(np.isfinite(radius))
                if tree and not power_overflows(X, Q, native):
                    distances, rows = within_radius_by_tree(X, Q, radius, native, self.n_jobs)
                else:
                    distances, rows = within_radius(partial(distance_block, native), X, Q, radius, self.n_jobs)
        return [self._own_type(Q, d) for d in distances], rows


class KNeighborsSearch(NeighborsEstimator, KNeighborsMixin):  # type: ignore[misc]  # untyped mixin
    """The k nearest rows; scikit-learn's functions know its classes by the mixin, of which nothing else is used."""

    n_neighbors: int | None

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """The nearest rows of the fit.

        Parameters
        ----------
        %(queries)s
        %(k)s
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            In ascending order; only with `return_distance`.
        rows : ndarray of int of shape (n_queries, n_neighbors)
            Among equal distances the row that comes first in the fit is the nearer one.
        """
        self._check_fitted()
        Q = self.X_fit_ if X is None else self._in_memory(X)
        k = self._wanted(n_neighbors, int(Q.shape[0]), self_excluded=X is None)
        distances, rows = self._search(Q, k + int(X is None))
        if X is None:
            distances, rows = without_self(distances, rows)
        return (distances, rows) if return_distance else rows

    def _wanted(self, n_neighbors: Any, n_queries: int, *, self_excluded: bool) -> int:
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, float | np.floating):
            raise DataTypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if not K.accepts(k):
            raise ParameterError(f"n_neighbors={k!r:.60}; Expected n_neighbors > 0, an integer")
        if k + int(self_excluded) > self.n_samples_fit_:
            raise DataError(
                f"Expected n_neighbors {'<' if self_excluded else '<='} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {n_queries}"
            )
        return int(k)

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The neighbours as a sparse matrix.

        Parameters
        ----------
        %(queries)s
        %(k)s
        mode : {"connectivity", "distance"}, default="connectivity"
            Ones, or distances.

        Returns
        -------
        CSR matrix of shape (n_queries, n_samples_fit)
        """
        self._check_fitted()
        _check_mode(mode)
        distances, rows = self.kneighbors(X, n_neighbors)
        n, k = rows.shape
        values = distances.ravel() if mode == "distance" else np.ones(n * k)
        return _graph(values, rows.ravel(), np.arange(0, n * k + 1, k), (n, self.n_samples_fit_))


class RadiusNeighborsSearch(NeighborsEstimator, RadiusNeighborsMixin):  # type: ignore[misc]  # untyped mixin
    """The rows within a radius; the mixin is for scikit-learn's functions, as in :class:`KNeighborsSearch`."""

    radius: float | None

    def radius_neighbors(
        self, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """The rows of the fit within a radius.

        Parameters
        ----------
        %(queries)s
        radius : float or array of shape (n_queries,), optional
            Default: that of the constructor.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of objects of shape (n_queries,)
            An array of distances for each query; only with `return_distance`.
        rows : ndarray of objects of shape (n_queries,)
            An array of rows for each query; those at exactly the radius are among them.
        """
        self._check_fitted()
        if sort_results and not return_distance and not is_precomputed(self.metric):
            raise ParameterError("return_distance must be True if sort_results is True.")
        distances, rows = self._within(X, self.radius if radius is None else radius, sort_results=sort_results)
        return (_objects(distances), _objects(rows)) if return_distance else _objects(rows)

    def _within(self, X: Any, radius: Any, *, sort_results: bool = False) -> tuple[list[np.ndarray], list[np.ndarray]]:
        Q = self.X_fit_ if X is None else self._in_memory(X)
        if radius is None:
            raise ParameterError(f"radius: is None, here and in {type(self).__name__}; expected a number >= 0")
        reach = np.asarray(radius, dtype=np.float64)
        if np.isnan(reach).any() or (reach < 0).any() or reach.shape not in ((), (Q.shape[0],)):
            raise ParameterError(f"radius={radius!r:.60}; expected a number >= 0, or one for each of the queries")
        distances, rows = self._search_radius(Q, reach)
        if X is None:
            others = [which != i for i, which in enumerate(rows)]
            distances = [d[keep] for d, keep in zip(distances, others, strict=True)]
            rows = [r[keep] for r, keep in zip(rows, others, strict=True)]
        if sort_results:
            orders = [np.argsort(d, kind="stable") for d in distances]
            distances = [d[order] for d, order in zip(distances, orders, strict=True)]
            rows = [r[order] for r, order in zip(rows, orders, strict=True)]
        return distances, rows

    def radius_neighbors_graph(
        self, X: Any = None, radius: Any = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """The neighbours within a radius as a sparse matrix.

        Parameters
        ----------
        %(queries)s
        %(reach)s
        mode : {"connectivity", "distance"}, default="connectivity"
            Ones, or distances.

        Returns
        -------
        CSR matrix of shape (n_queries, n_samples_fit)
        """
        self._check_fitted()
        _check_mode(mode)
        reach = self.radius if radius is None else radius
        distances, rows = self._within(X, reach, sort_results=sort_results)
        starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        values = np.concatenate(distances) if mode == "distance" else np.ones(starts[-1])
        return _graph(values, np.concatenate(rows), starts, (len(rows), self.n_samples_fit_))


def _check_mode(mode: Any) -> None:
    if mode not in ("connectivity", "distance"):
        raise ParameterError(
            f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode!s:.60}" instead'
        )


def _graph(values: np.ndarray, columns: np.ndarray, starts: np.ndarray, shape: tuple[int, int]) -> Any:
    """A CSR matrix with the smallest indices that do, of the kind that scikit-learn is set to give."""
    index = np.int64 if max(*shape, len(values)) > np.iinfo(np.int32).max else np.int32
    made = sp.csr_array if get_config()["sparse_interface"] == "sparray" else sp.csr_matrix
    return made((values, columns.astype(index), starts.astype(index)), shape=shape)


def _objects(arrays: list[np.ndarray]) -> np.ndarray:
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result


def rows_of_search(X: Any) -> Any:
    """The rows that a fitted search or a tree of scikit-learn's holds; other X as it is."""
    if isinstance(X, NeighborsEstimator):
        X._check_fitted()
        return X.X_fit_
    if isinstance(X, KDTree | BallTree):
        return np.asarray(X.data)
    return X._fit_X if isinstance(X, KNeighborsMixin | RadiusNeighborsMixin) and hasattr(X, "_fit_X") else X
