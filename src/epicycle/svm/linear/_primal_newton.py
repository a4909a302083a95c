"""Newton's method on the primal, in sums over the rows: for rows that far outnumber the columns, wherever they are.

A squared loss is once differentiable and piecewise quadratic: Newton steps on the rows that violate the margin. The
other loss has a corner, which is rounded to a parabola of some width. At the minimum for a width the slopes of the
rounded losses are feasible dual variables, so that every pass proves

    P(theta) - min P <= |F'(theta)|^2 / 2 + slack ,

with the rounded objective F and what the parabola lets through (zero for squared losses). The width shrinks until that
is small enough.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from epicycle import engine
from epicycle.core._monitor import Monitor
from epicycle.data import Data
from epicycle.svm.linear._problem import MarginProblem, Optimum, line_statistic, margin_statistic

_GRADIENT_SHARE = 1.0  # of the slack: the width shrinks once the gradient's part of the gap is below it
_SLACK_SHARE = 0.5  # of the tolerance that the slack may take in the end
# Factors by which the width shrinks at a time: the first one tried, and the least after it was too much.
_SHRINKAGE, _LEAST_SHRINKAGE = 12.0, 1.5
_MAX_IDLE_PASSES = 60  # without a smaller gap
_RIDGES = (0.0, 1e-15, 1e-14, 1e-12, 1e-9)  # on a diagonal of ones, until rounding leaves the matrix positive definite
# Step lengths at which the slope is computed when a whole step is too long: 0 and powers of 1 / 1.25.
_STEP_LENGTHS = np.append(0.0, 1.25 ** -np.arange(60.0)[::-1])


def _direction(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    """-H^-1 g for H = I + a positive semi-definite matrix, which may be larger by many orders of magnitude."""
    scale = 1 / np.sqrt(np.diagonal(H))
    S = H * scale * scale[:, None]
    for ridge in _RIDGES:
        try:
            factor = cho_factor(S + ridge * np.eye(len(S)) if ridge else S, lower=True, check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(-scale * cho_solve(factor, scale * g, check_finite=False))
    return np.asarray(-g * scale**2)


@dataclass(frozen=True)
class Point:
    """One problem at theta, with its rounded objective F of a width."""

    theta: np.ndarray
    width: float
    primal: float
    value: float
    slack: float
    gradient: np.ndarray
    curved_gradient: np.ndarray
    hessian: np.ndarray
    violating: float
    curved: float

    @property
    def steepness(self) -> float:
        """|F'|^2 / 2, which F - min F does not exceed."""
        return 0.5 * float(self.gradient @ self.gradient)

    @property
    def gap(self) -> float:
        return self.steepness + self.slack

    @property
    def settled(self) -> bool:
        """Whether theta is near enough to the minimum of F for the width to shrink."""
        return self.steepness <= _GRADIENT_SHARE * self.slack

    def minimum_for(self, factor: float) -> np.ndarray:
        """theta where F is least for `factor` times the width, if the same rows stay in the corner.

        Their violations shrink with it, so that their shares v / width hardly change: the path is smooth in these.
        """
        H = np.eye(len(self.theta)) + (self.hessian - np.eye(len(self.theta))) / factor
        g = self.gradient + (1 / factor - 1) * self.curved_gradient
        return np.asarray(self.theta + _direction(H, g))


class Bounds:
    """The point of the least P so far, and the largest lower bound on P, which may come from another point.

    A width costs P its first power, and the bound, at its maximum, the second: the one is best at a small width, where
    the other begins to feel rounding.
    """

    def __init__(self, point: Point) -> None:
        self.point, self.dual = point, point.primal - point.gap

    def take(self, point: Point) -> Point:
        """Learn from a point; gives it back."""
        self.dual = max(self.dual, point.primal - point.gap)
        if point.primal < self.point.primal or (point.primal == self.point.primal and point.gap < self.point.gap):
            self.point = point
        return point

    @property
    def gap(self) -> float:
        rounding = 4 * np.finfo(float).eps * self.point.primal
        return min(self.point.gap, max(self.point.primal - self.dual, 0.0) + rounding)

    @property
    def optimum(self) -> Optimum:
        return Optimum(self.point.theta, self.point.primal, self.gap)


@dataclass(frozen=True)
class Line:
    """The question how steep F is at theta + t move, for t = _STEP_LENGTHS; answered by the slopes."""

    theta: np.ndarray
    move: np.ndarray
    width: float


#: A solver asks for a point, by parameters and a width, or for slopes along a line.
Wanted = tuple[np.ndarray, float] | Line
Steps = Generator[Wanted, Any, None]


def newton_steps(theta: np.ndarray, width: float, tol: float, *, squared: bool) -> Steps:
    """The minimisation of one problem: asks for points, and ends when its gap is `tol` of P or no longer falls."""
    at: Point = yield theta, width
    bounds, last, misses = Bounds(at), np.inf, 0
    anchor, fastest, rejected = None, _SHRINKAGE, 0
    while not bounds.gap <= tol * bounds.point.primal:
        last, misses = (bounds.gap, 0) if bounds.gap < 0.9 * last else (last, misses + 1)
        if misses > _MAX_IDLE_PASSES:
            return
        if not squared and at.slack > _SLACK_SHARE * tol * at.primal and at.settled:
            anchor, rejected = at, 0
            factor = float(np.clip(0.9 * _SLACK_SHARE * tol * at.primal / at.slack, 1 / fastest, 0.7))
            at = bounds.take((yield at.minimum_for(factor), factor * at.width))
            # Where the same rows stay in the corner the minimum was met: the width may shrink faster.
            fastest = min(fastest**2, 1e6) if at.settled else fastest
            continue
        new, whole = yield from _line_search(at)
        rejected += not whole
        if (rejected > 1 or new is None) and anchor is not None and fastest > _LEAST_SHRINKAGE:
            # The width had shrunk so far that the rows which hold theta were lost: back, and less far.
            at, fastest = anchor, max(min(fastest, _SHRINKAGE) ** 0.5, _LEAST_SHRINKAGE)
        elif new is not None:
            at = bounds.take(new)
        elif squared or at.slack <= _SLACK_SHARE * tol * at.primal:
            return  # F does not tell the points apart any more
        else:
            at = bounds.take((yield at.minimum_for(1 / _SHRINKAGE), at.width / _SHRINKAGE))


def _line_search(at: Point) -> Generator[Wanted, Any, tuple[Point | None, bool]]:
    """(Newton's step, True); where F is not lower there as far as can be told, (what of it makes F least, False)."""
    d = _direction(at.hessian, at.gradient)
    slope = float(at.gradient @ d)
    if not slope < 0:
        return None, False
    new: Point = yield at.theta + d, at.width
    if _lower(new, at, d, slope):
        return new, True
    slopes: np.ndarray = yield Line(at.theta, d, at.width)
    rising = np.flatnonzero(slopes > 0)
    if len(rising) == 0 or rising[0] == 0:
        return None, False
    # F' is piecewise linear along d: interpolated between the last length at which it is negative and the next.
    j = int(rising[0])
    t = _STEP_LENGTHS[j - 1] + (_STEP_LENGTHS[j] - _STEP_LENGTHS[j - 1]) * slopes[j - 1] / (slopes[j - 1] - slopes[j])
    for _ in range(3):
        new = yield at.theta + t * d, at.width
        if _lower(new, at, d, slope):
            return new, False
        t *= 0.5
    return None, False


def _lower(new: Point, at: Point, d: np.ndarray, slope: float) -> bool:
    there = float(new.gradient @ d)
    return new.value < at.value or (new.value <= at.value + 1e-13 * abs(at.value) and abs(there) <= -0.9 * slope)


def primal_newton(
    data: Data,
    problem: MarginProblem,
    *,
    width: float,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> tuple[list[Optimum], str, dict[str, Any]]:
    """Solve all problems with the same passes: (optima, why it ended, state to go on from)."""
    K, d = problem.n_problems, problem.n_features + 1
    theta, widths = np.zeros((K, d)), np.full(K, width)
    if state is not None:
        theta, widths = np.array(state["theta"]), np.array(state["width"])
    solvers: list[Steps] = [newton_steps(theta[k], widths[k], tol, squared=problem.squared) for k in range(K)]
    wanted: dict[int, Wanted] = {k: next(solver) for k, solver in enumerate(solvers)}
    best: dict[int, Bounds] = {}
    step, reason = monitor.history().n_iter, "stalled"
    for _ in range(max(max_iter, 1)):  # the first pass measures the start
        which = tuple(wanted)
        found = _points(data, problem, which, [wanted[k] for k in which], n_jobs)
        for k, point in zip(which, found, strict=True):
            best.setdefault(k, Bounds(point)).take(point)
            widths[k] = point.width
            try:
                wanted[k] = solvers[k].send(point)
            except StopIteration:
                del wanted[k]
        _follow_lines(data, problem, solvers, wanted, n_jobs)
        step += 1
        optima = [best[k].optimum for k in range(K)]
        theta = np.array([optimum.theta for optimum in optima])
        facts = {
            "gap": max(optimum.relative for optimum in optima),
            "width": float(widths.max()),
            "violations": sum(point.violating for point in found),
            "rows": sum(point.curved for point in found),
        }
        value, kept = sum(optimum.primal for optimum in optima), {"theta": theta, "width": widths.copy()}
        stop = monitor(step, theta.ravel(), objective=value, state=kept.copy, **facts)
        if stop or not wanted:
            reason = "stopped" if stop else "stalled"
            break
    else:
        reason = "max_iter"
    return optima, reason, {"theta": theta, "width": widths}


def _follow_lines(
    data: Data, problem: MarginProblem, solvers: list[Steps], wanted: dict[int, Wanted], n_jobs: int | None
) -> None:
    """Answer what is asked about lines, until only points are wanted."""
    lines = {k: line for k, line in wanted.items() if isinstance(line, Line)}
    if not lines:
        return
    theta, move = np.array([line.theta for line in lines.values()]), np.array([line.move for line in lines.values()])
    width = np.array([line.width for line in lines.values()])
    (slopes,) = engine.sum(
        line_statistic, data, problem, tuple(lines), theta, move, width, _STEP_LENGTHS, n_jobs=n_jobs
    )
    for k, at, d, sums in zip(lines, theta, move, slopes, strict=True):
        try:
            wanted[k] = solvers[k].send(problem.C * sums + float(at @ d) + _STEP_LENGTHS * float(d @ d))
        except StopIteration:
            del wanted[k]


def _points(
    data: Data, problem: MarginProblem, which: tuple[int, ...], wanted: list[Any], n_jobs: int | None
) -> list[Point]:
    theta, width = np.array([t for t, _ in wanted]), np.array([w for _, w in wanted])
    totals, gradients, hessians = engine.sum(margin_statistic, data, problem, which, theta, width, n_jobs=n_jobs)
    C, scale = problem.C, np.append(np.ones(problem.n_features), problem.scale)
    points = []
    for at, w, (loss, smooth, slack, violating, curved), g, H in zip(
        theta, width, totals, gradients, hessians, strict=True
    ):
        half = 0.5 * float(at @ at)
        primal = half + C * loss
        value = primal if problem.squared else half + C * smooth
        gradient, curvature = at + C * scale * g[0], C * H * scale * scale[:, None] + np.eye(len(at))
        points.append(
            Point(at, float(w), primal, value, C * slack, gradient, C * scale * g[1], curvature, violating, curved)
        )
    return points
