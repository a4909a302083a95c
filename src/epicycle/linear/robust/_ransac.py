"""Random sample consensus: fit to a few random rows, count the rows near that fit, keep the largest such set.

With m rows a trial and a share e of inliers, a trial sees inliers alone with probability e^m, and none of N trials does
with probability (1 - e^m)^N: the trials end when that is at most 1 - stop_probability, for the e found so far.
Trial t draws from a stream of its own and the trials are compared in their order, so that the result does not depend on
the number of threads.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable as Function, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Callable, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core._settings import config
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.core.estimator._inner_tags import inner_tags
from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.least_squares._linear_regression import LinearRegression
from epicycle.linear.robust._ransac_trials import Consensus, Trial, TrialRunner, weighted_median
from epicycle.optim import Solution

_PATIENCE = 2_000  # trials in a row without a larger consensus, where their number has no limit

#: Whole numbers, and infinity for no limit.
COUNT = AnyOf(Integer(minimum=0), Real(minimum=math.inf, allow_inf=True))


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
        Trials at most; inf for as many as `stop_probability` asks for, until 2,000 in a row found nothing better.
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

    Attributes
    ----------
    estimator_ : estimator
        The fit to all inliers.
    inlier_mask_ : ndarray of bool of shape (n_samples,)
        Which rows they are (kept as bits).
    n_trials_ : int
    n_skips_no_inliers_, n_skips_invalid_data_, n_skips_invalid_model_ : int
        Trials that were skipped, by reason; also after a fit that failed because all of them were.
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

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)  # numbers of skipped trials are set by a fit that failed too

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
        ends = (self.max_trials, self.max_skips, self.stop_n_inliers, self.stop_score)
        if self.stop_probability == 1 and all(math.isinf(end) for end in ends):
            raise ParameterError(
                "stop_probability=1, max_trials=inf: no number of trials is certain to have met inliers alone; "
                "expected a number of trials, a probability below 1, or a finite max_skips, stop_n_inliers, stop_score"
            )
        n_drawn = self._rows_of_trial(data, base)
        state = self._resume_state()
        seed = seed_of(self.random_state) if state is None else int(state["seed"])
        best = Consensus() if state is None else Consensus.resumed(state, data.n_rows)
        runner = TrialRunner.of(self, data, base, n_drawn, self._threshold(data), seed)
        monitor = self._monitor(
            None if math.isinf(self.max_trials) else int(self.max_trials),
            lambda _x: {"estimator_": runner.fitted_to(best.inliers), "n_trials_": best.n_trials},
        )
        reason = self._search(runner, best, monitor)
        self.n_skips_no_inliers_ = best.skips["no_inliers"]
        self.n_skips_invalid_data_ = best.skips["invalid_data"]
        self.n_skips_invalid_model_ = best.skips["invalid_model"]
        if best.inliers is None:
            self._run.after_failure.update({k: v for k, v in vars(self).items() if k.startswith("n_skips_")})
            raise DataError(self._why_none(best))
        self.estimator_ = runner.fitted_to(best.inliers)
        self._inlier_bits_, self._n_rows_ = np.packbits(best.inliers), data.n_rows
        self.n_trials_ = best.n_trials
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
        return weighted_median(np.abs(y - weighted_median(y, w)), w)

    def _search(self, runner: TrialRunner, best: Consensus, monitor: Monitor) -> str:
        """Trials until enough, in the order of their numbers; why they ended."""
        n, limit = runner.total, self.max_trials
        if best.inliers is not None:
            limit = min(limit, trials_needed(best.size / n, runner.n_drawn, self.stop_probability))
        ended = "max_trials"
        patience = _PATIENCE if math.isinf(self.max_trials) else math.inf
        improved = best.n_trials

        def consume(trials: list[Trial]) -> None:
            nonlocal limit, ended, improved
            for trial in trials:
                if best.n_trials >= min(limit, improved + patience):
                    raise _Enough
                if best.n_skips > self.max_skips:
                    ended = "stopped"  # there is a warning of its own
                    raise _Enough
                before = (best.size, best.score)
                if best.take(trial):
                    improved = best.n_trials if (best.size, best.score) != before else improved
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
