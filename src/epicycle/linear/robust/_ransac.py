"""Random sample consensus: fit to a few random rows, count the rows near that fit, keep the largest such set.

With m rows a trial and a share e of inliers, a trial sees inliers alone with probability e^m, and none of N trials does
with probability (1 - e^m)^N: the trials end when that is at most 1 - stop_probability, for the e found so far.
Trial t draws from a stream of its own and the trials are compared in their order, so that the result does not depend on
the number of threads. Equal rows are drawn as one of their total weight, in an order that follows from what they hold:
so a weight acts as that many rows would, and the order of the rows does not matter.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable as Function, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import CollinearityWarning, ConvergenceWarning, DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._settings import config
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.least_squares._linear_regression import LinearRegression
from epicycle.optim import Solution
from epicycle.stats._moments import target_columns

#: Numbers of a block of residuals, and trials of a block at most: 16 MB, and few enough that early ends waste little.
BLOCK_SIZE, MAX_BLOCK_TRIALS = 2_000_000, 16
#: Whole numbers, and infinity for no limit.
COUNT = AnyOf(Integer(minimum=0), Real(minimum=math.inf, allow_inf=True))


@dataclass(frozen=True)
class Trial:
    """One trial: which rows are near its fit, or why it was skipped."""

    skipped: str = ""
    inliers: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    size: float = 0.0
    score: Function[[], float] = lambda: -np.inf


@dataclass
class Consensus:
    """The best trial so far, its inliers by weight, and the number of trials that were skipped, by reason."""

    inliers: np.ndarray | None = None
    size: float = 0.0
    score: float = -np.inf
    n_trials: int = 0
    skips: dict[str, int] = field(default_factory=lambda: {"no_inliers": 0, "invalid_data": 0, "invalid_model": 0})

    def take(self, trial: Trial) -> bool:
        """Compare a trial with the best; whether it is better."""
        self.n_trials += 1
        reason = trial.skipped or ("no_inliers" if trial.size < self.size or not trial.size else "")
        if reason:
            self.skips[reason] += 1
            return False
        score = float(trial.score())
        if trial.size == self.size and score < self.score:
            return False
        self.inliers, self.size, self.score = trial.inliers, trial.size, score
        return True

    @property
    def n_skips(self) -> int:
        return sum(self.skips.values())

    def state(self, seed: int) -> dict[str, Any]:
        inliers = np.zeros(0, bool) if self.inliers is None else self.inliers
        return {
            "seed": seed,
            "n_trials": self.n_trials,
            "score": self.score,
            "size": self.size,
            "inliers": np.packbits(inliers),
            "skips": np.array(list(self.skips.values())),
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any], n_rows: int) -> Consensus:
        counts = dict(zip(cls().skips, map(int, state["skips"]), strict=True))
        bits = np.asarray(state["inliers"], dtype=np.uint8)
        inliers = np.unpackbits(bits, count=n_rows).astype(bool) if len(bits) else None
        return cls(inliers, float(state["size"]), float(state["score"]), int(state["n_trials"]), counts)


class _Enough(Exception):  # noqa: N818  # not an error: it ends the trials in whatever thread consumes
    """No further trial is needed."""


def trials_needed(share: float, n_drawn: int, probability: float) -> float:
    """The N with (1 - share^n_drawn)^N <= 1 - probability."""
    if probability <= 0:
        return 0
    clean = share**n_drawn
    if clean >= 1:
        return 1
    if probability >= 1 or clean <= np.finfo(float).eps:
        return math.inf
    return math.ceil(math.log1p(-probability) / math.log1p(-clean))


class RANSACRegressor(MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Regression that ignores outliers: the fit to the largest set of rows that agree with a fit to a few of them.

    .. math:: \max_t \; \bigl| \{ i : \ell(y_i, f_t(x_i)) \le c \} \bigr| , \qquad f_t \text{ fitted to } m
              \text{ random rows} ,

    and then a fit to all rows of the largest set (random sample consensus, Fischler and Bolles 1981).

    Parameters
    ----------
    estimator : estimator, optional
        A regressor; by default :class:`LinearRegression`, whose trials are computed many at a time. It is cloned.
    min_samples : int or float, optional
        Rows of a trial, or their share of all rows below 1. By default one more than features, for linear regression;
        for another estimator it has to be given.
    residual_threshold : float, optional
        The loss c up to which a row is an inlier; by default the median absolute deviation of y.
    is_data_valid : callable, optional
        ``is_data_valid(X, y)`` of the rows of a trial; False skips it.
    is_model_valid : callable, optional
        ``is_model_valid(model, X, y)`` of its fit; False skips it.
    max_trials : int, default=100
        Trials at most.
    max_skips : int, default=inf
        Trials that may be skipped: invalid ones, and those with fewer inliers than the best.
    stop_n_inliers : int, default=inf
        End with so many inliers.
    stop_score : float, default=inf
        End with such a score of the inliers.
    stop_probability : float, default=0.99
        End when with this probability some trial had inliers alone, by the share of inliers found.
    loss : {"absolute_error", "squared_error"} or callable, default="absolute_error"
        The loss of rows, ``loss(y, predictions)``; of several targets the sum.
    random_state : int, Generator, RandomState or None, default=None
        Seed; the same seed gives the same bits for any number of threads.

    Attributes
    ----------
    estimator_ : estimator
        The fit to all inliers.
    inlier_mask_ : ndarray of bool of shape (n_samples,)
        Which rows they are (kept as bits).
    n_trials_ : int
    n_skips_no_inliers_, n_skips_invalid_data_, n_skips_invalid_model_ : int
        Trials that were skipped, by reason.
    certificate_ : Certificate
        The probability that no trial had inliers alone, if the share of inliers is the one found.
    history_ : History
        Share of outliers of the best trial so far, inliers of it and skipped trials, after every trial.
    n_iter_ : int
        Number of trials.

    See Also
    --------
    HuberRegressor : all rows count, far ones less.
    TheilSenRegressor : the median of fits to few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import RANSACRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=200)
    >>> y[:60] += 50
    >>> model = RANSACRegressor(random_state=0).fit(X, y)
    >>> model.estimator_.coef_.round(1)
    array([ 1., -2.])
    >>> bool(model.inlier_mask_[:60].any()), model.certificate_.holds
    (False, True)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "estimator": NoneOr(InstanceOf(BaseEstimator)),
        "min_samples": NoneOr(AnyOf(Integer(minimum=1), Real(0, 1))),
        "residual_threshold": NoneOr(Real(minimum=0)),
        "is_data_valid": NoneOr(Callable()),
        "is_model_valid": NoneOr(Callable()),
        "max_trials": COUNT,
        "max_skips": COUNT,
        "stop_n_inliers": COUNT,
        "stop_score": Real(allow_inf=True),
        "stop_probability": Real(0, 1),
        "loss": AnyOf(Choice("absolute_error", "squared_error"), Callable()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A8",), engines=("memory",), certificate="failure probability"
    )

    @stores_arguments(random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        estimator: Any = None,
        *,
        min_samples: float | None = None,
        residual_threshold: float | None = None,
        is_data_valid: Function[..., bool] | None = None,
        is_model_valid: Function[..., bool] | None = None,
        max_trials: float = 100,
        max_skips: float = math.inf,
        stop_n_inliers: float = math.inf,
        stop_score: float = math.inf,
        stop_probability: float = 0.99,
        loss: Any = "absolute_error",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _base(self) -> Any:
        return LinearRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = inner_tags(self, self._base()).input_tags.sparse
        return tags

    # ------------------------------------------------------------------------------------------- the fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the inliers, and fit to them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight v counts as v rows, also where rows are drawn and inliers are counted.
        """
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True)
        if not isinstance(data, ArrayData):
            raise DataError(f"X: {type(self).__name__} is fitted in memory; got {type(X).__name__}")
        base = self._base()
        if sample_weight is not None and not has_fit_parameter(base, "sample_weight"):
            raise ParameterError(f"sample_weight: {type(base).__name__} does not support sample_weight.")
        n_drawn = self._rows_of_trial(data, base)
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        best = Consensus() if state is None else Consensus.resumed(state, data.n_rows)
        runner = _Runner.of(self, data, base, n_drawn, self._threshold(data), seed)
        monitor = self._monitor(
            None if math.isinf(self.max_trials) else int(self.max_trials),
            lambda _x: {"estimator_": runner.fitted_to(best.inliers), "n_trials_": best.n_trials},
        )
        reason = self._search(runner, best, monitor)
        if best.inliers is None:
            raise DataError(self._why_none(best))
        self.estimator_ = runner.fitted_to(best.inliers)
        self._inlier_bits_, self._n_rows_ = np.packbits(best.inliers), data.n_rows
        self.n_trials_ = best.n_trials
        self.n_skips_no_inliers_ = best.skips["no_inliers"]
        self.n_skips_invalid_data_ = best.skips["invalid_data"]
        self.n_skips_invalid_model_ = best.skips["invalid_model"]
        if best.n_skips > self.max_skips:
            self._run.notices.append(
                ConvergenceWarning(
                    "RANSAC found a valid consensus set but exited early due to skipping more iterations than "
                    "`max_skips`. See estimator attributes for diagnostics (n_skips_*)."
                )
            )
        share = best.size / runner.total
        miss = float((1 - share**runner.n_drawn) ** best.n_trials)
        meaning = (
            f"with {share:.1%} inliers, {best.n_trials} trials of {runner.n_drawn} rows all had an outlier with "
            f"probability {miss:.1e}"
        )
        certificate = Certificate("failure probability", miss, 1 - self.stop_probability, meaning)
        if certificate.holds:
            reason = "converged"
        x, state = np.array([share]), best.state(seed)
        self._conclude(Solution(x, 1 - share, monitor.history(), certificate, best.n_trials, reason, state=state))
        return self

    def _rows_of_trial(self, data: ArrayData, base: Any) -> int:
        """m, the rows of a trial."""
        given, n = self.min_samples, data.n_rows
        if given is None:
            if not _is_least_squares(base):
                raise ParameterError(
                    "min_samples=None: `min_samples` needs to be explicitly set when estimator is no LinearRegression"
                )
            given = data.n_features + 1
        drawn = max(math.ceil(given * n) if 0 < given < 1 else int(given), 1)
        if drawn > n:
            raise ParameterError(
                f"min_samples={self.min_samples!r}: `min_samples` may not be larger than number of samples: "
                f"n_samples = {n}; expected at most that, got {drawn}"
            )
        return drawn

    def _threshold(self, data: ArrayData) -> float:
        if self.residual_threshold is not None:
            return float(self.residual_threshold)
        y = data.y.ravel()
        w = np.ones(data.n_rows) if data.weight is None else data.weight
        w = np.repeat(w, data.n_targets)
        return _median(np.abs(y - _median(y, w)), w)

    def _search(self, runner: _Runner, best: Consensus, monitor: Monitor) -> str:
        """Trials until enough, in the order of their numbers; why they ended."""
        n, limit = runner.total, self.max_trials
        if best.inliers is not None:
            limit = min(limit, trials_needed(best.size / n, runner.n_drawn, self.stop_probability))
        ended = "max_trials"

        def consume(trials: list[Trial]) -> None:
            nonlocal limit, ended
            for trial in trials:
                if best.n_trials >= limit:
                    raise _Enough
                if best.n_skips > self.max_skips:
                    ended = "stopped"  # there is a warning of its own
                    raise _Enough
                if best.take(trial):
                    limit = min(limit, trials_needed(best.size / n, runner.n_drawn, self.stop_probability))
                    if best.size >= self.stop_n_inliers or best.score >= self.stop_score:
                        limit, ended = 0, "stopped"
                stop = monitor(
                    best.n_trials,
                    np.array([best.size / n]),
                    objective=1 - best.size / n,
                    state=lambda: best.state(runner.seed),
                    inliers=best.size,
                    skips=best.n_skips,
                )
                if stop:
                    ended = "stopped"
                    raise _Enough

        # Validity checks may count their calls: with them trials run one after the other.
        own = self.is_data_valid is not None or self.is_model_valid is not None
        threads = 1 if own else n_threads(float(n) * runner.data.n_features * 100, self.n_jobs)
        try:
            # Around the threads, not inside them: what catch_warnings changes belongs to the whole process.
            with warnings.catch_warnings(), config(on_nonconvergence="ignore"):
                warnings.simplefilter("ignore")
                in_order(runner.blocks(best.n_trials, limit), runner.run, consume, threads)
        except _Enough:
            pass
        return ended

    def _why_none(self, best: Consensus) -> str:
        counts = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in best.skips.items())
        what = "RANSAC could not find a valid consensus set: all trials were skipped"
        if best.n_skips > self.max_skips:
            what = "RANSAC skipped more iterations than `max_skips` without finding a valid consensus set"
        return f"{what} ({best.n_trials} trials, max_trials={self.max_trials}; {counts})"

    # ------------------------------------------------------------------------------------------- use of a fit

    @property
    def inlier_mask_(self) -> np.ndarray:
        """Which rows of the fit are inliers."""
        if "_inlier_bits_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no inlier_mask_ before it is fitted")
        return np.unpackbits(self._inlier_bits_, count=self._n_rows_).astype(bool)

    def predict(self, X: Any) -> Any:
        """Predictions of the fit to the inliers."""
        self._predict_data(X)
        return self.estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the fit to the inliers, by its own measure; R^2 for regressors."""
        self._predict_data(X)
        return float(self.estimator_.score(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight})))


def _is_least_squares(estimator: Any) -> bool:
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(estimator).__mro__}
    return not names.isdisjoint({"epicycle.LinearRegression", "sklearn.LinearRegression"})


def _loss_of(loss: Any, vector: bool) -> Function[[np.ndarray, np.ndarray], np.ndarray]:
    """Losses of rows from (y, predictions)."""
    if callable(loss):
        return lambda y, shown: np.asarray(loss(y, shown))
    size = np.abs if loss == "absolute_error" else np.square
    if vector:
        return lambda y, shown: np.asarray(size(y - shown))
    return lambda y, shown: np.asarray(size(y - shown).sum(axis=1))


# ------------------------------------------------------------------------------------------------ trials


def _median(values: np.ndarray, weight: np.ndarray) -> float:
    """The median of values that count by their weights, as of so many rows."""
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    low = int(np.searchsorted(share, 0.5 * (1 - 1e-14)))
    high = int(np.searchsorted(share, 0.5 * (1 + 1e-14), side="right"))
    return float(values[order[low]] + values[order[min(high, len(values) - 1)]]) / 2


@dataclass(frozen=True)
class _Runner:
    """Trials by their numbers: one estimator each, or many least-squares fits at once.

    rows, weight : one row of every set of equal ones, and its total weight; None where all rows are different.
    """

    model: RANSACRegressor
    data: ArrayData
    base: Any
    n_drawn: int
    loss: Function[[np.ndarray, np.ndarray], np.ndarray]
    threshold: float
    seed: int
    rows: np.ndarray
    weight: np.ndarray
    total: float

    @classmethod
    def of(
        cls, model: RANSACRegressor, data: ArrayData, base: Any, n_drawn: int, threshold: float, seed: int
    ) -> _Runner:
        own = np.ones(data.n_rows) if data.weight is None else data.weight
        # A number for what a row holds: equal rows have the same, in whatever order they come.
        v = stream(0, "rows").normal(size=data.n_features + data.n_targets)
        X = data.X @ v[: data.n_features] if sp.issparse(data.X) else (data.X * v[: data.n_features]).sum(axis=1)
        key = np.asarray(X) + (target_columns(data.y) * v[data.n_features :]).sum(axis=1)
        _, rows, group = np.unique(key, return_index=True, return_inverse=True)
        weight = np.bincount(group, weights=own)
        kept = weight > 0
        n_drawn = min(n_drawn, int(np.count_nonzero(kept)))
        loss = _loss_of(model.loss, data.y.ndim == 1)
        total = float(own.sum())
        return cls(model, data, base, n_drawn, loss, threshold, seed, rows[kept], weight[kept], total)

    @property
    def at_once(self) -> bool:
        plain = type(self.base) is LinearRegression and not self.base.positive and not sp.issparse(self.data.X)
        return plain and self.model.is_data_valid is None and self.model.is_model_valid is None

    def blocks(self, first: int, limit: float) -> Iterator[range]:
        """Numbers of trials, some at a time."""
        size = 1
        if self.at_once:
            size = max(1, min(MAX_BLOCK_TRIALS, BLOCK_SIZE // (self.data.n_rows * self.data.n_targets)))
        while first < limit:
            yield range(first, int(min(first + size, limit)))
            first += size

    def run(self, numbers: range) -> list[Trial]:
        if self.at_once:
            return self._least_squares(numbers)
        return [self._trial(t) for t in numbers]

    def _drawn(self, t: int) -> np.ndarray:
        """Different rows, one after the other with probabilities by weight: the first of so many waiting times."""
        waiting = stream(self.seed, "trial", t).exponential(size=len(self.rows)) / self.weight
        return np.sort(np.argpartition(waiting, self.n_drawn - 1)[: self.n_drawn])

    def _trial(self, t: int) -> Trial:
        data, model, drawn = self.data, self.model, self._drawn(t)
        rows = self.rows[drawn]
        X, y = data.X[rows], data.y[rows]
        if model.is_data_valid is not None and not model.is_data_valid(X, y):
            return Trial("invalid_data")
        fitted = self._fit(rows, self.weight[drawn], stream(self.seed, "estimator", t))
        if model.is_model_valid is not None and not model.is_model_valid(fitted, X, y):
            return Trial("invalid_model")
        inliers = self.loss(data.y, np.asarray(fitted.predict(data.X))) <= self.threshold
        extra = {} if data.weight is None else {"sample_weight": data.weight[inliers]}
        score = partial(fitted.score, data.X[inliers], data.y[inliers], **extra)
        return Trial("", inliers, self._size(inliers), score)

    def _size(self, inliers: np.ndarray) -> float:
        return float(np.count_nonzero(inliers) if self.data.weight is None else self.data.weight[inliers].sum())

    def _least_squares(self, numbers: range) -> list[Trial]:
        """Least squares of the rows of every trial, of least norm about their mean, by one call for all of them."""
        data, intercept = self.data, self.base.fit_intercept
        drawn = np.array([self._drawn(t) for t in numbers])
        rows, w = self.rows[drawn], self.weight[drawn]
        A, B = (
            np.asarray(data.X[rows], dtype=np.float64),
            target_columns(data.y)[rows],
        )  # (trials, m, p), (trials, m, k)
        share = w / w.sum(axis=1)[:, None]
        a, b = np.einsum("tm,tmp->tp", share, A), np.einsum("tm,tmk->tk", share, B)
        if not intercept:
            a, b = np.zeros_like(a), np.zeros_like(b)
        root = np.sqrt(w)[:, :, None]
        coef = np.linalg.pinv(root * (A - a[:, None])) @ (root * (B - b[:, None]))  # (trials, p, k)
        level = b - np.einsum("tp,tpk->tk", a, coef)
        p, k = coef.shape[1:]
        shown = (data.X @ coef.transpose(1, 0, 2).reshape(p, -1)).reshape(-1, len(rows), k) + level
        trials = []
        for t in range(len(rows)):
            predicted = shown[:, t, 0] if data.y.ndim == 1 else shown[:, t]
            trials.append(self._judged(predicted))
        return trials

    def _judged(self, predicted: np.ndarray) -> Trial:
        y = self.data.y
        inliers = self.loss(y, predicted) <= self.threshold
        own = None if self.data.weight is None else self.data.weight[inliers]
        score = partial(r2_score, y[inliers], predicted[inliers], sample_weight=own)
        return Trial("", inliers, self._size(inliers), score)

    def _fit(self, rows: np.ndarray, own: np.ndarray | None, rng: np.random.Generator) -> Any:
        fitted = clone(self.base)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=int(rng.integers(2**31)))
        given = own is not None and not (own == 1).all() and has_fit_parameter(fitted, "sample_weight")
        weight = {"sample_weight": own} if given else {}
        return fitted.fit(self.data.X[rows], self.data.y[rows], **weight)

    def fitted_to(self, inliers: np.ndarray | None) -> Any:
        """The estimator fitted to all inliers; None where there are none yet."""
        if inliers is None:
            return None
        rows = np.flatnonzero(inliers)
        own = None if self.data.weight is None else self.data.weight[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollinearityWarning)  # few inliers need not tell features apart
            return self._fit(rows, own, stream(self.seed, "inliers"))
