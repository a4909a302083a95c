"""Lagrangian duality:  minimise f(x)  subject to  g(x) <= 0 and h(x) = 0.

    L(x, lam, nu) = f(x) + lam'g(x) + nu'h(x),   lam >= 0          the Lagrangian
    q(lam, nu) = min_x L(x, lam, nu)                               the dual function, never above f at a feasible x

The dual problem maximises q. x is optimal with multipliers lam, nu when (Karush, Kuhn, Tucker)

    f'(x) + g'(x)'lam + h'(x)'nu = 0                               stationarity
    g(x) <= 0,  h(x) = 0                                           primal feasibility
    lam >= 0                                                       dual feasibility
    lam_i g_i(x) = 0                                               complementarity

For convex f and g and affine h these conditions are also sufficient, and then the duality gap f(x) - q(lam, nu) is
zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epicycle.core._docs import documented
from epicycle.core._exceptions import ConvergenceError, ParameterError
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.optim.teaching._conjugate import derivative, minimum

Array = NDArray[np.float64]
Function = Callable[[Array], float]
VectorFunction = Callable[[Array], Array]

#: Docstring entries that the functions share.
_DOCS = {
    "program": "program : Program\n    The problem.",
    "x": "x : array\n    The point.",
    "multipliers": "multipliers, equality_multipliers : array\n"
    "    lam for the inequalities, none of them negative, and nu for the equalities.",
}


@dataclass(frozen=True)
class Program:
    """Minimise `objective` subject to `inequality` <= 0 and `equality` = 0.

    objective : x -> f(x).
    inequality, equality : x -> g(x), x -> h(x), a number or a vector; None where there are no such constraints.
    gradient, inequality_jacobian, equality_jacobian : their derivatives; by differences where not given.
    """

    objective: Function
    inequality: VectorFunction | None = None
    equality: VectorFunction | None = None
    gradient: VectorFunction | None = None
    inequality_jacobian: VectorFunction | None = None
    equality_jacobian: VectorFunction | None = None


@dataclass(frozen=True)
class KKT:
    """The residuals of the conditions of Karush, Kuhn and Tucker; true when all are at most `tol`."""

    stationarity: float
    primal_feasibility: float
    dual_feasibility: float
    complementarity: float
    tol: float

    @property
    def holds(self) -> bool:
        residuals = (self.stationarity, self.primal_feasibility, self.dual_feasibility, self.complementarity)
        return all(residual <= self.tol for residual in residuals)

    def __bool__(self) -> bool:
        return self.holds


@in_catalogue("optim", "A16", certificate="KKT residuals")
@documented(_DOCS)
def kkt(
    program: Program,
    x: Array,
    multipliers: ArrayLike = (),
    equality_multipliers: ArrayLike = (),
    *,
    tol: float = 1e-6,
) -> KKT:
    """Check the optimality conditions at a point.

    Parameters
    ----------
    tol : float, default=1e-6
        Largest residual that counts as zero.

    Returns
    -------
    KKT
        With the largest violation of each condition; that of stationarity relative to f'(x) where this exceeds 1.

    Examples
    --------
    The point of x1 + x2 >= 1 closest to the origin:

    >>> import numpy as np
    >>> from epicycle.optim import Program, kkt
    >>> closest = Program(lambda x: float(x @ x), inequality=lambda x: 1 - x.sum())
    >>> kkt(closest, np.array([0.5, 0.5]), multipliers=1.0).holds
    True
    >>> kkt(closest, np.array([1.0, 0.0]), multipliers=1.0).holds
    False
    """
    x = np.asarray(x, dtype=np.float64)
    g, lam, h, nu = _constraints(program, x, multipliers, equality_multipliers)
    slope, residual = _gradients(program, x, lam, nu)
    size = max(1.0, float(np.abs(slope).max(initial=0.0)))
    return KKT(
        stationarity=float(np.abs(residual).max(initial=0.0)) / size,
        primal_feasibility=float(max(g.max(initial=0.0), np.abs(h).max(initial=0.0))),
        dual_feasibility=float((-lam).max(initial=0.0)),
        complementarity=float(np.abs(lam * g).max(initial=0.0)),
        tol=tol,
    )


@in_catalogue("optim", "A16", certificate="exact")
@documented(_DOCS)
def lagrangian(
    program: Program,
    x: Array,
    multipliers: ArrayLike = (),
    equality_multipliers: ArrayLike = (),
) -> float:
    """L(x, lam, nu) = f(x) + lam'g(x) + nu'h(x)."""
    x = np.asarray(x, dtype=np.float64)
    g, lam, h, nu = _constraints(program, x, multipliers, equality_multipliers)
    return float(program.objective(x)) + float(lam @ g) + float(nu @ h)


@in_catalogue("optim", "A16", certificate="a lower bound")
@documented(_DOCS)
def dual_value(
    program: Program,
    start: Array,
    multipliers: ArrayLike = (),
    equality_multipliers: ArrayLike = (),
) -> float:
    """q(lam, nu) = min_x L(x, lam, nu) for a convex problem, by unconstrained minimisation from `start`.

    Parameters
    ----------
    program : Program
        The problem; f and g convex and smooth, h affine.
    start : array
        Where the minimisation begins.

    Returns
    -------
    float
        The minimum, to about the square root of the machine precision or better; -inf when L has no lower bound.
    """
    start = np.asarray(start, dtype=np.float64)
    _, lam, _, nu = _constraints(program, start, multipliers, equality_multipliers)
    if (lam < 0).any():
        raise ParameterError(f"multipliers must be non-negative, got {lam.min():g}")
    found = minimum(lambda x: lagrangian(program, x, lam, nu), start, lambda x: _gradients(program, x, lam, nu)[1])
    if found is None:
        raise ConvergenceError("dual_value: no minimum of the Lagrangian was found; is the problem convex and smooth?")
    return found


@in_catalogue("optim", "A16", certificate="duality gap")
@documented(_DOCS)
def duality_gap(
    program: Program,
    x: Array,
    multipliers: ArrayLike = (),
    equality_multipliers: ArrayLike = (),
    *,
    tol: float = 1e-8,
) -> float:
    """f(x) - q(lam, nu): how far a feasible x can be from the optimum at most.

    Parameters
    ----------
    program : Program
        The problem, convex.
    x : array
        A feasible point.
    tol : float
        How far x may violate the constraints.

    Returns
    -------
    float
        inf for a point that is not feasible, or multipliers for which the Lagrangian has no lower bound.
    """
    x = np.asarray(x, dtype=np.float64)
    g, lam, h, nu = _constraints(program, x, multipliers, equality_multipliers)
    if g.max(initial=0.0) > tol or np.abs(h).max(initial=0.0) > tol:
        return np.inf
    return float(program.objective(x)) - dual_value(program, x, lam, nu)


def _gradients(program: Program, x: Array, lam: Array, nu: Array) -> tuple[Array, Array]:
    """The gradients in x of f and of the Lagrangian."""
    slope = total = np.asarray(derivative(program.objective, x, program.gradient)[0])
    if program.inequality is not None:
        total = total + lam @ derivative(program.inequality, x, program.inequality_jacobian)
    if program.equality is not None:
        total = total + nu @ derivative(program.equality, x, program.equality_jacobian)
    return slope, total


def _constraints(
    program: Program, x: Array, multipliers: ArrayLike, equality_multipliers: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    g, lam = _matched("multipliers", program.inequality, x, multipliers)
    h, nu = _matched("equality_multipliers", program.equality, x, equality_multipliers)
    return g, lam, h, nu


def _matched(name: str, function: VectorFunction | None, x: Array, multipliers: ArrayLike) -> tuple[Array, Array]:
    values = np.zeros(0) if function is None else np.atleast_1d(np.asarray(function(x), dtype=np.float64))
    weights = np.atleast_1d(np.asarray(multipliers, dtype=np.float64))
    if weights.shape != values.shape:
        raise ParameterError(f"{name} must have one number for each constraint, {values.size}; got {weights.size}")
    return values, weights
