"""The choice of solver and starting point behind ``solver="auto"`` of generalized linear models."""

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
from epicycle.linear.lasso._gram import MAX_NEWTON, GramProblem, minimise_on_gram
from epicycle.optim import SOLVERS, Monitor, Solution, solve
from epicycle.optim._penalties import ElasticNet
from epicycle.optim._proximal_newton import minimise_with_l1
from epicycle.optim.solvers._newton import newton_direction
from epicycle.stats._power_families import Poisson, Tweedie
from epicycle.stats.families import Binomial, NegativeBinomial

Array = np.ndarray

# --------------------------------------------------------------------------------------------------------------------
# The quadratic model of proximal Newton as a lasso on a Gram matrix.
#
#     minimise over z:  g'(z - x) + (z - x)'H(z - x) / 2 + sum_j l1_j |z_j|.
#
# Coordinates without an L1 term are eliminated: with them at their optimum for given others, the rest is a lasso with
# the Schur complement S of H and the correlations S x - c, c the reduced gradient.


def quadratic_lasso(H: Array, g: Array, x: Array, l1: Array) -> Array:
    """The minimiser z, to nearly the last digit."""
    free, held = np.flatnonzero(l1 == 0), np.flatnonzero(l1 > 0)
    z = x.copy()
    if len(free):
        solve = _regular(H[np.ix_(free, free)])
        back = solve(np.column_stack([H[np.ix_(free, held)], g[free]]))
        S = H[np.ix_(held, held)] - H[np.ix_(held, free)] @ back[:, :-1]
        c = g[held] - H[np.ix_(held, free)] @ back[:, -1]
    else:
        S, c = H.copy(), g.copy()
    if len(held):
        z[held] = _lasso(S, c, x[held], l1[held])
    if len(free):
        z[free] = x[free] - back[:, -1] - back[:, :-1] @ (z[held] - x[held])
    return z


def _lasso(S: Array, c: Array, x: Array, l1: Array) -> Array:
    # In units in which S has a unit diagonal: descent over columns of wildly different scale loses digits.
    S = 0.5 * (S + S.T)
    diagonal = np.maximum(np.diagonal(S), 0.0)
    flat = diagonal <= 1e-14 * diagonal.max(initial=0.0)
    unit = 1 / np.sqrt(np.where(flat, 1.0, diagonal))
    S = np.ascontiguousarray(S * unit * unit[:, None])
    c, w, l1 = c * unit, np.where(flat, 0.0, x / unit), l1 * unit
    S[flat], S[:, flat] = 0.0, 0.0  # a coordinate without curvature stays at zero
    xy = S @ w - c
    xy[flat] = 0.0
    yy = float(xy @ _regular(S)(xy)) * (1 + 1e-3)
    if not yy > 0:
        return np.zeros(len(x))
    slots = np.arange(len(w), dtype=np.int64)
    q = xy - S @ w
    penalty = ElasticNet(np.ascontiguousarray(l1), np.zeros(len(w)))
    problem = GramProblem(S, slots, xy, yy, penalty, w, q)
    minimise_on_gram(problem, 1e-13 * yy, max_epochs=2000, finish=True)
    return _settled(S, xy, problem.w, l1) * unit


def _settled(S: Array, xy: Array, w: Array, l1: Array) -> Array:
    """The exact minimum from one nearby, by active sets: descent stops where the value no longer tells.

    With signs s given, S_AA w_A = xy_A - l1_A s_A; on the way there the first coefficient to change its sign leaves the
    set A, and at the end the one whose optimality is violated most comes in.
    """
    w, sign = w.copy(), np.sign(w)
    best = w.copy()
    for _ in range(50 + len(w) // 10):
        on = np.flatnonzero(sign)
        if len(on) > MAX_NEWTON:
            return best
        if len(on):
            d = _regular(S[np.ix_(on, on)])(xy[on] - S[np.ix_(on, on)] @ w[on] - l1[on] * sign[on])
            against = np.flatnonzero((w[on] + d) * sign[on] <= 0)
            if len(against):
                t = np.clip(-w[on][against] / np.where(d[against] == 0, 1.0, d[against]), 0.0, 1.0)
                first = int(np.argmin(t))
                w[on] += t[first] * d
                w[on[against[first]]] = sign[on[against[first]]] = 0.0
                continue
            w[on] += d
        best = w.copy()
        excess = np.where(sign == 0, np.abs(xy - S @ w) - l1, -np.inf)
        worst = int(np.argmax(excess))
        if not excess[worst] > 1e-13 * l1[worst]:
            break
        sign[worst] = np.sign(xy[worst] - S[worst] @ w)
    return best


def _regular(A: Array):  # type: ignore[no-untyped-def]
    """b -> A^-1 b, with a little ridge where A is singular."""
    diagonal = np.where(np.diagonal(A) > 0, np.diagonal(A), 1.0)
    for ridge in (0.0, 1e-14, 1e-11, 1e-8, 1e-5):
        B = A.copy()
        B[np.diag_indices_from(B)] = np.diagonal(A) + ridge * diagonal + (np.diagonal(A) <= 0)
        try:
            factor = scipy.linalg.cho_factor(B, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return lambda b, factor=factor: scipy.linalg.cho_solve(factor, b, check_finite=False)
    inverse = scipy.linalg.pinvh(A)
    return lambda b: inverse @ b


#: Newton's method pays while its Hessian costs less than the gradients that a quasi-Newton method needs instead.
NEWTON_DENSE = 500
NEWTON_WORK, NEWTON_SOLVE = 1e10, 1e9
#: Moves of eta that are smaller than this share of the largest are rounding.
ROUNDING_MOVE = 1e-6


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
    if falls > 0 and rises <= ROUNDING_MOVE * falls:
        size = np.abs(w)
        order = [j for j in np.argsort(-size)[:5] if size[j] > 1e-3 * size.max()]
        grow = ", ".join(names[j] for j in order) or "the intercept"
        raise SeparationError(
            f"y: some responses are at the end of their range wherever {grow} says so, and the likelihood of "
            f"family={family.name!r} has no maximum: coefficients grow for ever. Use alpha > 0, or leave these columns "
            "out."
        )
