"""K-medoids:  minimise  TD = sum_i v_i min_a d(x_i, m_a)  over k rows m of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from epicycle import engine
from epicycle.cluster._descent import Descent
from epicycle.cluster._empty import warn_of_empty
from epicycle.cluster.medoids._work import Work, between, distinct_rows
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer, NoneOr
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch
from epicycle.engine._row_order import row_hashes
from epicycle.spatial._metrics import MetricInUse, is_precomputed, resolve, takes_sparse
from epicycle.spatial._options import SEARCH_DOCS, SEARCH_PARAMETERS
from epicycle.spatial._rows import check_values, takes_missing

#: Rows beyond which samples of this many are taken: their matrix of distances has 200 MB, that of all rows 3 GB.
MOST_ROWS, SAMPLE = 20_000, 5_000
#: Samples, where there are any.
SAMPLES = 5


class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):  # type: ignore[misc]  # untyped
    r"""Clusters around k rows of the table, for any distance.

    .. math:: \min_{m_1, \dots, m_k \text{ rows}} \; TD = \sum_i v_i \min_a d(x_i, m_a)

    by swaps: as long as there is a medoid and a row whose swap lowers TD, it is made (FasterPAM). At the end no single
    swap does, which the certificate says. Equal rows count as one of their weight; of more than 20,000 different ones
    samples of 5,000 are taken, and the medoids that are best for all rows are kept (CLARA). A cluster is never empty,
    since its medoid is in it; where there are fewer different rows than clusters the last ones repeat, with a warning.

    Parameters
    ----------
    init : {"lab", "build", "k-medoids++", "random"} or array (n_clusters,) of row numbers, default="lab"
        First medoids: each lowers TD by the most among all rows ("build") or among a sample of 10 + sqrt(n) of them
        ("lab"), is drawn with a probability proportional to the distance from those before ("k-medoids++"), or all are
        rows at random.
    n_init : "auto" or int, default="auto"
        Number of starts, of which the best is kept; each has a sample of its own where samples are taken. "auto" is 1,
        or 5 where samples are taken.
    sample_size : int, optional
        Rows of a sample; by default all rows up to 20,000 different ones, and 5,000 of more.

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (n_clusters,)
        The rows of X that are medoids.
    cluster_centers_ : ndarray or sparse matrix of shape (n_clusters, n_features)
        Those rows; None with metric="precomputed".
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row.
    inertia_ : float
        TD.
    certificate_ : Certificate
        By how much the best single swap would lower TD, relative to it: by nothing but rounding.
    history_ : History
        TD after every round over all rows, the start, and the number of swaps ("movement"); TD never rises.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KMedoids
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.medoid_indices_.tolist()), model.inertia_
    ([0, 3], 8.0)
    >>> model.certificate_.holds
    True
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "metric": SEARCH_DOCS["metric"].replace(
            "(a sparse X those of the neighbours)", "(that of row i and medoid j in row i and column j)"
        ),
        "metric_params": SEARCH_DOCS["metric_params"],
        "max_iter": "max_iter : int, default={default}\n    Maximum number of rounds over all rows.",
        "fit_X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "predict_X": '%(fit_X)s\n    Rows; with metric="precomputed" their distances from all rows of the fit.',
        "transform_X": "%(predict_X)s",
        "transform_returns": "array of shape (n_samples, n_clusters)",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "metric": SEARCH_PARAMETERS["metric"],
        "metric_params": SEARCH_PARAMETERS["metric_params"],
        "init": AnyOf(Choice("lab", "build", "k-medoids++", "random"), ArrayLike()),
        "n_init": AnyOf(Choice("auto"), Integer(minimum=1)),
        "sample_size": NoneOr(Integer(minimum=1)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory",), certificate="best swap"
    )
    _takes_sparse = True

    cluster_centers_: Any
    labels_: np.ndarray
    inertia_: float

    @stores_arguments(max_iter=100, verbose=0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "lab",
        n_init: int | str = "auto",
        sample_size: int | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.metric)
        tags.input_tags.allow_nan = takes_missing(self.metric)
        return tags

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the medoids of rows X, or of distances X between them."""
        metric = resolve(2, self.metric, self.metric_params)
        data = self._rows(X, sample_weight, metric)
        rows = distinct_rows(data, precomputed=metric.is_given)
        if rows.count < self.n_clusters:
            raise DataError(f"n_samples={rows.count} should be >= n_clusters={self.n_clusters}.")
        k = min(int(self.n_clusters), len(rows.first))
        size = self._sample_size(len(rows.first), k)
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        work = Work(data.X, metric, rows, size, self.n_jobs, seed)
        sampling = size < len(rows.first)
        starts = self._n_starts(sampling=sampling)
        monitor = self._monitor(starts * int(self.max_iter), lambda x: {"medoid_indices_": x.astype(np.int64)})
        given = None if isinstance(self.init, str) else self._given(data, rows.first, k)
        descent = Descent(
            starts=starts,
            max_iter=int(self.max_iter),
            tol=0.0,
            begin=lambda start: work.problem(start).first(self.init, k, work.rng(start)) if given is None else given,
            rounds_from=lambda start: work.rounds(start, given),
            shown=lambda medoids: medoids.astype(np.float64),
            scale=work.scale(),
            criterion=work.cost if sampling else None,
        )
        run = descent.best(monitor, seed, state)
        self._keep(data, metric, np.resize(run.centers, int(self.n_clusters)))
        certificate = self._certificate(work, run.centers, run.reason, sampling=sampling)
        found = self.medoid_indices_.astype(np.float64)
        self._conclude(Solution(found, self.inertia_, monitor.history(), certificate, run.n_iter, run.reason))
        return self

    def _rows(self, X: Any, sample_weight: Any, metric: MetricInUse) -> ArrayData:
        missing = takes_missing(self.metric)
        data = self._fit_data(X, None, sample_weight, target="none", check_finite=not missing)
        if not isinstance(data, ArrayData):
            raise DataError("X: KMedoids needs distances between rows in memory; compute() or collect them first")
        check_values(self.metric, data.X)
        if data.sparse and (metric.is_given or not takes_sparse(metric)):
            raise ParameterError(f"Metric {self.metric!r} not valid for sparse input; expected dense rows")
        if metric.is_given and data.n_rows != data.n_features:
            raise DataError(f"Precomputed matrix must be square. Input is a {data.n_rows}x{data.n_features} matrix.")
        return data

    def _sample_size(self, n: int, k: int) -> int:
        if self.sample_size is None:
            return n if n <= MOST_ROWS else max(SAMPLE, 2 * k)
        if self.sample_size < k:
            raise ParameterError(f"sample_size={self.sample_size}; expected at least n_clusters={k}")
        return min(n, int(self.sample_size))

    def _n_starts(self, *, sampling: bool) -> int:
        if not isinstance(self.init, str):
            return 1
        if self.n_init == "auto":
            return SAMPLES if sampling else 1
        return int(self.n_init)

    def _given(self, data: ArrayData, first: np.ndarray, k: int) -> np.ndarray:
        """Medoids by the numbers of their rows; a row stands for all that are equal to it."""
        rows = np.asarray(self.init)
        if rows.shape != (self.n_clusters,) or rows.dtype.kind not in "iu":
            raise ParameterError(f"init: {rows.dtype} of shape {rows.shape}; expected {self.n_clusters} row numbers")
        if rows.min() < 0 or rows.max() >= data.n_rows:
            raise ParameterError(f"init: rows {rows.min()} to {rows.max()}; expected numbers below {data.n_rows}")
        if is_precomputed(self.metric):
            medoids = rows
        else:
            keys = row_hashes(data.X)
            order = np.argsort(keys[first])
            medoids = first[order[np.searchsorted(keys[first][order], keys[rows]).clip(max=len(first) - 1)]]
        if len(np.unique(medoids)) < k or not np.isin(medoids, first).all():
            raise ParameterError("init: expected rows that differ from each other, with positive weights")
        return np.asarray(medoids[:k], dtype=np.int64)

    def _keep(self, data: ArrayData, metric: MetricInUse, medoids: np.ndarray) -> None:
        self.medoid_indices_ = medoids.astype(np.int64)
        self.cluster_centers_ = None if metric.is_given else data.X[self.medoid_indices_].copy()
        model = (self.metric, self.metric_params, self.cluster_centers_, self.medoid_indices_)
        distances = engine.map(_distances_of_batch, data, *model, n_jobs=self.n_jobs if metric.is_symmetric else 1)
        self.labels_ = np.asarray(distances).argmin(axis=1).astype(np.int32)
        least = np.asarray(distances, dtype=np.float64).min(axis=1)
        self.inertia_ = float(least.sum() if data.weight is None else least @ data.weight)
        warn_of_empty(self.labels_, len(medoids))

    def _certificate(self, work: Work, medoids: np.ndarray, reason: str, *, sampling: bool) -> Certificate:
        value = np.inf if reason != "converged" else work.gain(medoids)
        where = " for another row of its sample lowers the sum over that sample" if sampling else " for a row lowers it"
        return Certificate(
            "best swap",
            value,
            1e-12,
            f"by how much the best swap changes the sum, relative: no swap of a medoid{where}",
        )

    # ------------------------------------------------------------------------------------------- use of a fit

    def predict(self, X: Any) -> Any:
        """The cluster of every row: the number of its nearest medoid."""
        found = self.transform(X)
        return found.argmin(axis=1).astype(np.int32)

    def transform(self, X: Any) -> Any:
        """Distances of every row from all medoids."""
        data = self._predict_data(X, missing=takes_missing(self.metric))
        model = (self.metric, self.metric_params, self.cluster_centers_, self.medoid_indices_)
        return engine.map(_distances_of_batch, data, *model, n_jobs=1 if callable(self.metric) else self.n_jobs)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their distances from all medoids."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.medoid_indices_)


def _distances_of_batch(batch: Batch, metric: Any, params: Any, centers: Any, medoids: np.ndarray) -> np.ndarray:
    found = resolve(2, metric, params)
    return np.asarray(batch.X[:, medoids] if found.is_given else between(found, batch.X, centers), dtype=batch.X.dtype)
