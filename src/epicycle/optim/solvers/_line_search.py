"""Step lengths along a descent direction d: t with F(x + t d) well below F(x).

Wolfe's conditions with 0 < c1 < c2 < 1 and phi(t) = F(x + t d), phi'(0) < 0:

    phi(t) <= phi(0) + c1 t phi'(0)          enough decrease
    |phi'(t)| <= c2 |phi'(0)|                 the slope has flattened

Close to the optimum the decrease drowns in the rounding of F while the slope is still accurate. There the first
condition is replaced by the one on slopes that equals it for a quadratic, phi'(t) <= (2 c1 - 1) phi'(0), as long as
phi(t) does not exceed phi(0) by more than rounding (Hager and Zhang 2005, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epicycle.optim._objective import Objective

Array = np.ndarray

#: Rounding errors of F, relative: sums over many rows carry more than one unit in the last place.
ROUNDING = 1e-13
C1 = 1e-4


@dataclass(frozen=True)
class Trial:
    """F at x + t d."""

    t: float
    x: Array
    value: float
    gradient: Array
    slope: float


def evaluate(objective: Objective, x: Array, d: Array, t: float) -> Trial:
    """F, its gradient and its slope along d at x + t d; inf where F is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        point = x + t * d
        value, gradient = objective.value_and_gradient(point)
        slope = float(gradient @ d)
    if not (math.isfinite(value) and math.isfinite(slope)):
        value, slope = math.inf, math.inf
    return Trial(t, point, value, gradient, slope)


def decreases(trial: Trial, value: float, slope: float) -> bool:
    """Whether the trial is low enough, by its value or, at the level of rounding, by its slope."""
    if trial.value <= value + C1 * trial.t * slope:
        return True
    return trial.value <= value + ROUNDING * abs(value) and trial.slope <= (2 * C1 - 1) * slope


def backtracking(
    objective: Objective, x: Array, value: float, slope: float, d: Array, *, first: float = 1.0, max_trials: int = 60
) -> Trial | None:
    """The first of a falling sequence of steps that decreases F enough; None if none does."""
    t = first
    for _ in range(max_trials):
        trial = evaluate(objective, x, d, t)
        if decreases(trial, value, slope):
            return trial
        # Minimum of the parabola through phi(0), phi'(0) and phi(t), kept within [0.1 t, 0.5 t].
        bend = trial.value - value - slope * t
        parabola = -slope * t * t / (2 * bend) if 0 < bend < math.inf else 0.0
        t = min(max(parabola, 0.1 * t), 0.5 * t)
        if t * float(np.abs(d).max(initial=0.0)) <= np.finfo(float).eps * 1e-3 * float(np.abs(x).max(initial=0.0)):
            break
    return None


def wolfe(
    objective: Objective,
    x: Array,
    value: float,
    slope: float,
    d: Array,
    *,
    first: float = 1.0,
    c2: float = 0.9,
    max_trials: int = 40,
) -> Trial | None:
    """A step that meets both conditions, by bracketing and secant steps on the slope; None if no step decreases F.

    The bracket [low, high] keeps: at low F has fallen and still falls; at high it has risen or rises.
    """
    low = Trial(0.0, x, value, np.zeros(0), slope)
    high: Trial | None = None
    t = first
    for _ in range(max_trials):
        trial = evaluate(objective, x, d, t)
        if not decreases(trial, value, slope):
            high = trial
        elif trial.slope < c2 * slope:
            low = trial
        elif trial.slope > -c2 * slope:
            high = trial
        else:
            return trial
        t = _between(low, high) if high else 4.0 * low.t
        if high and high.t - low.t <= 1e-15 * high.t:
            break
    # No step met both conditions within the trials: a step that only decreases F is still progress.
    if low.t > 0:
        return low
    return high if high and decreases(high, value, slope) else None


def _between(low: Trial, high: Trial) -> float:
    width = high.t - low.t
    if math.isfinite(high.slope) and high.slope > low.slope:
        t = low.t - low.slope * width / (high.slope - low.slope)
    else:
        t = low.t + (0.5 if math.isfinite(high.value) else 0.1) * width
    return min(max(t, low.t + 0.05 * width), high.t - 0.05 * width)
