"""Cross-validation of a path: the error of every alpha on every fold.

In memory a fold is trained on the whole matrix with weight zero on the rows that are left out, so that no rows are
copied. Where the rows are not in memory, everything comes from second moments. Rows that are in the training and test
sets of the same folds form a cell: k of them where k folds are disjoint. One pass adds the second moments up cell by
cell. A fold is trained on the sum of its cells, and its error on others is a quadratic form of theirs: with
z = (x - s_x, y - s_y, 1) and M = sum_i v_i z_i z_i', the residual y - b - w'x is u'z for
u = (-w, 1, s_y - w's_x - b), so that the mean square is u'Mu / sum_i v_i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import BaseCrossValidator, KFold

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.lasso._path import Grid, PathSettings, follow
from epicycle.linear.lasso._problem import LassoProblem, check_columns, lasso_problem
from epicycle.linear.lasso._solver import MAX_FINISHED_ON_PATH, MomentSolver
from epicycle.stats._moments import Moments, moment_statistic, shift_of

__all__ = [
    "Cells",
    "Fold",
    "cell_moments",
    "choose",
    "count_rows",
    "errors_from_moments",
    "errors_of_folds",
    "gathered_errors",
    "problem_of",
    "standard_error",
]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on."""

    train: np.ndarray
    test: np.ndarray


def errors_of_folds(
    data: ArrayData, folds: Sequence[Fold], grids: Sequence[Grid], settings: PathSettings, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Mean squared errors of shape (n_grids, n_alphas, n_folds), and the number of solutions that did not converge.

    Folds run on threads; each on one, so that the result does not depend on their number.
    """
    if sp.issparse(data.X):
        data = ArrayData(data.X.tocsc(), data.y, data.weight)

    def evaluate(f: int, grid: Grid) -> tuple[np.ndarray, int]:
        return _error_of_fold(data, folds[f], grid, settings)

    return gathered_errors(evaluate, len(folds), grids, n_jobs)


def gathered_errors(
    evaluate: Callable[[int, Grid], tuple[np.ndarray, int]], n_folds: int, grids: Sequence[Grid], n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Evaluate every fold and grid on threads: errors of all alphas, and how many did not converge."""
    errors = np.empty((len(grids), len(grids[0].alphas), n_folds))
    failures = [0]
    pieces = [(g, f) for g in range(len(grids)) for f in range(n_folds)]

    def work(piece: tuple[int, int]) -> tuple[int, int, np.ndarray, int]:
        g, f = piece
        return g, f, *evaluate(f, grids[g])

    def consume(result: tuple[int, int, np.ndarray, int]) -> None:
        g, f, error, failed = result
        errors[g, :, f] = error
        failures[0] += failed

    in_order(iter(pieces), work, consume, min(n_threads(float("inf"), n_jobs), len(pieces)))
    return errors, failures[0]


def _error_of_fold(data: ArrayData, fold: Fold, grid: Grid, settings: PathSettings) -> tuple[np.ndarray, int]:
    weight = np.zeros(data.n_rows)
    np.add.at(weight, fold.train, 1.0)
    if data.weight is not None:
        weight *= data.weight
    problem = lasso_problem(ArrayData(data.X, data.y, weight), centre=settings.centre, n_jobs=1, many=True)
    outcomes = follow(problem.solvers[0], grid, settings)
    W = np.array([outcome.x for outcome in outcomes])
    residuals = data.y[fold.test, None] - _rows_times(data.X, fold.test, W) - problem.intercepts(W)
    tested = None if data.weight is None else data.weight[fold.test]
    if tested is not None and not tested.any():
        tested = None  # rows of no weight are all there is to test on
    error = np.average(residuals**2, axis=0, weights=tested)
    return error, sum(outcome.reason != "converged" for outcome in outcomes)


def _rows_times(X: Any, rows: np.ndarray, W: np.ndarray) -> np.ndarray:
    """X[rows] @ W.T, from the columns that any solution uses."""
    used = np.flatnonzero(W.any(axis=0))
    part = X[:, used][rows] if sp.issparse(X) else X[np.ix_(rows, used)]
    return np.asarray(part @ W[:, used].T)


def standard_error(errors: np.ndarray) -> np.ndarray:
    """Standard error of the mean over folds (the last axis)."""
    k = errors.shape[-1]
    return errors.std(axis=-1, ddof=1) / np.sqrt(k) if k > 1 else np.zeros(errors.shape[:-1])


def choose(mean: np.ndarray, se: np.ndarray, rule: Literal["min", "1se"]) -> tuple[int, int]:
    """(grid, alpha) of the least error; with "1se" the largest alpha of that grid within one standard error of it."""
    g, a = np.unravel_index(int(np.argmin(mean)), mean.shape)
    if rule == "1se":
        a = np.argmax(mean[g] <= mean[g, a] + se[g, a])  # alphas decrease: the first is the largest
    return int(g), int(a)


# ------------------------------------------------------------------------------------------------ rows not in memory


@dataclass(frozen=True)
class Cells:
    """Runs of consecutive rows of one cell each, and how often each cell is in the training and test sets of folds.

    starts, codes : first row and cell of every run.
    train, test : arrays of shape (n_folds, n_cells).
    """

    starts: np.ndarray
    codes: np.ndarray
    train: np.ndarray
    test: np.ndarray

    @classmethod
    def of_splitter(cls, splitter: BaseCrossValidator, n_rows: int) -> Cells:
        """The cells of a splitter, which gets to know the number of rows and nothing else."""
        if isinstance(splitter, KFold) and not splitter.shuffle and n_rows >= splitter.n_splits:
            k = splitter.n_splits
            sizes = np.full(k, n_rows // k)
            sizes[: n_rows % k] += 1
            own = np.eye(k)
            return cls(np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.arange(k), 1 - own, own)
        folds = [Fold(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.empty((n_rows, 0)))]
        return cls.of_folds(folds, n_rows)

    @classmethod
    def of_folds(cls, folds: Sequence[Fold], n_rows: int) -> Cells:
        """The cells of given folds."""
        cell, members = np.zeros(n_rows, dtype=np.int64), np.empty((1, 0))
        for rows in [part for fold in folds for part in (fold.train, fold.test)]:
            times = np.bincount(rows, minlength=n_rows)
            key, cell = np.unique(cell * (times.max() + 1) + times, return_inverse=True)
            before, last = np.divmod(key, times.max() + 1)
            members = np.column_stack([members[before], last])
        change = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
        return cls(change, cell[change], members[:, ::2].T, members[:, 1::2].T)

    @property
    def n(self) -> int:
        """Number of cells."""
        return int(self.train.shape[1])

    def of_rows(self, first: int, count: int) -> np.ndarray:
        """The cell of each of so many rows."""
        return self.codes[np.searchsorted(self.starts, np.arange(first, first + count), side="right") - 1]


@dataclass(frozen=True)
class CellSums:
    """Second moments and numbers of rows, by cell."""

    moments: dict[int, tuple[np.ndarray, int]]

    def __add__(self, other: CellSums) -> CellSums:
        total = dict(self.moments)
        for cell, (M, n) in other.moments.items():
            total[cell] = (total[cell][0] + M, total[cell][1] + n) if cell in total else (M, n)
        return CellSums(total)


def cell_statistic(batch: Batch, shift: np.ndarray, cells: Cells) -> tuple[CellSums]:
    """Second moments of the cells that a batch has rows of."""
    code = cells.of_rows(batch.start, batch.n_rows)
    sums = {}
    for cell in np.unique(code):
        rows = np.flatnonzero(code == cell)
        part = batch
        if len(rows) < len(code):
            chosen = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
            weight = None if batch.weight is None else batch.weight[chosen]
            part = Batch(batch.X[chosen], None if batch.y is None else batch.y[chosen], weight, batch.start)
        sums[int(cell)] = moment_statistic(part, shift)[:2]
    return (CellSums(sums),)


def count_statistic(batch: Batch) -> tuple[int]:
    return (batch.n_rows,)


def count_rows(data: Data) -> int:
    """The number of rows; one pass where it is not known yet."""
    if isinstance(data, DaskData) and data.sizes is None:
        from dask import compute, delayed

        # The engine numbers rows by the sizes of the partitions before them.
        data.sizes = [int(n) for n in compute(*(delayed(_rows_of_part, pure=False)(part) for part in data.parts))]
    if data.n_rows is not None:
        return data.n_rows
    return int(engine.sum(count_statistic, data)[0])


def _rows_of_part(part: Data) -> int:
    return part.n_rows or 0


def cell_moments(data: Data, cells: Cells, *, centre: bool, n_jobs: int | None) -> list[Moments]:
    """The moments of every cell around one point near the mean: one pass, or two where the first rows mislead."""
    check_columns(data.n_features)
    d = data.n_features + data.n_targets + 1
    require_memory(8.0 * d * d * (2 * cells.n + 4), f"{cells.n} times the {d} x {d} second moments", "use fewer folds")
    shift = shift_of(data) if centre else np.zeros(d - 1)
    parts = _pass(data, cells, shift, n_jobs)
    total = _sum(parts, np.ones(cells.n))
    if centre and not data.sparse and total.weight > 0:
        spread, about_shift = np.diagonal(total.about_mean()), np.diagonal(total.M)[:-1]
        if (spread < 1e-6 * about_shift).any() and not np.array_equal(total.mean, shift):
            parts = _pass(data, cells, total.mean, n_jobs)
    return parts


def _pass(data: Data, cells: Cells, shift: np.ndarray, n_jobs: int | None) -> list[Moments]:
    (sums,) = engine.sum(cell_statistic, data, shift, cells, n_jobs=n_jobs)
    d = len(shift) + 1
    nothing = (np.zeros((d, d)), 0)
    if not all(np.isfinite(M).all() for M, _ in sums.moments.values()):
        raise DataError("X: sums of squares of its columns (or of y) overflow; scale them down")
    return [Moments(M, shift, n, data.n_features) for M, n in (sums.moments.get(c, nothing) for c in range(cells.n))]


def _sum(parts: Sequence[Moments], times: np.ndarray) -> Moments:
    M = sum((k * part.M for k, part in zip(times, parts, strict=True) if k), np.zeros_like(parts[0].M))
    n = int(sum(k * part.n_rows for k, part in zip(times, parts, strict=True)))
    return Moments(M, parts[0].shift, n, parts[0].p)


def problem_of(parts: Sequence[Moments], *, centre: bool) -> LassoProblem:
    """The problem of all rows together."""
    return _problem(_sum(parts, np.ones(len(parts))), centre)


def _problem(moments: Moments, centre: bool) -> LassoProblem:
    mean = moments.mean if centre else np.zeros(len(moments.shift))
    solver = MomentSolver(moments, 0, centre=centre)
    solver.finish_up_to = MAX_FINISHED_ON_PATH
    return LassoProblem([solver], mean[: moments.p], mean[moments.p :])


def errors_from_moments(
    parts: Sequence[Moments], cells: Cells, grids: Sequence[Grid], settings: PathSettings, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Mean squared errors of shape (n_grids, n_alphas, n_folds), and the number of solutions that did not converge."""
    for name, times in (("trained", cells.train), ("tested", cells.test)):
        if not all(_sum(parts, row).weight > 0 for row in times):
            raise DataError(f"sample_weight: all rows that a fold is {name} on have weight zero")

    def evaluate(f: int, grid: Grid) -> tuple[np.ndarray, int]:
        problem, test = _problem(_sum(parts, cells.train[f]), settings.centre), _sum(parts, cells.test[f])
        outcomes = follow(problem.solvers[0], grid, settings)
        W = np.array([outcome.x for outcome in outcomes])
        offset = test.shift[-1] - W @ test.shift[:-1] - problem.intercepts(W)
        U = np.column_stack([-W, np.ones(len(W)), offset])
        error = np.maximum(np.einsum("ai,ai->a", U @ test.M, U), 0.0) / test.weight
        return error, sum(outcome.reason != "converged" for outcome in outcomes)

    return gathered_errors(evaluate, len(cells.train), grids, n_jobs)
