"""Mini-batch k-means (Sculley 2010):  c_a <- c_a + (v / n_a) (mean of the batch's rows nearest to c_a - c_a).

v is the weight of those rows and n_a that of all rows that the centre has ever had, so that c_a is their mean. A step
sees some rows only: unlike Lloyd's rounds it may raise the distortion of all rows.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from epicycle import engine
from epicycle.cluster.kmeans._base import CenterModel
from epicycle.cluster.kmeans._batch_steps import End, Smoothed, Stream, end_of_batch, sampled, step
from epicycle.cluster.kmeans._lloyd import distortion_statistic, nearest
from epicycle.cluster.kmeans._spread import spread_of
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Callable, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core._solution import Solution
from epicycle.core._threads import n_threads
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine._row_order import batches_in_order, minibatches


class MiniBatchKMeans(CenterModel):
    r"""K-means from one small batch of rows after another.

    .. math:: c_a \leftarrow c_a + \frac{v_a}{n_a} \left( \bar x_a - c_a \right)

    for every centre, where :math:`\bar x_a` is the mean of the batch's rows nearest to it, :math:`v_a` their weight and
    :math:`n_a` that of all rows so far. Every :math:`10 k` rows, and as long as a centre has none, centres with less
    than `reassignment_ratio` of the largest weight are put on rows of the batch, drawn at random. Rows in memory come
    in batches drawn afresh in every epoch; those of files and Dask collections are read in order, and shuffled within
    what is read at a time.

    Parameters
    ----------
    init : {"k-means++", "random"}, array (n_clusters, n_features) or callable, default="k-means++"
        First centres, found among `init_size` rows: drawn far from each other or at random; given centres; or what
        ``init(X, n_clusters, random_state)`` returns.
    max_iter : int, default=100
        Largest number of epochs.
    batch_size : int, default=1024
        Rows of a batch.
    compute_labels : bool, default=True
        Whether a last pass finds labels and distortion of all rows; without it the distortion and the certificate are
        estimates.
    tol : float, default=0.0
        Ends when the squared movement of all centres in a step is at most `tol` times the mean variance of a feature;
        0 is never.
    max_no_improvement : int or None, default=10
        Ends after so many batches in a row without an improvement of the smoothed distortion; None is never.
    init_size : int or None, default=None
        Rows among which first centres are found and compared; None is three batches, or 3k where that is more.
    n_init : "auto" or int, default="auto"
        Starts, of which the best on those rows is kept; "auto" is 3 for "random" or a callable, otherwise 1.
    reassignment_ratio : float, default=0.01
        Share of the largest weight below which a centre is moved to another row; 0 is never.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        The cluster of every row, for rows in memory with `compute_labels`; after `partial_fit` of its rows.
    inertia_ : float
        The distortion of all rows, or an estimate; after `partial_fit` that of its rows.
    n_steps_ : int
        Batches so far.
    n_iter_ : int
        Epochs that were begun.
    certificate_ : Certificate
        How much the distortion would fall if all centres went to the means of their rows. It holds where that is less
        than the standard error of a batch's distortion: the batches cannot show it.
    history_ : History
        For every batch its mean distortion before the step, the smoothed one (the objective) and how far the centres
        moved; of the last call.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MiniBatchKMeans
    >>> X = np.random.default_rng(0).normal(size=(3000, 2)) + 8 * np.repeat(np.eye(3, 2), 1000, axis=0)
    >>> model = MiniBatchKMeans(n_clusters=3, random_state=0).fit(X)
    >>> np.sort(np.round(model.cluster_centers_).astype(int).tolist(), axis=0).tolist()
    [[0, 0], [0, 0], [8, 8]]
    >>> model.certificate_.holds
    True
    >>> stream = MiniBatchKMeans(n_clusters=3, random_state=0)
    >>> for start in range(0, 3000, 500):
    ...     stream = stream.partial_fit(X[start : start + 500])
    >>> stream.n_steps_
    6
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "init": AnyOf(Choice("k-means++", "random"), Callable(), ArrayLike()),
        "batch_size": Integer(minimum=1),
        "compute_labels": Boolean(),
        "tol": Real(minimum=0),
        "max_no_improvement": NoneOr(Integer(minimum=0)),
        "init_size": NoneOr(Integer(minimum=1)),
        "n_init": AnyOf(Choice("auto"), Integer(minimum=1)),
        "reassignment_ratio": Real(minimum=0),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="cluster", catalogue=("E1",), engines=("memory", "files", "dask"), certificate="gain of a full step"
    )
    _random_starts = 3

    n_steps_: int
    _counts_: np.ndarray

    @stores_arguments(max_iter=100, tol=0.0, verbose=0, random_state=None, n_jobs=None)
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        batch_size: int = 1024,
        compute_labels: bool = True,
        max_no_improvement: int | None = 10,
        init_size: int | None = None,
        n_init: int | str = "auto",
        reassignment_ratio: float = 0.01,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres of rows X, in as many batches as it takes."""
        data = self._fit_data(X, None, sample_weight, target="none")
        spread = spread_of(data, self.n_jobs, int(self.n_clusters), bound=False)
        self._require_rows(spread.n_rows)
        state = self._resume_state()
        self._seed_ = seed_of(self.random_state) if state is None else int(state["seed"])
        at, watch = self._first(X, data, spread.n_rows), Smoothed()
        if state is not None:
            at, watch = Stream.resumed(state), Smoothed(*(float(x) for x in state["smoothed"]))
        rows = min(int(self.batch_size), spread.n_rows)
        most = int(self.max_iter) * spread.n_rows // rows
        monitor = self._monitor(most, lambda x: {"cluster_centers_": x.reshape(-1, data.n_features)})
        reason, done = "max_iter", at.steps
        for X_rows, weight in self._batches(data, done):
            if done >= most:
                break
            done += 1
            at, found = step(X_rows, weight, at, self.reassignment_ratio, self._seed_, self._threads(data, rows))
            watch = watch.after(found.mean, rows, spread.n_rows, first=done == 1)
            moved = found.moved / spread.variance if spread.variance > 0 else 0.0
            record = {"batch": found.mean, "movement": moved}
            stop = monitor(
                done, at.centers.ravel(), objective=watch.value, state=partial(self._state, at, watch), **record
            )
            if done > 1 and ((self.tol > 0 and moved <= self.tol) or watch.ended(self.max_no_improvement)):
                reason = "converged"
                break
            if stop:
                reason = "stopped"
                break
        self._keep(at, data.dtype)
        certificate = self._judge(data, spread.weight, watch.value * spread.weight, rows)
        # All epochs are done, and what is left to gain cannot be seen in a batch: that is an end too.
        reason = "converged" if reason == "max_iter" and certificate.holds else reason
        epochs = math.ceil(at.steps * rows / spread.n_rows)
        self._conclude(
            Solution(self.cluster_centers_.ravel(), self.inertia_, monitor.history(), certificate, epochs, reason)
        )
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Make one step with all rows X; rows of files and Dask collections are read in batches, a step for each."""
        first = not hasattr(self, "cluster_centers_")
        data = self._fit_data(X, None, sample_weight, target="none", reset=first)
        monitor = self._monitor(None, lambda x: {"cluster_centers_": x.reshape(-1, data.n_features)})
        if first:
            self._seed_ = seed_of(self.random_state)
            n_rows = spread_of(data, self.n_jobs, int(self.n_clusters), bound=False).n_rows
            self._require_rows(n_rows)
            at = self._first(X, data, n_rows)
        else:
            at = Stream(self.cluster_centers_.astype(np.float64), self._counts_, self._since_, self.n_steps_)
        total = 0.0
        for batch in batches_in_order(data) if isinstance(data, ArrayData) else _pieces(data, int(self.batch_size)):
            if batch.total_weight == 0:
                continue
            total += batch.total_weight
            threads = self._threads(data, batch.n_rows)
            at, found = step(batch.X, batch.weight, at, self.reassignment_ratio, self._seed_, threads)
            monitor(at.steps, at.centers.ravel(), objective=found.mean, batch=found.mean, movement=found.moved)
        if total == 0:
            raise DataError("sample_weight: all weights are zero; expected one row of positive weight")
        self._keep(at, data.dtype)
        certificate = self._judge(data, total, found.mean * total, int(self.batch_size))
        x = self.cluster_centers_.ravel()
        self._conclude(Solution(x, self.inertia_, monitor.history(), certificate, at.steps, "converged"))
        self._run.warning = ""  # one step is not meant to converge
        return self

    # ------------------------------------------------------------------------------------------- parts of a fit

    def _first(self, X: Any, data: Data, n_rows: int) -> Stream:
        """The best of the starts, compared on a sample of the rows."""
        k, p = int(self.n_clusters), data.n_features
        size, starts = self._sample_size(n_rows), self._n_starts()
        if not isinstance(self.init, str) and not callable(self.init):
            return Stream(self._start(X, data, self._seed_, 0), np.zeros(k), 0.0, 0)
        some: Data = sampled(data, size, self._seed_, self.n_jobs)
        best, least = np.zeros((k, p)), np.inf
        for start in range(starts):
            centers = self._start(X, some, self._seed_, start)
            if starts > 1:
                (value,) = engine.sum(distortion_statistic, some, centers, n_jobs=self.n_jobs)
            if starts == 1 or value < least:
                best, least = centers, value if starts > 1 else 0.0
        return Stream(best, np.zeros(k), 0.0, 0)

    def _sample_size(self, n_rows: int) -> int:
        k, batch = int(self.n_clusters), min(int(self.batch_size), n_rows)
        if self.init_size is None:
            size = 3 * batch if 3 * batch >= k else 3 * k
        elif self.init_size < k:
            warnings.warn(
                f"init_size={self.init_size} should be larger than n_clusters={k}. Setting it to "
                "min(3*n_clusters, n_samples)",
                RuntimeWarning,
                stacklevel=5,
            )
            size = 3 * k
        else:
            size = int(self.init_size)
        return min(size, n_rows)

    def _batches(self, data: Data, done: int) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Batches of one epoch after another, less the first `done`, which an earlier fit has seen."""
        for epoch in range(int(self.max_iter) + 1):
            for batch, _ in minibatches(data, int(self.batch_size), epoch, self._seed_):
                if batch.total_weight == 0:
                    continue
                if done > 0:
                    done -= 1
                    continue
                yield batch.X, batch.weight

    def _threads(self, data: Data, rows: int) -> int:
        return n_threads(float(rows) * self.n_clusters * data.n_features, self.n_jobs)

    def _state(self, at: Stream, watch: Smoothed) -> Mapping[str, Any]:
        return {"seed": self._seed_, **at.state(), "smoothed": watch.numbers()}

    def _keep(self, at: Stream, dtype: Any) -> None:
        self.cluster_centers_ = at.centers.astype(np.float32 if dtype == np.float32 else np.float64)
        self._counts_, self._since_, self.n_steps_ = at.counts, at.since, at.steps

    def _judge(self, data: Data, weight: float, estimate: float, rows: int) -> Certificate:
        """Labels and distortion where they are asked for, and how far the centres are from the means of their rows."""
        end: End
        if self.compute_labels:
            end = self._end(data)
            self.inertia_ = end.value
            where = "all rows"
        else:
            self.inertia_ = estimate
            some = sampled(data, 3 * rows, self._seed_ + 1, self.n_jobs)
            (end,) = engine.sum(end_of_batch, some, self._centers(), n_jobs=self.n_jobs)
            where = "a sample of the rows"
        return Certificate(
            "gain of a full step",
            end.gain(),
            end.error(rows),
            f"how much the distortion of {where} would fall if all centers went to the means of their rows, relative; "
            "the tolerance is the standard error of a batch's distortion",
        )

    def _end(self, data: Data) -> End:
        """Sums over all rows, and labels of those in memory."""
        end: End
        centers = self._centers()
        if not isinstance(data, ArrayData):
            (end,) = engine.sum(end_of_batch, data, centers, n_jobs=self.n_jobs)
            return end
        label = nearest(data.X, centers, n_threads(float(data.n_rows) * centers.size, self.n_jobs))
        self.labels_ = label.astype(np.int32)
        parts = (end_of_batch(b, centers, label[b.start : b.start + b.n_rows])[0] for b in data.batches())
        return reduce(operator.add, parts)


def _pieces(data: Data, rows: int) -> Iterator[Batch]:
    """Batches of at most so many rows, in order."""
    for batch in batches_in_order(data):
        for a in range(0, batch.n_rows, rows):
            weight = None if batch.weight is None else batch.weight[a : a + rows]
            yield Batch(batch.X[a : a + rows], None, weight, batch.start + a)
