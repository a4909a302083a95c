"""Around the steps of least angle regression: where its numbers come from, and what proves its end."""

from __future__ import annotations

import numpy as np

from epicycle import _native
from epicycle.core._certificate import Certificate
from epicycle.data import ArrayData, Data
from epicycle.linear.lars._angles import Angles, ColumnAngles, GramAngles
from epicycle.linear.lars._least_angle import LeastAngle
from epicycle.linear.lasso._duality import gap_certificate
from epicycle.linear.lasso._problem import LassoProblem, lasso_problem, moment_problem
from epicycle.linear.lasso._solver import ColumnSolver, LassoSolver, MomentSolver

__all__ = ["angles_of", "certify", "lars_problem"]

EPS = float(np.finfo(np.float64).eps)
#: Columns up to which the Gram matrix pays in memory, where there are twice as many rows.
MAX_GRAM_IN_MEMORY = 2000


def lars_problem(data: Data, *, centre: bool, n_jobs: int | None) -> LassoProblem:
    """Second moments where rows are many or not in memory, columns otherwise."""
    p = data.n_features
    if isinstance(data, ArrayData) and not data.sparse and p <= MAX_GRAM_IN_MEMORY and data.n_rows >= 2 * p:
        return moment_problem(data, centre, n_jobs)
    return lasso_problem(data, centre=centre, n_jobs=n_jobs, many=True)


def angles_of(solver: LassoSolver) -> Angles:
    """Correlations as the steps ask for them."""
    if isinstance(solver, MomentSolver):
        return GramAngles(solver)
    assert isinstance(solver, ColumnSolver)
    return ColumnAngles(solver)


def certify(path: LeastAngle, alpha: float, tol: float) -> Certificate:
    """The certificate of the end of a path, where alpha is that of the user if the path did not come so far."""
    angles, C = path.angles, path.C
    p, w = angles.p, path.coef
    length = float(angles.norm @ np.abs(w)) + float(np.sqrt(angles.yy))
    slack = 8 * EPS * length * angles.norm if isinstance(angles, GramAngles) else np.zeros(p)
    if not path.lasso:
        inside = np.abs(path.s * angles.c[path.active] - C)
        size = np.where(angles.norm > 0, np.abs(angles.c), 0.0)
        size[path.active] = 0.0
        first = float(np.abs(np.where(angles.norm > 0, angles.xy, 0.0)).max(initial=0.0))
        worst = max(float(inside.max(initial=0.0)), float((size - C).max(initial=0.0)))
        value = worst / first if first > 0 else 0.0
        meaning = (
            f"correlations of active features with the residuals are equal, and those of others no larger, to "
            f"{value:.1e} of the first"
        )
        return Certificate("least angle condition", value, tol, meaning)
    if alpha == 0:
        return gap_certificate(path.excess(), angles.yy / 2, tol)
    alive = (angles.norm > 0).astype(np.uint8)
    penalty = _native.linear.Penalty(np.full(p, alpha), np.zeros(p), path.positive)
    objective, dual, _ = _native.linear.lasso_dual_point(
        angles.c, np.where(w == 0, slack, 0.0), w, penalty, alive, path.rr
    )
    return gap_certificate(max(objective - dual, 0.0), angles.yy / 2, tol)
