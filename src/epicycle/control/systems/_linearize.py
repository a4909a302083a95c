"""`linearize`: the linear system that a smooth one resembles near a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
Function = Callable[..., Any]
_COMPLEX = 1e-30  # an imaginary step has no difference to cancel, so that it can be as small as one likes
_CENTRAL = np.cbrt(np.finfo(float).eps)  # balances truncation and rounding of central differences


@in_catalogue("control", "G5", certificate="none")
def linearize(
    f: Function, x: Any, u: Any = None, *, method: str = "differences"
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    r"""Value and derivatives of dynamics at a point.

    .. math:: f(x, u) \approx f(x_0, u_0) + A (x - x_0) + B (u - u_0)

    Parameters
    ----------
    f : callable
        ``f(x)`` or, with controls, ``f(x, u)``; takes and returns arrays.
    x : array (n,)
        State.
    u : array (m,), optional
        Control.
    method : {"differences", "complex"}, default="differences"
        Central differences, or an imaginary step, which has no rounding but needs a function of analytic operations
        (no absolute values, comparisons or conversions to float).

    Returns
    -------
    value : array
        f at the point.
    A : array (n_out, n)
        Derivatives by the state.
    B : array (n_out, m)
        Derivatives by the control, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import linearize
    >>> swing = lambda x, u: np.array([x[1], -np.sin(x[0]) + u[0]])
    >>> value, A, B = linearize(swing, [np.pi, 0.0], [0.0], method="complex")
    >>> A.round(6)
    array([[0., 1.],
           [1., 0.]])
    """
    check_parameter("linearize", "method", method, Choice("differences", "complex"))
    point = np.asarray(x, dtype=np.float64)
    if u is None:
        value = evaluate(f, point)
        return value, jacobian(f, point, method, value)
    control = np.asarray(u, dtype=np.float64)
    value = evaluate(lambda z: f(z, control), point)
    A = jacobian(lambda z: f(z, control), point, method, value)
    return value, A, jacobian(lambda v: f(point, v), control, method, value)


def evaluate(f: Function, x: Array) -> Array:
    """A vector of finite numbers, or an error that says what came."""
    value = np.atleast_1d(np.asarray(f(x.copy())))
    if value.ndim != 1 or not np.issubdtype(value.dtype, np.number) or not np.isfinite(value).all():
        raise DataError(f"f({np.array2string(x, precision=4)}): got {value!r:.80}; expected a vector of finite numbers")
    return value


def jacobian(f: Function, x: Array, method: str, value: Array) -> Array:
    """Derivatives of a vector function, one column for each entry of x."""
    J = np.empty((len(value), len(x)))
    for j in range(len(x)):
        if method == "complex":
            z = x.astype(complex)
            z[j] += 1j * _COMPLEX
            after = np.atleast_1d(np.asarray(f(z)))
            if not np.iscomplexobj(after):
                raise DataError("method='complex': f returned real numbers; expected one that keeps imaginary parts")
            J[:, j] = after.imag / _COMPLEX
        else:
            up, down = x.copy(), x.copy()
            step = _CENTRAL * max(1.0, abs(x[j]))
            up[j] += step
            down[j] -= step
            J[:, j] = (evaluate(f, up) - evaluate(f, down)) / (up[j] - down[j])
    return J
