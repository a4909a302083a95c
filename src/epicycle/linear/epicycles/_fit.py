"""The three ways to an orbit, from the data to circles with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.data import Batch, Data
from epicycle.linalg._least_squares import solve_normal_equations
from epicycle.linear.epicycles._newton import fit_radii, fit_ridge, minimise_lasso, refine
from epicycle.linear.epicycles._orbit import Circles, Setting, normal_equations, plane_of
from epicycle.linear.epicycles._spectrum import Grid, default_grid, residual_spectrum, times_of, weight_spectrum
from epicycle.optim import Solution

if TYPE_CHECKING:
    from epicycle.linear.epicycles._epicycle_regression import EpicycleRegression

# --------------------------------------------------------------------------------------------------------------------
# Circles on circles: the one that explains most of what is left, again and again (boosting, matching pursuit).
#
# For a single new circle the best radius is least squares, and the sum of squares falls by |S(w)|^2 / W with S the
# spectrum of the residuals; the constant that comes with it and, for real targets, the sines and cosines that are not
# orthogonal, are taken care of as in the floating-mean periodogram.


@dataclass(frozen=True)
class Periodogram:
    """The sum of squares that one more circle at any frequency of a grid would explain.

    first, second : sums of w exp(-i w t) and w exp(-2 i w t); `total` is the sum of w.
    """

    grid: Grid
    first: np.ndarray
    second: np.ndarray | None
    total: float
    setting: Setting

    @classmethod
    def of(cls, data: Data, grid: Grid, origin: np.ndarray, total: float, setting: Setting) -> Periodogram:
        """One pass over the weights, two for real targets."""
        none = np.zeros(grid.count, complex)
        first = weight_spectrum(data, grid, origin, 1, setting.n_jobs) if setting.centre else none
        second = None if setting.plane else weight_spectrum(data, grid, origin, 2, setting.n_jobs)
        return cls(grid, first, second, total, setting)

    def power(self, data: Data, circles: Circles) -> np.ndarray:
        """The decrease of the sum of squares, at every frequency: one pass."""
        S = residual_spectrum(data, self.grid, circles, self.setting)
        W = self.total
        if self.setting.plane:
            left = W - np.abs(self.first) ** 2 / W
            power = np.divide(np.abs(S) ** 2, left, out=np.zeros(len(S)), where=left > 1e-4 * W)
        else:
            second: Any = self.second  # summed for real responses
            c, s = self.first.real, -self.first.imag  # sums of cos and sin
            cc = (W + second.real) / 2 - c * c / W
            ss = (W - second.real) / 2 - s * s / W
            cs = -second.imag / 2 - c * s / W
            determinant = cc * ss - cs * cs
            yc, ys = S.real, -S.imag
            numerator = ss * yc * yc - 2 * cs * yc * ys + cc * ys * ys
            power = np.divide(numerator, determinant, out=np.zeros(len(S)), where=determinant > 1e-6 * W * W)
            # Where only one of sine and cosine can be told from the rest, it alone counts.
            spread = np.maximum(cc, ss)
            alone = np.where(cc >= ss, yc, ys) ** 2
            single = np.divide(alone, spread, out=np.zeros(len(S)), where=spread > 1e-4 * W)
            power = np.where(determinant > 1e-6 * W * W, power, single)
        return np.where(self.grid.usable, power, 0.0)


def with_circle(circles: Circles, column: int, frequency: float) -> Circles:
    """One circle more, of radius zero."""
    return replace(
        circles,
        columns=np.append(circles.columns, column),
        frequencies=np.append(circles.frequencies, frequency),
        radii=np.append(circles.radii, 0.0),
    )


#: The default grid is finer than 2 pi / T by this factor, and has at most so many frequencies.
OVERSAMPLING = {"boosting": 4, "lasso": 2, "ridge": 1}
MAX_FREQUENCIES = {"boosting": 1 << 22, "lasso": 1 << 15, "ridge": 256}
#: The same where the times are not on a lattice and every frequency costs a pass over them.
MAX_FREQUENCIES_UNEVEN = {"boosting": 1 << 14, "lasso": 1 << 13, "ridge": 256}


@dataclass(frozen=True)
class Problem:
    """Data, grids and scales of a fit.

    weight : the sum of all. total : half the weighted sum of squares about the mean (about zero without a centre).
    spans : of the times in every column.
    """

    data: Data
    grids: list[Grid]
    origin: np.ndarray
    spans: np.ndarray
    weight: float
    total: float
    setting: Setting

    def start(self) -> Circles:
        """No circles yet."""
        none = np.empty(0)
        return Circles(none.astype(np.int64), none, none.astype(complex), self.setting.level, self.origin)

    def resolution(self, circles: Circles) -> np.ndarray:
        """2 pi / T for every circle."""
        return np.asarray(2 * np.pi / self.spans[circles.columns])


def mean_statistic(batch: Batch) -> tuple[complex, float]:
    z = plane_of(batch.y)
    return complex(z.sum() if batch.weight is None else batch.weight @ z), batch.total_weight


def prepare(data: Data, model: EpicycleRegression, *, plane: bool) -> Problem:
    """Look at the times and the mean: one pass for each column, two more for the scale."""
    method, n_jobs = model.method, model.n_jobs
    columns = [times_of(data, j, n_jobs) for j in range(data.n_features)]
    grids = []
    for j, times in enumerate(columns):
        if model.frequencies is not None:
            grid: Any = _given_grid(model.frequencies, j, constant=not model.fit_centre)
        else:
            most = (MAX_FREQUENCIES if times.step() is not None else MAX_FREQUENCIES_UNEVEN)[method]
            grid = default_grid(times, j, oversampling=OVERSAMPLING[method], max_frequencies=most, plane=plane)
        if grid is not None and times.span > 0 and grid.usable.any():
            grids.append(grid)
    origin = np.array([t.low + t.span / 2 for t in columns])
    total, weight = engine.sum(mean_statistic, data, n_jobs=n_jobs)
    level = total / weight if model.fit_centre else 0j
    none = np.empty(0)
    empty = Circles(none.astype(np.int64), none, none.astype(complex), level, origin)
    setting = Setting(model.fit_centre, plane, level, n_jobs)
    squares = normal_equations(data, empty, replace(setting, centre=False)).squares
    # Data that are constant but for rounding count as ones that vary by that much.
    squares = max(squares, weight * (np.finfo(float).eps * abs(level)) ** 2)
    spans = np.array([t.span for t in columns])
    with np.errstate(over="ignore"):  # derivatives in the frequencies are products of times and values
        largest = squares * np.square(spans.max(initial=1.0))
    if not np.isfinite(largest):
        raise DataError("X, y: the squares of times multiplied by values overflow; scale them down")
    return Problem(data, grids, origin, spans, weight, squares / 2, setting)


def _given_grid(frequencies: Any, column: int, *, constant: bool) -> Grid:
    """The caller's frequencies; zero is among them only where the centre is not."""
    try:
        given = np.atleast_1d(np.asarray(frequencies, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"EpicycleRegression: frequencies={frequencies!r:.80}; expected numbers") from None
    if given.ndim > 1 or not given.size or not np.isfinite(given).all() or len(np.unique(given)) != len(given):
        raise ParameterError(
            f"EpicycleRegression: frequencies={frequencies!r:.80}; expected distinct finite numbers in one dimension"
        )
    return Grid(column, 0.0, 0.0, len(given), -1.0 if constant else 0.0, given=given)


# ------------------------------------------------------------------------------------------------ boosting


def fit_by_boosting(problem: Problem, model: EpicycleRegression) -> tuple[Circles, Solution]:
    """One circle after the other; each row of the history is a circle."""
    data = problem.data
    monitor = model._monitor(model.n_circles, lambda x: model._attributes(problem, Circles.unpack(x, problem.origin)))
    state = model._resume_state()
    circles = problem.start() if state is None else Circles.unpack(np.asarray(state["circles"]), problem.origin)
    looks = [Periodogram.of(data, grid, problem.origin, problem.weight, problem.setting) for grid in problem.grids]
    objective, decrement, reason, left = _reached(problem, circles, model)
    for done in range(circles.count, model.n_circles):
        if not looks or objective <= 1e-26 * problem.total:
            break
        circles, objective, decrement = _one_more(problem, model, circles, looks)
        state = {"circles": circles.pack()}
        stop = monitor(
            done + 1,
            circles.pack(),
            objective=objective,
            decrement=decrement,
            frequency=float(circles.frequencies[-1]),
            state=partial(dict, state),
        )
        if stop and done + 1 < model.n_circles:
            reason, left = "stopped", state
            break
    if not monitor.history().n_iter:
        monitor(1, circles.pack(), objective=objective, decrement=decrement, frequency=np.nan)
    certificate = _boosting_certificate(model, decrement / problem.total if problem.total > 0 else 0.0)
    reason = reason if left else "converged" if certificate.holds else "max_iter"
    history = monitor.history()
    return circles, Solution(circles.pack(), objective, history, certificate, history.n_iter, reason, state=left)


def _reached(problem: Problem, circles: Circles, model: EpicycleRegression) -> tuple[float, float, str, dict[str, Any]]:
    normal = normal_equations(problem.data, circles, problem.setting)
    decrement = 0.0
    if circles.count and (model.refine or model.refit):
        decrement = _linear_decrement(normal)
    return normal.residual_squares / 2, decrement, "converged", {}


def _linear_decrement(normal: Any) -> float:
    """The distance of the objective from its minimum over radii and centre."""
    if not len(normal.gradient):
        return 0.0
    return abs(float(normal.gradient @ solve_normal_equations(normal.G, normal.gradient).x)) / 2


def _one_more(
    problem: Problem, model: EpicycleRegression, circles: Circles, looks: list[Periodogram]
) -> tuple[Circles, float, float]:
    """(circles, objective, decrement) with the circle added that explains most."""
    data = problem.data
    powers = [look.power(data, circles) for look in looks]
    best = int(np.argmax([p.max() for p in powers]))
    grid = looks[best].grid
    added = with_circle(circles, grid.column, float(grid.frequencies[int(np.argmax(powers[best]))]))
    if model.refine:
        refined = refine(
            data, added, problem.resolution(added), problem.setting, scale=problem.total, max_iter=model.max_iter
        )
        return refined.circles, refined.objective, refined.decrement
    if model.refit:
        added, normal = fit_radii(data, added, problem.setting)
        return added, normal.residual_squares / 2, _linear_decrement(normal)
    # The new circle alone, with a shift of the centre, on what is left by the others.
    K = added.count
    normal = normal_equations(data, added, problem.setting)
    own = np.r_[K - 1, 2 * K - 1, 2 * K : len(normal.b)]
    step = solve_normal_equations(normal.G[np.ix_(own, own)], normal.gradient[own]).x
    radii = added.radii.copy()
    radii[-1] += step[0] + 1j * step[1]
    shift = complex(*step[2:]) if problem.setting.centre else 0j
    added = replace(added, radii=radii, centre=added.centre + shift)
    normal = normal_equations(data, added, problem.setting)
    return added, normal.residual_squares / 2, 0.0


def _boosting_certificate(model: EpicycleRegression, value: float) -> Certificate:
    if model.refine:
        meaning = (
            f"no small change of all frequencies, radii and the centre lowers the sum of squares by more than "
            f"{value:.1e} of that of the data, slower ones than an eighth of a turn left aside; which circles were "
            "chosen is greedy"
        )
        return Certificate("stationarity", value, model.tol, meaning)
    if model.refit:
        meaning = (
            f"with these frequencies the sum of squares is within {value:.1e} of its minimum, relative to that of the "
            "data; the choice of the frequencies is greedy"
        )
        return Certificate("newton decrement", value, model.tol, meaning)
    return Certificate("none", 0.0, 0.0, "greedy: each circle is the best for what the earlier ones left, once")


# ------------------------------------------------------------------------------------------------ penalties


def fit_by_lasso(problem: Problem, model: EpicycleRegression) -> tuple[Circles, Solution]:
    """Few circles out of many; each row of the history is a round of the working set."""
    monitor = model._monitor(model.max_iter, lambda x: model._attributes(problem, Circles.unpack(x, problem.origin)))
    state = model._resume_state()
    start = problem.start() if state is None else Circles.unpack(np.asarray(state["circles"]), problem.origin)
    scale = problem.total / problem.weight
    left: dict[str, Any] = {}

    def report(done: int, circles: Circles, objective: float, gap: float) -> bool:
        nonlocal left
        left = {"circles": circles.pack(), "done": done}
        return monitor(
            done,
            circles.pack(),
            objective=objective,
            gap=gap,
            circles=float(np.count_nonzero(circles.radii)),
            state=partial(dict, left),
        )

    end = minimise_lasso(
        problem.data,
        problem.grids,
        start,
        model.alpha,
        problem.weight,
        problem.setting,
        tol=model.tol,
        scale=scale,
        max_iter=model.max_iter + (0 if state is None else int(state["done"])),
        report=report,
        first_round=0 if state is None else int(state["done"]),
    )
    value = max(end.gap, 0.0) / scale if scale > 0 else 0.0
    meaning = f"the objective is within {value:.1e} of its minimum, relative to half the mean square of the data"
    certificate = Certificate("duality gap", value, model.tol, meaning)
    kept = np.abs(end.circles.radii) > 0
    circles = replace(
        end.circles,
        columns=end.circles.columns[kept],
        frequencies=end.circles.frequencies[kept],
        radii=end.circles.radii[kept],
    )
    reason = "stopped" if end.stopped and not certificate.holds else "converged" if certificate.holds else "max_iter"
    history = monitor.history()
    return circles, Solution(
        end.circles.pack(),
        end.objective,
        history,
        certificate,
        history.n_iter,
        reason,
        state=left if reason != "converged" else {},
    )


def fit_by_ridge(problem: Problem, model: EpicycleRegression) -> tuple[Circles, Solution]:
    """All circles of the grid at once, in closed form."""
    columns = np.concatenate([np.full(int(g.usable.sum()), g.column) for g in problem.grids] + [np.empty(0, np.int64)])
    frequencies = np.concatenate([g.frequencies[g.usable] for g in problem.grids] + [np.empty(0)])
    d = 2 * len(frequencies) + 2
    require_memory(8.0 * d * d * 5, f"the {d} x {d} normal equations of the circles", "give fewer frequencies")
    start = Circles(
        columns.astype(np.int64),
        frequencies,
        np.zeros(len(frequencies), complex),
        problem.setting.level,
        problem.origin,
    )
    penalty = model.alpha * np.abs(frequencies) ** model.frequency_power
    circles, objective, excess = fit_ridge(problem.data, start, penalty, problem.weight, problem.setting)
    scale = problem.total / problem.weight
    value = excess / scale if scale > 0 else 0.0
    meaning = f"the objective is within {value:.1e} of its minimum, relative to half the mean square of the data"
    monitor = model._monitor(1, lambda x: model._attributes(problem, Circles.unpack(x, problem.origin)))
    monitor(1, circles.pack(), objective=objective)
    certificate = Certificate("newton decrement", value, model.tol, meaning)
    reason = "converged" if certificate.holds else "stalled"
    return circles, Solution(circles.pack(), objective, monitor.history(), certificate, 1, reason)
