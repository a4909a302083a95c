"""BFGS: quasi-Newton directions -B g, where B grows into the inverse Hessian from the gradients seen.

With s = x_{k+1} - x_k, y = g_{k+1} - g_k and rho = 1 / s'y,

    B <- (I - rho s y') B (I - rho y s') + rho s s',

the symmetric matrix closest to B that maps y to s. s'y > 0 holds after every Wolfe step, so B stays positive definite.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from epicycle.core._monitor import Monitor
from epicycle.optim._objective import Objective, Solution
from epicycle.optim.solvers._line_search import wolfe
from epicycle.optim.solvers._run import Run, State
from epicycle.optim.solvers._whitening import in_metric

__all__ = ["bfgs"]

Array = np.ndarray


def bfgs(
    objective: Objective,
    start: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 1_000,
    monitor: Monitor | None = None,
    state: State | None = None,
    precondition: bool = False,
) -> Solution:
    """Minimise by BFGS, with the full d x d approximation of the inverse Hessian.

    Parameters
    ----------
    objective, start, tol, max_iter, monitor, state
        As for :func:`~epicycle.optim.gradient_descent`.
    precondition : bool
        Work in the coordinates of the objective's metric.

    Returns
    -------
    Solution
    """
    if precondition:
        return in_metric(bfgs, objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state)
    run = Run("bfgs", objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state)
    run.begin(*objective.value_and_gradient(run.x))
    x, value, g = run.x, run.value, run.gradient
    B = np.array(run.saved["inverse_hessian"]) if run.saved else np.eye(x.size)
    scaled = bool(run.saved)
    first = max(1.0, float(np.linalg.norm(x))) / max(run.norm, np.finfo(float).tiny)
    while run.active:
        d = -(B @ g)
        slope = float(g @ d)
        trial = None
        if slope < 0:
            trial = wolfe(objective, x, value, slope, d, first=1.0 if scaled else first, c2=0.9)
        if trial is None:
            if not scaled:
                run.stall()
                break
            B, scaled = np.eye(x.size), False  # rounding has spoilt B: forget it once
            first = max(1.0, float(np.linalg.norm(x))) * 1e-3 / max(run.norm, np.finfo(float).tiny)
            continue
        s, y = trial.x - x, trial.gradient - g
        x, value, g = trial.x, trial.value, trial.gradient
        sy = float(s @ y)
        if sy > 1e-10 * float(np.linalg.norm(s)) * float(np.linalg.norm(y)):
            if not scaled:
                B *= sy / float(y @ y)  # before the first update, B in the units of the inverse Hessian
                scaled = True
            By = B @ y
            B += np.outer(s, ((1 + float(y @ By) / sy) * s - By) / sy)
            B -= np.outer(By, s) / sy
        run.advance(x, value, g, step=trial.t, state=partial(_state, B))
    return run.solution()


def _state(B: Array) -> State:
    return {"inverse_hessian": B.copy()}
