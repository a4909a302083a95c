"""Optimality at every knot of a path, computed from the data anew and not from the steps that led there.

Between two knots the coefficients, and with them the residuals and all correlations c_j, are linear in alpha. There
|c_j| - alpha is a convex function of alpha and largest at a knot: what holds at all knots holds along the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.linear.lars._least_angle import LeastAngle
from epicycle.linear.lars._path import PathRecord
from epicycle.linear.lasso._duality import gap_certificate
from epicycle.linear.lasso._solver import ColumnSolver, LassoSolver, MomentSolver

EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
#: Violations of a condition that are rounding, in units of EPS |x_j| (|y| + sum_k |x_k w_k|).
ROUNDED = 64.0
#: Knots that are multiplied by a Gram matrix together.
KNOTS_PER_BLOCK = 16


@dataclass
class Knots:
    """One number for each knot.

    squares : |r|^2.
    inner : w'c, of the active columns.
    largest : the largest |c_j| over all columns (c_j where coefficients are non-negative), with its rounding.
    unequal : the largest ||c_j| - alpha| of an active column.
    norms : |w|_1.
    misses : the largest violation g_j of a condition, |c_j| = alpha or <= alpha, in units of the rounding of c_j.
    first_order : sum_j |g_j w_j|.
    """

    alphas: np.ndarray
    squares: np.ndarray
    inner: np.ndarray
    largest: np.ndarray
    unequal: np.ndarray
    norms: np.ndarray
    misses: np.ndarray
    first_order: np.ndarray


def knots_of(solver: LassoSolver, record: PathRecord, *, positive: bool, rounding: bool) -> Knots:
    """Residuals and correlations at every knot of a recorded path; with `rounding` as large as they may be."""
    alphas = np.array(record.alphas)
    columns = [np.zeros(len(alphas)) for _ in range(7)]
    in_memory = _Columns(solver) if isinstance(solver, ColumnSolver) else None
    step = 1 if in_memory else KNOTS_PER_BLOCK
    rounded = EPS * np.where(solver.norm > 0, solver.norm, np.inf)
    for first in range(0, len(alphas), step):
        last = min(first + step, len(alphas))
        used, W = record.block(first, last)
        if in_memory:
            squares, looked_at, C, C_used = in_memory.at(used, W[:, 0], float(alphas[first]))
        else:
            assert isinstance(solver, MomentSolver)
            squares, looked_at, C, C_used = _from_moments(solver, used, W, rounding=rounding)
        size = np.maximum(C, 0.0) if positive else np.abs(C)
        away = np.where(W != 0, np.abs(np.abs(C_used) - alphas[first:last]), 0.0)
        length = np.sqrt(solver.yy) + solver.norm[used] @ np.abs(W)
        over = np.maximum(size - alphas[first:last], 0.0)
        place = np.searchsorted(looked_at, used)
        over[place] = np.maximum(over[place], away)
        unit = rounded[looked_at, None] * np.maximum(length, TINY)
        found = (
            squares,
            (W * C_used).sum(axis=0),
            size.max(axis=0, initial=0.0),
            away.max(axis=0, initial=0.0),
            np.abs(W).sum(axis=0),
            (over / unit).max(axis=0, initial=0.0),
            (away * np.abs(W)).sum(axis=0),
        )
        for column, values in zip(columns, found, strict=True):
            column[first:last] = values
    return Knots(alphas, *columns)


def _from_moments(
    solver: MomentSolver, used: np.ndarray, W: np.ndarray, *, rounding: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """|r|^2, all columns, their correlations with the rounding of the Gram matrix, and those of the used columns."""
    C = solver.xy[:, None] - solver.G[:, used] @ W
    squares = np.maximum(solver.yy - (W * (solver.xy[used, None] + C[used])).sum(axis=0), 0.0)
    every = np.arange(solver.p)
    if not rounding:
        return squares, every, C, C[used]
    length = np.sqrt(solver.yy) + solver.norm[used] @ np.abs(W)
    slack = 8 * EPS * solver.norm[:, None] * length
    slack[used] = np.where(W != 0, 0.0, slack[used])
    return squares, every, C + np.copysign(slack, C), C[used]


class _Columns:
    """Correlations of columns in memory along a path, computed where they may reach alpha.

    |c_j| changes by at most |x_j| times the way of the residuals since it was computed, from r = y on.
    """

    def __init__(self, solver: ColumnSolver) -> None:
        self.solver, self.c, self.r = solver, solver.xy.copy(), solver.y
        self.way, self.seen = 0.0, np.zeros(solver.p)

    def at(
        self, used: np.ndarray, w: np.ndarray, alpha: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """|r|^2, the used columns and all that may reach alpha, their correlations, and those of the used columns."""
        solver, design, before = self.solver, self.solver.design, self.r
        self.r = solver.y.copy()
        design.subtract(used, np.ascontiguousarray(w), self.r)
        difference = self.r - before
        self.way += float(np.sqrt(design.weighted(difference) @ difference))
        u = design.weighted(self.r)
        need = (np.abs(self.c) + solver.norm * (self.way - self.seen) > alpha) & (solver.square > 0)
        need[used] = True
        looked_at = np.flatnonzero(need)
        design.correlations(u, looked_at, self.c)
        self.seen[looked_at] = self.way
        return np.array([u @ self.r]), looked_at, self.c[looked_at, None], self.c[used, None]


def lasso_gaps(knots: Knots) -> np.ndarray:
    """The duality gap of the lasso at every knot: P(w) - D(s r) with s r scaled into the constraints |c_j| <= alpha."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(knots.largest > knots.alphas, knots.alphas / knots.largest, 1.0)
    value = knots.squares / 2 + knots.alphas * knots.norms
    dual = s * (knots.squares + knots.inner) - s * s * knots.squares / 2
    gaps = np.maximum(value - np.maximum(dual, 0.0), 0.0)
    # Where alpha comes close to the rounding of the longest columns, no scale of the residuals proves anything. A knot
    # that keeps all conditions to this rounding is judged by what it can gain: sum_j g_j w_j, to first order.
    return np.asarray(np.where(knots.misses <= ROUNDED, np.minimum(gaps, 2 * knots.first_order), gaps))


def certify_path(path: LeastAngle, solver: LassoSolver, record: PathRecord, tol: float) -> tuple[Certificate, Knots]:
    """The certificate of a whole path: the worst of its knots."""
    knots = knots_of(solver, record, positive=path.positive, rounding=path.lasso)
    if not path.lasso:
        first = float(np.abs(solver.xy[solver.square > 0]).max(initial=0.0))
        worst = max(float(knots.unequal.max()), float((knots.largest - knots.alphas).max()), 0.0)
        value = worst / first if first > 0 else 0.0
        meaning = (
            f"at every breakpoint the correlations of active features with the residuals are equal, and those of "
            f"others no larger, to {value:.1e} of the first"
        )
        return Certificate("least angle condition", value, tol, meaning), knots
    gaps = lasso_gaps(knots)
    if knots.alphas[-1] == 0:  # the path ends with least squares, whose distance is known otherwise
        gaps[-1] = path.excess()
    certificate = gap_certificate(float(gaps.max()), solver.yy / 2, tol)
    meaning = (
        f"at every breakpoint of the path the objective is within {certificate.value:.1e} of its minimum, relative to "
        "half the mean square of y; so it is between them"
    )
    return Certificate(certificate.kind, certificate.value, tol, meaning), knots
