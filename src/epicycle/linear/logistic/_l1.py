"""From data to the solvers of L1-penalised logistic regression: columns in memory, sums over rows otherwise.

Parameters are the matrix (W, b) of shape (rows, p + 1), flattened, with b the intercept of features about zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData, Data
from epicycle.data._matrix import as_matrix
from epicycle.data._target import as_labels, as_weight, require_target
from epicycle.linear.lasso._design import columns_of
from epicycle.linear.logistic._duality import gap_certificate
from epicycle.linear.logistic._objective import far_shift
from epicycle.linear.logistic._proximal_newton import HessianSolver
from epicycle.linear.logistic._statistics import row_weights
from epicycle.linear.logistic._working_sets import ColumnLogistic
from epicycle.optim import Monitor, Solution
from epicycle.optim._working_set import Outcome

NAME = "proximal-newton"
#: Parameters up to which a Hessian of all columns pays for dense data in memory, and up to which it is formed at all.
FEW, MAX_PARAMETERS = 300, 5000


def csc_labels(X: Any, y: Any, sample_weight: Any, *, estimator_name: str) -> ArrayData:
    """A CSC matrix, checked, in the form that it has; the result is not for passes over rows."""
    require_target(y, estimator_name)
    transposed, _ = as_matrix(X.T, estimator_name=estimator_name)  # the checks of CSR, without a conversion
    n = int(X.shape[0])
    return ArrayData(transposed.T, as_labels(y, n, estimator_name=estimator_name), as_weight(sample_weight, n))


def sums_pay(data: Data, rows: int) -> bool:
    """Whether Hessians are summed over rows: always out of memory, and for few dense columns in it."""
    if not isinstance(data, ArrayData):
        return True
    return not data.sparse and rows * data.n_features <= FEW and data.n_rows >= 4 * data.n_features


@dataclass(frozen=True)
class _Problem:
    """Data, penalty and start of a fit."""

    data: Data
    n_classes: int
    intercept: bool
    class_weight: np.ndarray | None
    start: np.ndarray | None
    n_jobs: int | None


class _Goal(NamedTuple):
    """The penalties, the tolerance and the largest number of rounds."""

    l1: float
    l2: float
    tol: float
    max_iter: int


def minimise_l1(
    data: Data,
    n_classes: int,
    l1: float,
    l2: float,
    *,
    intercept: bool,
    class_weight: np.ndarray | None,
    tol: float,
    max_iter: int,
    monitor: Monitor,
    state: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> Solution:
    """Minimise sum_i w_i loss + l1 |W|_1 + l2/2 |W|^2 until the duality gap is at most tol times the objective."""
    rows = 1 if n_classes == 2 else n_classes
    start = None if state is None else np.asarray(state["params"], dtype=np.float64)
    if start is not None and start.shape != (rows, data.n_features + 1):
        raise DataError(f"the checkpoint holds parameters of shape {start.shape}; these data have other classes")
    problem = _Problem(data, n_classes, intercept, class_weight, start, n_jobs)
    solve = _from_sums if sums_pay(data, rows) else _from_columns
    outcome = solve(problem, _Goal(l1, l2, tol, max_iter), monitor)
    params, history = outcome.x, monitor.history()
    return Solution(
        params.ravel(),
        outcome.objective,
        history,
        gap_certificate(outcome.gap, outcome.objective, tol),
        max(1, history.n_iter),
        outcome.reason,
        state={"solver": NAME, "params": params},
    )


def column_solver(
    data: ArrayData, n_classes: int, *, intercept: bool, class_weight: np.ndarray | None, n_jobs: int | None
) -> ColumnLogistic:
    """The solver on columns in memory; CSR is converted."""
    weight = row_weights(data.rows(0, data.n_rows), class_weight)
    total = float(data.n_rows if weight is None else weight.sum())
    X: Any = data.X
    stored = X.nnz if sp.issparse(X) else X.size
    design = columns_of(X, weight, centre=intercept, threads=engine.n_threads(float(stored), n_jobs))
    return ColumnLogistic(design, np.asarray(data.y), n_classes, total)


def _from_columns(problem: _Problem, goal: _Goal, monitor: Monitor) -> Outcome:
    data, start = problem.data, problem.start
    assert isinstance(data, ArrayData)
    solver = column_solver(
        data,
        problem.n_classes,
        intercept=problem.intercept,
        class_weight=problem.class_weight,
        n_jobs=problem.n_jobs,
    )
    if start is not None:
        solver.start_at(start[:, :-1], start[:, -1])

    def report(done: int, params: np.ndarray, objective: float, **columns: float) -> bool:
        return _notify(monitor, done, params, objective, **columns)

    return solver.minimise(*goal, report)


def _from_sums(problem: _Problem, goal: _Goal, monitor: Monitor) -> Outcome:
    data, n_classes, start = problem.data, problem.n_classes, problem.start
    rows, p = 1 if n_classes == 2 else n_classes, data.n_features
    refuse_many(data, n_classes)
    shift = far_shift(data) if problem.intercept else np.zeros(p)
    solver = HessianSolver(
        data,
        n_classes,
        intercept=problem.intercept,
        shift=shift,
        class_weight=problem.class_weight,
        n_jobs=problem.n_jobs,
    )
    params = np.zeros((rows, p + 1)) if start is None else at_origin(start, -shift)

    def report(done: int, params: np.ndarray, objective: float, gap: float, step: float) -> bool:
        return _notify(monitor, done, at_origin(params, shift), objective, gap=gap, step=step)

    found = solver.minimise(params, *goal, report)
    return replace(found, x=at_origin(found.x, shift))


def refuse_many(data: Data, n_classes: int) -> None:
    """Raise where the Hessian of all coefficients would be too large."""
    size = data.n_features if n_classes == 2 else n_classes * data.n_features
    if size > MAX_PARAMETERS:
        raise DataError(
            f"X has {data.n_features} features and y {n_classes} classes; an L1 penalty on files or Dask collections "
            f"needs the Hessian of their {size} coefficients and takes up to {MAX_PARAMETERS}. Load the data into "
            "memory (sparse, if it is)."
        )


def at_origin(params: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """(W, b) with b the intercept of features about zero, from that of features about `shift`."""
    params = params.copy()
    params[:, -1] -= params[:, :-1] @ shift
    return params


def _notify(monitor: Monitor, done: int, params: np.ndarray, objective: float, **columns: float) -> bool:
    return monitor(
        done, params.ravel(), objective=objective, state=lambda: {"solver": NAME, "params": params}, **columns
    )
