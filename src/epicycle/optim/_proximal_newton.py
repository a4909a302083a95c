"""Proximal Newton: minimise  F(x) = f(x) + sum_j l1_j |x_j|  with f smooth and convex.

At x the model g'd + d'Hd / 2 + sum_j l1_j |x_j + d_j| is minimised by a solver for quadratics, and a line search along
d asks for a share of the decrease that the model promises (Lee, Sun and Saunders 2014). Once that promise is small, H
is kept for as long as it falls quickly: each further step then needs the gradient alone. With many parameters the model
is restricted to a working set: the support, what has no L1 term, and the coordinates whose optimality is violated most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.core._solution import Solution
from epicycle.optim._objective import Objective
from epicycle.optim._penalties import least_subgradient
from epicycle.optim.solvers._line_search import C1, ROUNDING
from epicycle.optim.solvers._run import Run, State

Array = np.ndarray

#: Up to this many parameters the Hessian is formed over all of them: it takes 8 MB, and its factor a few hundredths of
#: a second.
MAX_FULL_HESSIAN = 1000
#: New coordinates that a working set takes in, beyond twice its support.
NEW_COORDINATES = 100
#: Share of the decrease of the subgradient that a step has to bring where the value no longer shows one.
FLATTER = 0.9
#: Share of the promise before that the next one with the same Hessian has to keep within.
QUICKLY = 0.2

#: (H, g, x, l1) -> the minimiser z of g'(z - x) + (z - x)'H(z - x) / 2 + sum_j l1_j |z_j|.
Subproblem = Callable[[Array, Array, Array, Array], Array]


class Composite(Protocol):
    """The part of f that is used beyond :class:`Objective`, where the Hessian is too large to form."""

    def hessian_on(self, x: Array, columns: Array) -> Array:
        """The Hessian of f over some coordinates."""


def minimise_with_l1(
    objective: Objective,
    start: Array,
    l1: Array,
    subproblem: Subproblem,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    monitor: Monitor | None = None,
    state: State | None = None,
) -> Solution:
    """Minimise f plus an L1 term.

    Parameters
    ----------
    objective : Objective
        f, with a Hessian; beyond a thousand parameters with ``hessian_on(x, columns)``. Its ``certify`` is given F and
        the shortest subgradient of F in place of value and gradient.
    start : array of shape (d,)
    l1 : array of shape (d,)
        Weights of the L1 term, none below zero; 0 leaves a coordinate free.
    subproblem : callable
        ``subproblem(H, g, x, l1)`` minimises the quadratic model.
    tol, max_iter, monitor, state
        As for :func:`~epicycle.optim.gradient_descent`.

    Returns
    -------
    Solution
        Its value is F.
    """
    run = Run("proximal-newton", objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state)
    whole = objective.size <= MAX_FULL_HESSIAN and "hessian" in objective.capabilities
    H: Array | None = None
    if whole:
        value, g, H = objective.second_order(run.x)
    else:
        value, g = objective.value_and_gradient(run.x)
    run.begin(value + _l1(run.x, l1), least_subgradient(run.x, g, l1))
    x, F, wide = run.x, run.value, NEW_COORDINATES
    before = math.inf  # what the last step with a kept Hessian promised
    while run.active:
        columns = np.arange(len(x)) if whole else _working_set(x, g, l1, wide)
        if H is None or not whole:
            H = objective.second_order(x)[2] if whole else _hessian_on(objective, x, columns)
        d = np.zeros(len(x))
        d[columns] = subproblem(H, g[columns], x[columns], l1[columns]) - x[columns]
        promise = float(g @ d) + _l1(x + d, l1) - _l1(x, l1)
        if not promise < ROUNDING * max(abs(F), 1e-3):
            if whole or len(columns) == len(x) or not run.norm > 0:
                run.stall()
                return run.solution()
            wide *= 4
            if wide > len(x):
                run.stall()
                return run.solution()
            continue
        if whole and -promise > QUICKLY * before:  # f has curved otherwise since
            H, before = None, math.inf
            continue
        keep = -promise <= math.cbrt(run.tol) * abs(F)
        found = _search(objective, x, F, g, d, l1, promise, with_hessian=whole and not keep)
        if found is None:
            if whole and keep and not np.array_equal(H, fresh := objective.second_order(x)[2]):
                H = fresh  # the kept Hessian has served its time
                continue
            run.stall()
            return run.solution()
        t, x, F, g, H_next = found
        before = -promise if keep else math.inf
        if whole and not keep:
            H = H_next
        run.advance(
            x, F, least_subgradient(x, g, l1), step=t, nonzero=float(np.count_nonzero(x[l1 > 0])), decrement=-promise
        )
    return run.solution()


def _l1(x: Array, l1: Array) -> float:
    return float(l1 @ np.abs(x))


def _working_set(x: Array, g: Array, l1: Array, fresh: int) -> Array:
    """Support, free coordinates, and the most violated of the others."""
    inside = (x != 0) | (l1 == 0)
    excess = np.where(inside, -np.inf, np.abs(g) - l1)
    room = min(len(x), fresh + 2 * int(inside.sum())) - int(inside.sum())
    if room > 0:
        top = np.argpartition(-excess, min(room, len(x) - 1))[:room]
        inside[top[excess[top] > 0]] = True
    return np.flatnonzero(inside)


def _hessian_on(objective: Objective, x: Array, columns: Array) -> Array:
    part: Composite = objective  # type: ignore[assignment]
    return part.hessian_on(x, columns)


def _search(
    objective: Objective, x: Array, F: float, g: Array, d: Array, l1: Array, promise: float, *, with_hessian: bool
) -> tuple[float, Array, float, Array, Array | None] | None:
    """(step, point, F, gradient of f, Hessian) of the first of a falling sequence of steps that keeps its promise."""
    t, before = 1.0, float(np.linalg.norm(least_subgradient(x, g, l1)))
    for _ in range(50):
        point = x + d if t == 1 else x + t * d
        H: Array | None = None
        with np.errstate(over="ignore", invalid="ignore"):
            if with_hessian and t == 1:
                value, gradient, H = objective.second_order(point)
            else:
                value, gradient = objective.value_and_gradient(point)
            total = value + _l1(point, l1)
        if math.isfinite(total) and np.isfinite(gradient).all():
            enough = promise < 0 and total <= F + C1 * t * promise
            # At the level of rounding the value says nothing; the subgradient still does.
            if not enough and total <= F + ROUNDING * max(abs(F), 1e-3):
                enough = float(np.linalg.norm(least_subgradient(point, gradient, l1))) < FLATTER * before
            if enough:
                return t, point, total, gradient, H if H is not None or not with_hessian else None
        t *= 0.5
    return None
