"""The Legendre-Fenchel conjugate  f*(y) = sup_x  y'x - f(x).

f* is convex whatever f is; for a convex, closed f its own conjugate is f again. y'x <= f(x) + f*(y) for all x and y,
with equality exactly when y is a (sub)gradient of f at x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.core._exceptions import ConvergenceError, ParameterError, ParameterTypeError
from epicycle.optim._losses import Loss
from epicycle.optim._minimize import minimum, minimum_on_line
from epicycle.optim._penalties import Penalty

__all__ = ["conjugate"]

Array = np.ndarray


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
