"""Gradient checking: the derivative that was programmed against the one that differences of the function show.

For each coordinate, central differences D(h) = (F(x + h e) - F(x - h e)) / 2h are taken over a ladder of steps, each a
quarter of the one before, and pairs of them extrapolated: (16 D(h/4) - D(h)) / 15 has an error of order h^4. Large
steps suffer from the curvature of F, small ones from the rounding of its values; no single step suits badly scaled
functions, so the ladder spans ten decades and the most trustworthy rung is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim._objective import Objective

Array = np.ndarray

STEPS = 0.1 * 0.25 ** np.arange(18)
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class GradientCheck:
    """Outcome of a gradient check; true when the gradient holds.

    holds : whether every coordinate agrees.
    worst : the coordinate with the largest disagreement.
    analytic, numeric : the two derivatives there.
    relative_error : their difference relative to the larger of them.
    wrong : all coordinates that disagree.
    x : where it was checked.
    """

    holds: bool
    worst: int
    analytic: float
    numeric: float
    relative_error: float
    wrong: tuple[int, ...]
    x: Array

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else f"WRONG in {len(self.wrong)} of {self.x.size} coordinates"
        return (
            f"GradientCheck(gradient {verdict}; worst coordinate {self.worst}: analytic {self.analytic:.10g}, "
            f"numeric {self.numeric:.10g}, relative error {self.relative_error:.1e})"
        )


@in_catalogue("optim", "A3", certificate="relative differences")
def check_gradient(
    function: Objective | Callable[[Array], Any],
    x: Array | None = None,
    *,
    gradient: Callable[[Array], Array] | None = None,
    rtol: float = 1e-5,
    random_state: int = 0,
) -> GradientCheck:
    """Compare a gradient with differences of the function, coordinate by coordinate.

    Parameters
    ----------
    function : Objective or callable
        What is differentiated: an objective, a function x -> F(x), or a function x -> (F(x), gradient).
    x : array, optional
        Where to check; a random point for an objective. Required for a callable.
    gradient : callable, optional
        x -> gradient, for a callable that gives the value only.
    rtol : float
        Allowed relative error in each coordinate, beyond what rounding explains.
    random_state : int
        Seed of the random point.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.optim import check_gradient
    >>> check_gradient(lambda x: float(np.sum(x**3)), np.array([1.0, 2.0]), gradient=lambda x: 3 * x**2).holds
    True
    >>> check_gradient(lambda x: float(np.sum(x**3)), np.array([1.0, 2.0]), gradient=lambda x: 2 * x**2).holds
    False
    """
    point = _point(function, x, random_state)
    value, analytic = _split(function, gradient)
    g = np.asarray(analytic(point), dtype=np.float64)
    if g.shape != point.shape:
        raise ParameterError(f"gradient must have the shape of x, {point.shape}; got {g.shape}")
    flat = g.ravel()
    numeric = np.empty(flat.size)
    excess = np.empty(flat.size)
    for j in range(flat.size):
        numeric[j], excess[j] = _compare(value, point, j, float(flat[j]), rtol)
    worst = int(np.argmax(excess)) if flat.size else 0
    wrong = tuple(int(j) for j in np.flatnonzero(~(excess <= 1)))
    a, b = (float(flat[worst]), float(numeric[worst])) if flat.size else (0.0, 0.0)
    largest = max(abs(a), abs(b))
    error = abs(a - b) / largest if largest > 0 else 0.0
    return GradientCheck(not wrong, worst, a, b, error, wrong, point)


def _compare(value: Callable[[Array], float], x: Array, j: int, analytic: float, rtol: float) -> tuple[float, float]:
    """The numeric derivative that is compared, and the difference in units of what is allowed.

    A rung agrees outright when it is within rtol. Failing all, the rung with the smallest error estimate decides, and
    its estimate is allowed on top: that is what a derivative of zero, or one lost in rounding, needs.
    """
    scale = max(1.0, abs(float(x.flat[j])))
    h = STEPS * scale
    central = np.empty(h.size)
    rounding = np.empty(h.size)
    for i, step in enumerate(h):
        above, below = x.copy(), x.copy()
        above.flat[j] += step
        below.flat[j] -= step
        width = float(above.flat[j] - below.flat[j])  # the step as it came out in floating point
        with np.errstate(over="ignore", invalid="ignore"):
            high, low = value(above), value(below)
            central[i] = (high - low) / width
            rounding[i] = 4 * EPS * max(abs(high), abs(low)) / width
    with np.errstate(over="ignore", invalid="ignore"):
        extrapolated = (16 * central[1:] - central[:-1]) / 15
        estimate = np.abs(np.diff(extrapolated)) + rounding[2:]
    extrapolated = extrapolated[1:]
    usable = np.isfinite(extrapolated) & np.isfinite(estimate)
    if not usable.any() or not np.isfinite(analytic):
        return float("nan"), np.inf
    extrapolated, estimate = extrapolated[usable], estimate[usable]
    difference = np.abs(extrapolated - analytic)
    allowed = rtol * np.maximum(np.abs(extrapolated), abs(analytic))
    agrees = difference <= allowed
    if agrees.any():
        i = int(np.argmin(np.where(agrees, estimate, np.inf)))
        return float(extrapolated[i]), float(difference[i] / allowed[i]) if allowed[i] > 0 else 0.0
    i = int(np.argmin(estimate))
    return float(extrapolated[i]), float(difference[i] / (allowed[i] + 3 * estimate[i]))


def _point(function: Objective | Callable[[Array], Any], x: Array | None, random_state: int) -> Array:
    if x is None:
        if not isinstance(function, Objective):
            raise ParameterError("x must be given to check a plain function: the number of its parameters is not known")
        return np.random.default_rng(random_state).standard_normal(function.size)
    point = np.array(x, dtype=np.float64)
    if not np.isfinite(point).all():
        raise ParameterError("x must be finite; it contains nan or inf")
    return point


def _split(
    function: Objective | Callable[[Array], Any], gradient: Callable[[Array], Array] | None
) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    if isinstance(function, Objective):
        objective = function
        return objective.value, gradient or (lambda x: objective.value_and_gradient(x)[1])
    if not callable(function):
        raise ParameterTypeError(f"function must be an Objective or callable, got {type(function).__name__}")
    plain = function
    if gradient is not None:
        return lambda x: float(plain(x)), gradient
    return lambda x: float(_pair(plain(x))[0]), lambda x: _pair(plain(x))[1]


def _pair(result: Any) -> tuple[float, Array]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ParameterError("gradient must be given unless function returns (value, gradient)")
    return result
