"""Optimality at every knot of a path, computed from the data anew and not from the steps that led there.

Between two knots the coefficients, and with them the residuals and all correlations c_j, are linear in alpha. There
|c_j| - alpha is a convex function of alpha and largest at a knot: what holds at all knots holds along the path.
"""

from __future__ import annotations

from collections.abc import Iterator
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
#: Knots for which columns are read together; each of them holds a number for every column.
KNOTS_PER_PASS = 4
#: Residuals that are held at a time, as a share of the columns of X: a quarter of its memory where it is dense.
SHARE_OF_X = 0.25
#: Columns that are looked at for every knot of a stretch, where no more of them may be above alpha.
FEW = 128
#: Pieces of a stretch where it is divided: a column is read once for all knots between them.
PARTS = 4


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


def knots_of(solver: LassoSolver, record: PathRecord, last: np.ndarray, *, positive: bool, rounding: bool) -> Knots:
    """Residuals and correlations at every knot of a recorded path; with `rounding` as large as they may be.

    `last` are all correlations at the last knot.
    """
    alphas = np.array(record.alphas)
    if isinstance(solver, MomentSolver):
        parts = [
            (
                first,
                *_from_moments(
                    solver, *record.block(first, min(first + KNOTS_PER_BLOCK, len(alphas))), rounding=rounding
                ),
            )
            for first in range(0, len(alphas), KNOTS_PER_BLOCK)
        ]
    else:
        assert isinstance(solver, ColumnSolver)
        parts = list(_from_columns(solver, record, alphas, last))
    columns = [np.zeros(len(alphas)) for _ in range(7)]
    rounded = EPS * np.where(solver.norm > 0, solver.norm, np.inf)
    for first, used, W, squares, C_used, others, C in parts:
        end = first + W.shape[1]
        sizes = [np.maximum(c, 0.0) if positive else np.abs(c) for c in (C_used, C)]
        away = np.where(W != 0, np.abs(np.abs(C_used) - alphas[first:end]), 0.0)
        unit = np.maximum(np.sqrt(solver.yy) + solver.norm[used] @ np.abs(W), TINY)
        over = [np.maximum(size - alphas[first:end], 0.0) for size in sizes]
        over[0] = np.maximum(over[0], away)
        found = (
            squares,
            (W * C_used).sum(axis=0),
            np.maximum(*(size.max(axis=0, initial=0.0) for size in sizes)),
            away.max(axis=0, initial=0.0),
            np.abs(W).sum(axis=0),
            np.maximum(
                *((o / rounded[c, None]).max(axis=0, initial=0.0) for o, c in zip(over, (used, others), strict=True))
            )
            / unit,
            (away * np.abs(W)).sum(axis=0),
        )
        for column, values in zip(columns, found, strict=True):
            column[first:end] = values
    return Knots(alphas, *columns)


#: Columns used and their coefficients, |r|^2, correlations of these columns; other columns and their correlations.
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _from_moments(solver: MomentSolver, used: np.ndarray, W: np.ndarray, *, rounding: bool) -> Part:
    """A few knots, with the correlations of all columns, and the rounding of the Gram matrix."""
    C = solver.xy[:, None] - solver.G[:, used] @ W
    C_used = C[used]
    squares = np.maximum(solver.yy - (W * (solver.xy[used, None] + C_used)).sum(axis=0), 0.0)
    if rounding:
        length = np.sqrt(solver.yy) + solver.norm[used] @ np.abs(W)
        slack = 8 * EPS * solver.norm[:, None] * length
        slack[used] = np.where(W != 0, 0.0, slack[used])
        C += np.copysign(slack, C)
    return used, W, squares, C_used, np.arange(solver.p), C


def _from_columns(
    solver: ColumnSolver, record: PathRecord, alphas: np.ndarray, last: np.ndarray
) -> Iterator[tuple[int, *Part]]:
    """A few knots at a time, with the correlations of columns that may be above alpha."""
    design, end = solver.design, len(alphas) - 1
    size = max(8, int(SHARE_OF_X * solver.p))  # residuals that are held at a time
    c = solver.xy
    for start in range(0, max(end, 1), size):
        stop = min(start + size, end)  # the last knot of a stretch is the first of the next
        R = np.tile(solver.y, (stop - start + 1, 1))
        for i, r in enumerate(R, start):
            used, W = record.block(i, i + 1)
            design.subtract(used, np.ascontiguousarray(W[:, 0]), r)
        c_stop = last if stop == end else _correlations(solver, R[-1:], None)[0]
        near = _near(solver, alphas[start : stop + 1], R, c, c_stop)
        for first in range(start, stop + (stop == end), KNOTS_PER_PASS):
            block = slice(first - start, min(first - start + KNOTS_PER_PASS, len(R) - (stop < end)))
            used, W = record.block(first, start + block.stop)
            columns = np.unique(np.concatenate([used, *near[block]]))
            C = _correlations(solver, R[block], columns).T
            squares = (design.weighted(R[block]) * R[block]).sum(axis=1)
            yield first, used, W, squares, C[used], columns, C[columns]
        c = c_stop


def _correlations(solver: ColumnSolver, R: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Correlations (k, p) with k residuals, those of the given columns."""
    C = np.empty((len(R), solver.p))
    solver.design.correlations(solver.design.weighted(R), columns, C)
    return C


def _near(
    solver: ColumnSolver, alphas: np.ndarray, R: np.ndarray, c_first: np.ndarray, c_last: np.ndarray
) -> list[np.ndarray]:
    """For every knot of a stretch of the path the columns whose correlation may be above alpha.

    Between knots a and b a residual is r = (1 - t) r_a + t r_b + e, so that |c_j| is at most |(1 - t) c_ja + t c_jb| +
    |x_j| |e|. Where this leaves many columns, the stretch is divided at knots whose correlations are computed.
    """
    design, norm = solver.design, solver.norm
    near = [np.empty(0, dtype=np.int64)] * len(alphas)
    for i, c in ((0, c_first), (-1, c_last)):
        near[i] = np.flatnonzero((np.abs(c) > alphas[i]) & (norm > 0))
    stretches = [(0, len(alphas) - 1, np.flatnonzero(norm > 0), c_first, c_last)]
    while stretches:
        a, b, columns, c_a, c_b = stretches.pop()
        if b - a < 2:
            continue
        chord, inside = R[b] - R[a], R[a + 1 : b] - R[a]
        along = design.weighted(chord)
        length = float(along @ chord)
        t = np.clip(inside @ along / length, 0.0, 1.0) if length > 0 else np.zeros(len(inside))
        off = inside - t[:, None] * chord
        e = np.sqrt((design.weighted(off) * off).sum(axis=1).max())
        below = max(((1 - t) * alphas[a] + t * alphas[b] - alphas[a + 1 : b]).max(), 0.0)  # of alpha below its chord
        room = np.minimum(alphas[a] - np.abs(c_a[columns]), alphas[b] - np.abs(c_b[columns]))
        columns = columns[~(room >= norm[columns] * e + below)]
        if len(columns) <= FEW or b - a == 2:
            near[a + 1 : b] = [columns] * (b - a - 1)
            continue
        middle = _divided(R[a : b + 1]) + a
        C = [c_a, *_correlations(solver, R[middle[1:-1]], columns), c_b]
        for i, c in zip(middle[1:-1], C[1:-1], strict=True):
            near[i] = columns[np.abs(c[columns]) > alphas[i]]
        stretches += [(*middle[i : i + 2], columns, *C[i : i + 2]) for i in range(len(middle) - 1)]
    return near


def _divided(R: np.ndarray) -> np.ndarray:
    """The first and last of a stretch of residuals, and some between them, with ways of much the same length."""
    way = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(R, axis=0), axis=1)))
    inner = np.searchsorted(way, way[-1] * np.arange(1, PARTS) / PARTS)
    return np.unique(np.concatenate([[0, len(R) - 1], np.clip(inner, 1, len(R) - 2)]))


def lasso_gaps(knots: Knots) -> np.ndarray:
    """The duality gap of the lasso at every knot: P(w) - D(s r) with s r scaled into the constraints |c_j| <= alpha."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(knots.largest > knots.alphas, knots.alphas / knots.largest, 1.0)
    value = knots.squares / 2 + knots.alphas * knots.norms
    dual = s * (knots.squares + knots.inner) - s * s * knots.squares / 2
    gaps = np.maximum(value - np.maximum(dual, 0.0), 0.0)
    # Where alpha comes close to the rounding of the longest columns, no scale of the residuals proves anything. A knot
    # that keeps all conditions to this rounding is measured by what it can gain: sum_j g_j w_j, to first order.
    return np.asarray(np.where(knots.misses <= ROUNDED, np.minimum(gaps, 2 * knots.first_order), gaps))


def certify_path(path: LeastAngle, solver: LassoSolver, record: PathRecord, tol: float) -> tuple[Certificate, Knots]:
    """The certificate of a whole path: the worst of its knots."""
    knots = knots_of(solver, record, path.angles.c, positive=path.positive, rounding=path.lasso)
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
