"""The Legendre-Fenchel conjugate  f*(y) = sup_x  y'x - f(x),  and numerical minima of convex functions.

f* is convex whatever f is; for a convex, closed f its own conjugate is f again. y'x <= f(x) + f*(y) for all x and y,
with equality exactly when y is a (sub)gradient of f at x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from epicycle.core._exceptions import ConvergenceError, ParameterError, ParameterTypeError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim._loss import Loss
from epicycle.optim._penalties import Penalty

Array = NDArray[np.float64]

#: A value this far below the start, relative, counts as no lower bound.
UNBOUNDED = 1e13


@in_catalogue("optim", "A16", certificate="none (numerical)")
def conjugate(
    function: Callable[[Any], float] | Loss | Penalty,
    y: Array | float,
    *,
    start: Array | float | None = None,
    gradient: Callable[[Array], Array] | None = None,
    target: Array | None = None,
) -> float | Array:
    """f*(y), in closed form for the losses and penalties of epicycle, otherwise by numerical maximisation.

    Parameters
    ----------
    function : callable, Loss or Penalty
        The convex function f. A function of a number may have kinks and be inf outside its domain; a function of a
        vector has to be smooth.
    y : float or array
        Where the conjugate is evaluated; for a loss, one value for each row.
    start : float or array, optional
        A point in the domain of f from which the maximisation begins; zero by default.
    gradient : callable, optional
        x -> f'(x), for a function of a vector; by differences where not given.
    target : array, optional
        The targets of a loss.

    Returns
    -------
    float or array
        inf where y'x - f(x) has no upper bound. An array, one value for each row, for a loss.

    Examples
    --------
    >>> from epicycle.optim import conjugate
    >>> round(conjugate(lambda x: x * x / 2, 3.0), 6)
    4.5
    >>> conjugate(abs, 2.0)
    inf
    """
    if isinstance(function, Penalty):
        return function.conjugate(np.asarray(y, dtype=np.float64))
    if isinstance(function, Loss):
        if target is None:
            raise ParameterError("target must be given for the conjugate of a loss l(z, y): it is taken in z")
        return function.conjugate(np.asarray(y, dtype=np.float64), target)
    if not callable(function):
        raise ParameterTypeError(f"function must be callable, a Loss or a Penalty, got {type(function).__name__}")
    f = function
    if np.ndim(y) == 0:
        slope = float(np.asarray(y))
        return -minimum_on_line(lambda x: float(f(x)) - slope * x, 0.0 if start is None else float(np.asarray(start)))
    y = np.asarray(y, dtype=np.float64)
    x0 = np.zeros(y.shape) if start is None else np.array(start, dtype=np.float64)
    found = minimum(lambda x: float(f(x)) - float(y @ x), x0, None if gradient is None else lambda x: gradient(x) - y)
    if found is None:
        raise ConvergenceError("conjugate: the maximum was not found; is the function convex and smooth?")
    return -found


def derivative(function: Callable[[Array], Any], x: Array, known: Callable[[Array], Array] | None = None) -> Array:
    """The Jacobian of shape (m, d): as given, or by central differences extrapolated once."""
    if known is not None:
        return np.atleast_2d(np.asarray(known(x), dtype=np.float64))

    def difference(j: int, h: float) -> Array:
        step = np.zeros(x.shape)
        step[j] = h
        above, below = np.asarray(function(x + step), dtype=float), np.asarray(function(x - step), dtype=float)
        return np.atleast_1d((above - below) / (2 * h))

    columns = []
    for j in range(x.size):
        h = 1e-3 * max(1.0, abs(float(x[j])))
        columns.append((16 * difference(j, h / 4) - difference(j, h)) / 15)
    return np.stack(columns, axis=1)


def minimum(
    function: Callable[[Array], float], start: Array, gradient: Callable[[Array], Array] | None = None
) -> float | None:
    """The minimum of a smooth convex function of a vector; -inf if it has none, None if it was not found."""

    def slope(x: Array) -> Array:
        return np.asarray(derivative(function, x, gradient)[0])

    begin = float(function(start))
    g = slope(start)
    if not np.any(g):
        return begin
    with np.errstate(all="ignore"):
        # A function that falls along its gradient at an undiminished rate, however far, has no lower bound.
        for reach in (1e4, 1e8):
            x = start - reach * g / np.linalg.norm(g)
            if float(function(x)) <= begin - 0.5 * reach * float(np.linalg.norm(g)):
                continue
            break
        else:
            return -math.inf
        options = {"gtol": 1e-10, "maxiter": 100 * (start.size + 10)}
        found = minimize(function, start, jac=slope, method="BFGS", options=options)
    value = float(min(found.fun, begin)) if math.isfinite(found.fun) else begin
    if value < -UNBOUNDED * max(1.0, abs(begin)):
        return -math.inf
    size = max(1.0, abs(value), float(np.abs(g).max()))
    return value if float(np.abs(found.jac).max()) <= 1e-4 * size else None


def minimum_on_line(function: Callable[[float], float], start: float = 0.0) -> float:
    """The minimum of a convex function of a number, smooth or not; -inf if it has none.

    The function may be inf outside its domain, which has to contain `start`.
    """
    centre, value = start, float(function(start))
    step = 1e-3
    # Walk downhill with growing steps until the function rises: it then has its minimum in [left, right].
    left, right = start - step, start + step
    for sign in (1.0, -1.0):
        x, fx, stride = start, value, step
        while stride < 1e18:
            further = float(function(x + sign * stride))
            if not further < fx:
                break
            x, fx, stride = x + sign * stride, further, 2 * stride
        else:
            return -math.inf
        if fx < value:
            centre, value = x, fx
            left, right = min(x - sign * stride, x + sign * stride), max(x - sign * stride, x + sign * stride)
    options = {"xatol": 1e-12 * max(1.0, abs(centre))}
    found = minimize_scalar(function, bounds=(left, right), method="bounded", options=options)
    return min(value, float(found.fun))
