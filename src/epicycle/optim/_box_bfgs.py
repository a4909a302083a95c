"""Maximise a likelihood over a box: BFGS with a projected line search, in few evaluations because each one is dear.

Variables at a bound with a slope out of the box rest; for the others the direction solves B_FF p = -g_F, with a dense
B, because hyper-parameters are few. A likelihood that knows its information gives a new B every few steps; a share of
the gradient on its diagonal keeps steps along flat directions short, and vanishes with the gradient. Steps are at most
`LONGEST` on the scale of logarithms. A step to where the covariance is not positive definite to working precision
counts as one to infinity: it is shortened, never fatal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.linalg._cholesky import NotPositiveError

__all__ = ["Summit", "climb", "projected_gradient", "steepness"]

LONGEST = 2.0
_ENOUGH = 1e-4  # share of the promised decrease that a step has to bring
_SHORTENED = 12
_RENEWED = 4  # steps after which the information is asked for again
_BLUR = 1e-9  # of the scale of f: differences below say nothing, and the gradient decides instead


@dataclass
class Summit:
    """Where a search ended: `gradient` is that of the likelihood, B the curvature of its negative."""

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


def steepness(theta: np.ndarray, gradient: np.ndarray, bounds: np.ndarray, scale: float) -> float:
    """The largest entry of the projected gradient, relative to the scale of the likelihood."""
    return float(np.abs(projected_gradient(theta, gradient, bounds)).max(initial=0.0)) / scale


def climb(  # noqa: C901 - one quasi-Newton loop, top to bottom
    likelihood: Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]],
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
) -> Summit:
    """Climb from theta to a stationary point.

    Parameters
    ----------
    likelihood : callable
        (theta, curved) -> (value, gradient, information or None); `curved` asks for the information. It may raise
        `NotPositiveError`.
    theta : ndarray of shape (d,)
        Where to begin; it is moved into the box.
    bounds : ndarray of shape (d, 2)
    tol : float or callable
        For the largest entry of the projected gradient relative to `scale`; a function is asked after every iteration.
    scale : float
        Of the likelihood: half the number of observations, about which its terms add up to.
    max_iter : int
    B : ndarray of shape (d, d), optional
        Curvature to begin with.
    report : callable, optional
        (iteration, theta, value, steepness, B) -> whether to stop. The first point is reported too.
    done : int
        Iterations before this call.
    resumed : bool
        Whether theta was reported before.
    """
    x = np.clip(theta, bounds[:, 0], bounds[:, 1])
    value, gradient, information = likelihood(x, True)
    f, g = -value, -gradient
    if information is not None:
        B = _from_information(information, g, scale)
    fresh = B is None
    B = np.eye(len(x)) if B is None else B
    taken = 0
    reason, iteration, resets = "max_iter", done if resumed else done + 1, 0
    reported = done
    while True:
        steep = steepness(x, -g, bounds, scale)
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
        curved = information is not None and taken % _RENEWED == _RENEWED - 1
        found = _search_line(likelihood, x, f, g, step, bounds, _BLUR * max(scale, abs(f)), curved)
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
        stuck = f - f_new <= _BLUR * scale and steepness(x_new, -g_new, bounds, scale) > 0.9 * steep
        x, f, g = x_new, f_new, g_new
        iteration += 1
        if stuck:
            if resets == 2:
                reason = "stalled"
                break
            resets, fresh = resets + 1, True
    return Summit(x, -f, -g, B, iteration, reason)


def _from_information(information: np.ndarray, g: np.ndarray, scale: float) -> np.ndarray:
    return information + np.diag(np.abs(g) / LONGEST + 1e-6 * scale)


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
    return step * min(1.0, LONGEST / longest) if longest > 0 else step


def _search_line(
    likelihood: Callable[[np.ndarray, bool], tuple[float, np.ndarray, np.ndarray | None]],
    x: np.ndarray,
    f: float,
    g: np.ndarray,
    step: np.ndarray,
    bounds: np.ndarray,
    blur: float,
    curved: bool,
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray | None] | None:
    """A point along the projected ray that decreases f enough; None where there is none.

    Where f can tell no difference beyond `blur`, a point is good enough that is flatter along the ray.
    """
    length, slope = 1.0, float(g @ step)
    grown = False
    best: tuple[np.ndarray, float, np.ndarray, np.ndarray | None] | None = None
    for _ in range(_SHORTENED):
        trial = np.clip(x + length * step, bounds[:, 0], bounds[:, 1])
        if np.array_equal(trial, x):
            return best
        try:
            value, gradient, information = likelihood(trial, curved)
        except NotPositiveError:
            value, gradient, information = -np.inf, g, None
        curved = False
        f_new = -value
        promised = float(g @ (trial - x))
        flatter = abs(f_new - f) <= blur and abs(float(gradient @ (trial - x))) <= 0.9 * abs(promised)
        if np.isfinite(f_new) and (f_new <= f + _ENOUGH * promised or flatter):
            if best is not None and f_new >= best[1]:
                return best
            best = trial, f_new, -gradient, information
            # Still as steep as at the beginning: the curvature was far too large, go on once.
            along = float(-gradient @ step)
            if not grown and along < 0.9 * slope and float(np.abs(length * step).max()) < LONGEST / 2:
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
    # What rounding leaves of a flat top is no failure: the last digits of f say nothing any more.
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
