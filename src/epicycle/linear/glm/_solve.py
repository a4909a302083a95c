"""Which solver, and from where: the choices behind ``solver="auto"`` of generalized linear models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError, SeparationError
from epicycle.core._random import seed_of
from epicycle.data import Batch
from epicycle.linear.glm._objective import MAX_HESSIAN, GlmObjective
from epicycle.linear.glm._statistics import Model, predictor, recession_statistic
from epicycle.linear.glm._subproblem import quadratic_lasso
from epicycle.optim import SOLVERS, Monitor, Solution, solve
from epicycle.optim._proximal_newton import minimise_with_l1
from epicycle.optim.solvers._newton import newton_direction
from epicycle.stats.families import Binomial, NegativeBinomial, Poisson, Tweedie

__all__ = ["best_start", "minimise", "refuse_separation"]

Array = np.ndarray

#: Newton's method pays while its Hessian costs less than the gradients that a quasi-Newton method needs instead.
NEWTON_DENSE = 500
NEWTON_WORK, NEWTON_SOLVE = 1e10, 1e9
#: Moves that are this small next to others are rounding.
STILL = 1e-6


def minimise(
    objective: GlmObjective,
    solver: str,
    *,
    start: Array,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    random_state: Any,
) -> Solution:
    """Minimise F by the named solver, or with "auto" by the one that suits the problem, from a subsample's optimum."""
    objective.begin_at(start)
    if objective.l1.any():
        if solver != "auto" or options:
            raise ParameterError(
                f"solver={solver!r}, solver_options={dict(options)!r}: an L1 term is minimised by proximal Newton; "
                "expected solver='auto' and no options"
            )
        begin = start if state else _subsample_start(objective, start, l1=True)
        return minimise_with_l1(
            objective, begin, objective.l1, quadratic_lasso, tol=tol, max_iter=max_iter, monitor=monitor, state=state
        )
    if solver not in ("auto", "irls"):
        if SOLVERS[solver].stochastic and "seed" not in options:
            options = {**options, "seed": seed_of(random_state)}
        return solve(
            solver, objective, start, tol=tol, max_iter=max_iter, monitor=monitor, state=state, options=options
        )
    if options:
        raise ParameterError(f"solver_options={dict(options)!r} need a solver with options; solver={solver!r} has none")
    name = str(state["solver"]) if state else "newton" if solver == "irls" else _choose(objective)
    begin = start if state else _subsample_start(objective, start, l1=False, solver=name)
    return solve(name, objective, begin, tol=tol, max_iter=max_iter, monitor=monitor, state=state)


def _choose(objective: GlmObjective) -> str:
    if objective.size > MAX_HESSIAN:
        return "lbfgs"
    design = objective.model.design
    k, p, P = len(design.levels), design.n_dense, objective.size
    work = (objective.data.n_rows or np.inf) * (k * (k + p) + p * p) / 2
    convex = objective.model.response.convex
    cheap = (p <= NEWTON_DENSE or work <= NEWTON_WORK) and P**3 / 3 <= NEWTON_SOLVE
    cheap = cheap or not objective.penalty.any or not convex  # only Newton's decrement can certify these
    return "newton" if cheap else "lbfgs"


def _subsample_start(objective: GlmObjective, start: Array, *, l1: bool, solver: str = "newton") -> Array:
    """The optimum of a tenth of the rows, found from a tenth of those and so on; `start` without enough of them."""
    n = objective.data.n_rows or 0
    part = objective.subsample(max(2000, 20 * objective.size, n // 10))
    if part is None or objective.model.design.levels:  # levels that a few rows do not show have no optimum there
        return start
    part.begin_at(start)
    begin = _subsample_start(part, start, l1=l1, solver=solver)
    if not np.isfinite(part.value(begin)):
        return start
    if l1:
        rough = minimise_with_l1(part, begin, part.l1, quadratic_lasso, tol=1e-4, max_iter=20)
    else:
        rough = solve(solver, part, begin, tol=1e-4, max_iter=20)
    objective.row_metric = part.row_metric
    return rough.x if np.isfinite(rough.x).all() and np.isfinite(objective_floor(objective, rough.x)) else start


def objective_floor(objective: GlmObjective, x: Array) -> float:
    """F on the first rows: infinite where x leaves the domain of the link there."""
    head = objective.data.head()
    w, b = objective.unpack(x)
    rows = objective.model.target.rows(head)
    terms = objective.model.response.terms(rows.y, predictor(head, objective.model, rows, w, b))
    return float(np.sum(terms.loss[rows.weights > 0]))


def best_start(objective: GlmObjective, constant: float) -> Array:
    """Coefficients zero and the best constant; where that is outside the domain of the link, a regression of g(y)."""
    zero = np.zeros(objective.size)
    if objective.intercept:
        zero[-1] = constant
    low, high = objective.model.response.link.domain
    risky = np.isfinite(low) or np.isfinite(high) or objective.model.response.link.name in ("identity", "log")
    if not risky or objective.model.response.native is not None or np.isfinite(objective.value(zero)):
        return zero
    M, v = engine.sum(start_statistic, objective.data, objective.model, objective.intercept, n_jobs=objective.n_jobs)
    x = scipy.linalg.lstsq(M, v, check_finite=False)[0] if np.isfinite(M).all() and np.isfinite(v).all() else zero
    if np.isfinite(objective.value(x)):
        return x
    response = objective.model.response
    raise DataError(
        f"X, y: no coefficients were found to start from at which every mean is in the range of family="
        f"{response.family.name!r} under link={response.link.name!r}; use fit_intercept=True, or a link that cannot "
        "leave it, such as 'log'"
    )


def start_statistic(batch: Batch, model: Model, intercept: bool) -> tuple[Array, Array]:
    """X'X and X'z with z = g((y + mean of y) / 2): the first step of reweighted least squares."""
    rows = model.target.rows(batch)
    used = rows.weights > 0
    middle = float(rows.y[used].mean()) if used.any() else 1.0
    z = model.response.link.link(0.5 * (rows.y + middle))
    z = np.where(used & np.isfinite(z), z, 0.0) - (0.0 if rows.offset is None else rows.offset)
    X = model.design.columns(batch.X, np.arange(model.design.size))
    X[:, : model.design.n_dense] -= model.shift
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    X = X * used[:, None]
    return X.T @ X, X.T @ z


def refuse_separation(objective: GlmObjective, x: Array, names: list[str]) -> None:
    """A direction along which no row's loss ever rises and some fall for ever proves that there is no maximum."""
    family = objective.model.response.family
    log_like = isinstance(family, Poisson | NegativeBinomial | Tweedie) and objective.model.response.link.name == "log"
    if not (isinstance(family, Binomial) or log_like) or objective.penalty.l1.all() or objective.penalty.l2.all():
        return
    if "hessian" not in objective.capabilities or not np.isfinite(x).all():
        return
    _, g, H = objective.second_order(x)
    d = newton_direction(H, g, x)
    if (d[objective.l2 + objective.l1 > 0] != 0).any() and objective.penalty.any:
        return
    w, b = objective.unpack(d)
    rises, falls = engine.sum(recession_statistic, objective.data, objective.model, w, b, n_jobs=objective.n_jobs)
    if falls > 0 and rises <= STILL * falls:
        size = np.abs(w)
        order = [j for j in np.argsort(-size)[:5] if size[j] > 1e-3 * size.max()]
        grow = ", ".join(names[j] for j in order) or "the intercept"
        raise SeparationError(
            f"y: some responses are at the end of their range wherever {grow} says so, and the likelihood of "
            f"family={family.name!r} has no maximum: coefficients grow for ever. Use alpha > 0, or leave these columns "
            "out."
        )
