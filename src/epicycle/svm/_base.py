"""The base of support vector machines: their arguments, the solution of their problems, the rows that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._arguments import SharedArguments, defaults_of
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, DataError, DataTypeError, EpicycleWarning
from epicycle.core._history import History
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.data import ArrayData, Batch
from epicycle.kernels._given import Entries, FunctionKernel, Precomputed
from epicycle.kernels._inner_products import Linear
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import KERNEL_DOCS, KERNEL_PARAMETERS, KernelMachine, select_rows
from epicycle.optim import Solution
from epicycle.svm._kernel_rows import KernelRows, PairMatrices, kernel_rows
from epicycle.svm._row_statistics import near_mean, variance
from epicycle.svm._subproblems import Options, Solved, Subproblem, interim, solve

Array = np.ndarray
_SINGLE_PRECISION_TOL = 1e-4  # smallest tolerance for which kernel values in single precision are a good start
_DENSE_BYTES = 2.0**24  # up to which sparse rows are made dense in the fit, so that it takes the same steps
_LARGEST = 1e300  # gamma and its inverse stay below: their squares and roots are finite
_WHOLE_BYTES = 2.0**29  # up to which the matrix of a Python function is computed at once
_WITH_GAMMA = ("rbf", "gaussian", "laplacian", "poly", "polynomial", "sigmoid", "chi2")

#: The arguments that all of them have.
MACHINE_PARAMETERS: Mapping[str, Domain] = {
    **KERNEL_PARAMETERS,
    "gamma": AnyOf(Choice("scale", "auto"), Real(minimum=0, inclusive=False)),
    "cache_size": Real(minimum=0, inclusive=False),
    "shrinking": Boolean(),
    "max_iter": Integer(minimum=-1),
}


class MachineArguments(SharedArguments, total=False):
    """Arguments of the constructors of all support vector machines, with their defaults."""

    kernel: Annotated[Any, "rbf"]
    degree: Annotated[int, 3]
    gamma: Annotated[float | str, "scale"]
    coef0: Annotated[float, 0.0]
    cache_size: Annotated[float, 200]
    shrinking: Annotated[bool, True]


MACHINE_DEFAULTS: Mapping[str, Any] = defaults_of(MachineArguments, tol=1e-3, max_iter=-1, n_jobs=None, verbose=0)

_KIND = "duality gap and KKT violation"


@dataclass(frozen=True)
class Fit:
    """The data and the problems of a fit.

    rows : rows with a weight, of the kind that the kernel takes
    kept : their places among the rows of X
    problems : one for each function
    coded : the class of every row, for classifiers
    """

    rows: Any
    kept: Array
    problems: Sequence[Subproblem]
    coded: Array | None = None

    def distinct(self) -> tuple[int, Array]:
        """Number of distinct rows, and for every row the number of the first that equals it."""
        rows, place = np.unique(self.kept, return_inverse=True)
        return len(rows), place


class SupportVectorMachine(KernelMachine):
    """A kernel machine whose function is made of few of the rows."""

    _docs: ClassVar[Mapping[str, str]] = {
        **KERNEL_DOCS,
        "gamma": """gamma : {"scale", "auto"} or float, default={default}
    Parameter of kernels by name: 1 / (n_features times the variance of X), 1 / n_features, or a number.""",
        "tol": """tol : float, default={default}
    Tolerance of both the worst violation of the optimality conditions and the relative duality gap.""",
        "cache_size": """cache_size : float, default={default}
    Megabytes for kernel values.""",
        "shrinking": """shrinking : bool, default={default}
    Whether a round works on the variables that violate the conditions most, and not on all of them at once where
    their matrix fits into the cache. It changes the time, not the solution.""",
        "max_iter": """max_iter : int, default={default}
    Maximum number of steps for each function; -1 for a limit that grows with the number of rows.""",
        "support_": """support_ : ndarray of shape (n_support,)
    Indices of the rows of the fit that are support vectors, for a classifier class after class.
support_vectors_ : array or sparse matrix of shape (n_support, n_features)
    The support vectors, sparse if the rows of the fit were; empty for a precomputed kernel.""",
        "function_attributes": r"""coef_ : array or sparse matrix of shape (n_functions, n_features)
    The weights of the features, for a linear kernel; read-only, sparse if the rows of the fit were.
weight_norm_ : ndarray of shape (n_functions,)
    \|w\| in the space of the kernel.""",
        "evidence_attributes": """dual_objective_ : ndarray of shape (n_functions,)
duality_gap_ : ndarray of shape (n_functions,)
    Relative duality gaps.
kkt_violation_ : ndarray of shape (n_functions,)
    Violation of the optimality conditions by the worst pair of coefficients.
certificate_ : Certificate
    The larger of gap and violation, over all functions.
history_ : History
    Objective, violation, steps and support vectors of every round; for more than two classes of every function.
%(n_iter_)s
fit_status_ : int
    0 if the fit reached its tolerance, otherwise 1.
shape_fit_ : tuple of int
    Shape of X in the fit.
converged_ : bool""",
        "n_iter_": """n_iter_ : int
    Number of rounds.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = (
        "support_",
        "function_attributes",
        "kernel_",
        "evidence_attributes",
    )
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C3",), engines=("memory",), certificate=_KIND, keeps_rows=True
    )

    gamma: Any
    tol: float
    cache_size: float
    max_iter: int
    shrinking: bool
    fit_status_: int
    shape_fit_: tuple[int, ...]
    random_state: Any
    support_: Array
    support_vectors_: Any
    dual_coef_: Any
    coef_: Any
    intercept_: Array
    n_support_: Array
    weight_norm_: Array
    dual_objective_: Array
    duality_gap_: Array
    kkt_violation_: Array
    _columns_: Array
    _all_rows_: Any
    _place_: Array

    def _gamma(self, data: ArrayData | None) -> float | None:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if data is None or self.gamma == "auto" or not (isinstance(self.kernel, str) and self.kernel in _WITH_GAMMA):
            return None
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            spread = variance(data)
        size = data.n_features * spread
        if not size < _LARGEST:  # overflow, or a gamma that has lost its digits
            raise DataError(
                "X: its variance is too large for gamma='scale'. The dual coefficients or intercepts are not finite "
                "for such rows; scale X (StandardScaler), or give gamma as a number"
            )
        return 1.0 / max(size, 1 / _LARGEST) if spread > 0 else 1.0

    # ------------------------------------------------------------------------------------------- fit

    def _intake(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[ArrayData, Any]:
        if self.kernel == "precomputed" and sp.issparse(X):
            raise DataTypeError(
                "X: Sparse precomputed kernels are not supported, because nearly all kernel values are different from "
                "zero; give the matrix as an array (X.toarray())"
            )
        if sample_weight is not None and not np.isscalar(sample_weight):
            self._check_some_weight(sample_weight, y)
        data, rows = super()._intake(X, y, sample_weight, **checks)
        self.shape_fit_ = tuple(int(k) for k in rows.shape)
        return data, rows

    def _check_some_weight(self, sample_weight: Any, y: Any) -> None:
        """Refuse weights that leave no row."""
        try:
            weight = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError):
            return  # refused with the other checks
        if weight.size and (weight <= 0).all():
            raise DataError("sample_weight: Invalid input - all samples have zero or negative weights.")

    def _solve(self, fit: Fit) -> tuple[list[Solved | None], History]:
        """(solutions of the problems of a fit, None for those after a callback has stopped the fit; history)."""
        entries, prepared = self.kernel_, self.kernel_.prepare(self._rows_to_solve(fit.rows))
        nbytes = self.cache_size * 2.0**20
        if self._is_whole_function() and 8.0 * prepared.n_rows**2 <= max(nbytes, _WHOLE_BYTES):
            n, place = fit.distinct()
            whole = prepared.take(slice(0, n))
            matrix = self.kernel_.block(whole, whole)
            matrix = matrix if n == len(place) else matrix[np.ix_(place, place)]
            entries, prepared = Precomputed(), Entries(matrix, np.arange(len(place)))
        seed = seed_of(self.random_state) if getattr(self, "solver", "smo") == "dual-cd" else None
        options = Options(self.tol, self.max_iter, nbytes, seed, bool(self.shrinking))
        if len(fit.problems) > 1:
            return self._solve_pairs(fit, entries, prepared, options)
        (problem,) = fit.problems
        kernel = kernel_rows(entries, prepared, nbytes, self.n_jobs)

        def attributes(x: Array) -> dict[str, Any]:
            self._assign(fit, [interim(problem, kernel, x)])
            return self._learnt_attributes()

        monitor = self._monitor(None, attributes)
        state, mercer = self._resume_state() or None, self.kernel_.mercer
        solution = solve(problem, kernel, options, mercer=mercer, monitor=monitor, state=state)
        if solution.reason == "infeasible":
            raise _infeasible(self, problem, solution)
        return [solution], monitor.history()

    def _solve_pairs(
        self, fit: Fit, entries: Kernel, prepared: Any, options: Options
    ) -> tuple[list[Solved | None], History]:
        """The same for several problems, some at a time where their matrices fit into the cache."""
        problems, mercer = fit.problems, self.kernel_.mercer
        solutions: list[Solved | None] = [None] * len(problems)

        def attributes(_x: Array) -> dict[str, Any]:
            self._assign(fit, solutions)
            return self._learnt_attributes()

        monitor = self._monitor(None, attributes)
        state = self._resume_state() or {}
        known = [Solved.restored(state[f"problem{k}"]) for k in range(int(state.get("done", 0)))]
        total, number = 0.0, 0

        def work(k: int, kernel: KernelRows) -> Solved:
            return known[k] if k < len(known) else solve(problems[k], kernel, options, mercer=mercer)

        def consume(found: Solved) -> None:
            nonlocal number, total
            k, number = number, number + 1
            solutions[k] = found
            if found.reason == "infeasible":
                raise _infeasible(self, problems[k], found)
            total += found.evidence.objective
            if k < len(known):
                return
            support = int(np.count_nonzero(found.coefficients))
            facts = {"violation": found.evidence.violation, "steps": found.steps, "support": support}
            kept = partial(_saved, solutions)
            if monitor(number, np.zeros(0), objective=total, state=kept, **facts) and number < len(problems):
                raise _StopError

        # In single precision rows may be computed when they are needed: not for a tolerance below its rounding.
        lazy = self.tol >= _SINGLE_PRECISION_TOL
        matrices = PairMatrices(entries, prepared, options.cache_bytes, self.n_jobs, lazy=lazy)
        everything = (np.arange(prepared.n_rows),)
        with suppress(_StopError):
            matrices.run_each([problem.parts or everything for problem in problems], work, consume)
        return solutions, monitor.history()

    def _is_whole_function(self) -> bool:
        """Whether the kernel is a plain Python function of matrices: it sees all rows of the fit, as in scikit-learn.

        A :class:`FunctionKernel` object is called with the rows that are needed.
        """
        kernel = self.kernel_
        return isinstance(kernel, FunctionKernel) and not isinstance(self.kernel, Kernel) and not kernel.pairwise

    def _rows_to_solve(self, rows: Any) -> Any:
        """The rows as the solver sees them.

        Few sparse rows are made dense, except for a Python function, which gets them as they are. For a linear
        function with a constant, which does not change by it, rows are taken about a point near their mean.
        """
        if sp.issparse(rows) and not isinstance(self.kernel_, FunctionKernel):
            rows = rows.toarray() if 8.0 * rows.shape[0] * rows.shape[1] <= _DENSE_BYTES else rows
        self._shift_ = None
        linear = isinstance(self.kernel_, Linear) and self._has_constant
        if not linear or sp.issparse(rows) or getattr(self, "solver", "smo") != "smo":
            return rows
        self._shift_ = near_mean(rows)
        return rows - self._shift_

    #: Whether the function has a constant that is not penalised.
    _has_constant: ClassVar[bool] = True

    def _assign(self, fit: Fit, solutions: Sequence[Solved | None]) -> None:
        """Set the fitted attributes from the solutions of the problems; here for a machine with one function."""
        (found,) = solutions
        assert found is not None  # a single problem is never left out
        b = found.coefficients
        support = np.flatnonzero(b)
        self._keep_support(fit, support, b[support, None], np.array([found.intercept + fit.problems[0].shift]))
        self.dual_coef_ = self._like_rows(fit, b[None, support])
        self.n_support_ = np.array([len(support)], dtype=np.int32)
        self.weight_norm_ = np.array([found.norm])

    def _fit_problems(self, fit: Fit) -> None:
        """Solve the problems, and set what follows from the solutions."""
        solutions, history = self._solve(fit)
        self._assign(fit, solutions)
        self._certify(fit, solutions, history)

    def _certify(self, fit: Fit, solutions: Sequence[Solved | None], history: History) -> None:
        """Set the evidence: duality gaps, violations, certificate and history."""
        done = [s for s in solutions if s is not None]
        table = np.array([(s.evidence.dual, s.evidence.gap, s.evidence.violation) for s in done])
        self.dual_objective_, self.duality_gap_, self.kkt_violation_ = table.T.copy()
        violation, gap = float(self.kkt_violation_.max()), float(self.duality_gap_.max())
        complete, reason, message, indefinite = len(done) == len(solutions), "converged", "", -1
        for k, s in enumerate(done):
            # The first problem that did not converge gives the reason.
            reason = s.reason if reason == "converged" else reason
            message = message or s.message
            indefinite = k if indefinite < 0 and s.indefinite < 0 else indefinite
        if indefinite >= 0:
            self._run.notices.append(
                EpicycleWarning(
                    f"kernel: {self.kernel!r:.80} is no Mercer kernel on these rows{fit.problems[indefinite].name}: a "
                    f"squared length of {done[indefinite].indefinite:.2e} was met. The dual is not convex; the fit is "
                    "a stationary point of it, which need not be its optimum"
                )
            )
            meaning = f"no pair of coefficients breaks the optimality conditions by more than {violation:.1e}"
            certificate = Certificate("KKT violation", violation if complete else np.inf, self.tol, meaning)
        else:
            given = "" if self.kernel_.mercer else ", if the kernel is a Mercer kernel"
            meaning = (
                f"the dual objective is within {gap:.1e} of its optimum, relative{given}, and no coefficients break "
                f"the optimality conditions by more than {violation:.1e}"
            )
            value = max(gap, violation) if complete else np.inf
            certificate = Certificate("duality gap and KKT violation", value, self.tol, meaning)
        if reason == "max_iter" and not message and self.max_iter >= 0:
            message = (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data with "
                "StandardScaler or MinMaxScaler"
            )
        if not complete:
            reason = "stopped"
        elif reason == "converged" and not certificate.holds:
            reason = "stalled"
        state = _saved(done, unfinished=False) if len(solutions) > 1 else dict(done[0].state)
        value = float(history.objective[-1]) if history.n_iter else float(-self.dual_objective_.sum())
        self._conclude(
            Solution(np.zeros(1), value, history, certificate, history.n_iter, reason, message=message, state=state)
        )
        self.fit_status_ = 0 if self.converged_ else 1
        if fit.coded is not None:  # classifiers count the steps of each function, as LIBSVM does
            self.n_iter_ = np.array([0 if s is None else s.steps for s in solutions], dtype=np.int32)  # type: ignore[assignment]

    def _keep_support(self, fit: Fit, support: Array, columns: Array, intercepts: Array) -> None:
        """Keep the rows with a coefficient, `columns` (n_support, n_functions) of them, and the constants."""
        self.support_ = fit.kept[support].astype(np.int32)
        if self.kernel_.takes == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = select_rows(fit.rows, self.kernel_, support)
        self._columns_ = columns
        self._all_rows_ = None
        if self._is_whole_function():
            n, place = fit.distinct()
            self._all_rows_ = select_rows(fit.rows, self.kernel_, np.arange(n))
            self._place_ = place[support]
        self.intercept_ = intercepts
        if isinstance(self.kernel_, Linear):
            vectors = self.support_vectors_
            if self._shift_ is None:
                W = np.asarray((vectors.T @ columns).T)
            else:
                dense = vectors.toarray() if sp.issparse(vectors) else vectors
                W = columns.T @ (dense - self._shift_)
                self.intercept_ = intercepts - W @ self._shift_
            coef = self._like_rows(fit, np.ascontiguousarray(W, dtype=np.float64))
            (coef.data if sp.issparse(coef) else coef).flags.writeable = False
            self.__dict__["coef_"] = coef  # past __setattr__

    def _like_rows(self, fit: Fit, values: Array) -> Any:
        """A matrix as it is, or sparse if the rows of the fit are."""
        if not sp.issparse(fit.rows) or self.kernel_.takes == "precomputed":
            return values
        return sp.csr_array(values) if isinstance(fit.rows, sp.sparray) else sp.csr_matrix(values)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "coef_":  # prediction of other kernels could not follow it
            raise AttributeError(f"{type(self).__name__}: coef_ follows from dual_coef_ and cannot be set")
        super().__setattr__(name, value)

    # ------------------------------------------------------------------------------------------- prediction

    def _kept(self) -> Any:
        if self.kernel_.takes == "precomputed":
            return Entries(None, np.asarray(self.support_, dtype=np.intp))
        everything = getattr(self, "_all_rows_", None)
        return self.kernel_.prepare(self.support_vectors_ if everything is None else everything)

    def _raw_scores(self, X: Any) -> Array:
        """All functions at all rows of X: shape (n, n_functions)."""
        self._check_fitted()
        if isinstance(self.kernel_, Linear):
            data = self._predict_data(X)
            W = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
            return np.asarray(engine.map(linear_batch, data, W, self.intercept_, n_jobs=self.n_jobs))
        if not len(self.support_):
            n = len(X) if self.kernel_.takes == "strings" else self._predict_data(X).n_rows
            return np.tile(self.intercept_, (int(n or 0), 1))
        columns, everything = self._columns_, getattr(self, "_all_rows_", None)
        if everything is not None:
            columns = np.zeros((everything.shape[0], columns.shape[1]))
            columns[self._place_] = self._columns_
        return np.asarray(self._combine(X, columns, self.intercept_))


class _StopError(Exception):
    """A callback asked to end a fit of several problems."""


def _infeasible(machine: Any, problem: Subproblem, found: Solved) -> ConvergenceError:
    name = type(machine).__name__
    return ConvergenceError(f"y: {name}(C=inf) has no solution{problem.name}: {found.message}; take a finite C")


def _saved(solutions: Sequence[Solved | None], unfinished: bool = True) -> dict[str, Any]:
    """State from which a fit of several problems goes on, with the problems that did not converge or without."""
    kept: list[Solved] = []
    for found in solutions:
        if found is None or not (unfinished or found.reason == "converged"):
            break
        kept.append(found)
    return {"done": len(kept), **{f"problem{k}": found.saved() for k, found in enumerate(kept)}}


def linear_batch(batch: Batch, W: Array, offset: Array) -> Array:
    """W x + offset for a batch, in the type of its rows."""
    return np.asarray(np.asarray(batch.X @ W.T) + offset).astype(batch.X.dtype)
