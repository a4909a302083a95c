"""Exact quantile regression: a draw of rows, the undecided rows, an interior point, a vertex, and its proof.

On many rows the fit to a draw of them is near enough to settle the signs of most residuals; the linear programme of the
rest is solved exactly, and one more pass over all rows proves or improves the result. Few rows are solved at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Data, Matrix
from epicycle.linear.robust._quantile_interior import find_vertex, first_basis, interior_point
from epicycle.linear.robust._quantile_problem import (
    Band,
    Frame,
    Programme,
    collect_statistic,
    draw_statistic,
    loss_statistic,
    residuals,
    weights_of,
)
from epicycle.stats._moments import Moments, moments_of, triangular_factor_of

#: Relative gap at which the interior point hands over: on a draw, which is only a guide, and on the way to a vertex.
DRAW_GAP, VERTEX_GAP = 1e-3, 1e-7
#: A draw is solved first where the rows are this many times its size: below, it costs as much as it saves (measured).
MIN_ROWS_PER_DRAW = 3.5

#: Called with (beta, objective, gap, rows of the programme, pivots); True asks to stop.
Report = Callable[[np.ndarray, float, float, int, int], bool]


@dataclass(frozen=True)
class Solved:
    """beta in the coordinates of the frame, its objective and the duality gap, both per unit of weight and scale."""

    beta: np.ndarray
    objective: float
    gap: float
    scale: float
    stopped: bool


@dataclass(frozen=True)
class DualPoint:
    """d over the rows of a programme and all coordinates, and the basis that it belongs to, if it does."""

    dual: np.ndarray
    basis: np.ndarray | None


@dataclass
class QuantileSolver:
    """Quantile regressions of one data set.

    n_rows : rows of positive weight.
    weight : their total weight.
    lengths : (p + 1,) root mean squares of the columns in the frame; infinite where the coordinate is held by choice.
    gram : A'WA over all rows; y_std : the standard deviation of y, both in the frame.
    root : a matrix with root root' = (A'WA)^-1 about, for the bands; None where it is not to be had.
    """

    data: Data
    frame: Frame
    n_rows: int
    weight: float
    lengths: np.ndarray
    gram: np.ndarray
    y_std: float
    root: np.ndarray | None
    solver: str
    tol: float
    max_iter: int
    n_jobs: int | None

    def __post_init__(self) -> None:
        self._all: tuple[Matrix, np.ndarray, np.ndarray] | None = None
        self._draw: tuple[Matrix, np.ndarray, np.ndarray] | None = None

    def solve(self, tau: float, start: np.ndarray | None, report: Report) -> Solved:
        """Minimise for one quantile, from `start` where there is one."""
        d, n = self.frame.size, self.n_rows
        size = math.ceil((d * n) ** (2 / 3))
        if self.solver == "auto" and self.root is not None and n >= max(MIN_ROWS_PER_DRAW * size, 2000):
            solved = self._by_parts(tau, start, size, report)
            if solved is not None:
                return solved
        return self._at_once(tau, start, report)

    # ------------------------------------------------------------------------------------------- all rows at once

    def _rows(self) -> tuple[Matrix, np.ndarray, np.ndarray]:
        if self._all is None:
            data = self.data
            if isinstance(data, ArrayData) and (data.weight is None or data.weight.all()):
                self._all = data.X, data.y, weights_of(data.rows(0, data.n_rows))
            else:
                require_memory(
                    8.0 * self.n_rows * self.frame.size,
                    "all rows at once",
                    "quantile regression from files needs many more rows than features",
                )
                (collected,) = engine.sum(draw_statistic, data, 1.0, n_jobs=self.n_jobs)
                self._all = collected.joined()
        return self._all

    def _programme(self, rows: tuple[Matrix, np.ndarray, np.ndarray], tau: float, g: np.ndarray | None) -> Programme:
        X, y, s = rows
        frame = self.frame
        g = np.zeros(frame.size) if g is None else g
        scaled = (y - frame.y_shift) / frame.y_scale
        return Programme(X, scaled, s * tau, s * (1 - tau), g, frame, self.n_jobs)

    def _at_once(self, tau: float, start: np.ndarray | None, report: Report) -> Solved:
        programme = self._programme(self._rows(), tau, None)
        beta, dual, stopped = self._optimum(programme, start, report, 0.0)
        loss, scale = engine.sum(loss_statistic, self.data, self.frame, tau, beta, n_jobs=self.n_jobs)
        return self._concluded(programme, beta, dual, loss, 0.0, scale, stopped)

    def _optimum(
        self, programme: Programme, start: np.ndarray | None, report: Report, constant: float
    ) -> tuple[np.ndarray, DualPoint | None, bool]:
        """(beta, a dual point or None, whether a callback asked to stop)."""
        n = len(programme.y)

        def report_interior(beta: np.ndarray, objective: float, gap: float) -> bool:
            return report(beta, (objective + constant) / self.weight, gap, n, 0)

        def report_vertex(beta: np.ndarray, pivots: int) -> bool:
            return report(beta, (programme.objective(beta) + constant) / self.weight, 0.0, n, pivots)

        if self.solver == "simplex":
            beta, dual, theta = self._least_squares(programme)
        else:
            point = interior_point(programme, start, tol=VERTEX_GAP, max_iter=self.max_iter, report=report_interior)
            beta, theta = point.beta, point.theta
            if point.stopped:
                return beta, None, True
            dual = np.zeros(n + self.frame.size)
            dual[:n] = point.dual[:n]
            dual[n + programme.penalised] = point.dual[n:]
        basis = first_basis(programme, theta)
        if basis is None:
            return beta, DualPoint(dual, None), False
        limit = max(self.max_iter, 50 * self.frame.size)
        vertex = find_vertex(programme, basis, max_pivots=limit, report=report_vertex)
        if vertex is None:
            return beta, DualPoint(dual, None), False
        return vertex.beta, DualPoint(vertex.dual, vertex.basis), vertex.stopped

    def _least_squares(self, programme: Programme) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows nearest to the least-squares hyperplane: where the simplex method of the textbook may start."""
        point = interior_point(programme, None, tol=np.inf, max_iter=0, report=lambda *_: False)
        theta = 1 / (np.abs(programme.targets - programme.product(point.beta)) + 1e-12)
        return point.beta, np.zeros(len(programme.y) + self.frame.size), theta

    def _concluded(
        self,
        programme: Programme,
        beta: np.ndarray,
        point: DualPoint | None,
        loss: float,
        constant: float,
        scale: float,
        stopped: bool,
    ) -> Solved:
        """The objective over all rows, and its distance from what a dual point proves.

        For every beta*, F(beta*) >= sum_i d_i r_i(beta*) = sum_i d_i r_i(beta) - e'(beta* - beta) with e = A'd + g,
        zero but for rounding; `constant` is the part of d'y of the settled rows. Without a dual point, F >= 0.
        """
        penalty = self.frame.penalty
        finite = np.isfinite(penalty)
        value = loss + float(penalty[finite] @ np.abs(beta[finite]))
        gap = value
        if point is not None:
            n = len(programme.y)
            held = np.append(point.dual[:n], point.dual[n + programme.penalised])
            r = programme.targets - programme.product(beta)
            proven = constant - float(programme.g @ beta) + float(held @ r) - self._charge(programme, beta, point, held)
            gap = min(gap, max(value - proven, 0.0))
        return Solved(beta, value / self.weight, gap / self.weight, scale / self.weight, stopped)

    def _charge(self, programme: Programme, beta: np.ndarray, point: DualPoint, held: np.ndarray) -> float:
        """A bound on the cost of the rounding e = A'd + g.

        Nothing at a vertex where d_B - B^-T e is within its bounds, since that point is feasible exactly and proves the
        same. Otherwise |e|'|beta*|, for coefficients of the size of beta or one.
        """
        finite = np.isfinite(self.frame.penalty)
        n = len(programme.y)
        e = programme.transposed(held) + programme.g
        # A coordinate that is held at zero because its column depends on others may not want to move.
        e[~finite & (np.abs(e) <= 1e-11 * self.weight * self.lengths)] = 0.0
        size = np.maximum(np.abs(beta), 1.0)
        if point.basis is None or e[~finite].any():
            return float(np.abs(e) @ size)
        B, d_B = programme.rows(point.basis), point.dual[point.basis]
        real, unit = point.basis < n, np.maximum(point.basis - n, 0)
        rows = np.minimum(point.basis, n - 1)
        up = np.where(real, programme.upper[rows], self.frame.penalty[unit])
        low = np.where(real, programme.lower[rows], self.frame.penalty[unit])
        try:
            exact = d_B - np.linalg.solve(B.T, e)
        except np.linalg.LinAlgError:
            return float(np.abs(e) @ size)
        # What is beyond a bound is given back by that row, and costs no more than e.
        beyond = np.maximum(np.maximum(exact - up, -low - exact), 0.0)
        beyond[np.isinf(up)] = 0.0
        return float(np.abs(B.T @ beyond) @ size)

    # ------------------------------------------------------------------------------------------- by parts

    def _by_parts(self, tau: float, start: np.ndarray | None, size: int, report: Report) -> Solved | None:
        """None where settling signs does not pay after all."""
        frame, n = self.frame, self.n_rows
        if self._draw is None:
            (drawn,) = engine.sum(draw_statistic, self.data, size / n, n_jobs=self.n_jobs)
            self._draw = drawn.joined()
        guide = self._programme(self._draw, tau, None)
        share = float(self._draw[2].sum()) / self.weight
        beta = start
        if beta is None:
            penalty = np.where(np.isfinite(frame.penalty), frame.penalty * share, frame.penalty)
            lighter = Frame(frame.shift, frame.inv_scale, frame.y_shift, frame.y_scale, penalty, frame.second)
            part = Programme(guide.X, guide.y, guide.upper, guide.lower, guide.g, lighter, self.n_jobs)
            point = interior_point(
                part,
                None,
                tol=DRAW_GAP,
                max_iter=self.max_iter,
                report=lambda b, value, gap: report(b, value / (share * self.weight), gap, len(part.y), 0),
            )
            beta = point.beta
            if point.stopped:
                loss, scale = engine.sum(loss_statistic, self.data, frame, tau, beta, n_jobs=self.n_jobs)
                return self._concluded(part, beta, None, loss, 0.0, scale, True)
        assert self.root is not None
        wanted = float(size)
        while wanted < n / 2:
            band = self._band(beta, tau, wanted)
            g, constant, undecided = engine.sum(collect_statistic, self.data, frame, tau, band, n_jobs=self.n_jobs)
            programme = self._programme(undecided.joined(), tau, g)
            if len(programme.y) < frame.size:
                wanted *= 2
                continue
            found, dual, stopped = self._optimum(programme, beta, report, constant)
            loss, scale = engine.sum(loss_statistic, self.data, frame, tau, found, n_jobs=self.n_jobs)
            solved = self._concluded(programme, found, dual, loss, constant, scale, stopped)
            if stopped or solved.gap <= self.tol * solved.scale:
                return solved
            beta, wanted = found, 2 * wanted
        return None

    def _band(self, beta: np.ndarray, tau: float, wanted: float) -> Band:
        """The band that about `wanted` rows are in, as the draw tells."""
        draw: Any = self._draw
        root: Any = self.root
        X, y, s = draw
        band = Band(beta, root, -np.inf, np.inf)
        ratio = np.concatenate(
            [band.ratio(b.X, residuals(b, self.frame, beta), self.frame) for b in ArrayData(X, y, s).batches()]
        )
        half = wanted / (2 * self.n_rows)
        low, high = np.quantile(ratio, [max(tau - half, 0.0), min(tau + half, 1.0)])
        return Band(
            beta,
            root,
            -np.inf if tau <= half else float(min(low, 0.0)),
            np.inf if tau >= 1 - half else float(max(high, 0.0)),
        )


def _root_of(G: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """R with R R' = G^-1 on the free coordinates, zero elsewhere."""
    try:
        L = np.linalg.cholesky(G[np.ix_(free, free)])
    except np.linalg.LinAlgError:
        return None
    root = np.zeros((len(G), len(free)))
    root[free] = solve_triangular(L, np.eye(len(free)), lower=True, check_finite=False).T
    return root


# --------------------------------------------------------------------------------------------------------------------
# Coordinates in which quantile regression is well scaled, and the columns that have to be left out of it.


#: Columns up to which the p x p matrices of an iteration are formed.
MAX_FEATURES = 5000
#: Squared sine of the angle to the other columns, above which the second moments tell dependence from independence.
CLEARLY_INDEPENDENT = 1e-9


def quantile_solver(
    data: Data, alpha: float, *, intercept: bool, solver: str, tol: float, max_iter: int, n_jobs: int | None
) -> QuantileSolver:
    """Everything that the quantiles of one data set share: one pass over the rows, two where columns are in doubt."""
    p = data.n_features
    if p > MAX_FEATURES:
        raise DataError(f"X has {p} features; quantile regression forms matrices of their square, up to {MAX_FEATURES}")
    head = data.head()
    shift = np.zeros(p)
    if intercept and not data.sparse:
        shift = np.median(np.asarray(head.X, dtype=np.float64), axis=0)
    y_shift = float(np.median(head.y)) if intercept else 0.0
    moments = moments_of(data, np.append(shift, y_shift), n_jobs)
    n, weight = moments.n_rows, moments.weight
    mean_square = np.diagonal(moments.M) / max(weight, 1e-300)
    rms = np.sqrt(mean_square[:p])
    spread = rms
    if not data.sparse:  # one wild entry must not make all others small
        typical = np.median(np.abs(head.X - shift), axis=0)
        spread = np.where(typical > 0, typical, rms)
    inv_scale = np.divide(1.0, spread, out=np.zeros(p), where=(rms > 0) & (spread > 0))
    y_scale = float(np.median(np.abs(head.y - y_shift))) or float(np.sqrt(mean_square[p])) or 1.0

    order = np.append(np.arange(p), p + 1)
    scale = np.append(inv_scale, 1.0)
    G = moments.M[np.ix_(order, order)] * scale * scale[:, None]
    lengths = np.append(rms * inv_scale, np.inf if not intercept else 1.0)
    penalty = np.append(weight * alpha * inv_scale, 0.0 if intercept else np.inf)
    penalty[:-1][inv_scale == 0] = np.inf
    lengths[:-1][inv_scale == 0] = np.inf
    if alpha == 0:
        penalty[_dependent(data, moments, G, np.isfinite(penalty), shift, intercept, n_jobs)] = np.inf

    # Among several minima, the one that is lowest at the mean of the features and then in generic directions.
    mean = np.append((moments.mean[:p] - shift) * inv_scale, 1.0)
    generic = 1e-3 * (1 + np.modf((np.arange(p + 1) + 1) * 0.7548776662466927)[0])
    second = -(mean + generic * np.append(rms * inv_scale, 0.0))
    second[np.isinf(penalty)] = 0.0
    frame = Frame(shift, inv_scale, y_shift, y_scale, penalty, second)
    free = np.flatnonzero(np.isfinite(penalty))
    y_std = float(np.sqrt(max(moments.about_mean()[p, p], 0.0) / weight)) / y_scale
    root = _root_of(G, free)
    return QuantileSolver(data, frame, n, weight, lengths, G, y_std, root, solver, tol, max_iter, n_jobs)


def _dependent(
    data: Data,
    moments: Moments,
    G: np.ndarray,
    there: np.ndarray,
    shift: np.ndarray,
    intercept: bool,
    n_jobs: int | None,
) -> np.ndarray:
    """Columns that are combinations of the others (and of the intercept), fewest possible."""
    d = len(G)
    live = np.flatnonzero(there)
    if intercept:  # the intercept comes first, so that it is never the one to go
        live = np.append(d - 1, live[:-1])
    lengths = np.sqrt(np.diagonal(G)[live])
    S = G[np.ix_(live, live)] / lengths / lengths[:, None]
    if intercept:
        S, live = S[1:, 1:] - np.outer(S[0, 1:], S[0, 1:]), live[1:]
    if len(live) == 0:
        return live
    _, pivots, rank, info = dpstrf(S, tol=CLEARLY_INDEPENDENT, lower=1)
    if info == 0 or rank == len(live):
        return live[:0]
    if data.sparse:
        _, pivots, rank, _ = dpstrf(S, tol=1e-13 * len(live), lower=1)
        return np.asarray(live[pivots[rank:] - 1])
    factor = triangular_factor_of(data, np.append(shift, moments.shift[-1]), intercept=intercept, n_jobs=n_jobs)
    R = factor.R_x[:, live]
    lengths = np.linalg.norm(R, axis=0)
    R, order = qr(R / np.where(lengths > 0, lengths, 1.0), mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(diagonal > 8 * max(R.shape) * np.finfo(float).eps * diagonal.max(initial=0.0)))
    return np.asarray(live[order[rank:]])
