"""From data to the optimum: the steps of a fit, without the estimator around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import minimize_scalar

from epicycle import engine
from epicycle.core._exceptions import DataError, SeparationError
from epicycle.data import Data
from epicycle.linear.glm._certificates import moves_nothing
from epicycle.linear.glm._design import Design, in_large_blocks
from epicycle.linear.glm._inputs import Target
from epicycle.linear.glm._objective import GlmObjective, Totals
from epicycle.linear.glm._response import Response, response_of
from epicycle.linear.glm._solve import best_start, minimise, refuse_separation
from epicycle.linear.glm._statistics import Model, constant_statistic, saturated_statistic, target_statistic
from epicycle.linear.logistic._objective import far_shift, inverse_factor
from epicycle.optim import Monitor, Solution
from epicycle.optim._penalties import ElasticNet
from epicycle.stats._family import StandardFamily
from epicycle.stats.families import NegativeBinomial
from epicycle.stats.links import Link

Array = np.ndarray

# --------------------------------------------------------------------------------------------------------------------
# The model without features: mu the same for all rows but for offsets. Its deviance is the scale of everything.


#: Mean squares of a Gaussian y up to this share of its own are those of a constant and its rounding.
ROUNDED_SQUARES = 128 * float(np.finfo(np.float64).eps) ** 2


@dataclass(frozen=True)
class NullModel:
    """The intercept of the null model, its deviance, and what the pass over y found."""

    intercept: float
    deviance: float
    totals: Totals


def null_model(data: Data, target: Target, response: Response, *, intercept: bool, n_jobs: int | None) -> NullModel:
    """Check y, and fit a constant to it."""
    rows, weight, total, size, constant, top, bottom = engine.sum(
        target_statistic, data, target, response, n_jobs=n_jobs
    )
    mean, family = total / weight, response.family
    low, high = family.mean_range if isinstance(family, StandardFamily) else (-np.inf, np.inf)
    inside = low < mean < high
    if intercept and not inside:
        end = low if mean <= low else high
        error = DataError if family.support != (0.0, 1.0) else SeparationError
        raise error(
            f"y: every response of positive weight is {end:g}, so the likelihood of family={family.name!r} has no "
            f"maximum (the intercept would be infinite); expected some {'above' if end == low else 'below'} {end:g}"
        )
    offset = target.offset or target.exposure
    b = float(response.link.link(np.array(mean))) if inside else 0.0
    if offset and inside:
        b = _with_offset(data, target, response, b, n_jobs)
    half = _half_deviance(data, target, response, b, mean, constant, weight, n_jobs) if inside else 0.0
    if float(top) == -float(bottom) and not offset:
        half = 0.0  # but for rounding
    other = max(abs(constant), size) / weight
    # Squares of differences are known down to those of roundings; a unit deviance of another kind cancels before.
    least = ROUNDED_SQUARES * (size / weight) ** 2 if response.native == 0 else 1e-12 * other
    scale, unit = (half, Totals.unit) if half > least else (other, "the size of the responses")
    deviance = 2 * weight * max(half, 0.0) if inside else np.nan
    totals = Totals(rows, weight, constant, max(scale, float(np.finfo(float).tiny)), unit)
    return NullModel(b, deviance, totals)


def _half_deviance(
    data: Data,
    target: Target,
    response: Response,
    b: float,
    mean: float,
    constant: float,
    weight: float,
    n_jobs: int | None,
) -> float:
    """The mean of d(y, mean) / 2, which is that of a*(y) less a*(mean): by a pass only where this would cancel."""
    if response.native not in (None, 0) and not (target.offset or target.exposure):
        half = constant / weight - float(response.constant(np.array([mean]))[0])
        if half > 1e-5 * abs(constant) / weight:
            return half
    (loss, _, _) = engine.sum(constant_statistic, data, target, response, b, n_jobs=n_jobs)
    own = 0.0 if isinstance(response.family, StandardFamily) else constant
    return (loss + own) / weight if np.isfinite(loss) else 0.0


def _with_offset(data: Data, target: Target, response: Response, b: float, n_jobs: int | None) -> float:
    """The best constant next to the offsets, by damped Newton steps on the sums over rows."""
    loss, slope, bend = engine.sum(constant_statistic, data, target, response, b, n_jobs=n_jobs)
    if not np.isfinite(loss):  # offsets that push some means out of their range: begin where all are inside
        for trial in (0.0, *np.geomspace(1e-3, 1e6, 40), *-np.geomspace(1e-3, 1e6, 40)):
            loss, slope, bend = engine.sum(constant_statistic, data, target, response, trial, n_jobs=n_jobs)
            if np.isfinite(loss):
                b = float(trial)
                break
        else:
            return b
    for _ in range(100):
        step = -slope / bend if bend > 0 else 0.0
        if not abs(slope * step) > 1e-20 * max(abs(loss), 1e-300) or not np.isfinite(step):
            break
        for _ in range(60):
            new = engine.sum(constant_statistic, data, target, response, b + step, n_jobs=n_jobs)
            if np.isfinite(new[0]) and new[0] <= loss + 1e-13 * abs(loss):
                break
            step *= 0.5
        else:
            break
        b += step
        if new[0] >= loss and abs(new[1]) >= 0.5 * abs(slope):
            break
        loss, slope, bend = new
    return b


#: Coefficients are reported within this many standard errors of the optimum: more digits than a table prints.
MAX_ERROR_IN_SDS = 1e-9
#: A Newton step that may move the eta of some row this far, though F hardly changes, is a sign of separation.
SEPARATION_MOVE = 0.1


@dataclass(frozen=True)
class Problem:
    """The model to fit and the settings of the fit."""

    data: Data
    target: Target
    design: Design
    link: str | Link
    penalty: ElasticNet
    intercept: bool
    solver: str
    options: Mapping[str, Any]
    tol: float
    max_iter: int
    random_state: Any
    n_jobs: int | None


@dataclass(frozen=True)
class Fit:
    """The objective and its solution."""

    objective: GlmObjective
    solution: Solution
    null: NullModel
    response: Response


def fit(
    problem: Problem,
    monitor: Callable[[GlmObjective], Monitor],
    state: Mapping[str, Any] | None,
    names: list[str],
    start: Callable[[GlmObjective], Array | None],
) -> Fit:
    """Minimise the penalised deviance; over alpha too where a negative binomial family asks for it."""
    family = problem.target.family
    if isinstance(family, NegativeBinomial) and family.alpha == "estimate":
        alpha, best = _best_alpha(problem)
        target = replace(problem.target, family=NegativeBinomial(alpha))
        return _fit(replace(problem, target=target), monitor, state, names, lambda _: best)
    return _fit(problem, monitor, state, names, start)


def _fit(
    problem: Problem,
    monitor: Callable[[GlmObjective], Monitor] | None,
    state: Mapping[str, Any] | None,
    names: list[str],
    start: Callable[[GlmObjective], Array | None],
) -> Fit:
    response = response_of(problem.target.family, problem.link)
    data = in_large_blocks(problem.data, problem.design)
    null = null_model(data, problem.target, response, intercept=problem.intercept, n_jobs=problem.n_jobs)
    objective = GlmObjective(
        data,
        Model(response, problem.target, problem.design, _shift(problem)),
        problem.penalty,
        intercept=problem.intercept,
        totals=null.totals,
        expected=problem.solver == "irls",
        n_jobs=problem.n_jobs,
    )
    own = Monitor() if monitor is None else monitor(objective)
    given = start(objective)
    if given is not None and not np.isfinite(objective.value(given)):
        given = None
    solution = minimise(
        objective,
        problem.solver,
        start=best_start(objective, null.intercept) if given is None else given,
        tol=problem.tol,
        max_iter=problem.max_iter,
        monitor=own,
        state=state,
        options=problem.options,
        random_state=problem.random_state,
    )
    if solution.n_iter == 0:  # the start was optimal: that is one row of the history
        own(1, solution.x, objective=solution.value, step=0.0)
        solution = replace(solution, n_iter=1, history=own.history())
    if not solution.converged:
        refuse_separation(objective, solution.x, names)
    return Fit(objective, solution, null, response)


def _shift(problem: Problem) -> Array:
    design = problem.design
    if not problem.intercept or problem.data.sparse:
        return np.zeros(design.n_dense)
    return np.ascontiguousarray(far_shift(problem.data)[design.dense])


def polish(fitted: Fit, names: list[str]) -> tuple[Fit, Array | None]:
    """Newton steps until the parameters, and not only F, have settled; and the information there, if it is regular.

    An objective within 1e-8 of its minimum leaves parameters some thousandths of their standard errors off. Where
    columns depend on each other, the coefficients of least norm are taken.
    """
    objective, solution = fitted.objective, fitted.solution
    x, V = solution.x, objective.totals.weight
    observed = not objective.expected
    for _ in range(6):
        last = objective.last_second
        if last is None or not np.array_equal(last.x, x) or (observed and not last.observed):
            value, g, H = objective.second_order_of(x, not observed)
        else:
            value, g, H = last.value, last.gradient, last.H
        last = objective.last_second
        same = last is not None and last.H is H
        half, null, _ = last.factor if last is not None and same else inverse_factor(H)
        if null.shape[1] and x is solution.x:
            refuse_separation(objective, x, names)
        step = half.T @ g
        if last is not None and same and np.linalg.norm(step) > SEPARATION_MOVE * np.sqrt(max(last.least, 0.0)):
            refuse_separation(objective, x, names)
        settled = np.linalg.norm(step) * np.sqrt(V) <= MAX_ERROR_IN_SDS
        if settled and not objective.penalty.any:
            break
        x = x - half @ step  # a penalised fit takes the last step too: it is in hand, and small coefficients gain by it
        if settled:
            break
    if null.shape[1]:
        x = _of_least_norm(objective, x, null)
    if x is not solution.x:
        certificate = objective.certify(x, solution.certificate.tolerance)
        if certificate.holds:
            solution = replace(solution, x=x, value=value, certificate=certificate)
    if objective.penalty.any or null.shape[1]:
        return replace(fitted, solution=solution), None
    last = objective.last_second
    if fitted.response.canonical and last is not None and np.array_equal(last.x, solution.x):
        information = last.H * V
    else:
        information = objective.information(solution.x)
    return replace(fitted, solution=solution), information


def _of_least_norm(objective: GlmObjective, x: Array, null: Array) -> Array:
    """Of all x + N z, which the loss does not tell apart, the one with the shortest w."""
    N = scipy.linalg.qr(null, mode="economic", check_finite=False)[0]
    p = objective.n_coefficients
    z = scipy.linalg.lstsq(N[:p], x[:p], check_finite=False)[0]
    move = N @ z
    return x - move if moves_nothing(objective, move[:, None]) else x


def _best_alpha(problem: Problem) -> tuple[float, Array]:
    """The alpha of the largest profile likelihood, on a logarithmic scale, and the coefficients there."""
    found: dict[str, Array] = {}

    def loss(log_alpha: float) -> float:
        target = replace(problem.target, family=NegativeBinomial(float(np.exp(log_alpha))))
        rough = replace(problem, target=target, solver="auto", options={}, tol=max(problem.tol, 1e-10), max_iter=200)
        fitted = _fit(rough, None, None, [], lambda _: found.get("x"))
        found["x"] = fitted.solution.x
        (saturated,) = engine.sum(
            saturated_statistic, problem.data, target, fitted.response, 1.0, n_jobs=problem.n_jobs
        )
        l1 = float(fitted.objective.l1 @ np.abs(fitted.solution.x))
        V = fitted.objective.totals.weight
        return float(fitted.solution.value + (0.0 if fitted.objective.l1.any() else l1) - saturated / V)

    best = minimize_scalar(loss, bounds=(np.log(1e-8), np.log(1e4)), method="bounded", options={"xatol": 1e-9})
    return float(np.exp(best.x)), found["x"]
