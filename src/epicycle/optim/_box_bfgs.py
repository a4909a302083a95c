"""Box-constrained quasi-Newton: maximise a smooth function of few variables between bounds, in few evaluations.

BFGS with a projected line search. Variables at a bound with a slope out of the box stay there; for the free ones F the
direction solves  B_FF p = -g_F  with a dense B, because the variables are few and every evaluation is expensive. A
function that knows its information matrix gives a new B every few steps; a share of the gradient on its diagonal keeps
steps along flat directions short, and vanishes with the gradient. Steps are at most `LONGEST_STEP`, which suits
variables on the scale of logarithms. A point at which the function cannot be evaluated (:class:`NotPositiveError`)
counts as minus infinity: the step is shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.linalg._cholesky import NotPositiveError

#: Longest step in any variable: a factor of e^2 = 7 where the variables are logarithms.
LONGEST_STEP = 2.0
#: Share of the promised decrease that a step has to bring (Armijo's condition, with its usual constant).
ARMIJO_SHARE = 1e-4
#: Trials of one line search: each shortens the step at least by half.
MAX_TRIALS = 12
#: Steps after which the information matrix is evaluated again; between them BFGS updates are as good.
STEPS_PER_INFORMATION = 4
#: Differences of f below this share of its scale are rounding, and the gradient decides instead.
ROUNDING_OF_VALUE = 1e-9


@dataclass
class BoxMaximum:
    """The end of a search: `gradient` is that of the function, B the curvature of its negative."""

    theta: np.ndarray
    value: float
    gradient: np.ndarray
    B: np.ndarray
    n_iter: int
    reason: str
    state: Mapping[str, Any] = field(default_factory=dict)


def projected_gradient(theta: np.ndarray, gradient: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The gradient of what is maximised, without what points out of the box."""
    out = ((theta <= bounds[:, 0]) & (gradient < 0)) | ((theta >= bounds[:, 1]) & (gradient > 0))
    return np.where(out, 0.0, gradient)


def relative_slope(theta: np.ndarray, gradient: np.ndarray, bounds: np.ndarray, scale: float) -> float:
    """The largest entry of the projected gradient, relative to the scale of the function."""
    return float(np.abs(projected_gradient(theta, gradient, bounds)).max(initial=0.0)) / scale


def maximise_in_box(  # noqa: C901 - one quasi-Newton loop, top to bottom
    function: Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]],
    theta: np.ndarray,
    bounds: np.ndarray,
    *,
    tol: float | Callable[[], float],
    scale: float,
    max_iter: int,
    B: np.ndarray | None = None,
    report: Callable[[int, np.ndarray, float, float, np.ndarray], bool] | None = None,
    done: int = 0,
    resumed: bool = False,
) -> BoxMaximum:
    """Maximise a function over a box, from theta to a stationary point.

    Parameters
    ----------
    function : callable
        (theta, curved) -> (value, gradient, information or None); `curved` asks for the information. It may raise
        `NotPositiveError`.
    theta : ndarray of shape (d,)
        Where to begin; it is moved into the box.
    bounds : ndarray of shape (d, 2)
    tol : float or callable
        For the largest entry of the projected gradient relative to `scale`; a function is asked after every iteration.
    scale : float
        Of the function; for a log-likelihood half the number of observations, about which its terms add up to.
    max_iter : int
    B : ndarray of shape (d, d), optional
        Curvature to begin with.
    report : callable, optional
        (iteration, theta, value, relative_slope, B) -> whether to stop. The first point is reported too.
    done : int
        Iterations before this call.
    resumed : bool
        Whether theta was reported before.
    """
    x = np.clip(theta, bounds[:, 0], bounds[:, 1])
    value, gradient, information = function(x, True)
    f, g = -value, -gradient
    if information is not None:
        B = _from_information(information, g, scale)
    fresh = B is None
    B = np.eye(len(x)) if B is None else B
    taken = 0
    reason, iteration, resets = "max_iter", done if resumed else done + 1, 0
    reported = done
    while True:
        steep = relative_slope(x, -g, bounds, scale)
        stop = False
        if report is not None and iteration > reported:
            stop, reported = report(iteration, x, -f, steep, B), iteration
        if steep <= (tol() if callable(tol) else tol):
            reason = "converged"
            break
        if stop:
            reason = "stopped"
            break
        if iteration >= max_iter:
            break
        free = projected_gradient(x, -g, bounds) != 0
        if fresh:  # the first step is of length one at most
            B = np.eye(len(x)) * max(float(np.abs(g[free]).max()), 1e-12)
        step = _direction(B, g, free, x, bounds)
        curved = information is not None and taken % STEPS_PER_INFORMATION == STEPS_PER_INFORMATION - 1
        found = _search_line(function, x, f, g, step, bounds, ROUNDING_OF_VALUE * max(scale, abs(f)), curved)
        if found is None:
            if resets == 2 or fresh:
                reason = "stalled"
                break
            resets, fresh = resets + 1, True
            continue
        x_new, f_new, g_new, news = found
        s, y = x_new - x, g_new - g
        if fresh and float(s @ y) > 0:
            B = np.eye(len(x)) * float(y @ y) / float(s @ y)
        fresh, taken = False, taken + 1
        B = _updated(B, s, y) if news is None else _from_information(news, g_new, scale)
        stuck = f - f_new <= ROUNDING_OF_VALUE * scale and relative_slope(x_new, -g_new, bounds, scale) > 0.9 * steep
        x, f, g = x_new, f_new, g_new
        iteration += 1
        if stuck:
            if resets == 2:
                reason = "stalled"
                break
            resets, fresh = resets + 1, True
    return BoxMaximum(x, -f, -g, B, iteration, reason)


def _from_information(information: np.ndarray, g: np.ndarray, scale: float) -> np.ndarray:
    return information + np.diag(np.abs(g) / LONGEST_STEP + 1e-6 * scale)


def _direction(B: np.ndarray, g: np.ndarray, free: np.ndarray, x: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """-B^-1 g over the free variables; those that it would push out of the box at once rest too."""
    free = free.copy()
    step = np.zeros_like(g)
    for _ in range(len(g)):
        step[:] = 0.0
        if not free.any():
            break
        step[free] = -np.linalg.solve(B[np.ix_(free, free)], g[free])
        outward = free & (((x <= bounds[:, 0]) & (step < 0)) | ((x >= bounds[:, 1]) & (step > 0)))
        if not outward.any():
            break
        free &= ~outward
    if not np.isfinite(step).all() or float(step @ g) >= 0:
        step = -g * free
    longest = float(np.abs(step).max(initial=0.0))
    return step * min(1.0, LONGEST_STEP / longest) if longest > 0 else step


def _search_line(
    function: Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]],
    x: np.ndarray,
    f: float,
    g: np.ndarray,
    step: np.ndarray,
    bounds: np.ndarray,
    blur: float,
    curved: bool,
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray | None] | None:
    """A point along the projected ray that decreases f enough; None where there is none.

    Where values differ by less than `blur`, a point is good enough that is flatter along the ray.
    """
    length, slope = 1.0, float(g @ step)
    grown = False
    best: tuple[np.ndarray, float, np.ndarray, np.ndarray | None] | None = None
    for _ in range(MAX_TRIALS):
        trial = np.clip(x + length * step, bounds[:, 0], bounds[:, 1])
        if np.array_equal(trial, x):
            return best
        try:
            value, gradient, information = function(trial, curved)
        except NotPositiveError:
            value, gradient, information = -np.inf, g, None
        curved = False
        f_new = -value
        promised = float(g @ (trial - x))
        flatter = abs(f_new - f) <= blur and abs(float(gradient @ (trial - x))) <= 0.9 * abs(promised)
        if np.isfinite(f_new) and (f_new <= f + ARMIJO_SHARE * promised or flatter):
            if best is not None and f_new >= best[1]:
                return best
            best = trial, f_new, -gradient, information
            # Still as steep as at the beginning: the curvature was far too large, go on once.
            along = float(-gradient @ step)
            if not grown and along < 0.9 * slope and float(np.abs(length * step).max()) < LONGEST_STEP / 2:
                grown, length = True, 4.0 * length
                continue
            return best
        if best is not None:
            return best
        if np.isfinite(f_new):
            rise = f_new - f - length * slope
            length *= float(np.clip(-slope * length / (2 * rise) if rise > 0 else 0.5, 0.1, 0.5))
        else:
            length *= 0.25
    # On a flat top no trial is better by more than rounding: that is no failure.
    return best


def _updated(B: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Powell's damped BFGS update: B stays positive definite."""
    Bs = B @ s
    sBs, sy = float(s @ Bs), float(s @ y)
    if not (sBs > 0 and np.isfinite(sBs)):
        return B
    theta = 1.0 if sy >= 0.2 * sBs else 0.8 * sBs / (sBs - sy)
    r = theta * y + (1 - theta) * Bs
    return B - np.outer(Bs, Bs) / sBs + np.outer(r, r) / float(s @ r)
