"""Locally weighted regression (loess, lowess): at every query q a polynomial of its own,

    minimise  sum_j K(|x_j - q|_S / h) w_j d_j (y_j - beta'phi(x_j - q))^2,    f(q) = beta_0,

with |v|_S^2 = v'S^-1 v, sample weights w_j and robustness weights d_j. f is linear in y, f(q) = sum_j l_j(q) y_j, which
gives standard errors, the equivalent number of parameters sum_i l_i(x_i), and the error of leaving one out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.stats
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._plot_style import COLOURS, Axes, axes_of, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.linear.local._smoother import (
    KERNELS,
    Answers,
    Points,
    Smoother,
    candidate_bandwidths,
    error_left_out,
    in_coordinates,
    predict_rows,
    root_of_metric,
)
from epicycle.optim import Solution

FALLBACKS = ("flat", "nearest")
#: Relative change of a fit that is rounding: robust iterations have come to their end.
SAME_FIT = 4 * float(np.finfo(np.float64).eps)


class LocallyWeightedRegression(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    r"""A polynomial of its own at every query, fitted to the points around it (loess, lowess).

    .. math:: f(q) = \hat\beta_0, \qquad \hat\beta = \arg\min_\beta \sum_j K\!\left(\frac{|x_j - q|}{h}\right) w_j
              \, \bigl(y_j - \beta'\varphi(x_j - q)\bigr)^2

    There is nothing to learn in advance: a fitted object keeps the training points, and its size grows with them.

    Parameters
    ----------
    bandwidth : float, "loo", "gcv" or None, default=None
        The distance h: of the points that count at all, or for the Gaussian kernel the standard deviation tau. "loo"
        takes the one with the least leave-one-out error, "gcv" the least generalised cross-validation, both computed
        exactly and without refitting. None: `span` decides.
    span : float, optional
        Share of the points (of the sample weight) in every neighbourhood, between 0 and 1: h is then the distance to
        the last of them. Default, where there is no bandwidth: 2/3.
    degree : {0, 1, 2}, default=1
        Local constants, straight lines or quadratics.
    kernel : str, default="tricube"
        "tricube", "epanechnikov", "biweight", "triweight", "triangular", "uniform", which end at distance h, or
        "gaussian", exp(-d^2 / 2 tau^2), which is cut off where it falls below 1e-16, at 8.6 tau.
    metric : array-like of shape (n_features,) or (n_features, n_features), optional
        The matrix S (or its diagonal) of the squared distance (x - q)'S^-1(x - q). Default: the identity; scale columns
        that are not comparable.
    robust_iterations : int, default=0
        How often to fit again with the weights of outliers reduced (bisquare of the residuals over six times their
        median); 3 is usual. They end earlier where the fit no longer changes.
    delta : float, default=0.0
        One column only: points within this distance of a fitted one are interpolated during the fit.
    candidates : array-like, optional
        Bandwidths to choose from. Default: 20 from the width of about ten points to that of all.
    tol : float, default=1e-8
        Backward error of the local normal equations that the certificate asserts.

    Attributes
    ----------
    fitted_values_ : ndarray of the shape of y
        The fit at the training points.
    bandwidth_ : float or None
        The bandwidth asked for or chosen; None where `span` decides.
    candidates_, candidate_errors_ : ndarrays
        What was chosen from, and the mean squared error of each, where there was a choice.
    effective_dof_ : float or ndarray of shape (n_targets,)
        Equivalent number of parameters, the trace of the matrix that maps y to its fit.
    residual_dof_, sigma_ : float or ndarray of shape (n_targets,)
        Degrees of freedom left for the noise and its standard deviation (per unit of sample weight); without robust
        iterations and delta only.
    robustness_ : ndarray of the shape of y
        Weights of the last robust iteration; ones without any.
    fallbacks_ : dict
        Training points whose neighbourhood could not carry the polynomial: "flat" in directions in which it does not
        extend (ties, too few points), "nearest" where nothing had weight.
    certificate_ : Certificate
        Worst backward error of the local normal equations at the training points.
    history_ : History
        One row for each pass over the points: the weighted sum of squares, and the largest change of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LocallyWeightedRegression
    >>> x = np.linspace(0, 6, 200)[:, None]
    >>> y = np.sin(x[:, 0])
    >>> model = LocallyWeightedRegression(bandwidth=0.5, degree=2).fit(x, y)
    >>> bool(np.abs(model.predict([[1.5]]) - np.sin(1.5)) < 1e-3)
    True
    >>> LocallyWeightedRegression(span=0.3, robust_iterations=3).fit(x, y).history_.n_iter
    4
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "bandwidth": NoneOr(AnyOf(Real(minimum=0, inclusive=False), Choice("loo", "gcv"))),
        "span": NoneOr(Real(minimum=0, maximum=1, inclusive=(False, True))),
        "degree": Integer(minimum=0, maximum=2),
        "kernel": Choice(*KERNELS),
        "metric": NoneOr(ArrayLike()),
        "robust_iterations": Integer(minimum=0, maximum=10_000),
        "delta": Real(minimum=0),
        "candidates": NoneOr(ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A15",), engines=("memory",), certificate="backward error", keeps_rows=True
    )

    @stores_arguments(tol=1e-8, n_jobs=None, verbose=0)
    def __init__(
        self,
        bandwidth: float | str | None = None,
        *,
        span: float | None = None,
        degree: int = 1,
        kernel: str = "tricube",
        metric: Any = None,
        robust_iterations: int = 0,
        delta: float = 0.0,
        candidates: Any = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    # ------------------------------------------------------------------------------------------- fit

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Keep the rows, choose the bandwidth where it is to be chosen, and fit at every training point.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        """
        if self.bandwidth is not None and self.span is not None:
            raise ParameterError(
                f"LocallyWeightedRegression: bandwidth={self.bandwidth!r} and span={self.span!r} are both given; "
                "give one of them"
            )
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True)
        if not isinstance(data, ArrayData):
            raise DataError("X: LocallyWeightedRegression keeps its rows and needs them in memory; collect them first")
        if self.delta > 0 and data.n_features > 1:
            raise ParameterError(f"delta={self.delta}: interpolation needs one column, X has {data.n_features}")
        order = self._keep_points(data)
        if isinstance(self.bandwidth, str):
            self._choose_bandwidth(self.bandwidth)
        else:
            self.bandwidth_ = None if self.bandwidth is None else float(self.bandwidth)
        answers, history, changed, left = self._iterate()
        self._keep_statistics(answers)
        self.fallbacks_ = {
            name: int(sum(np.count_nonzero(a.status == i + 1) for a in answers)) for i, name in enumerate(FALLBACKS)
        }
        self._keep_fit(data, order, np.column_stack([a.value for a in answers]))
        worst = max(float(a.error.max(initial=0.0)) for a in answers)
        meaning = f"at every training point the local normal equations are solved to {worst:.1e} of their terms"
        if self.robust_iterations:
            meaning += f"; the last robust iteration moved the fit by {changed:.1e}"
        certificate = Certificate("backward error", worst, self.tol, meaning)
        reason = "stopped" if left else "converged" if certificate.holds else "stalled"
        value = float(history.objective[-1])
        self._conclude(
            Solution(self._targets_.ravel(), value, history, certificate, history.n_iter, reason, state=left)
        )
        return self

    def _keep_points(self, data: ArrayData) -> np.ndarray:
        """Keep the rows that count, one column of them sorted; gives their places in the data."""
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        order = np.flatnonzero(weight > 0)
        self._root_ = root_of_metric(self.metric, data.n_features)
        U = in_coordinates(data.X[order], self._root_)
        if data.n_features == 1:
            by_x = np.argsort(U[:, 0], kind="stable")
            order, U = order[by_x], U[by_x]
        Y = data.y[:, None] if data.target_is_vector else data.y
        self._points_, self._targets_ = U, np.asfortranarray(Y[order])
        self._prior_ = np.ascontiguousarray(weight[order])
        self._weights_ = np.asfortranarray(np.tile(self._prior_[:, None], (1, Y.shape[1])))
        self._vector_ = data.target_is_vector
        return order

    def _smoother(self) -> Smoother:
        points = Points(self._points_, self._prior_, bool((self._prior_ != 1).any()))
        span = 2 / 3 if self.span is None else float(self.span)
        return Smoother(
            points, self._root_, self._targets_, self._weights_, self.bandwidth_, span, self.kernel, self.degree
        )

    def _choose_bandwidth(self, rule: str) -> None:
        self.bandwidth_ = None
        smoother = self._smoother()
        grid = candidate_bandwidths(smoother, self.candidates, self.n_jobs)
        errors = np.full(len(grid), np.inf)
        for i in reversed(range(len(grid))):
            errors[i] = error_left_out(smoother, float(grid[i]), rule, self.n_jobs)
            if not np.isfinite(errors[i]):
                break  # who decides its fit alone among more points does so among fewer
        if not np.isfinite(errors).any():
            raise ParameterError(
                f"bandwidth={rule!r}: under every candidate a point decides its own fit alone; give larger candidates"
            )
        self.candidates_, self.candidate_errors_ = grid, errors
        self.bandwidth_ = float(grid[int(np.nanargmin(errors))])

    def _has_statistics(self) -> bool:
        return bool(self.robust_iterations == 0 and self.delta == 0)

    def _iterate(self) -> tuple[list[Answers], History, float, dict[str, Any]]:
        """The fit at the training points, again for each robust iteration: (answers, history, last change, state)."""
        smoother = self._smoother()
        x, Y = smoother.points.x, self._targets_
        targets = range(Y.shape[1])
        between = Between.of(x[:, 0], self.delta) if self.delta > 0 else None
        queries = x if between is None else x[between.at]
        h = smoother.radii(queries, self.n_jobs)
        monitor = self._monitor(self.robust_iterations + 1, lambda _fit: self._attributes())
        answers: list[Answers] = []
        left: dict[str, Any] = {}
        fit, changed, state = np.zeros_like(Y), np.inf, self._resume_state()
        first = 0 if state is None else min(int(state["done"]), self.robust_iterations)
        if state is not None:
            fit = np.asarray(state["fit"], dtype=np.float64).reshape(Y.shape)
        for iteration in range(first, self.robust_iterations + 1):
            if iteration:
                robust = [bisquare_weights(Y[:, t] - fit[:, t], self._prior_) for t in targets]
                self._weights_ = np.asfortranarray(self._prior_[:, None] * np.column_stack(robust))
                smoother = self._smoother()
            squares = self._has_statistics()
            answers = [smoother.at(queries, h, t, squares=squares, n_jobs=self.n_jobs) for t in targets]
            values = [a.value if between is None else between.spread(a.value) for a in answers]
            before, fit = fit, np.column_stack(values)
            changed = float(np.abs(fit - before).max(initial=0.0))
            objective = float((self._weights_ * (Y - fit) ** 2).sum()) / 2
            done = {"fit": fit, "done": iteration + 1}
            stop = monitor(iteration + 1, fit.ravel(), objective=objective, change=changed, state=partial(dict, done))
            if stop and iteration < self.robust_iterations:
                left = done
                break
            if iteration > first and changed <= SAME_FIT * float(np.abs(fit).max(initial=0.0)):
                break  # weights of the same residuals are the same again
        if between is not None:
            answers = [between.answers(a) for a in answers]
        return answers, monitor.history(), changed, left

    def _attributes(self) -> dict[str, Any]:
        """The attributes with which a callback predicts in the middle of a fit."""
        return {
            "_points_": self._points_,
            "_targets_": self._targets_,
            "_prior_": self._prior_,
            "_root_": self._root_,
            "_weights_": self._weights_,
            "_vector_": self._vector_,
            "bandwidth_": self.bandwidth_,
        }

    def _keep_statistics(self, answers: list[Answers]) -> None:
        Y, w = self._targets_, self._prior_
        trace = np.array([float(a.own @ self._weights_[:, t]) for t, a in enumerate(answers)])
        self.effective_dof_ = float(trace[0]) if self._vector_ else trace
        if not self._has_statistics():
            return
        freedom = len(Y) - 2 * trace + np.array([float(a.squares @ w) for a in answers])  # n - 2 tr L + tr L'L
        residual = np.array([float(w @ (Y[:, t] - a.value) ** 2) for t, a in enumerate(answers)])
        sigma = np.sqrt(np.divide(residual, freedom, out=np.full_like(residual, np.nan), where=freedom > 1e-6))
        self.residual_dof_ = float(freedom[0]) if self._vector_ else freedom
        self.sigma_ = float(sigma[0]) if self._vector_ else sigma

    def _keep_fit(self, data: ArrayData, order: np.ndarray, fit: np.ndarray) -> None:
        """The fit and the robustness weights in the order of the data; rows without weight get their prediction."""
        values, robustness = np.empty((data.n_rows, fit.shape[1])), np.ones((data.n_rows, fit.shape[1]))
        values[order], robustness[order] = fit, self._weights_ / self._prior_[:, None]
        if len(order) < data.n_rows:
            without = np.setdiff1d(np.arange(data.n_rows), order)
            values[without] = self._smoother().values(data.X[without], self.n_jobs)
        values = values.astype(data.dtype)
        self.fitted_values_ = values[:, 0] if self._vector_ else values
        self.robustness_ = robustness[:, 0] if self._vector_ else robustness

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """The fit at every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        data = self._predict_data(X)
        values = predict_rows(data, self._smoother(), self.n_jobs)
        return values[:, 0] if self._vector_ else values

    def confidence_band(self, X: Any, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The fit and a pointwise confidence interval for its mean, under independent noise of variance sigma^2 / w_i.

        The bias of smoothing is not in it: the interval is for the smoothed curve, and for the curve itself where the
        bandwidth is small enough.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        confidence : float, default=0.95
            Coverage at every point.

        Returns
        -------
        fit, low, high : ndarrays of the shape that `predict` gives
        """
        data = self._predict_data(X)
        if not 0 < confidence < 1:
            raise ParameterError(f"confidence={confidence!r}; expected a number between 0 and 1")
        if not self._has_statistics():
            raise ParameterError(
                "confidence_band: the weights of robust iterations depend on y, and delta interpolates, so that the "
                "intervals do not hold; fit with robust_iterations=0 and delta=0"
            )
        if not isinstance(data, ArrayData):
            raise DataError("X: confidence_band takes arrays and data frames; collect the rows first")
        fit, low, high = self._band(np.asarray(data.X), confidence)
        return (fit[:, 0], low[:, 0], high[:, 0]) if self._vector_ else (fit, low, high)

    def _band(self, X: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        smoother = self._smoother()
        queries = in_coordinates(X, self._root_)
        h = smoother.radii(queries, self.n_jobs)
        freedom, sigma = np.atleast_1d(self.residual_dof_), np.atleast_1d(self.sigma_)
        fit, half = np.empty((2, len(queries), len(sigma)))
        for t in range(len(sigma)):
            answers = smoother.at(queries, h, t, squares=True, n_jobs=self.n_jobs)
            quantile = scipy.stats.t(max(freedom[t], 1e-6)).ppf(0.5 + confidence / 2)
            fit[:, t], half[:, t] = answers.value, quantile * sigma[t] * np.sqrt(answers.squares)
        return fit, fit - half, fit + half

    # ------------------------------------------------------------------------------------------- drawing

    @styled
    def plot(self, *, confidence: float | None = 0.95, target: int = 0, ax: Axes | None = None) -> Axes:
        """Draw the points, the fit and its confidence band; for one column of X.

        Parameters
        ----------
        confidence : float or None, default=0.95
            Coverage of the band; None, and any fit that has none, draws without.
        target : int, default=0
            Which target, if there are several.
        """
        self._check_fitted()
        if self.n_features_in_ != 1:
            raise ParameterError(f"plot: draws one column, the fit has {self.n_features_in_}")
        ax = axes_of(ax)
        x = self._points_[:, 0] * (1.0 if self._root_ is None else float(self._root_[0, 0]))
        ax.plot(x, self._targets_[:, target], ".", color=COLOURS["grey"], ms=4, alpha=0.7, zorder=1)
        grid = np.linspace(x.min(), x.max(), 300)
        (line,) = ax.plot(grid, self._smoother().values(grid[:, None], self.n_jobs)[:, target], lw=2, zorder=3)
        if confidence is not None and self._has_statistics():
            _, low, high = self._band(grid[:, None], confidence)
            ax.fill_between(grid, low[:, target], high[:, target], color=line.get_color(), alpha=0.2, lw=0, zorder=2)
        ax.set(xlabel=self._names()[0], ylabel="fit")
        return ax


def weighted_median(x: np.ndarray, weight: np.ndarray) -> float:
    """The median, where every x counts as often as its weight says; halfway between two where the middle is between."""
    if weight.min() == weight.max():  # the usual case, without a sort
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    upto = np.cumsum(weight[order])
    half = upto[-1] / 2
    lower = np.searchsorted(upto, half * (1 - 1e-14))
    upper = np.searchsorted(upto, half * (1 + 1e-14), side="right")
    return float((x[order[lower]] + x[order[min(upper, len(x) - 1)]]) / 2)


def bisquare_weights(residual: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(1 - (r / 6 median|r|)^2)^2, zero beyond; where most residuals are zero, all others get none."""
    size = np.abs(residual)
    median = weighted_median(size, weight)
    scaled = np.minimum(size / (6 * median), 1.0) if median > 0 else (size > 0).astype(np.float64)
    return np.asarray((1 - scaled**2) ** 2)


# --------------------------------------------------------------------------------------------------------------------
# Fits at a few places of a sorted column, and straight lines between them.


def anchors(x: np.ndarray, delta: float) -> np.ndarray:
    """Indices at which to fit: from each the last one within `delta`, or the next; ties take the fit of the first."""
    n, found, i = len(x), [], 0
    while True:
        found.append(i)
        last = int(np.searchsorted(x, x[i], side="right")) - 1  # the last of the points tied with i
        if last >= n - 1:
            return np.array(found)
        beyond = int(np.searchsorted(x, x[i] + delta, side="right"))  # the first point farther than delta
        # At the end of the data the walk stops one point early and then takes the last one.
        i = max((beyond if beyond < n else n - 1) - 1, last + 1)


@dataclass(frozen=True)
class Between:
    """The place of every point between the anchors: the anchor on its left, and the share of the way to the next."""

    at: np.ndarray
    left: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, delta: float) -> Between:
        """The anchors of a sorted column."""
        at = anchors(x, delta)
        left = np.repeat(np.arange(len(at)), np.diff(np.append(at, len(x))))
        gap = np.append(np.diff(x[at]), 0.0)[left]
        share = np.divide(x - x[at[left]], gap, out=np.zeros(len(x)), where=gap > 0)
        return cls(at, left, share)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values at all points from those at the anchors."""
        right = np.minimum(self.left + 1, len(self.at) - 1)
        return np.asarray(self.share * values[right] + (1 - self.share) * values[self.left])

    def answers(self, a: Answers) -> Answers:
        """Answers at all points; their sums of squares are not known."""
        left = self.left
        return Answers(self.spread(a.value), self.spread(a.own), np.zeros(len(left)), a.error[left], a.status[left])
