"""Cross-validation of a path: the error of every alpha on every fold, in memory or from second moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear._folds import Cells, Fold, mean_squares, sum_of_cells, training_weights
from epicycle.linear.lasso._path import Grid, PathSettings, follow
from epicycle.linear.lasso._problem import LassoProblem, lasso_problem
from epicycle.linear.lasso._solver import MAX_FINISHED_ON_PATH, MomentSolver
from epicycle.stats._moments import Moments


def errors_of_folds(
    data: ArrayData, folds: Sequence[Fold], grids: Sequence[Grid], settings: PathSettings, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Mean squared errors of shape (n_grids, n_alphas, n_folds), and the number of solutions that did not converge.

    Folds run on threads; each on one, so that the result does not depend on their number.
    """
    if sp.issparse(data.X):
        data = ArrayData(sp.csc_array(data.X), data.y, data.weight)

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
    weight = training_weights(data, fold)
    problem = lasso_problem(ArrayData(data.X, data.y, weight), centre=settings.centre, n_jobs=1, many=True)
    outcomes = follow(problem.solvers[0], grid, settings)
    W = np.array([outcome.x for outcome in outcomes])
    residuals = np.asarray(data.y)[fold.test, None] - _rows_times(data.X, fold.test, W) - problem.intercepts(W)
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


def choose(mean: np.ndarray, se: np.ndarray, rule: Literal["min", "1se"]) -> tuple[int, int]:
    """(grid, alpha) of the least error; with "1se" the largest alpha of that grid within one standard error of it."""
    g, a = np.unravel_index(int(np.argmin(mean)), mean.shape)
    if rule == "1se":
        a = np.argmax(mean[g] <= mean[g, a] + se[g, a])  # alphas decrease: the first is the largest
    return int(g), int(a)


# ------------------------------------------------------------------------------------------------ rows not in memory


def problem_of(parts: Sequence[Moments], *, centre: bool) -> LassoProblem:
    """The problem of all rows together."""
    return _problem(sum_of_cells(parts, np.ones(len(parts))), centre)


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
        if not all(sum_of_cells(parts, row).weight > 0 for row in times):
            raise DataError(f"sample_weight: all rows that a fold is {name} on have weight zero")

    def evaluate(f: int, grid: Grid) -> tuple[np.ndarray, int]:
        problem, test = (
            _problem(sum_of_cells(parts, cells.train[f]), settings.centre),
            sum_of_cells(parts, cells.test[f]),
        )
        outcomes = follow(problem.solvers[0], grid, settings)
        W = np.array([outcome.x for outcome in outcomes])
        return mean_squares(test, W, problem.intercepts(W)), sum(outcome.reason != "converged" for outcome in outcomes)

    return gathered_errors(evaluate, len(cells.train), grids, n_jobs)
