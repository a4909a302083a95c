"""K-means:  minimise  J(c) = sum_i v_i min_k |x_i - c_k|^2  over k centres."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from epicycle import _native, engine
from epicycle.cluster.kmeans._lloyd import (
    Assigner,
    BatchAssigner,
    Clusters,
    MemoryAssigner,
    distortion_statistic,
    nearest,
    squared_distances,
)
from epicycle.cluster.kmeans._starts import given_centers, memory_start, parallel_plus_plus
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Callable, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data, as_data

#: Most features for which the spectral bound is computed: its matrix of squares costs as much as a few rounds.
_MOST_FEATURES = 256


@dataclass
class Spread:
    """Where the rows lie: weight, mean, sum of squares about it, mean variance of a column, bound on J from below."""

    weight: float
    mean: np.ndarray
    total: float
    bound: float
    n_rows: int

    @property
    def variance(self) -> float:
        return self.total / (self.weight * len(self.mean)) if self.weight else 0.0


@dataclass
class Place:
    """Where a fit stands: the start, the rounds done in it, those of all starts before, and the best so far."""

    start: int
    done: int
    rounds: int
    seed: int
    best: Run | None

    def state(self, number: int, centers: np.ndarray) -> Mapping[str, Any]:
        """All that is needed to go on from here."""
        at = {"seed": self.seed, "start": self.start, "round": number, "rounds": self.rounds, "centers": centers}
        if self.best is None:
            return at
        return {**at, "best": self.best.centers, "best_value": self.best.value, "best_moved": self.best.moved}


@dataclass
class Run:
    """The end of Lloyd's iteration from one start; centres are about the origin."""

    centers: np.ndarray
    value: float
    moved: float
    n_iter: int
    reason: str


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):  # type: ignore[misc]  # untyped
    r"""Clusters of rows around k centres.

    .. math:: \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \| x_i - c_a \|^2

    by Lloyd's iteration from one or several starts. Bounds on distances (`algorithm`) spare most of the work and change
    no label. A cluster that loses all its rows takes the row that is farthest from its own centre. No clustering has a
    distortion below the total sum of squares less the k - 1 largest eigenvalues of the scatter matrix, which
    `lower_bound_` holds.

    Parameters
    ----------
    n_clusters : int, default=8
        k.
    init : {"k-means++", "k-means||", "random"}, array (n_clusters, n_features) or callable, default="k-means++"
        First centres: rows drawn far from each other, one by one with 2 + log k candidates each ("k-means++") or many
        in a few passes ("k-means||", always taken for rows that are not in memory); rows at random; given centres; or
        what ``init(X, n_clusters, random_state)`` returns.
    n_init : "auto" or int, default="auto"
        Number of starts, of which the best is kept; "auto" is 10 for "random" or a callable, otherwise 1.
    tol : float, default=1e-4
        Ends when the squared movement of all centres is at most `tol` times the mean variance of a feature. With 0 it
        ends when no label changes.
    copy_x : bool, default=True
        Accepted for compatibility; X is never written to.
    algorithm : {"auto", "lloyd", "hamerly", "elkan", "yinyang"}, default="auto"
        Bounds kept for every row: none, one for all other centres, or one for each group of 16 centres ("elkan" and
        "yinyang"). The result is the same.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row; for rows in memory.
    inertia_ : float
        J.
    lower_bound_ : float
        No k centres have a smaller J; nan for more than 256 features, sparse rows, and rows that are not in memory.
    certificate_ : Certificate
        Stationarity: how far the centres still moved. Its meaning says how far J is from the lower bound.
    history_ : History
        J after every round, the number of the start and how far the centres moved; J never rises within a start.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KMeans
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> model.inertia_, round(model.lower_bound_, 6)
    (16.0, 16.0)
    >>> bool(model.predict([[0, 0]])[0] == model.labels_[0])
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_clusters": Integer(minimum=1),
        "init": AnyOf(Choice("k-means++", "k-means||", "random"), Callable(), ArrayLike()),
        "n_init": AnyOf(Choice("auto"), Integer(minimum=1)),
        "tol": Real(minimum=0),
        "copy_x": Boolean(),
        "algorithm": Choice("auto", "lloyd", "hamerly", "elkan", "yinyang"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory", "files", "dask"), certificate="stationarity"
    )
    _takes_sparse = True

    cluster_centers_: np.ndarray
    labels_: np.ndarray
    inertia_: float

    @stores_arguments(max_iter=300, tol=1e-4, verbose=0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        copy_x: bool = True,
        algorithm: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres of rows X.

        Parameters
        ----------
        y : ignored
        """
        data = self._fit_data(X, None, sample_weight, target="none")
        spread = spread_of(data, self.n_jobs, int(self.n_clusters))
        if spread.n_rows < self.n_clusters:
            raise DataError(f"n_samples={spread.n_rows} should be >= n_clusters={self.n_clusters}.")
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=3,
            )
        origin = np.zeros(data.n_features) if data.sparse else spread.mean
        run, history = self._best_run(X, data, origin, spread)
        dtype = np.float32 if data.dtype == np.float32 else np.float64
        self.cluster_centers_ = (run.centers + origin).astype(dtype)
        self._set_labels(data)
        self.lower_bound_ = spread.bound
        self._conclude(self._solution(run, spread, history))
        return self

    def _best_run(self, X: Any, data: Data, origin: np.ndarray, spread: Spread) -> tuple[Run, Monitor]:
        """The best of all starts."""
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        starts = self._n_starts()
        monitor = self._monitor(
            starts * int(self.max_iter), lambda x: {"cluster_centers_": x.reshape(-1, data.n_features)}
        )
        place, centers = Place(0, 0, 0, seed, None), None
        if state is not None:
            place = Place(int(state["start"]), int(state["round"]), int(state["rounds"]), seed, None)
            centers = np.array(state["centers"])
            if "best" in state:
                value, moved = float(state["best_value"]), float(state["best_moved"])
                place.best = Run(np.array(state["best"]), value, moved, 0, "converged")
        for start in range(place.start, starts):
            place.start = start
            if centers is None:
                centers = np.ascontiguousarray(self._start(X, data, seed, start) - origin)
            run = self._descend(data, origin, centers, spread, monitor, place)
            if place.best is None or run.value < place.best.value:
                place.best = run
            centers, place.done, place.rounds = None, 0, place.rounds + run.n_iter
            if run.reason == "stopped":
                break
        assert place.best is not None
        return place.best, monitor

    def _n_starts(self) -> int:
        if not isinstance(self.init, str) and not callable(self.init):
            if self.n_init not in ("auto", 1):
                warnings.warn(
                    f"Explicit initial center position passed: performing only one init in {type(self).__name__} "
                    f"instead of n_init={self.n_init}.",
                    RuntimeWarning,
                    stacklevel=5,
                )
            return 1
        if self.n_init == "auto":
            return 10 if callable(self.init) or self.init == "random" else 1
        return int(self.n_init)

    def _start(self, X: Any, data: Data, seed: int, start: int) -> np.ndarray:
        k, p = int(self.n_clusters), data.n_features
        if callable(self.init):
            state = np.random.RandomState((seed + start) % 2**32)
            return given_centers(self.init(X, k, random_state=state), k, p)
        if not isinstance(self.init, str):
            return given_centers(self.init, k, p)
        if not isinstance(data, ArrayData) or self.init == "k-means||":
            return parallel_plus_plus(data, k, seed + start, self.n_jobs)
        return memory_start(data, self.init, k, seed, start, self.n_jobs)

    def _descend(
        self, data: Data, origin: np.ndarray, centers: np.ndarray, spread: Spread, monitor: Monitor, place: Place
    ) -> Run:
        """Lloyd's iteration from the centres."""
        rows: Assigner
        if isinstance(data, ArrayData):
            algorithm = "yinyang" if self.algorithm == "elkan" else self.algorithm
            rows = MemoryAssigner(data, origin, self.n_jobs, len(centers), algorithm)
        else:
            rows = BatchAssigner(data, origin, self.n_jobs)
        total = spread.total + spread.weight * float(((spread.mean - origin) ** 2).sum())
        moved: np.ndarray | None = None
        value, shift = np.inf, np.inf
        for number in range(place.done + 1, int(self.max_iter) + 1):
            clusters = refilled(rows, rows.clusters(centers, moved), centers)
            weight = np.where(clusters.weight > 0, clusters.weight, 1.0)[:, None]
            means = np.where(clusters.weight[:, None] > 0, clusters.sums / weight, centers)
            value = max(total - float(((clusters.sums**2) / weight).sum()), 0.0)
            moved = np.sqrt(((means - centers) ** 2).sum(axis=1))
            shift = float((moved**2).sum()) / spread.variance if spread.variance > 0 else 0.0
            centers = np.ascontiguousarray(means)
            stop = monitor(
                place.rounds + number,
                (centers + origin).ravel(),
                objective=value,
                state=partial(place.state, number, centers),
                start=place.start,
                movement=shift,
            )
            if shift <= self.tol:
                return Run(centers, value, shift, number, "converged")
            if stop:
                return Run(centers, value, shift, number, "stopped")
        return Run(centers, value, shift, int(self.max_iter), "max_iter")

    def _set_labels(self, data: Data) -> None:
        """Labels of the rows, and J, at the centres as they are stored."""
        centers = self.cluster_centers_.astype(np.float64)
        if not isinstance(data, ArrayData):
            (self.inertia_,) = engine.sum(distortion_statistic, data, centers, n_jobs=self.n_jobs)
            return
        threads = n_threads(float(data.n_rows) * centers.size, self.n_jobs)
        label = nearest(data.X, centers, threads)
        distance = blockwise_distances(data.X, centers, label)
        self.inertia_ = float(distance.sum() if data.weight is None else distance @ data.weight)
        self.labels_ = label.astype(np.int32)
        distinct = len(np.unique(label))
        if distinct < len(centers):
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters ({len(centers)}). "
                "Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _solution(self, run: Run, spread: Spread, monitor: Monitor) -> Solution:
        meaning = "squared movement of the centers in the last round, relative to the mean variance of a feature"
        if spread.bound > 0:
            below = 1 - spread.bound / max(self.inertia_, spread.bound)
            meaning += f"; no {self.n_clusters} centers have a distortion more than {below:.1%} below"
        certificate = Certificate("stationarity", run.moved, float(self.tol), meaning)
        return Solution(
            self.cluster_centers_.ravel(), run.value, monitor.history(), certificate, run.n_iter, run.reason
        )

    # ------------------------------------------------------------------------------------------- use of a fit

    def predict(self, X: Any) -> Any:
        """The cluster of every row: the number of its nearest centre.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        array of shape (n_samples,)
        """
        return engine.map(_labels_of_batch, self._predict_data(X), self._centers(), n_jobs=self.n_jobs)

    def transform(self, X: Any) -> Any:
        """Distances of every row from all centres.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        array of shape (n_samples, n_clusters)
        """
        return engine.map(_distances_of_batch, self._predict_data(X), self._centers(), n_jobs=self.n_jobs)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return the cluster of every row."""
        self.fit(X, sample_weight=sample_weight)
        return self.labels_ if "labels_" in vars(self) else self.predict(X)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows X, and return their distances from all centres."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the distortion of rows X.

        Parameters
        ----------
        %(X)s
        y : ignored
        %(sample_weight)s

        Returns
        -------
        float
        """
        self._check_fitted()
        data = as_data(X, None, sample_weight, estimator_name=type(self).__name__, accept_sparse=True)
        self._check_features(X, data, reset=False)
        (value,) = engine.sum(distortion_statistic, data, self._centers(), n_jobs=self.n_jobs)
        return -float(value)

    def _centers(self) -> np.ndarray:
        self._check_fitted()
        return self.cluster_centers_.astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def refilled(rows: Assigner, clusters: Clusters, centers: np.ndarray) -> Clusters:
    """Give every empty cluster the row that is farthest from its own centre, which leaves its old cluster."""
    empty = np.flatnonzero(clusters.weight == 0)
    if not len(empty):
        return clusters
    found = rows.farthest(centers, len(empty))
    sums, weight = clusters.sums.copy(), clusters.weight.copy()
    for a, far in zip(empty, range(len(found.distance)), strict=False):
        old, w = found.label[far], found.weight[far]
        if found.distance[far] == 0 or w == 0 or weight[old] <= w * (1 + 1e-9):
            continue  # every row is at a centre, or the row is all that its cluster has
        row = w * (found.rows[far] - rows.origin)
        sums[old], weight[old] = sums[old] - row, weight[old] - w
        sums[a], weight[a] = row, w
    return Clusters(sums, weight)


def spread_of(data: Data, n_jobs: int | None, k: int) -> Spread:
    """Mean and sum of squares of the rows, and a bound on J of any k centres where it is cheap."""
    head = data.head().X
    shift = np.zeros(data.n_features) if data.sparse else np.asarray(head.mean(axis=0, dtype=np.float64))
    full = not data.sparse and data.n_features <= _MOST_FEATURES
    weight, sums, squares, n_rows = engine.sum(_spread_statistic, data, shift, full, n_jobs=n_jobs)
    if not np.isfinite(squares).all():
        raise DataError("X: sums of squares of its columns overflow; scale them down")
    if not full:
        return Spread(weight, shift + sums / weight, _total(squares - sums**2 / weight), np.nan, n_rows)
    # The rows of any clustering lie in k - 1 dimensions about their mean, but for J (Zha et al. 2001).
    values = np.linalg.eigvalsh(squares - np.outer(sums, sums) / weight).clip(min=0)[::-1]
    total = float(values.sum())
    # What is below the rounding of the eigenvalues is no bound.
    bound = max(float(values[k - 1 :].sum()) - 1e-12 * total, 0.0)
    return Spread(weight, shift + sums / weight, total, bound, n_rows)


def _total(squares: np.ndarray) -> float:
    return float(squares.clip(min=0).sum())


def _spread_statistic(batch: Batch, shift: np.ndarray, full: bool) -> tuple[float, np.ndarray, np.ndarray, int]:
    """Weight of a batch, sums of x - shift, their squares or all their products, and how many rows have a weight."""
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    counted = int(np.count_nonzero(weight))
    if not isinstance(batch.X, np.ndarray):
        squares = np.asarray(batch.X.multiply(batch.X).T @ weight, dtype=np.float64)
        return float(weight.sum()), np.asarray(batch.X.T @ weight, dtype=np.float64), squares, counted
    rows = batch.X - shift
    weighted = rows if batch.weight is None else rows * weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = rows.T @ weighted if full else np.einsum("ij,ij->j", rows, weighted)
    return float(weight.sum()), weighted.sum(axis=0), squares, counted


def blockwise_distances(X: Any, centers: np.ndarray, label: np.ndarray) -> np.ndarray:
    """|x - c|^2 of every row and its centre, with temporary memory for some rows only."""
    step = max(1, 2**20 // max(1, X.shape[1]))
    parts = [squared_distances(X[a : a + step], centers, label[a : a + step]) for a in range(0, len(label), step)]
    return np.concatenate(parts)


def _labels_of_batch(batch: Batch, centers: np.ndarray) -> np.ndarray:
    return nearest(batch.X, centers).astype(np.int32)


def _distances_of_batch(batch: Batch, centers: np.ndarray) -> np.ndarray:
    if isinstance(batch.X, np.ndarray):  # from differences: zero at a centre
        return np.asarray(cdist(batch.X, centers), dtype=batch.X.dtype)
    squares = _native.cluster.closest_distances(batch.X, np.zeros(centers.shape[1]), centers, None, 1)
    return np.asarray(np.sqrt(squares).T, dtype=batch.X.dtype)
