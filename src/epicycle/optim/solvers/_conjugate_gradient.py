"""Conjugate gradients.

Directions d_{k+1} = -g_{k+1} + beta_k d_k with Polak and Ribiere's beta = max(0, g_{k+1}'(g_{k+1} - g_k) / g_k'g_k),
which starts afresh by itself whenever it stops making progress. For a quadratic F with products H d at hand the steps
are exact, t = -g'd / d'Hd, and the method ends after at most d steps but for rounding.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from epicycle.optim.solvers._line_search import wolfe
from epicycle.optim.solvers._run import Run, minimiser
from epicycle.optim.solvers._whitening import preconditioned

Array = np.ndarray

#: Exact steps update the gradient by recursion; after so many it is evaluated anew.
REFRESH = 20


@preconditioned()
@minimiser("cg")
def conjugate_gradient(run: Run) -> None:
    """Minimise by conjugate gradients: exact steps on a quadratic, a line search otherwise."""
    run.begin()
    if run.objective.quadratic and "hessian_product" in run.objective.capabilities:
        _linear(run)
    else:
        conjugate_descent(run)


def conjugate_descent(run: Run) -> None:
    """Directions of Polak and Ribiere with a line search, until `run` ends."""
    x, value, g = run.x, run.value, run.gradient
    d = np.array(run.saved.get("direction", -g))
    first = max(1.0, float(np.linalg.norm(x))) / max(run.norm, np.finfo(float).tiny)
    t = float(run.saved.get("step", first))
    while run.active:
        slope = float(g @ d)
        if slope >= 0:
            d, slope = -g, -float(g @ g)
        if slope == 0:  # a gradient of zero, or one whose square underflows
            run.stall()
            return
        trial = wolfe(run.objective, x, value, slope, d, first=t, c2=0.01)
        if trial is None:
            if np.array_equal(d, -g):
                run.stall()
                return
            d = -g
            t = first / 10
            continue
        beta = max(0.0, float(trial.gradient @ (trial.gradient - g)) / float(g @ g))
        x, value, g = trial.x, trial.value, trial.gradient
        d = -g + beta * d
        # The next first trial expects the same first-order decrease as this step had.
        next_slope = float(g @ d)
        t = min(trial.t * slope / next_slope, 1e3 * trial.t) if next_slope < 0 else trial.t
        run.advance(x, value, g, step=trial.t, state=partial(dict, direction=d, step=t))


def _linear(run: Run) -> None:
    """Exact steps; the gradient by recursion."""
    if not run.active:
        return
    x, value, g = run.x, run.value, run.gradient
    product = run.objective.hessian_product(x)
    d = np.array(run.saved.get("direction", -g))
    since = 0
    while run.active:
        Hd = product(d)
        slope, curvature = float(g @ d), float(d @ Hd)
        if slope >= 0 or not 0 < curvature < math.inf:
            if since == 0 and np.array_equal(d, -g):
                run.stall()
                return
            (value, g), since = run.objective.value_and_gradient(x), 0
            d = -g
            continue
        t = -slope / curvature
        x = x + t * d
        g_old, g = g, g + t * Hd
        value, since = value + 0.5 * t * slope, since + 1
        if since >= REFRESH or run.may_certify(g):
            (value, g), since = run.objective.value_and_gradient(x), 0
        d = -g + max(0.0, float(g @ (g - g_old)) / float(g_old @ g_old)) * d
        run.advance(x, value, g, step=t, exact=since == 0, state=partial(dict, direction=d, step=t))
