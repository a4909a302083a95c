"""The choices behind ``solver="auto"`` of logistic regression: the solver, its start, and when to change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._history import History
from epicycle.core._random import seed_of
from epicycle.linear.logistic._objective import LogisticObjective, inverse_factor
from epicycle.linear.logistic._separation import find_separation, largest_margin
from epicycle.optim import SOLVERS, Monitor, Solution, solve

#: Newton's method pays while its Hessian costs less than the gradients that a quasi-Newton method needs instead.
NEWTON_FEATURES = 500
NEWTON_MULTINOMIAL = 64
#: Multiply-adds of an iteration up to which it always pays: less than a tenth of a second.
NEWTON_WORK = 1e8
#: Iterations that a quasi-Newton method gets before Newton's method goes on from its point: slower convergence than
#: that is typical of classes that are nearly separable.
QUASI_NEWTON_ITERATIONS = 100
#: Iterations after which a fit without a penalty is searched for separation, each twice as late as the one before.
SEPARATION_CHECKS = (25, 50, 100, 200, 400, 800)
#: Margin of a row from which that pays: a probability of e^-18 = 1.5e-8 for the wrong class is rare in other data.
SEPARATION_MARGIN = 18.0
#: Tolerances up to which L-BFGS ends with Newton steps by conjugate gradients, so that coefficients have settled too:
#: the residual that each leaves, the distance from the optimum, relative to the largest coefficient, how much larger
#: it may be than the residual says (the square root of a condition number), and the most passes over the rows.
SETTLED_FROM, NEWTON_RESIDUAL, SETTLED, CAUTION, MOST_PRODUCTS = 1e-8, 1e-3, 5e-9, 30.0, 100
#: Distance from the optimum, in standard errors, at which coefficients are reported.
COEFFICIENT_ACCURACY = 1e-9


def minimise(
    objective: LogisticObjective,
    solver: str,
    *,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    random_state: Any,
    start: np.ndarray | None = None,
    settle: bool = True,
) -> Solution:
    """Minimise by the named solver, or with "auto" by the one that suits the size.

    It begins at `start`, or where there is none at the optimum of a subsample. With `settle` coefficients are the same
    to 1e-8 wherever the rows are, at tolerances up to the default one.
    """
    if objective.penalty == 0:
        monitor = SeparationMonitor(monitor, objective)
    if solver != "auto":
        if SOLVERS[solver].stochastic and "seed" not in options:
            options = {**options, "seed": seed_of(random_state)}
        start = np.zeros(objective.size) if start is None else start
        solution = solve(
            solver, objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state, options=options
        )
        # Newton's method ends with settled coefficients; L-BFGS gets there by a Newton step more.
        unsettled = solver == "lbfgs" and solution.converged and solution.n_iter < max_iter
        if unsettled and settle and (tol <= SETTLED_FROM or solver_of(objective) == "newton"):
            solution = _settled(objective, solution, monitor)
        return solution
    if options:
        raise ParameterError(f"solver_options={dict(options)!r} need a solver with a name; solver='auto' has none")
    name = solver_of(objective)
    if state:
        name = str(state["solver"])
    if start is None:
        start = np.zeros(objective.size) if state else _start(objective, name)
    may_switch = name == "lbfgs" and "hessian" in objective.capabilities
    limit = min(max_iter, QUASI_NEWTON_ITERATIONS) if may_switch else max_iter
    solution = solve(name, objective, start, tol=tol, max_iter=limit, monitor=monitor, state=state)
    left = max_iter - solution.n_iter
    if not may_switch or left <= 0 or solution.reason not in ("max_iter", "stalled"):
        wanted = settle and name == "lbfgs" and tol <= SETTLED_FROM and left > 0
        return _settled(objective, solution, monitor) if wanted and solution.converged else solution
    further = solve("newton", objective, solution.x, tol=tol, max_iter=left, monitor=monitor)
    further.n_iter += solution.n_iter
    return further


def solver_of(objective: LogisticObjective) -> str:
    """The solver that "auto" begins with."""
    size, few = objective.size, NEWTON_FEATURES if objective.binary else NEWTON_MULTINOMIAL
    if objective.penalty == 0 and not objective.binary:
        few = 4 * NEWTON_MULTINOMIAL  # without a penalty only Newton's decrement can certify the fit
    cheap = size <= few or (objective.data.n_rows or np.inf) * size**2 + size**3 <= NEWTON_WORK
    return "newton" if cheap and "hessian" in objective.capabilities else "lbfgs"


class SeparationMonitor(Monitor):
    """Monitor that ends a fit without a penalty once it is proven that the likelihood has no maximum.

    Proofs are an objective so low that no row can be on the wrong side, and, in a fit that takes long and has rows of
    next to no loss, a direction that separates the classes.
    """

    def __init__(self, monitor: Monitor, objective: LogisticObjective) -> None:
        self._monitor, self._objective, self._level = monitor, objective, objective.separation_level

    def __call__(self, iteration: int, x: np.ndarray, *, objective: float, **more: Any) -> bool:
        stop = self._monitor(iteration, x, objective=objective, **more) or objective < self._level
        if stop or iteration not in SEPARATION_CHECKS or not np.isfinite(x).all():
            return stop
        return (
            largest_margin(self._objective, x) > SEPARATION_MARGIN and find_separation(self._objective, x) is not None
        )

    def history(self) -> History:
        return self._monitor.history()


def _start(objective: LogisticObjective, solver: str) -> np.ndarray:
    """The optimum of a tenth of the rows, found from a tenth of those and so on: near, and cheap; 0 without enough."""
    zero = np.zeros(objective.size)
    part = objective.subsample(max(2000, 20 * objective.size, (objective.data.n_rows or 0) // 10))
    if part is None:
        return zero
    rough = solve(solver, part, _start(part, solver), tol=1e-4, max_iter=30)
    return rough.x if np.isfinite(rough.x).all() else zero


def _settled(objective: LogisticObjective, solution: Solution, monitor: Monitor) -> Solution:
    """The solution after Newton steps, which count and are recorded as one iteration."""
    if objective.penalty == 0:  # flat directions have no coefficients to settle
        return solution
    if solver_of(objective) == "newton":
        settled = polish(objective, solution)[0]
        norm = float(np.linalg.norm(objective.second_order(settled.x)[1]))
    else:
        settled, norm = _polish_by_products(objective, solution)
    if settled.x is solution.x:
        return solution
    n_iter = solution.n_iter + 1
    monitor(n_iter, settled.x, objective=settled.value, step=1.0, gradient_norm=norm)
    return replace(settled, n_iter=n_iter, history=monitor.history())


def _polish_by_products(objective: LogisticObjective, solution: Solution) -> tuple[Solution, float]:
    """Newton steps by conjugate gradients until the parameters have settled, and the norm of the gradient there.

    Each product with the Hessian is a pass over the rows.
    """
    x, metric, left, share = solution.x, objective.metric(), MOST_PRODUCTS, NEWTON_RESIDUAL
    value, g = objective.value_and_gradient(x)
    while left > 0:
        d, used = conjugate_step(partial(objective.curvature_along, x), g, metric.solve, share, left)
        left -= used
        further, gradient = objective.value_and_gradient(x + d)
        if not (np.isfinite(further) and np.linalg.norm(gradient) < np.linalg.norm(g)):
            break
        x, value, g = x + d, further, gradient
        error, wanted = CAUTION * share * np.abs(d).max(initial=0.0), SETTLED * np.abs(x).max(initial=0.0)
        if error <= wanted:
            break
        share = float(np.clip(wanted / error, NEWTON_RESIDUAL, 0.5))
    certificate = objective.certify(x, solution.certificate.tolerance, value, g)
    if x is solution.x or not certificate.holds:
        return solution, 0.0
    return replace(solution, x=x, value=value, certificate=certificate), float(np.linalg.norm(g))


def conjugate_step(
    product: Callable[[np.ndarray], np.ndarray],
    g: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    share: float,
    most: int,
) -> tuple[np.ndarray, int]:
    """d with Hd = -g but for a `share` of g, in the norm of the preconditioner, and the products that it took."""
    d, r = np.zeros_like(g), -g
    z = precondition(r)
    p, rz = z, float(r @ z)
    goal, used = share**2 * rz, 0
    while used < most and rz > goal:
        Hp = product(p)
        used += 1
        bend = float(p @ Hp)
        if not bend > 0:
            break
        d, r = d + (rz / bend) * p, r - (rz / bend) * Hp
        z = precondition(r)
        rz, before = float(r @ z), rz
        p = z + (rz / before) * p
    return d, used


def polish(objective: LogisticObjective, solution: Solution) -> tuple[Solution, np.ndarray | None]:
    """Newton steps until the parameters, and not only the objective, have settled; and B with BB' = H^-1 there.

    B is None where H is singular. An objective within 1e-8 of its minimum leaves parameters some thousandths of their
    standard errors off, for which ||g||_{H^-1} is the measure.
    """
    x = solution.x
    for _ in range(4):
        value, g, H = objective.second_order(x)
        half, null, _ = inverse_factor(H)
        if null.shape[1]:
            return solution, None
        step = half.T @ g
        if np.linalg.norm(step) <= COEFFICIENT_ACCURACY:
            break
        x = x - half @ step
    certificate = objective.certify(x, solution.certificate.tolerance) if x is not solution.x else solution.certificate
    if not certificate.holds:
        return solution, half
    return replace(solution, x=x, value=value, certificate=certificate), half
