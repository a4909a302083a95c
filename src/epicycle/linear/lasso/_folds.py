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
from epicycle.linear.lasso._solver import LassoSolver, moment_solvers
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

    in_order(pieces, work, consume, min(n_threads(float("inf"), n_jobs), len(pieces)))
    return errors, failures[0]


def _error_of_fold(data: ArrayData, fold: Fold, grid: Grid, settings: PathSettings) -> tuple[np.ndarray, int]:
    weight = training_weights(data, fold)
    training = ArrayData(data.X, data.y, weight)
    problem = lasso_problem(training, centre=settings.centre, n_jobs=1, many=True, together=settings.together)
    y, tested = np.asarray(data.y), tested_weights(data, fold)
    Y = y[fold.test].reshape(len(fold.test), -1)

    def error(t: int, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        residuals = Y[:, [t]] - rows_times(data.X, fold.test, W) - b
        return np.asarray(np.average(residuals**2, axis=0, weights=tested))

    return _errors_of_path(problem, grid, settings, error)


def _errors_of_path(
    problem: LassoProblem,
    grid: Grid,
    settings: PathSettings,
    error: Callable[[int, np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, int]:
    """Follow a path: errors at every alpha, the mean over targets, and the number of solutions that did not converge.

    `error` is given the number of a target, its coefficients, of shape (n_alphas, n_features), and intercepts.
    """
    outcomes = follow(problem.solvers[0], grid, settings)
    k = len(problem.y_mean)
    W = np.array([outcome.x.reshape(k, -1) for outcome in outcomes])  # (alphas, targets, features)
    b = problem.intercepts(W)
    errors = np.mean([error(t, W[:, t], b[:, t]) for t in range(k)], axis=0)
    return errors, sum(outcome.reason != "converged" for outcome in outcomes)


def tested_weights(data: ArrayData, fold: Fold) -> np.ndarray | None:
    """Weights of the rows that a fold is tested on; None where all have none, and all count alike."""
    tested = None if data.weight is None else data.weight[fold.test]
    return tested if tested is not None and tested.any() else None


def rows_times(X: Any, rows: np.ndarray, W: np.ndarray) -> np.ndarray:
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


def problem_of(parts: Sequence[Moments], *, centre: bool, together: bool = False) -> LassoProblem:
    """The problem of all rows together."""
    return problem_from_moments(sum_of_cells(parts, np.ones(len(parts))), centre, together)


def problem_from_moments(moments: Moments, centre: bool, together: bool = False) -> LassoProblem:
    """The problem of rows of which the second moments are known."""
    mean = moments.mean if centre else np.zeros(len(moments.shift))
    solvers: list[LassoSolver] = list(moment_solvers(moments, centre=centre))
    for solver in solvers:
        solver.prepare_for_path()
    problem = LassoProblem(solvers, mean[: moments.p], mean[moments.p :], moments.weight)
    return problem.together() if together else problem


def check_cells(parts: Sequence[Moments], cells: Cells) -> None:
    """Refuse folds of which the rows to train or to test on have no weight."""
    for name, times in (("trained", cells.train), ("tested", cells.test)):
        if not all(sum_of_cells(parts, row).weight > 0 for row in times):
            raise DataError(f"sample_weight: all rows that a fold is {name} on have weight zero")


def errors_from_moments(
    parts: Sequence[Moments], cells: Cells, grids: Sequence[Grid], settings: PathSettings, n_jobs: int | None
) -> tuple[np.ndarray, int]:
    """Mean squared errors of shape (n_grids, n_alphas, n_folds), and the number of solutions that did not converge."""
    check_cells(parts, cells)

    def evaluate(f: int, grid: Grid) -> tuple[np.ndarray, int]:
        problem = problem_from_moments(sum_of_cells(parts, cells.train[f]), settings.centre, settings.together)
        test = sum_of_cells(parts, cells.test[f])
        return _errors_of_path(problem, grid, settings, lambda t, W, b: mean_squares(test, W, b, t))

    return gathered_errors(evaluate, len(cells.train), grids, n_jobs)
