"""Huber's regression:  minimise  sum_i s_i (sigma + sigma H_epsilon((y_i - b - w'x_i) / sigma)) + alpha |w|^2,

squared near zero and linear beyond epsilon sigma: H(z) = z^2 for |z| <= epsilon, else 2 epsilon |z| - epsilon^2. The
scale sigma is a parameter of its own (as in scikit-learn), the median absolute deviation, or given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, Choice, Domain, Integer, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._dask_data import is_dask
from epicycle.linear._storage import after_rounding, stored_type
from epicycle.linear.robust._huber_objective import MAX_SCALE_RATIO, HuberObjective, Point
from epicycle.linear.robust._quantile_inference import residual_quantiles
from epicycle.linear.robust._quantile_problem import Frame, draw_statistic
from epicycle.linear.robust._quantile_solver import QuantileSolver, quantile_solver
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_prediction, predictor_batch

#: The median absolute deviation of normal noise of unit variance.
NORMAL_MAD = 0.6744897501960817
#: Least scale, relative to that of y: with it, data on a hyperplane is fitted too.
MIN_RELATIVE_SCALE = 1e-11
#: Largest scale that may be given, relative to that of y: its square is a number.
LARGEST_RELATIVE_SCALE = 1e100
#: Gap at which the fit with a larger scale than the wanted one ends: it is only a start for the next.
INTERMEDIATE_GAP = 1e-8
#: Steps without a smaller gap after which the fit is as exact as rounding allows.
MAX_STEPS_WITHOUT_GAIN = 40
#: Relative gap that is rounding: about ten units in the last place.
ROUNDING_GAP = 2e-15
#: Rows from which on the fit to a draw of them comes first: below, a pass costs less than the detour.
MIN_ROWS_FOR_DRAW = 20_000
#: With this epsilon no row is an outlier at the least scale; a larger one changes nothing, and its square overflows.
NO_OUTLIER_EPSILON = 1e20


class HuberRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Linear regression that is least squares for small residuals and least absolute deviations for large ones.

    .. math:: \min_{w, b, \sigma} \; \sum_i s_i \Bigl( \sigma + \sigma H_\epsilon\bigl( \tfrac{y_i - b - w'x_i}{\sigma}
              \bigr) \Bigr) + \alpha \|w\|^2 , \qquad
              H_\epsilon(z) = \begin{cases} z^2 & |z| \le \epsilon \\ 2 \epsilon |z| - \epsilon^2 & |z| > \epsilon .
              \end{cases}

    Parameters
    ----------
    epsilon : float, default=1.35
        Where outliers begin, in units of the scale; at least 1. 1.35 is 95 % efficient for normal noise.
    alpha : float, default=0.0001
        Strength of the L2 penalty.
    scale : {"joint", "mad"} or float, default="joint"
        "joint" minimises over sigma too; "mad" takes the median absolute deviation from the fit of least absolute
        deviations, divided by 0.6745; a number is taken as it is.
    tol : float, default=1e-10
        Duality gap relative to the objective that the certificate asserts.
    max_iter : int, default=200
        Passes over the rows at most.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    scale_ : float
        sigma.
    n_outliers_ : int
        Rows with residuals beyond epsilon times the scale.
    outliers_ : ndarray of bool of shape (n_samples,)
        Which rows they are, for data in memory (kept as bits).
    objective_ : float
        The minimum.
    certificate_ : Certificate
        Duality gap.
    n_iter_ : int
        Passes over the rows; of a warm start those after the first, 0 where the earlier fit is the minimum.
    history_ : History
        Objective, gap, scale, outliers and seconds of every pass.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=200)
    >>> y[:20] += 50
    >>> model = HuberRegressor().fit(X, y)
    >>> model.coef_.round(1)
    array([ 1., -2.])
    >>> bool(model.outliers_[:20].all())
    True
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "epsilon": Real(minimum=1),
        "alpha": Real(minimum=0),
        "max_iter": Integer(minimum=0),
        "scale": AnyOf(Choice("joint", "mad"), Real(minimum=0, inclusive=False)),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A8",), engines=("memory", "files", "dask"), certificate="duality gap"
    )
    _takes_sparse: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, max_iter=200, warm_start=False, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        alpha: float = 0.0001,
        scale: str | float = "joint",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=is_dask(X))
        # Its frame of coordinates serves here too; the programme itself only where the scale asks for it.
        absolute = quantile_solver(
            data, 0.0, intercept=self.fit_intercept, solver="auto", tol=self.tol, max_iter=1000, n_jobs=self.n_jobs
        )
        frame = absolute.frame
        if self.alpha > 0:  # columns that depend on others share their coefficients
            unused = np.append(frame.inv_scale == 0, not self.fit_intercept)
            frame = replace(frame, penalty=np.where(unused, np.inf, 0.0))
        squares = np.append(self.alpha * frame.y_scale * frame.inv_scale**2, 0.0)
        sigma, start = self._fixed_scale(absolute)
        earlier = self._earlier(frame, data.n_features) if self.warm_start and self._resume_state() is None else None
        start = earlier or start
        objective = HuberObjective(
            data,
            frame,
            absolute.lengths,
            squares,
            min(float(self.epsilon), NO_OUTLIER_EPSILON),
            sigma=sigma,
            floor=MIN_RELATIVE_SCALE,
            n_jobs=self.n_jobs,
        )
        monitor = self._monitor(self.max_iter, lambda x: self._attributes(data, objective, x[:-1], float(x[-1])))
        if start is None and absolute.n_rows >= MIN_ROWS_FOR_DRAW and self._resume_state() is None:
            start = self._rough(objective, absolute.n_rows)
        at, reason = self._minimise(objective, start, monitor)
        if start is not None and reason != "stopped" and at.gap > self.tol:
            # A strong penalty is far from the fit of least absolute deviations, and near that of least squares.
            other, reason = self._minimise(objective, None, monitor)
            at = min(at, other, key=lambda point: point.gap)
        for name, value in self._attributes(data, objective, at.theta, at.sigma).items():
            setattr(self, name, value)
        self.objective_ = float(at.value * frame.y_scale)
        self.n_outliers_ = int(at.outliers)
        if isinstance(data, ArrayData):
            coef, intercept = self.coef_[None, :], np.atleast_1d(np.asarray(self.intercept_, dtype=data.dtype))
            mask = engine.map(_outlier_batch, data, coef, intercept, self.epsilon * self.scale_, n_jobs=self.n_jobs)
            self._outlier_bits_, self._n_rows_ = np.packbits(mask), len(mask)
        history = monitor.history()
        certificate = self._certificate(objective, at)
        if reason != "stopped":
            reason = "converged" if certificate.holds else reason
        x = np.append(at.theta, at.sigma)
        state = {"x": x}
        # The first row of the history is the start; where that is an earlier fit, it took no step.
        n_iter = history.n_iter - int(earlier is not None)
        self._conclude(Solution(x, self.objective_, history, certificate, n_iter, reason, state=state))
        return self

    def _fixed_scale(self, absolute: QuantileSolver) -> tuple[float | None, tuple[np.ndarray, float] | None]:
        """sigma in the units of the frame, where it is not a parameter of the fit, and where to start then.

        Least absolute deviations see no outliers: within their median absolute deviation there are rows enough.
        """
        if self.scale == "joint":
            return None, None
        beta = absolute.solve(0.5, None, lambda *_: False).beta
        (median,) = residual_quantiles(absolute.data, absolute.frame, beta, [0.5], self.n_jobs, absolute=True)
        sigma = max(float(median) / NORMAL_MAD, MIN_RELATIVE_SCALE)
        if self.scale == "mad":
            return sigma, (beta, sigma)
        y_scale = absolute.frame.y_scale
        if float(self.scale) > LARGEST_RELATIVE_SCALE * y_scale:
            raise ParameterError(
                f"scale={self.scale!r}: is more than {LARGEST_RELATIVE_SCALE:g} times that of y, {y_scale:.3g}; "
                'expected about the size of the errors, "mad" or "joint"'
            )
        return float(self.scale) / y_scale, (beta, sigma)

    def _earlier(self, frame: Frame, p: int) -> tuple[np.ndarray, float] | None:
        """The end of the earlier fit, in the units of the frame, where there was one of as many features."""
        earlier = self._run.earlier
        if "scale_" not in earlier or earlier["coef_"].shape != (p,):
            return None
        coef, intercept, scale = (earlier[name] for name in ("coef_", "intercept_", "scale_"))
        theta = frame.scaled(np.asarray(coef, dtype=np.float64), float(intercept))
        return (np.where(np.isinf(frame.penalty), 0.0, theta), float(scale) / frame.y_scale)

    # ------------------------------------------------------------------------------------------- solver

    def _rough(self, objective: HuberObjective, n_rows: int) -> tuple[np.ndarray, float]:
        """The fit to a draw of the rows: near, and cheap."""
        share = max(MIN_ROWS_FOR_DRAW // 10, 50 * objective.frame.size, n_rows // 20) / n_rows
        if share > 0.25:
            return objective.start()
        (drawn,) = engine.sum(draw_statistic, objective.data, share, n_jobs=self.n_jobs)
        part = HuberObjective(
            ArrayData(*drawn.joined()),
            objective.frame,
            objective.lengths,
            share * objective.squares,
            objective.epsilon,
            sigma=None,
            floor=objective.floor,
            n_jobs=self.n_jobs,
        )
        at, _ = self._minimise(part, None, Monitor(), enough=1e-4)
        return at.theta, at.sigma

    def _minimise(
        self, objective: HuberObjective, start: tuple[np.ndarray, float] | None, monitor: Monitor, enough: float = 0.0
    ) -> tuple[Point, str]:
        """From least squares (or a given start) to the minimum of one piece after the other, F falling in each step.

        A fixed sigma far below the residuals leaves too few inliers to step by: it is approached from above.
        """
        state, target = self._resume_state(), objective.sigma
        theta, sigma = objective.start() if start is None else start
        if state is not None:
            theta, sigma = np.array(state["x"][:-1]), float(state["x"][-1])
        sigma = max(sigma, objective.floor if target is None else target)
        if target is not None:
            objective.sigma = sigma
        at = best = objective.at(theta, sigma)
        step = monitor.history().n_iter
        misses, reason = 0, "max_iter"
        for _ in range(self.max_iter):
            step += 1
            gap = at.gap
            done = monitor(
                step,
                np.append(at.theta, at.sigma),
                objective=at.value * objective.frame.y_scale,
                state=partial(_state, at),
                gap=gap,
                scale=at.sigma * objective.frame.y_scale,
                outliers=at.outliers,
            )
            if done or gap < enough:
                best, reason = at, "stopped"
                break
            on_the_way = target is not None and at.sigma > target
            if gap <= ROUNDING_GAP and not on_the_way:
                best, reason = at, "stalled"
                break
            better, whole = (None, False) if on_the_way and gap < INTERMEDIATE_GAP else self._better(objective, at)
            # F does not tell points apart close to its minimum, above all beside wild outliers; the gap does.
            misses = 0 if better is not None and better.gap < 0.5 * best.gap else misses + 1
            settled = (
                better is None or (whole and misses > 0 and better.same_rows(at)) or misses > MAX_STEPS_WITHOUT_GAIN
            )
            if better is not None:
                at = better
                best = min(best, better, key=lambda point: point.gap)
            if settled and on_the_way:
                sigma = at.sigma / MAX_SCALE_RATIO if target is None else max(target, at.sigma / MAX_SCALE_RATIO)
                objective.sigma, misses = sigma, 0
                at = best = objective.at(at.theta, sigma)
            elif settled:
                reason = "stalled"
                break
        objective.sigma = target
        return best, reason

    def _better(self, objective: HuberObjective, at: Point) -> tuple[Point | None, bool]:
        """A point with a lower objective: the minimum of the piece (then True), or less far towards it."""
        for ridge in (0.0, 1e-9, 1e-6, 1e-3, 1.0):
            aim = objective.minimum_of_piece(at, ridge)
            if aim is None:
                continue
            theta, sigma, whole = aim
            d_theta, d_sigma = theta - at.theta, sigma - at.sigma
            slope = float(at.gradient @ d_theta) + at.slope * d_sigma
            if not slope < 0:
                continue
            found, t, limit = None, 1.0, np.inf
            for _ in range(20):
                new = objective.at(at.theta + t * d_theta, at.sigma + t * d_sigma)
                there = float(new.gradient @ d_theta) + new.slope * d_sigma
                # F is convex: where it still falls, or has hardly risen, it is lower. Differences of F itself drown.
                if there <= 0.5 * abs(slope):
                    found = new, whole and t == 1 and ridge == 0
                    if there >= 0.5 * slope or 4 * t >= limit or at.sigma + 4 * t * d_sigma <= objective.floor:
                        break
                    t *= 4  # a ridge made the step too short
                else:
                    if found is not None:
                        break
                    limit = t
                    t *= min(max(slope / (slope - there), 0.02), 0.8)
            if found is not None:
                return found
        return None, False

    def _certificate(self, objective: HuberObjective, at: Point) -> Certificate:
        """The duality gap of the coefficients as they are stored."""
        frame, stored = objective.frame, self.coef_.astype(np.float64)
        exact = frame.scaled(stored.astype(np.longdouble), np.longdouble(self.intercept_))  # type: ignore[arg-type]
        theta = np.where(np.isinf(frame.penalty), 0.0, exact).astype(np.float64)
        gap = objective.gap_nearby(at, theta, self.scale_ / frame.y_scale, enough=self.tol)
        meaning = f"the objective is within {gap:.1e} of its minimum, relative to it or to the spread of y"
        return after_rounding(Certificate("duality gap", gap, self.tol, meaning), at.gap, self.coef_.dtype)

    def _attributes(self, data: Data, objective: HuberObjective, theta: np.ndarray, sigma: float) -> dict[str, Any]:
        w, b = objective.frame.original(theta)
        dtype = stored_type(data.dtype, w, b)
        intercept = dtype.type(b) if self.fit_intercept else 0.0
        return {
            "coef_": w.astype(dtype),
            "intercept_": intercept,
            "scale_": float(sigma * objective.frame.y_scale),
        }

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)

    def outliers(self, X: Any, y: Any) -> np.ndarray:
        """Mask of the rows with residuals beyond epsilon times the scale."""
        residual = np.abs(np.asarray(y, dtype=np.float64) - self.predict(X))
        return np.asarray(residual > self.epsilon * self.scale_)

    @property
    def outliers_(self) -> np.ndarray:
        """Mask of the training rows that are outliers, for data that was in memory."""
        bits = getattr(self, "_outlier_bits_", None)
        if bits is None:
            raise AttributeError("outliers_ is there after a fit to data in memory; call outliers(X, y)")
        return np.unpackbits(bits, count=self._n_rows_).astype(bool)

    def _penalty_line(self) -> str:
        return f"L2 penalty {self.alpha:g} ||w||^2" if self.alpha > 0 else "no penalty"


def _state(at: Point) -> dict[str, Any]:
    """The state from which a fit goes on."""
    return {"x": np.append(at.theta, at.sigma)}


def _outlier_batch(batch: Batch, coef: np.ndarray, intercept: np.ndarray, limit: float) -> np.ndarray:
    return np.asarray(np.abs(batch.y - predictor_batch(batch, coef, intercept)[:, 0]) > limit)
