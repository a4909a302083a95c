"""Paths trained without the rows of a fold, and the errors of their points on these rows, in memory or from moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.data import ArrayData, Data
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.linear._folds import Fold, cell_moments, cells_of, folds_of, mean_squares, sum_of_cells, training_weights
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lasso._folds import check_cells, problem_from_moments, problem_of, rows_times, tested_weights
from epicycle.linear.lasso._problem import LassoProblem, check_columns

#: From a problem to the points of its path by a number each, and the coefficients there, of shape (points, features).
Trace = Callable[[LassoProblem], tuple[np.ndarray, np.ndarray]]


class CrossValidated(Protocol):
    """A model with folds."""

    cv: Any
    fit_intercept: bool
    n_jobs: int | None

    def _split_arguments(self, params: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class FoldPath:
    """The path of one fold.

    points : one number for each point, such as its alpha.
    errors : from a matrix whose columns mix points (None: each alone) to mean squared errors on the rows left out.
    """

    points: np.ndarray
    errors: Callable[[Any], np.ndarray]


def paths_of_folds(
    model: CrossValidated, data: Data, trace: Trace, params: Mapping[str, Any]
) -> tuple[LassoProblem, list[FoldPath]]:
    """The problem of all rows, and the paths of all folds; these run on threads, each on one."""
    centre, arguments = model.fit_intercept, model._split_arguments(params)
    if isinstance(data, ArrayData):
        rows = data
        problem = lars_problem(rows, centre=centre, n_jobs=model.n_jobs)
        folds = folds_of(model.cv, rows, arguments=arguments)
        return problem, _on_threads(lambda f: _in_memory(rows, folds[f], centre, trace), len(folds), model.n_jobs)
    if arguments:
        raise ParameterError(f"{sorted(arguments)}: folds of rows that are not in memory are made by their numbers")
    check_columns(data.n_features)
    cells = cells_of(model.cv, data)
    parts = cell_moments(data, cells, centre=centre, n_jobs=model.n_jobs)
    check_cells(parts, cells)

    def from_moments(f: int) -> FoldPath:
        problem = problem_from_moments(sum_of_cells(parts, cells.train[f]), centre)
        test = sum_of_cells(parts, cells.test[f])
        points, W = trace(problem)
        b = problem.intercepts(W)

        def errors(mix: Any) -> np.ndarray:
            return mean_squares(test, W, b) if mix is None else mean_squares(test, np.asarray(mix.T @ W), b @ mix)

        return FoldPath(points, errors)

    return problem_of(parts, centre=centre), _on_threads(from_moments, len(cells.train), model.n_jobs)


def _in_memory(data: ArrayData, fold: Fold, centre: bool, trace: Trace) -> FoldPath:
    problem = lars_problem(ArrayData(data.X, data.y, training_weights(data, fold)), centre=centre, n_jobs=1)
    points, W = trace(problem)
    residuals = np.asarray(data.y)[fold.test, None] - rows_times(data.X, fold.test, W) - problem.intercepts(W)
    weights = tested_weights(data, fold)

    def errors(mix: Any) -> np.ndarray:
        return np.asarray(np.average((residuals if mix is None else residuals @ mix) ** 2, axis=0, weights=weights))

    return FoldPath(points, errors)


def _on_threads(work: Callable[[int], FoldPath], n_folds: int, n_jobs: int | None) -> list[FoldPath]:
    found: list[FoldPath] = []
    in_order(range(n_folds), work, found.append, min(n_threads(float("inf"), n_jobs), n_folds))
    return found
