r"""Upper bounds on the distance of F from its minimum.

Write u for the shortest subgradient of F at x, H for the Hessian of its smooth part there, and nu = ||u||_{H^-1}. The
loss of every row has curvatures that fall no faster than a known function of the move of its eta, and for a step v

    |x_i'v| <= L ||v||_H,    L = min(1 / sqrt(h_i), sqrt(reach / lambda)),

where h_i is the share of row i in the curvature, `reach` the largest squared length of a row in a diagonal metric A,
and lambda the least eigenvalue of H in it.

1. If |l'''| <= M l'', F is self-concordant along v with rho = M L, and for s = rho nu < 1

       F(x) - min F <= ((1 - s) log(1 - s) + s) / rho^2.

   A Hessian of an earlier point x_0 serves as well: H >= exp(-M L_0 ||x - x_0||_{H_0}) H_0.

2. If only a lower bound kappa of l''(eta + delta) / l''(eta) is known for the moves that ||v||_H <= 4 nu allows, and
   kappa >= 1/2, then F >= F(x) on the border of that ellipsoid, so the minimum is inside, and

       F(x) - min F <= nu^2 / (2 kappa).

3. Where H is singular (more columns than rows) but every coefficient is penalised, F >= 0 bounds the minimiser,
   |w*_j| <= F(x) / l1_j and |w*_j| <= sqrt(2 F(x) / l2_j), and convexity gives

       F(x) - min F <= sum_j |u_j| |w_j - w*_j|    or    sum_j u_j^2 / (2 l2_j),

   once what is not penalised is at its own optimum, whose distance self-concordance bounds.

Where none of this is known, or the deviance is not convex in eta, the certificate says what it can: that x is a
stationary point, to so many digits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.linear._storage import after_rounding
from epicycle.linear.glm._statistics import floor_statistic
from epicycle.linear.logistic._objective import inverse_factor, self_concordant_bound

if TYPE_CHECKING:
    from epicycle.data import Batch
    from epicycle.linear.glm._objective import GlmObjective, SecondOrder
    from epicycle.linear.glm._statistics import Model
    from epicycle.optim import Solution

Array = np.ndarray

#: Eigenvalues are computed for Hessians up to this size; beyond, rows are measured by their own curvature alone.
MAX_EIGENVALUES = 800
#: A null direction of H moves no eta by more than this share of its terms: some thousand roundings.
NULL_MOVE = 1e-12
#: How many null directions one pass over the rows looks at.
NULL_BLOCK = 64
#: Parameters without a penalty that may stand next to penalised ones.
MAX_FREE = 500


def certify(objective: GlmObjective, x: Array, tol: float, value: float, u: Array) -> Certificate:
    """The best bound that can be had, relative to the mean half deviance of the model without features."""
    response, scale = objective.model.response, objective.totals.scale
    known = response.convex and (response.curvature_rate is not None or response.curvature_floor is not None)
    if not np.isfinite(value) or not np.isfinite(u).all():
        return Certificate("none", np.inf, tol, "the objective is not finite here")
    if not known:
        return _stationarity(objective, x, tol, u)
    goal = tol * scale
    bound, kind = np.inf, "newton decrement"
    ways = [(_by_hessian, "newton decrement"), (_by_penalty, "penalty bound")]
    for way, name in ways if objective.size <= MAX_EIGENVALUES else ways[::-1]:
        if bound > goal and (other := way(objective, x, value, u, goal)) < bound:
            bound, kind = other, name
    relative = bound / scale
    meaning = f"the objective is at most {relative:.1e} of {objective.totals.unit} above its minimum"
    return Certificate(kind, relative, tol, meaning)


def as_stored(objective: GlmObjective, solution: Solution, x: Array, dtype: np.dtype[Any]) -> Solution:
    """The solution with a certificate for x, its parameters as they are stored."""
    if np.array_equal(x, solution.x):
        return solution
    found = objective.certify(x, solution.certificate.tolerance)
    return replace(solution, certificate=after_rounding(found, solution.certificate.value, dtype))


def _by_hessian(objective: GlmObjective, x: Array, _value: float, u: Array, goal: float) -> float:
    """The bounds that need H: with the last one if that will do, else with a pass at x, where it is worth it."""
    if "hessian" not in objective.capabilities or (objective.l1.any() and objective.size > MAX_EIGENVALUES):
        return np.inf
    last, bound = objective.last_second, np.inf
    if last is not None and last.observed and objective.model.response.curvature_rate is not None:
        bound = _newton_bound(objective, last, x, u)
    if bound <= goal or (last is not None and np.array_equal(last.x, x) and last.observed and np.isfinite(bound)):
        return bound
    if _estimate(objective, u) > goal:
        return bound
    here = _second_order_at(objective, x, expected=False)
    return bound if here is None else min(bound, _newton_bound(objective, here, x, u))


def _second_order_at(objective: GlmObjective, x: Array, *, expected: bool) -> SecondOrder | None:
    """The Hessian at x, from the last pass where that was here; None where it is not finite."""
    last = objective.last_second
    if last is None or not np.array_equal(last.x, x) or (not expected and not last.observed):
        objective.second_order_of(x, expected)
        last = objective.last_second
    return last if last is not None and np.array_equal(last.x, x) else None


def _estimate(objective: GlmObjective, u: Array) -> float:
    """nu^2 / 2 with whatever Hessian is at hand: not a bound, but it tells whether one is worth a pass."""
    second = objective.last_second
    if second is None:
        return 0.0
    half, _, _ = second.factor
    return 0.25 * float(np.sum(np.square(half.T @ u)))


# ------------------------------------------------------------------------------------------------ by the Hessian


def _newton_bound(objective: GlmObjective, second: SecondOrder, x: Array, u: Array) -> float:
    response = objective.model.response
    half, null, _ = second.factor
    if null.shape[1] and (objective.penalty.any or not moves_nothing(objective, null)):
        return np.inf
    L = _row_moves(second, half, objective)
    step = x - second.x
    moved = float(np.sqrt(max(step @ second.H @ step, 0.0)))
    nu = float(np.linalg.norm(half.T @ u)) + _rounding(second, x, objective.n_coefficients)
    if response.curvature_rate is not None:
        M = response.curvature_rate
        if M == 0.0:
            return 0.5 * nu * nu
        if not np.isfinite(L):
            return np.inf if nu > 0 or moved > 0 else 0.0
        shrink = float(np.exp(-M * L * moved))  # H at x is at least this much of H at the earlier point
        if shrink <= 0.0:
            return np.inf
        return self_concordant_bound(nu / np.sqrt(shrink), M * L / np.sqrt(shrink))
    if moved > 0:
        return np.inf
    w, b = objective.unpack(x)
    radius = 4 * nu * np.sqrt(objective.totals.weight)
    (fall,) = engine.sum(
        floor_statistic,
        objective.data,
        objective.model,
        w,
        b,
        radius,
        L / np.sqrt(objective.totals.weight),
        n_jobs=objective.n_jobs,
    )
    kappa = -float(fall)
    return nu * nu / (2 * kappa) if kappa >= 0.5 else np.inf


def _rounding(second: SecondOrder, x: Array, p: int) -> float:
    """The part of ||u||_{H^-1} that the rounding of eta may hide.

    The eta of a row is off by delta_i <= eps/2 (|b| + (p + 1) sum_j |x_ij w_j|), and u by the mean of h_i delta_i x_i,
    whose norm is at most that of delta with the curvatures h for weights.
    """
    terms = np.sqrt(np.maximum(np.diagonal(second.H), 0.0)) * np.abs(x)
    return float(np.finfo(np.float64).eps / 2 * ((p + 1) * terms[:p].sum() + terms[p:].sum()))


def _row_moves(second: SecondOrder, half: Array, objective: GlmObjective) -> float:
    """L: no row moves by more than L ||v||_H."""
    own = 1 / np.sqrt(second.least) if second.least > 0 else np.inf
    if second.reach is None or objective.row_metric is None or len(second.H) > MAX_EIGENVALUES or half.shape[1] == 0:
        return own
    metric = objective.row_metric[: len(second.H)]
    # Rows are x = A^-1/2 z with |z|^2 <= reach, so x'H^-1 x <= reach * (largest eigenvalue of A^-1/2 H^-1 A^-1/2).
    root = np.sqrt(np.where(metric > 0, metric, np.inf))
    largest = float(scipy.linalg.svdvals(half / root[:, None], check_finite=False)[0]) ** 2
    return min(own, float(np.sqrt(second.reach * largest)))


def moves_nothing(objective: GlmObjective, directions: Array) -> bool:
    """Whether eta, and with it the loss, stays where it is along directions of shape (parameters, any number)."""
    p = objective.n_coefficients
    for first in range(0, directions.shape[1], NULL_BLOCK):
        block = directions[:, first : first + NULL_BLOCK]
        W, b = np.ascontiguousarray(block[:p]), block[p] if objective.intercept else np.zeros(block.shape[1])
        (moves,) = engine.sum(move_statistic, objective.data, objective.model, W, b, n_jobs=objective.n_jobs)
        if (moves.values[0] > NULL_MOVE * moves.values[1]).any():
            return False
    return True


class Maxima:
    """Numbers that add up by taking the larger of each two."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __add__(self, other: Maxima) -> Maxima:
        return Maxima(np.maximum(self.values, other.values))


def move_statistic(batch: Batch, model: Model, W: Array, b: Array) -> tuple[Maxima]:
    """For every column of (W, b) the largest move of the eta of a row, and the largest size of the terms of one."""
    design, rows = model.design, model.target.rows(batch)
    moves = np.abs(design.predictor(batch.X, W) + (b - model.shift @ W[: design.n_dense]))
    sizes = design.predictor(abs(batch.X), np.abs(W)) + np.abs(b) + np.abs(model.shift) @ np.abs(W[: design.n_dense])
    used = rows.weights > 0
    return (Maxima(np.array([moves[used].max(axis=0, initial=0.0), sizes[used].max(axis=0, initial=0.0)])),)


# ------------------------------------------------------------------------------------------------ by the penalty


def _by_penalty(objective: GlmObjective, x: Array, value: float, u: Array, goal: float) -> float:
    """The third bound of the module's head, and strong convexity, over what is penalised; the rest is moved first."""
    l1, l2, M = objective.l1, objective.l2, objective.model.response.curvature_rate
    held = (l1 > 0) | (l2 > 0)
    free = np.flatnonzero(~held)
    if M is None or not held.any() or len(free) > MAX_FREE:
        return np.inf
    l1, l2 = l1[held], l2[held]
    by_l1 = np.where(l1 > 0, value / np.where(l1 > 0, l1, 1.0), np.inf)
    size = np.minimum(by_l1, np.where(l2 > 0, np.sqrt(2 * value / np.where(l2 > 0, l2, 1.0)), np.inf))
    far = np.abs(x[held]) + size

    def gap(r: Array) -> float:
        """For derivatives no larger than r, with all that is free at its optimum; infinite beyond what numbers hold."""
        with np.errstate(over="ignore"):
            straight = float(r @ far)
            return min(straight, 0.5 * float(np.sum(np.square(r) / l2))) if (l2 > 0).all() else straight

    r = np.abs(u[held])
    if not len(free) or gap(r) > goal:
        return gap(r)
    _, diagonal, least = objective.diagonal(x)
    half, null, _ = inverse_factor(objective.hessian_on(x, free))
    if null.shape[1] or not least >= 0:
        return np.inf
    # No row moves by more than L times the length, in the Hessian, of a move of the free parameters.
    only_intercept = len(free) == 1 and objective.intercept
    L = float(half[0, 0]) if only_intercept else 1 / np.sqrt(least) if least > 0 else np.inf
    rho, nu = M * L, float(np.linalg.norm(half.T @ u[free]))
    if not rho * nu < 1:
        return np.inf
    gain = self_concordant_bound(nu, rho)
    # They are this far from their optimum for given others, whose derivatives change by no more than `slack` there.
    distance = -np.log1p(-rho * nu) / rho if rho > 0 else nu
    slack = distance * np.exp(rho * distance) * np.sqrt(np.maximum(diagonal[: len(held)][held], 0.0))
    return gain + gap(r + slack)


# ------------------------------------------------------------------------------------------------ without convexity


def _stationarity(objective: GlmObjective, x: Array, tol: float, u: Array) -> Certificate:
    """Half the squared length of u in the metric of the (absolute) Hessian: what a Newton step could gain."""
    unit = objective.totals.unit
    meaning = f"{{:.1e}} of {unit} is what a Newton step would gain: a stationary point, which need not be the lowest"
    if "hessian" not in objective.capabilities:
        value = float(np.abs(u).max(initial=0.0)) / objective.totals.scale
        return Certificate("stationarity", value, tol, f"no derivative exceeds {value:.1e} of {unit}")
    second = _second_order_at(objective, x, expected=objective.expected)
    if second is None:
        return Certificate("stationarity", np.inf, tol, "the Hessian is not finite here")
    diagonal = np.abs(np.diagonal(second.H))
    root = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, V = scipy.linalg.eigh(second.H * root * root[:, None], check_finite=False)
    a = V.T @ (root * u)
    rounding = 8 * len(values) * np.finfo(float).eps * float(np.abs(values).max(initial=0.0))
    flat = np.abs(values) <= rounding
    gain = 0.5 * float(np.sum(np.square(a[~flat]) / np.abs(values[~flat])))
    # Along flat directions a slope that is more than rounding has no bound.
    level = max(np.abs(root * u).max(initial=0.0), np.sqrt(objective.totals.scale))
    if np.abs(a[flat]).max(initial=0.0) > 1e-7 * level:
        gain = np.inf
    relative = gain / objective.totals.scale
    return Certificate("stationarity", relative, tol, meaning.format(relative))
