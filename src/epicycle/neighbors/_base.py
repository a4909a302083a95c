"""The base of the estimators of nearest neighbours: the rows they keep, and the search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, Integer, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Data
from epicycle.data._dask_data import is_dask
from epicycle.neighbors._search import METRICS, metric_by_name, nearest, without_self
from epicycle.optim import Solution

NEIGHBORS_PARAMETERS: Mapping[str, Domain] = {
    "n_neighbors": Integer(minimum=1),
    "algorithm": Choice("auto", "brute", "kd_tree"),
    "p": Real(minimum=1, allow_inf=True),
    "metric": Choice(*METRICS),
}
CARD: MethodCard = MethodCard(
    family="kernel", catalogue=("C5",), engines=("memory",), certificate="exact search", keeps_rows=True
)


class NeighborsEstimator(Estimator):
    """Rows of the fit and their neighbours."""

    _docs: ClassVar[Mapping[str, str]] = {
        "search_parameters": "%(algorithm)s\n%(metric)s\n%(p)s\n%(n_jobs)s",
        "n_neighbors": """n_neighbors : int, default={default}
    Number of neighbours.""",
        "weights": """weights : {"uniform", "distance"} or callable, default={default}
    Neighbours count alike, by the inverse of their distance (those at distance zero alone), or by a function that
    maps an array of distances to weights.""",
        "algorithm": """algorithm : {"auto", "brute", "kd_tree"}, default={default}
    "auto" takes a tree for up to eight columns. The result is the same.""",
        "metric": """metric : str, default={default}
    "euclidean" ("l2"), "manhattan" ("l1", "cityblock"), "chebyshev", "cosine", or "minkowski" with its `p`.""",
        "p": """p : float, default={default}
    Power of Minkowski's distance, at least 1; infinity for the largest difference.""",
        "attributes": """X_fit_ : array or CSR matrix of shape (n_samples_fit_, n_features)
    The rows.
n_samples_fit_ : int
certificate_ : Certificate
    The search is exact.
history_ : History
n_iter_ : int
converged_ : bool""",
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "queries": """X : array, sparse matrix or data frame of shape (n_queries, n_features), optional
    Default: the rows of the fit, each without itself.""",
        "left_out": """X : array, sparse matrix, data frame or Scan of shape (n_queries, n_features), optional
    Default: the rows of the fit, each predicted from the others (leave one out).""",
        "k": """n_neighbors : int, optional
    Default: that of the constructor.""",
    }

    n_neighbors: int
    algorithm: str
    p: float
    metric: str
    n_jobs: int | None
    X_fit_: Any
    n_samples_fit_: int

    _takes_sparse: ClassVar[bool] = True

    def _keep_rows(self, X: Any, y: Any, **checks: Any) -> ArrayData:
        """Check and keep the rows."""
        if is_dask(X):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; compute() them first")
        data = self._fit_data(X, y, **checks)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} keeps its rows and needs them in memory; collect them first")
        if self.algorithm == "kd_tree" and (data.sparse or self.metric == "cosine"):
            raise ParameterError(
                f"{type(self).__name__}: algorithm='kd_tree'; expected 'brute' or 'auto' for "
                f"{'sparse rows' if data.sparse else 'the cosine distance'}"
            )
        self.X_fit_ = data.X.copy() if data.sparse else np.array(data.X, order="C")
        self.n_samples_fit_ = data.n_rows
        return data

    def _conclude_exact(self) -> None:
        monitor = self._monitor(1, lambda _x: {})
        monitor(1, np.zeros(0), objective=0.0)
        meaning = (
            "nothing is fitted: the rows are kept, and every search is exact, ties going to the row that comes first"
        )
        certificate = Certificate("exact search", 0.0, 0.0, meaning)
        self._conclude(Solution(np.zeros(0), 0.0, monitor.history(), certificate, 1, "converged"))

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
        k = self._wanted(n_neighbors, self_excluded=X is None)
        if X is None:
            distances, rows = self._search(self.X_fit_, k + 1)
            distances, rows = without_self(distances, rows)
        else:
            data = self._predict_data(X)
            if not isinstance(data, ArrayData):
                raise DataError("X: queries have to be in memory; collect them first")
            distances, rows = self._search(data.X, k)
        return (distances, rows) if return_distance else rows

    def _wanted(self, n_neighbors: Any, *, self_excluded: bool) -> int:
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if not Integer(minimum=1).accepts(k):
            raise ParameterError(f"n_neighbors={k!r:.60}; expected an integer >= 1")
        if k + int(self_excluded) > self.n_samples_fit_:
            raise DataError(
                f"Expected n_neighbors {'<' if self_excluded else '<='} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {self.n_samples_fit_}"
            )
        return int(k)

    def _search(self, Q: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        n = int(Q.shape[0])
        require_memory(16.0 * n * k, f"{k:,} neighbours of {n:,} rows", "ask for fewer, or for parts of the rows")
        distances, rows = nearest(self.X_fit_, Q, k, metric_by_name(self.metric, self.p), self.algorithm, self.n_jobs)
        single = self.X_fit_.dtype == np.float32 and Q.dtype == np.float32
        return distances.astype(np.float32 if single else np.float64, copy=False), rows

    def _neighbours_of(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """(distances, rows) for prediction, of rows in memory or in files, or of the rows of the fit, left out."""
        if X is None:
            return self.kneighbors()  # type: ignore[return-value]
        data: Data = self._predict_data(X)
        k = self._wanted(None, self_excluded=False)
        if isinstance(data, ArrayData):
            return self._search(data.X, k)
        found = [self._search(batch.X, k) for batch in data.batches()]
        return np.concatenate([d for d, _ in found]), np.concatenate([r for _, r in found])

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
        CSR array of shape (n_queries, n_samples_fit)
        """
        if mode not in ("connectivity", "distance"):
            raise ParameterError(f"mode={mode!r:.60}; expected 'connectivity' or 'distance'")
        distances, rows = self.kneighbors(X, n_neighbors)
        n, k = rows.shape
        values = distances.ravel() if mode == "distance" else np.ones(n * k)
        return sp.csr_array((values, rows.ravel(), np.arange(0, n * k + 1, k)), shape=(n, self.n_samples_fit_))


class SupervisedNeighbors(NeighborsEstimator):
    """Estimators that predict from the targets of the neighbours, which may have weights."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **NEIGHBORS_PARAMETERS,
        "weights": AnyOf(Choice("uniform", "distance"), Callable()),
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        metric: str = "minkowski",
        p: float = 2,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.metric = metric
        self.p = p
        self.n_jobs = n_jobs


def neighbor_weights(weights: Any, distances: np.ndarray) -> np.ndarray | None:
    """The weights of neighbours, of shape (n, k); None where all count alike.

    By distance, neighbours at distance zero count alone.
    """
    if isinstance(weights, str):
        if weights == "uniform":
            return None
        zero = distances == 0
        with np.errstate(divide="ignore"):
            inverse = 1.0 / distances.astype(np.float64)
        exact = zero.any(axis=1)
        inverse[exact] = zero[exact]
        # Distances near the smallest number there is have an infinite inverse.
        beyond = ~np.isfinite(inverse).all(axis=1)
        inverse[beyond] = ~np.isfinite(inverse[beyond])
        return inverse
    values = np.asarray(weights(distances), dtype=np.float64)
    if values.shape != distances.shape or not np.isfinite(values).all() or (values < 0).any():
        raise ParameterError(
            f"weights: the function gave shape {values.shape} for distances of shape {distances.shape}; expected as "
            "many finite numbers >= 0"
        )
    return values
