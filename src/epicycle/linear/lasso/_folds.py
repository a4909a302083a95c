"""Cross-validation of a path: the error of every alpha on every fold.

A fold is trained on the whole matrix with weight zero on the rows that are left out, so that no rows are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear.lasso._path import follow
from epicycle.linear.lasso._problem import lasso_problem

__all__ = ["Fold", "Grid", "PathSettings", "choose", "errors_of_folds", "gathered_errors", "standard_error"]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Grid:
    """The alphas of one l1_ratio, decreasing."""

    l1_ratio: float
    alphas: np.ndarray


@dataclass(frozen=True)
class PathSettings:
    """How every path is computed."""

    factors: np.ndarray
    positive: bool
    centre: bool
    tol: float
    max_iter: int


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
    """What `evaluate` gives for every fold and grid: errors of all alphas, and how many did not converge."""
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
    outcomes = follow(
        problem.solvers[0], grid.alphas, grid.l1_ratio, settings.factors, settings.positive, settings.tol,
        settings.max_iter,
    )  # fmt: skip
    W = np.array([outcome.w for outcome in outcomes])
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
