"""K-means:  minimise  J(c) = sum_i v_i min_k |x_i - c_k|^2  over k centres."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import clone

from epicycle.cluster._descent import Descent, Run
from epicycle.cluster.kmeans._base import CenterModel
from epicycle.cluster.kmeans._lloyd import Assigner, BatchAssigner, Lloyd, MemoryAssigner
from epicycle.cluster.kmeans._number_of_clusters import Elbow, GapStatistic, checked_range, elbow_of, gap_of
from epicycle.cluster.kmeans._spread import Spread, spread_of
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Callable, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data, as_data
from epicycle.stats._class_scatter import dense_rows


class KMeans(CenterModel):
    r"""Clusters of rows around k centres.

    .. math:: \min_{c_1, \dots, c_k} \; J = \sum_i v_i \min_a \| x_i - c_a \|^2

    by Lloyd's iteration from one or several starts. Bounds on distances (`algorithm`) spare most of the work and change
    no label. A cluster that loses all its rows takes the row that is farthest from its own centre. No clustering has a
    distortion below the total sum of squares less the k - 1 largest eigenvalues of the scatter matrix, which
    `lower_bound_` holds.

    Parameters
    ----------
    init : {"k-means++", "k-means||", "random"}, array (n_clusters, n_features) or callable, default="k-means++"
        First centres: rows drawn far from each other, one by one with 2 + log k candidates each ("k-means++") or many
        in a few passes ("k-means||", always taken for rows that are not in memory); rows at random; given centres; or
        what ``init(X, n_clusters, random_state)`` returns.
    n_init : "auto" or int, default="auto"
        Number of starts, of which the best is kept; "auto" is 10 for "random" or a callable, otherwise 1.
    tol : float, default=1e-4
        Ends when the squared movement of all centres is at most `tol` times the mean variance of a feature. With 0 it
        ends when no label changes.
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
    >>> KMeans(random_state=0).elbow(X, 4).n_clusters
    2
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "init": AnyOf(Choice("k-means++", "k-means||", "random"), Callable(), ArrayLike()),
        "n_init": AnyOf(Choice("auto"), Integer(minimum=1)),
        "tol": Real(minimum=0),
        "copy_x": Boolean(),
        "algorithm": Choice("auto", "lloyd", "hamerly", "elkan", "yinyang"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory", "files", "dask"), certificate="stationarity"
    )

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
        """Find the centres of rows X."""
        data = self._fit_data(X, None, sample_weight, target="none")
        spread = spread_of(data, self.n_jobs, int(self.n_clusters))
        self._require_rows(spread.n_rows)
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
        """The best of all starts; centres are about the origin."""
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        starts = self._n_starts()
        monitor = self._monitor(
            starts * int(self.max_iter), lambda x: {"cluster_centers_": x.reshape(-1, data.n_features)}
        )
        descent = Descent(
            starts=starts,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            begin=lambda start: np.ascontiguousarray(self._start(X, data, seed, start) - origin),
            rounds_from=lambda _start: Lloyd(self._rows(data, origin), spread).round,
            shown=lambda centers: (centers + origin).ravel(),
            scale=spread.total_about(origin),
        )
        return descent.best(monitor, seed, state), monitor

    def _rows(self, data: Data, origin: np.ndarray) -> Assigner:
        if not isinstance(data, ArrayData):
            return BatchAssigner(data, origin, self.n_jobs)
        algorithm = "yinyang" if self.algorithm == "elkan" else self.algorithm
        return MemoryAssigner(data, origin, self.n_jobs, int(self.n_clusters), algorithm)

    def _solution(self, run: Run, spread: Spread, monitor: Monitor) -> Solution:
        meaning = "squared movement of the centers in the last round, relative to the mean variance of a feature"
        if spread.bound > 0:
            below = 1 - spread.bound / max(self.inertia_, spread.bound)
            meaning += f"; no {self.n_clusters} centers have a distortion more than {below:.1%} below"
        certificate = Certificate("stationarity", run.moved, float(self.tol), meaning)
        return Solution(
            self.cluster_centers_.ravel(), run.value, monitor.history(), certificate, run.n_iter, run.reason
        )

    # ------------------------------------------------------------------------------------------- how many clusters

    def elbow(self, X: Any, k: Any = 10, sample_weight: Any = None) -> Elbow:
        """Distortions over k, and where they bend.

        The line of log J over log k is straight for rows without clusters; the bend is where it falls faster before
        than after by the most. `n_clusters` of this estimator plays no part, and it is not fitted.

        Parameters
        ----------
        k : int or sequence of int, default=10
            Numbers of clusters; an integer stands for 1, ..., k.
        """
        counts = checked_range(k)
        return elbow_of(counts, self._distortions(X, counts, sample_weight))

    def gap_statistic(
        self, X: Any, k: Any = 10, sample_weight: Any = None, *, n_draws: int = 20, box: str = "principal"
    ) -> GapStatistic:
        """log J over k against its mean over draws without clusters, uniform in a box around the rows.

        The chosen k is the least whose gap is at least that of the next k less its standard error (Tibshirani, Walther
        and Hastie 2001). The draws follow from `random_state`. `n_clusters` of this estimator plays no part, and it is
        not fitted.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            In memory, and small enough to be dense.
        k : int or sequence of int, default=10
            Numbers of clusters; an integer stands for 1, ..., k.
        n_draws : int, default=20
            Draws without clusters.
        box : {"principal", "features"}, default="principal"
            Whether the box lies along the principal axes of the rows or along the features.
        """
        counts = checked_range(k)
        if not Integer(minimum=2).accepts(n_draws):
            raise ParameterError(f"n_draws={n_draws!r}; expected an integer of at least 2")
        if box not in ("principal", "features"):
            raise ParameterError(f"box={box!r}; expected 'principal' or 'features'")
        data = as_data(X, None, sample_weight, estimator_name=type(self).__name__, accept_sparse=True)
        if not isinstance(data, ArrayData):
            raise DataError("gap_statistic: expected rows in memory, because draws are made around them")
        seed = seed_of(self.random_state)

        def distortions(rows: Any, _name: str) -> np.ndarray:
            return self._distortions(rows, counts, data.weight, seed)

        return gap_of(counts, dense_rows(data.X), distortions, int(n_draws), seed, box)

    def _distortions(self, X: Any, counts: np.ndarray, sample_weight: Any, seed: int | None = None) -> np.ndarray:
        """J of a fit for every number of clusters."""
        if not isinstance(self.init, str) and not callable(self.init):
            raise ParameterError(
                "init: centers are given; expected a name or a callable, which give centers for every k"
            )
        seed = seed_of(self.random_state) if seed is None else seed
        models = [clone(self).set_params(n_clusters=int(k), random_state=seed) for k in counts]
        with warnings.catch_warnings():  # fewer distinct rows than clusters: J is 0, which says it
            warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
            return np.array([model.fit(X, sample_weight=sample_weight).inertia_ for model in models])
