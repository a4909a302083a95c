"""`linearize`: the linear system that a smooth one resembles near a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
Function = Callable[..., Any]
_COMPLEX = 1e-30  # an imaginary step has no difference to cancel, so that it can be as small as one likes
_CENTRAL = np.cbrt(np.finfo(float).eps)  # balances truncation and rounding of central differences
_AGREEMENT = 1e-5  # of derivatives with central differences, relative to the largest


@in_catalogue("control", "G5", certificate="none")
def linearize(
    f: Any, x: Any, u: Any = None, *, method: str = "differences", check: bool = False
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    r"""Value and derivatives of dynamics at a point.

    .. math:: f(x, u) \approx f(x_0, u_0) + A (x - x_0) + B (u - u_0)

    Parameters
    ----------
    f : callable, or object with a method step
        ``f(x)`` or, with controls, ``f(x, u)``; takes and returns arrays; for simulators and learnt dynamics,
        a step.
    x : array (n,)
        State.
    u : array (m,), optional
        Control.
    method : {"differences", "complex", "analytic"}, default="differences"
        Central differences; an imaginary step, which has no rounding but needs a function of analytic operations
        (no absolute values, comparisons or conversions to float); or the method ``derivatives`` of f, which returns
        the value and its derivatives, as simulators have it.
    check : bool, default=False
        Whether to compare the derivatives with central differences; an error names the entry that differs most.

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
    check_parameter("linearize", "method", method, Choice("differences", "complex", "analytic"))
    check_parameter("linearize", "check", check, Boolean())
    points = [np.asarray(z, dtype=np.float64) for z in (x, u) if z is not None]
    step = f.step if hasattr(f, "step") else f
    if method == "analytic":
        if not hasattr(f, "derivatives"):
            raise DataError(f"method='analytic': {type(f).__name__} has no method derivatives")
        value, *parts = (np.asarray(part) for part in f.derivatives(*points))
        parts = parts[: len(points)]
    else:
        value, *parts = _numerically(step, points, method)
    if check:
        _compare(parts, _numerically(step, points, "differences")[1:])
    return (value, *parts)  # type: ignore[return-value]


def _numerically(f: Function, points: list[Array], method: str) -> list[Array]:
    """Value and derivatives by each of the arguments."""
    value = evaluate(lambda z: f(z, *points[1:]), points[0])
    parts = [jacobian(lambda z: f(z, *points[1:]), points[0], method, value)]
    if len(points) == 2:
        parts.append(jacobian(lambda v: f(points[0], v), points[1], method, value))
    return [value, *parts]


def _compare(parts: list[Array], differences: list[Array]) -> None:
    for name, ours, theirs in zip(("x", "u"), parts, differences, strict=False):
        if ours.shape != theirs.shape:
            raise DataError(f"check: derivatives by {name} have shape {ours.shape}; expected {theirs.shape}")
        off = np.abs(ours - theirs)
        i, j = np.unravel_index(int(off.argmax()), off.shape)
        if not off[i, j] <= _AGREEMENT * max(1.0, float(np.abs(theirs).max())):
            raise DataError(
                f"check: the derivative of f[{i}] by {name}[{j}] is {ours[i, j]:g}, and {theirs[i, j]:g} by differences"
            )


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
