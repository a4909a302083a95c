"""BFGS: quasi-Newton directions -B g, where B grows into the inverse Hessian from the gradients seen.

With s = x_{k+1} - x_k, y = g_{k+1} - g_k and rho = 1 / s'y,

    B <- (I - rho s y') B (I - rho y s') + rho s s',

the symmetric matrix closest to B that maps y to s. s'y > 0 holds after every Wolfe step, so B stays positive definite.

L-BFGS keeps the last few pairs (s, y) in place of B; it is SciPy's L-BFGS-B. SciPy's line search needs to see the
objective fall and gives up where that drowns in rounding, while the gradient is still accurate: conjugate gradients go
on from there until the certificate holds.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from epicycle.optim.solvers._conjugate_gradient import conjugate_descent
from epicycle.optim.solvers._line_search import wolfe
from epicycle.optim.solvers._run import Run, State, check_number, minimiser
from epicycle.optim.solvers._whitening import preconditioned

Array = np.ndarray


@preconditioned()
@minimiser("bfgs")
def bfgs(run: Run) -> None:
    """Minimise by BFGS, with the full d x d approximation of the inverse Hessian."""
    run.begin()
    x, value, g = run.x, run.value, run.gradient
    B = np.array(run.saved["inverse_hessian"]) if run.saved else np.eye(x.size)
    scaled = bool(run.saved)
    first = max(1.0, float(np.linalg.norm(x))) / max(run.norm, np.finfo(float).tiny)
    while run.active:
        d = -(B @ g)
        slope = float(g @ d)
        trial = None
        if slope < 0:
            trial = wolfe(run.objective, x, value, slope, d, first=1.0 if scaled else first, c2=0.9)
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


def _state(B: Array) -> State:
    return {"inverse_hessian": B.copy()}


@preconditioned(default=None)
@minimiser("lbfgs")
def lbfgs(run: Run, *, memory: int = 10) -> None:
    """Minimise by L-BFGS. A resumed run begins with an empty memory.

    Parameters
    ----------
    memory : int, default=10
        Number of gradient differences kept.
    precondition : bool or None, default=None
        Work in the coordinates of the objective's metric; None does so whenever there is one.
    """
    check_number("memory", memory, low=1, integer=True)
    run.begin()
    if run.active:
        _descend(run, memory)
    if run.active:
        conjugate_descent(run)


def _descend(run: Run, memory: int) -> None:
    """Run SciPy's loop until it ends by itself or `run` has what it wants."""
    # The accepted point is among the last evaluated ones; the callback is given it without its gradient.
    seen: dict[bytes, tuple[float, Array]] = {run.x.tobytes(): (run.value, run.gradient)}

    def evaluate(x: Array) -> tuple[float, Array]:
        key = x.tobytes()
        if key not in seen:
            if len(seen) >= 4:
                del seen[next(iter(seen))]
            with np.errstate(over="ignore", invalid="ignore"):
                seen[key] = run.objective.value_and_gradient(x.copy())
        return seen[key]

    def callback(intermediate_result: OptimizeResult) -> None:
        x = np.array(intermediate_result.x)
        moved = float(np.linalg.norm(x - run.x))
        run.advance(x, *evaluate(x), step=moved / max(run.norm, np.finfo(float).tiny))
        if not run.active:
            raise StopIteration

    # No test of SciPy's own may end the loop before the certificate holds.
    options = {"maxcor": memory, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**9, "maxfun": 10**9, "maxls": 40}
    minimize(evaluate, run.x, jac=True, method="L-BFGS-B", callback=callback, options=options)
