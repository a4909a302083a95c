"""Newton's method: x <- x + t d with F''(x) d = -F'(x).

The decrement delta^2 = -g'd estimates twice the distance to the minimum, F(x) - min F, whatever the coordinates. A
Hessian that is singular or not positive definite is replaced by one with the same eigenvectors and positive
eigenvalues, without moving along directions in which F is flat. Where F gives Hessian products only, d is found by
conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

from epicycle.core._exceptions import ParameterError
from epicycle.optim._objective import Objective
from epicycle.optim.solvers._line_search import Trial, backtracking, decreases
from epicycle.optim.solvers._run import Run, minimiser

Array = np.ndarray

#: Steps with the last Hessian once the certificate holds, and the step, relative to the largest parameter, at which
#: they end: a hundredth of the 1e-8 to which parameters are to be the same wherever the rows are.
SETTLING_STEPS = 5
SETTLED_STEP = 1e-10
#: Iterations without progress after which a run has stalled: with a Hessian that is right the next one makes some.
PATIENCE = 5
#: Parameters beyond which eigenvectors of a singular Hessian cost ten times what a shifted factor does: seconds a step.
_MANY = 1000
_SHIFT = 1e-10  # of the diagonal: well above the rounding of a factor, well below curvatures that matter


@minimiser("newton", max_iter=100)
def newton(run: Run) -> None:
    """Minimise by Newton's method, damped by a line search.

    Parameters
    ----------
    objective : Objective
        F, with its Hessian or products with it.
    """
    objective = run.objective
    if not objective.capabilities & {"hessian", "hessian_product"}:
        name = type(objective).__name__
        raise ParameterError(f"solver 'newton' needs a Hessian or Hessian products; {name} has neither")
    if "hessian" not in objective.capabilities:
        _with_products(run)
        return
    run.patience = PATIENCE
    # One pass for each iteration: the Hessian is asked for at the full step, which is nearly always the one taken.
    H: Array | None
    with np.errstate(over="ignore", invalid="ignore"):
        value, g, H = objective.second_order(run.x)
    run.begin(value, g)
    x, latest = run.x, H
    while run.active:
        if H is None:
            with np.errstate(over="ignore", invalid="ignore"):
                value, g, H = objective.second_order(x)
        latest = H
        d = newton_direction(H, g, x)
        slope = float(g @ d)
        if not slope < 0:
            run.stall()
            break
        if -0.5 * slope <= run.tol * abs(value) and run.certify():
            break
        # With the decrement this small the next Hessian is not needed: one more step with this one, from the gradient
        # at the new point, gains as many digits again (Shamanskii 1967) and ends far below the tolerance.
        last = not objective.cheap_hessian and -0.5 * slope <= math.cbrt(run.tol) * abs(value)
        trial, H_next = _full_step(objective, x, d, with_hessian=not last)
        if last and decreases(trial, value, slope):
            trial = _settled(objective, trial, H, 1)
        H = H_next
        if not decreases(trial, value, slope):
            shorter = backtracking(objective, x, value, slope, d, first=0.5)
            if shorter is None:
                run.stall()
                break
            trial, H = shorter, None
        x, value, g = trial.x, trial.value, trial.gradient
        run.advance(x, value, g, step=trial.t, decrement=-slope)
        latest = latest if H is None else H
    if run.reason == "converged":  # the step with this Hessian is in hand
        steps = SETTLING_STEPS if H is None else 2  # with the Hessian of this very point a step squares the error
        trial = _settled(objective, Trial(1.0, run.x, run.value, run.gradient, 0.0), latest, steps)
        if trial.x is not run.x:
            run.improve(trial.x, trial.value, trial.gradient)


def _settled(objective: Objective, trial: Trial, H: Array, steps: int) -> Trial:
    """The point after more steps with an old Hessian, until the parameters have settled or a step does not help.

    An objective that is within 1e-8 of its minimum leaves parameters 1e-4 of their scale away from it. Each step costs
    one gradient.
    """
    for _ in range(steps):
        d = newton_direction(H, trial.gradient, trial.x)
        if np.abs(d).max(initial=0.0) <= SETTLED_STEP * np.abs(trial.x).max(initial=0.0):
            break
        further, _ = _full_step(objective, trial.x, d, with_hessian=False)
        if not math.isfinite(further.value) or np.linalg.norm(further.gradient) >= np.linalg.norm(trial.gradient):
            break
        trial = replace(further, t=trial.t)
    return trial


def _with_products(run: Run) -> None:
    run.begin()
    x, value, g = run.x, run.value, run.gradient
    while run.active:
        # Inexact at first, then superlinear: the relative residual follows the gradient norm.
        forcing = min(0.1, math.sqrt(run.norm / max(1.0, abs(value))))
        d = truncated_newton_direction(run.objective.hessian_product(x), g, forcing)
        slope = float(g @ d)
        trial = backtracking(run.objective, x, value, slope, d) if slope < 0 else None
        if trial is None:
            run.stall()
            return
        x, value, g = trial.x, trial.value, trial.gradient
        run.advance(x, value, g, step=trial.t, decrement=-slope)


def newton_direction(H: Array, g: Array, x: Array) -> Array:
    """d with H d = -g by Cholesky; for a Hessian that is not safely positive definite, by its eigenvectors.

    H is first scaled to a unit diagonal: whether it is singular must not depend on the units of the parameters. Where F
    has no curvature, d moves only if F really slopes there: by more than the rounding of g, which is about that of x
    times the curvature.
    """
    diagonal = np.abs(np.diagonal(H))
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    S, a = H * scale * scale[:, None], g * scale
    if not (np.isfinite(S).all() and np.isfinite(a).all()):
        return np.zeros(g.shape)
    cut = 8 * g.size * np.finfo(float).eps
    # LAPACK without wrappers: on small data their checks cost more than the factor.
    L, failed = dpotrf(S, lower=1, clean=0)
    if not failed:
        # A singular S may have a factor by luck of rounding; solving with it would move x far along flat directions.
        rcond, _ = dpocon(L, np.abs(S).sum(axis=0).max(initial=0.0), uplo="L")
        if rcond > cut:
            return np.asarray(-scale * dpotrs(L, a, lower=1)[0])
    if g.size > _MANY:
        return np.asarray(-scale * _shifted_solution(S, a, cut))
    try:
        eigenvalues, V = eigh(S, check_finite=False)
    except np.linalg.LinAlgError:  # entries that are far from the scale of the diagonal: H is no Hessian any more
        return np.zeros(g.shape)
    cut *= float(np.abs(eigenvalues).max(initial=0.0))
    a = V.T @ a
    rounding = max(1e-8 * float(np.linalg.norm(a)), cut * float(np.linalg.norm(x / scale)))
    a[(np.abs(eigenvalues) <= cut) & (np.abs(a) <= rounding)] = 0.0
    return np.asarray(-scale * (V @ (a / np.maximum(np.abs(eigenvalues), max(cut, np.finfo(float).tiny)))))


def _shifted_solution(S: Array, a: Array, cut: float) -> Array:
    """(S + t I)^-1 a for the least t of a sequence with a safe factor: a direction of descent, if not Newton's."""
    t = max(cut, _SHIFT)
    while t < 1e3:  # the diagonal of S is one
        L, failed = dpotrf(S + t * np.eye(len(a)), lower=1, clean=0)
        if not failed:
            return np.asarray(dpotrs(L, a, lower=1)[0])
        t *= 100
    return a


def truncated_newton_direction(product: Callable[[Array], Array], g: Array, forcing: float) -> Array:
    """d with |H d + g| <= forcing |g|, by conjugate gradients, cut short where H has no positive curvature."""
    d = np.zeros(g.shape)
    r = -g
    p = r.copy()
    rr = float(r @ r)
    goal = forcing**2 * rr
    for _ in range(max(10, 2 * g.size)):
        Hp = product(p)
        curvature = float(p @ Hp)
        if not curvature > np.finfo(float).eps * float(p @ p) * 1e-3:
            return d if d.any() else -g
        alpha = rr / curvature
        d = d + alpha * p
        r = r - alpha * Hp
        rr, rr_old = float(r @ r), rr
        if rr <= goal:
            break
        p = r + (rr / rr_old) * p
    return d


def _full_step(objective: Objective, x: Array, d: Array, *, with_hessian: bool) -> tuple[Trial, Array | None]:
    point = x + d
    H: Array | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        if with_hessian:
            value, g, H = objective.second_order(point)
        else:
            value, g = objective.value_and_gradient(point)
        slope = float(g @ d)
    if not (math.isfinite(value) and math.isfinite(slope)):
        value, slope = math.inf, math.inf
    return Trial(1.0, point, value, g, slope), H
