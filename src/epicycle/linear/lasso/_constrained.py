"""The lasso in its constrained form, and its correspondence with the penalised one.

    minimise  f(w) = 1/2 |y - Xw|^2   subject to   |w|_f = sum_j f_j |w_j| <= t          (w >= 0 where asked for)

The solution for the penalty alpha solves this problem with t = |w(alpha)|_f. That norm is a continuous function of
alpha, falls as alpha grows, and is linear between the breakpoints of the path: on the support S with signs s

    d|w|_f / d alpha = -(f s)' G_SS^-1 (f s),

so Newton's method, kept inside a bracket, finds the alpha of a given t after a few solutions. Then, for any w inside
the bound, convexity gives f(v) >= f(w) - <c, v - w> with c_j = <x_j, y - Xw>, hence

    f(w) - min f  <=  t max_j |c_j| / f_j - <c, w>,

which is the duality gap of the constrained problem, and the certificate. Features without a penalty (f_j = 0) are
orthogonal to the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.linear.lasso._gram import solve_positive
from epicycle.linear.lasso._solver import LassoSolver, MomentSolver
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._working_set import Outcome, Report

EPS = float(np.finfo(np.float64).eps)
#: Largest support on which the slope of the norm is computed.
MAX_SLOPE = 3000
#: Alpha falls by no more than this from one solution to the next, so that each starts near its end.
LARGEST_FALL = 0.1
#: Share of the largest alpha at which a bound that is still not reached is taken for one that does not bind.
UNBOUND_ALPHA = 1e-3
#: Columns up to which least squares is tried then.
MAX_LEAST_SQUARES = 1000


@dataclass(frozen=True)
class BoundOutcome(Outcome):
    """The end of a constrained fit; alpha is the penalty with the same solution, 0 where the bound does not bind."""

    alpha: float


@dataclass
class _Point:
    """The solution for an alpha, taken back inside the bound."""

    w: np.ndarray
    norm: float
    objective: float
    gap: float


def minimise_within(  # noqa: C901 - one bracketing loop
    solver: LassoSolver,
    bound: float,
    factors: np.ndarray,
    positive: bool,
    tol: float,
    max_iter: int,
    report: Report | None = None,
) -> BoundOutcome:
    """Minimise until the gap is at most tol * total; `max_iter` counts solutions of penalised problems."""
    start = solver.w.copy()
    largest = solver.alpha_of_zero(1.0, factors, positive)
    if not largest > 0:  # no feature is of use
        point = _inside(solver, solver.w.copy(), 0.0, bound, factors, positive)
        if report is not None:
            report(1, point.w, point.objective, gap=point.gap, alpha=0.0, norm=0.0)
        return BoundOutcome(point.w, point.objective, point.gap, 1, "converged", 0.0)
    low, high = 0.0, largest
    alpha = largest
    if start.any():
        solver.start_at(start)
        alpha = min(_largest_correlation(solver, factors, positive), largest)
    inner = 0.1 * tol
    best: _Point | None = None
    beyond: tuple[np.ndarray, float] | None = None  # the last solution outside the bound, and its norm
    best_alpha, reason, done, stuck = alpha, "max_iter", 0, 0
    for done in range(1, max_iter + 1):
        outcome = solver.minimise(ElasticNet(alpha * factors, np.zeros(solver.p), positive=positive), inner, 1000)
        norm, slope = float(factors @ np.abs(outcome.x)), _slope(solver, factors)
        point = _inside(solver, outcome.x, norm, bound, factors, positive)
        if norm > bound:
            beyond = outcome.x, norm
        elif beyond is not None:  # on one piece of the path, what divides it at the bound is the solution
            share = (bound - norm) / (beyond[1] - norm)
            between = (1 - share) * outcome.x + share * beyond[0]
            mixed = _inside(solver, between, float(factors @ np.abs(between)), bound, factors, positive)
            point = mixed if mixed.gap < point.gap else point
            solver.start_at(outcome.x)
        if best is None or point.gap < best.gap:
            best, best_alpha = point, alpha
        if report is not None and report(done, point.w, point.objective, gap=point.gap, alpha=alpha, norm=norm):
            reason = "stopped"
            break
        if point.gap <= tol * solver.total:
            reason = "converged"
            break
        low, high = (max(low, alpha), high) if norm > bound else (low, min(high, alpha))
        fresh = alpha + (norm - bound) / slope if slope > 0 else np.nan
        if abs(norm - bound) <= 1e-9 * bound or high - low <= 4 * EPS * high:  # the right alpha, not yet its solution
            stuck += 1
            if stuck > 4:
                reason = "stalled"
                break
        # Solutions that are too rough would all have the same norm.
        inner = max(min(0.1 * inner if stuck else inner, 1e-4 * best.gap / solver.total), 1e-16)
        alpha = _next_alpha(fresh, low, high)
        if low == 0 and fresh <= 0 and high <= UNBOUND_ALPHA * largest:  # the bound does not seem to bind
            alpha = min(alpha, 0.5 * tol * solver.total / bound)
            if (free := _unbounded(solver, bound, factors, positive, inner)) is not None:
                best, reason, done = free, "converged", done + 1
                if report is not None:
                    report(done, free.w, free.objective, gap=free.gap, alpha=0.0, norm=free.norm)
                break
    assert best is not None
    slack = best.norm < bound * (1 - 1e-9)
    return BoundOutcome(best.w, best.objective, best.gap, done, reason, 0.0 if slack else best_alpha)


def _next_alpha(fresh: float, low: float, high: float) -> float:
    """Newton's alpha where it lies inside the bracket; otherwise one well inside."""
    if low == 0:
        least = LARGEST_FALL * high
        return fresh if least <= fresh < high else least
    return fresh if low < fresh < high else float(np.sqrt(low * high))


def _unbounded(solver: LassoSolver, bound: float, factors: np.ndarray, positive: bool, tol: float) -> _Point | None:
    """Least squares, where it is cheap, if that is inside the bound."""
    if positive or solver.p > MAX_LEAST_SQUARES:
        return None
    w = solver.w.copy()
    outcome = solver.minimise(ElasticNet(np.zeros(solver.p), np.zeros(solver.p), positive=positive), tol, 10)
    norm = float(factors @ np.abs(outcome.x))
    if norm <= bound and outcome.reason == "converged":
        return _Point(outcome.x, norm, outcome.objective, outcome.gap)
    solver.start_at(w)
    return None


def _slope(solver: LassoSolver, factors: np.ndarray) -> float:
    """(f s)' G_SS^-1 (f s); 0 where it is not known."""
    S = np.flatnonzero(solver.w)
    if not 0 < len(S) <= MAX_SLOPE:
        j = int(np.argmax(np.where(factors > 0, np.abs(solver.c) / np.where(factors > 0, factors, 1.0), -1.0)))
        return float(factors[j] ** 2 / solver.square[j]) if len(S) == 0 and solver.square[j] > 0 else 0.0
    b = factors[S] * np.sign(solver.w[S])
    x = solve_positive(np.ascontiguousarray(solver.gram(S)), b)
    return max(float(b @ x), 0.0) if x is not None else 0.0


def _largest_correlation(solver: LassoSolver, factors: np.ndarray, positive: bool) -> float:
    """max_j |c_j| / f_j at the present w, from fresh correlations, with what their rounding may hide."""
    c = solver.correlation(np.arange(solver.p))
    size = np.maximum(c, 0.0) if positive else np.abs(c)
    if isinstance(solver, MomentSolver):
        size += 8 * EPS * solver.norm * (float(solver.norm @ np.abs(solver.w)) + float(np.sqrt(solver.yy)))
    taken = (factors > 0) & (solver.square > 0)
    return float((size[taken] / factors[taken]).max(initial=0.0))


def _inside(
    solver: LassoSolver, w: np.ndarray, norm: float, bound: float, factors: np.ndarray, positive: bool
) -> _Point:
    """w shrunk into the bound where it is beyond, with its objective and gap; leaves the solver at w itself."""
    shrunk = w if norm <= bound else np.where(factors > 0, w * (bound / norm), w)
    solver.start_at(shrunk)
    if (factors == 0).any() and norm > bound:
        free = np.flatnonzero((factors == 0) & (solver.square > 0))
        if len(free):
            solver.fit_unpenalised(free)
    largest = _largest_correlation(solver, factors, positive)
    inner = float(solver.w @ solver.correlation(np.arange(solver.p)))
    # min f >= 0 as well, which is what counts where the residuals vanish.
    gap = max(min(bound * largest - inner, solver.rr / 2), 0.0)
    point = _Point(solver.w.copy(), min(norm, bound), solver.rr / 2, gap)
    if shrunk is not w:
        solver.start_at(w)
    return point
