"""The base of linear support vector machines: their arguments, the choice of the solver, and the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._history import History
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Data
from epicycle.optim import Solution
from epicycle.optim._proximal_newton import minimise_with_l1
from epicycle.svm.linear._dual_descent import dual_descent
from epicycle.svm.linear._l1 import SquaredSlack, descend, gap_certificate
from epicycle.svm.linear._primal_newton import primal_newton
from epicycle.svm.linear._problem import MarginProblem, Optimum, loss_statistic

#: Domains of the arguments that both have.
LINEAR_PARAMETERS: Mapping[str, Domain] = {
    "C": Real(minimum=0, inclusive=False),
    "intercept_scaling": Real(0, 1e100, inclusive=False),
    "max_iter": Integer(minimum=0),
    "dual": AnyOf(Boolean(), Choice("auto")),
    "solver": Choice("auto", "dual-cd", "newton"),
}
_ENGINES = ("memory", "files", "dask")

# Newton's method costs n p^2 a pass and p^3 a step, coordinate descent n p a pass but many passes.
_NEWTON_COLUMNS = 300  # up to which "auto" takes Newton's method for any number of rows
_NEWTON_COLUMNS_TALL = 2000  # and up to which it does where dense rows are ten times as many
_INITIAL_WIDTH = 2.0  # of the rounded corner, in units of the violations at theta = 0


class LinearMachine(Estimator):
    """A linear model that minimises |(w, u)|^2 / 2 + C sum_i v_i loss_i."""

    _docs: ClassVar[Mapping[str, str]] = {
        "C": """C : float, default={default}
    Price of a violation: the larger, the weaker the penalty.""",
        "tol": """tol : float, default={default}
    Tolerance of the duality gap relative to the objective.""",
        "intercept_scaling": """intercept_scaling : float, default={default}
    s. The intercept is penalised by (b / s)^2 / 2, as in liblinear; a large s leaves it as good as free.""",
        "dual": """dual : bool or "auto", default={default}
    Accepted for compatibility; the solution does not depend on it. Combinations of penalty, loss and dual that
    scikit-learn refuses are refused.""",
        "solver": """solver : {"auto", "dual-cd", "newton"}, default={default}
    "dual-cd" is coordinate descent on the dual, one row after the other; "newton" minimises the primal with sums
    over the rows, rounding the corners of the loss by less and less. "auto" takes the latter for up to 300 columns,
    for up to 2,000 dense ones where rows are ten times as many, and for files and Dask.""",
        "max_iter": """max_iter : int, default={default}
    Maximum number of passes over the rows.""",
        "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Seed of the order of the rows in "dual-cd".""",
        "evidence_attributes": """certificate_ : Certificate
    The duality gap relative to the objective; for more than two classes the largest.
history_ : History
    Objective, relative gap, rows and seconds of every pass. "dual-cd": both are estimates from the visits of the
    pass but for the last, and rows are those that were not set aside. "newton": the width of the rounded corners,
    rows in them, and rows with a violation.
n_iter_ : int
converged_ : bool""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("evidence_attributes",)
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("C3",), engines=_ENGINES, certificate="duality gap"
    )

    C: float
    tol: float
    fit_intercept: bool
    intercept_scaling: float
    dual: bool | str
    loss: str
    solver: str
    max_iter: int
    random_state: Any
    n_jobs: int | None
    coef_: Any
    intercept_: Any
    objective_: Any
    dual_objective_: Any

    _takes_sparse: ClassVar[bool] = True

    def _problem(self, data: Data, n_problems: int, *, squared: bool, **form: Any) -> MarginProblem:
        scale = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return MarginProblem(data.n_features, n_problems, squared=squared, C=float(self.C), scale=scale, **form)

    def _chosen_solver(self, data: Data) -> str:
        if not isinstance(data, ArrayData):
            if self.solver == "dual-cd":
                raise DataError(
                    f"{type(self).__name__}: solver='dual-cd' visits rows in random order and needs X in memory; "
                    "solver='newton' takes files and Dask collections"
                )
            return "newton"
        if self.solver != "auto":
            return self.solver
        tall = not data.sparse and data.n_rows >= 10 * data.n_features
        limit = _NEWTON_COLUMNS_TALL if tall else _NEWTON_COLUMNS
        return "newton" if data.n_features <= limit else "dual-cd"

    def _solve(self, data: Data, problem: MarginProblem, typical: float) -> Solution:
        """Minimise; sets what prediction needs. `typical` is the size of a violation at theta = 0."""
        shape = problem.n_problems, problem.n_features + 1
        monitor = self._monitor(self.max_iter, lambda x: self._attributes(problem, x.reshape(shape), data.dtype))
        state = self._resume_state()
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "n_jobs": self.n_jobs}
        if self._chosen_solver(data) == "newton":
            require_memory(
                4.0 * 8 * problem.n_problems * shape[1] ** 2,
                f"{type(self).__name__} with {shape[1] - 1:,} columns",
                "take solver='dual-cd', which needs no matrix of all pairs of columns and X in memory",
            )
            width = _INITIAL_WIDTH * typical
            optima, reason, kept = primal_newton(data, problem, width=width, monitor=monitor, state=state, **limits)
        else:
            assert isinstance(data, ArrayData)
            seed = seed_of(self.random_state)
            optima, reason, kept = dual_descent(data, problem, seed=seed, monitor=monitor, state=state, **limits)
        return self._solution(data, problem, list(optima), reason, kept, monitor.history())

    def _solve_l1(self, data: Data, problem: MarginProblem) -> Solution:
        """Minimise with the penalty |theta|_1."""
        shape = problem.n_problems, problem.n_features + 1
        monitor = self._monitor(self.max_iter, lambda x: self._attributes(problem, x.reshape(shape), data.dtype))
        state = self._resume_state() or None
        objective = SquaredSlack(data, problem, self.n_jobs)
        l1 = np.ones(objective.size)
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        found = minimise_with_l1(
            objective, np.zeros(objective.size), l1, descend, monitor=monitor, state=state, **limits
        )
        return self._solution(data, problem, objective.optima(found.x), found.reason, found.state, found.history)

    def _solution(
        self, data: Data, problem: MarginProblem, optima: list[Optimum], reason: str, kept: Any, history: History
    ) -> Solution:
        """Keep what prediction needs, and the certificate of what is kept."""
        optima = [self._rounded(data, problem, k, optimum) for k, optimum in enumerate(optima)]
        theta = np.array([optimum.theta for optimum in optima])
        for name, value in self._attributes(problem, theta, data.dtype).items():
            setattr(self, name, value)
        self._keep_values(np.array([o.primal for o in optima]), np.array([o.primal - o.gap for o in optima]))
        certificate = gap_certificate(optima, self.tol)
        if reason != "stopped" and certificate.holds:
            reason = "converged"
        value = float(sum(optimum.primal for optimum in optima))
        return Solution(theta.ravel(), value, history, certificate, history.n_iter, reason, state=kept)

    def _rounded(self, data: Data, problem: MarginProblem, k: int, optimum: Optimum) -> Optimum:
        """The optimum as float32 data will store it, with the gap that it has then."""
        if data.dtype == np.float64:
            return optimum
        w, b = optimum.theta[:-1].astype(data.dtype), np.asarray(problem.scale * optimum.theta[-1], dtype=data.dtype)
        stored = np.append(w.astype(np.float64), float(b) / problem.scale if problem.scale > 0 else 0.0)
        (loss,) = engine.sum(loss_statistic, data, problem, k, stored[:-1], float(b), n_jobs=self.n_jobs)
        primal = problem.penalty(stored) + problem.C * loss
        return Optimum(stored, primal, max(primal - (optimum.primal - optimum.gap), 0.0))

    def _conclude(self, solution: Solution) -> None:
        if not np.isfinite(solution.value):
            raise DataError(
                f"C, sample_weight, X: the objective of {type(self).__name__} overflows at the coefficients that were "
                "found; expected a smaller C, smaller weights, or columns of smaller values"
            )
        super()._conclude(solution)
        if self._run.warning and solution.reason == "max_iter":  # filters for scikit-learn's warning go by these words
            self._run.warning = f"Liblinear failed to converge, increase the number of iterations. {self._run.warning}"

    def _attributes(self, problem: MarginProblem, theta: np.ndarray, dtype: Any) -> dict[str, Any]:
        W, b = problem.split(theta)
        return {"coef_": W.astype(dtype), "intercept_": b.astype(dtype)}

    def _keep_values(self, primal: np.ndarray, dual: np.ndarray) -> None:
        self.objective_, self.dual_objective_ = primal, dual

    def _check_dual(self, penalty: str, squared: bool) -> None:
        """Refuse the combinations that liblinear does not have."""
        dual = self.dual
        wrong = (penalty == "l1" and (not squared or dual is True)) or (
            not squared and penalty == "l2" and isinstance(dual, bool | np.bool_) and not dual
        )
        if wrong:
            raise ParameterError(
                f"Unsupported set of arguments: penalty={penalty!r}, loss={self.loss!r}, dual={dual!r}; "
                "expected penalty='l2' with dual=True, or a squared loss with dual=False, or dual='auto'"
                + (" (penalty='l1' needs the squared loss)" if penalty == "l1" else "")
            )

    def sparsify(self) -> Self:
        """Store `coef_` as a sparse matrix, which takes less memory where most of it is zero."""
        self._check_fitted()
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Store `coef_` as an array again."""
        self._check_fitted()
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray().reshape(self._coef_shape())
        return self

    def _coef_shape(self) -> tuple[int, ...]:
        return tuple(self.coef_.shape)

    def _weights(self) -> np.ndarray:
        """`coef_` as an array of shape (n_problems, n_features)."""
        W = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return np.atleast_2d(W)

    def _penalty_line(self) -> str:
        if getattr(self, "penalty", "l2") == "l1":
            return f"|w|_1 + |b / {self.intercept_scaling:g}|" if self.fit_intercept else "|w|_1"
        return f"(|w|^2 + (b / {self.intercept_scaling:g})^2) / 2" if self.fit_intercept else "|w|^2 / 2"
