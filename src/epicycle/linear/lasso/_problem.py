"""From data to lasso solvers: columns in memory as they are, second moments from everywhere else."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, Data
from epicycle.data._matrix import as_matrix
from epicycle.data._target import as_numeric_target, as_weight, require_target
from epicycle.linear.lasso._design import columns_of
from epicycle.linear.lasso._multi_task_solver import MultiTaskSolver
from epicycle.linear.lasso._solver import ColumnSolver, LassoSolver, moment_solvers
from epicycle.linear.least_squares._direct import settled_moments
from epicycle.stats._moments import refuse_non_finite

#: Columns up to which the Gram matrix is formed where the rows are not in memory.
MAX_GRAM = 5000
#: Columns up to which it pays in memory: for one penalty, and for many. Its cost n p^2 is shared by the penalties.
FEW, FEW_FOR_PATH = 100, 600


@dataclass(frozen=True)
class LassoProblem:
    """One solver for each target, the means that give the intercepts, and the sum of the weights of all rows."""

    solvers: list[LassoSolver]
    x_mean: np.ndarray
    y_mean: np.ndarray
    weight: float

    def intercepts(self, W: np.ndarray) -> np.ndarray:
        """b = mean(y) - w'mean(x) for W of shape (..., k, p), or (m, p) for one target."""
        return np.asarray(self.y_mean - W @ self.x_mean)

    def together(self) -> LassoProblem:
        """The problem in which a feature is used for all targets or for none."""
        return replace(self, solvers=[MultiTaskSolver(self.solvers)])


def csc_data(X: Any, y: Any, sample_weight: Any, *, estimator_name: str, multi_output: bool) -> ArrayData:
    """A CSC matrix, checked, in the form that it has: coordinate descent walks along columns.

    The result is not for passes over rows.
    """
    require_target(y, estimator_name)
    # The checks of CSR, without a conversion; NaN and infinity show in the sums over columns.
    transposed, _ = as_matrix(X.T, estimator_name=estimator_name, check_finite=False)
    n = int(X.shape[0])
    targets = as_numeric_target(y, n, multi_output=multi_output, estimator_name=estimator_name)
    return ArrayData(transposed.T, targets, as_weight(sample_weight, n))


def lasso_problem(
    data: Data, *, centre: bool, n_jobs: int | None, many: bool = False, together: bool = False
) -> LassoProblem:
    """The solvers for a data set; `many` where they will be asked for many penalties, `together` one for all."""
    p, few = data.n_features, FEW_FOR_PATH if many else FEW
    if not isinstance(data, ArrayData) or (not data.sparse and p <= few and data.n_rows >= 4 * p):
        problem = moment_problem(data, centre, n_jobs)
    else:
        problem = column_problem(data, centre, n_jobs)
    if many:
        for solver in problem.solvers:
            solver.prepare_for_path()
    return problem.together() if together else problem


def column_problem(data: ArrayData, centre: bool, n_jobs: int | None) -> LassoProblem:
    """The solvers on columns in memory."""
    y: np.ndarray = np.asarray(data.y)
    Y = y[:, None] if y.ndim == 1 else y
    X: Any = data.X
    stored = X.nnz if sp.issparse(X) else X.size
    design = columns_of(X, data.weight, centre=centre, threads=engine.n_threads(float(stored), n_jobs))
    responses = [design.response(np.ascontiguousarray(Y[:, t])) for t in range(Y.shape[1])]
    seen = [design.square, *(response.xy for response in responses), np.array([r.yy for r in responses])]
    if not all(np.isfinite(values).all() for values in seen):  # the sums have seen every element of X
        refuse_non_finite(data)
        raise DataError("X: sums of squares of its columns (or of y) overflow; scale them down")
    weight = float(data.n_rows if data.weight is None else data.weight.sum())
    solvers: list[LassoSolver] = [ColumnSolver(design, response) for response in responses]
    return LassoProblem(solvers, design.mean, np.array([response.mean for response in responses]), weight)


def moment_problem(data: Data, centre: bool, n_jobs: int | None) -> LassoProblem:
    """The solvers on second moments, from one pass over the rows."""
    p = data.n_features
    check_columns(p)
    moments = settled_moments(data, centre, n_jobs)
    mean = moments.mean if centre else np.zeros(p + data.n_targets)
    return LassoProblem(list(moment_solvers(moments, centre=centre)), mean[:p], mean[p:], moments.weight)


def check_given_gram(gram: Any, data: Data, centre: bool) -> None:
    """Refuse a Gram matrix that is not that of the columns of X, as they are weighted and centred.

    All of it is compared by one product with a vector, G v = X'(X v). The solution is computed from X: the certificate
    speaks of X, whatever the rounding of the matrix. Files, collections and sparse matrices are not compared.
    """
    if gram is None or isinstance(gram, bool | str) or not isinstance(data, ArrayData) or data.sparse:
        return
    G = np.asarray(gram)
    if G.dtype.kind not in "biuf" or G.shape != (data.n_features, data.n_features):
        raise ParameterError(f"precompute: expected a matrix of shape {(data.n_features,) * 2}, got {G.shape}")
    X, weight = np.asarray(data.X), np.ones(data.n_rows) if data.weight is None else data.weight
    if data.weight is not None:  # scikit-learn's scale: the weights sum to the number of rows
        weight = weight * (data.n_rows / weight.sum())
    mean = weight @ X / data.n_rows if centre else np.zeros(data.n_features)
    if not np.allclose(mean, 0.0):
        warnings.warn(
            "Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix.",
            UserWarning,
            stacklevel=2,
        )
        return
    v = 1 + np.random.default_rng(0).random(data.n_features)  # any vector without zeros
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused later, in words of its own
        length = np.sqrt(np.maximum(np.einsum("i,ij,ij->j", weight, X, X) - data.n_rows * mean**2, 0.0))
        u = weight * (X @ v - mean @ v)
        expected, actual = u @ X - u.sum() * mean, G @ v
        rounding = 1e-4 if np.float32 in (G.dtype, X.dtype) else 1e-7
        wrong = np.abs(expected - actual) > rounding * length * (length @ v) + 1e-5
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ParameterError(
            "Gram matrix passed in via 'precompute' parameter did not pass validation when it was compared with X: row "
            f"{j} times {np.array2string(v[:3], precision=3)[:-1]} ...] is {actual[j]:.6g}, expected {expected[j]:.6g}"
        )


def check_columns(p: int) -> None:
    """Refuse a Gram matrix that is too large."""
    if p > MAX_GRAM:
        raise DataError(
            f"X has {p} features; the lasso on files or Dask collections needs their Gram matrix and takes up to "
            f"{MAX_GRAM}. Load the data into memory (sparse, if it is)."
        )
