"""What all support vector machines share: their arguments, their fit, the rows that they keep, their evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceError, EpicycleWarning
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import seed_of
from epicycle.data import ArrayData, Batch
from epicycle.kernels._given import Entries
from epicycle.kernels._inner_products import Linear
from epicycle.kernels._machine import KernelMachine, select_rows
from epicycle.kernels._named import KERNEL_PARAMETERS
from epicycle.kernels._positivity import known_mercer
from epicycle.optim import Solution
from epicycle.svm._kernel_cache import Matrices
from epicycle.svm._kernel_rows import KernelRows
from epicycle.svm._subproblems import Options, Solved, Subproblem, solve

__all__ = ["MACHINE_PARAMETERS", "SupportVectorMachine"]

Array = np.ndarray

#: The arguments that all of them have.
MACHINE_PARAMETERS: Mapping[str, Domain] = {
    **KERNEL_PARAMETERS,
    "gamma": AnyOf(Choice("scale", "auto"), Real(minimum=0, inclusive=False)),
    "tol": Real(minimum=0, inclusive=False),
    "cache_size": Real(minimum=0, inclusive=False),
    "max_iter": AnyOf(Integer(minimum=1), Integer(minimum=-1, maximum=-1)),
    "n_jobs": NoneOr(AnyOf(Integer(minimum=1), Integer(maximum=-1))),
    "verbose": AnyOf(Boolean(), Integer(minimum=0)),
}


class SupportVectorMachine(KernelMachine):
    """A kernel machine whose function is made of few of the rows."""

    gamma: Any
    tol: float
    cache_size: float
    max_iter: int
    support_: Array
    support_vectors_: Any
    dual_coef_: Array
    intercept_: Array
    dual_objective_: Array
    duality_gap_: Array
    kkt_violation_: Array
    _columns_: Array

    _solver: ClassVar[str] = "smo"

    # ------------------------------------------------------------------------------------------- gamma

    def _gamma(self, data: ArrayData | None) -> float | None:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if data is None or self.gamma == "auto" or not (isinstance(self.kernel, str) and self.kernel in _WITH_GAMMA):
            return None
        variance = _variance(data)
        return 1.0 / (data.n_features * variance) if variance > 0 else 1.0

    # ------------------------------------------------------------------------------------------- fit

    def _solve(
        self,
        rows: Any,
        subs: Sequence[Subproblem],
        parts: Sequence[Sequence[Array]],
        assign: Callable[[list[Solved | None]], None],
        names: Callable[[int], str] = lambda k: "",
    ) -> None:
        """Solve all problems; `assign` turns their functions into the fitted attributes.

        Parameters
        ----------
        rows : the rows of the fit
        subs : the problems
        parts : the rows of each, as the arrays that it has in common with others
        assign : called with the solutions, None for those that are not there yet
        names : how the k-th problem is called in messages, such as " between 'a' and 'b'"
        """
        centred = self._centre(rows)
        prepared, nbytes = self.kernel_.prepare(centred), self.cache_size * 2.0**20
        matrices = Matrices(self.kernel_, prepared, nbytes, self.n_jobs, lazy=self.tol >= 1e-4)
        solver = getattr(self, "solver", "smo")
        seed = seed_of(getattr(self, "random_state", 0)) if solver == "dual-cd" else 0
        options = Options(self.tol, self.max_iter, nbytes, solver, seed, bool(getattr(self, "shrinking", True)))
        mercer = known_mercer(self.kernel_)
        state = self._resume_state() or {}
        many = len(subs) > 1
        done: list[Solved | None] = [None] * len(subs)
        held: list[KernelRows] = []

        def attributes(x: Array) -> dict[str, Any]:
            if not many:
                sub, problem = subs[0], subs[0].problem
                f = held[0].scores(x)
                up, low = problem.moves(x, problem.slopes(x, f))
                b, intercept, factor = sub.function(x, problem.constants(x, up, low))
                evidence = problem.evidence(x, f, 1.0)
                ok = np.isfinite(factor)
                done[0] = Solved(b if ok else x, intercept if ok else 0.0, 0.0, evidence, "stopped", 1, 0)
            assign(done)
            return {k: v for k, v in vars(self).items() if k.endswith("_") and k not in _EVIDENCE}

        monitor = self._monitor(None, attributes)
        total = 0.0
        first = int(state.get("done", 0)) if many else 0
        for k in range(first):
            done[k] = Solved.restored(state[f"problem{k}"])
            total += done[k].evidence.objective
        stopped = False

        def work(k: int, kernel: KernelRows) -> Solved:
            if k < first:
                return done[k]
            if many:
                return solve(subs[k], kernel, options, mercer=mercer)
            held.append(kernel)
            return solve(subs[0], kernel, options, mercer=mercer, monitor=monitor, state=state or None)

        number = 0

        def consume(found: Solved) -> None:
            nonlocal number, total, stopped
            k, number = number, number + 1
            done[k] = found
            if found.reason == "infeasible":
                raise ConvergenceError(f"y: {type(self).__name__}(C=inf) has no solution{names(k)}: {found.message}; "
                                       "take a finite C")  # fmt: skip
            if many and k >= first:
                total += found.evidence.objective

                def saved() -> dict[str, Any]:
                    finished = {f"problem{i}": s.saved() for i, s in enumerate(done) if s is not None}
                    return {"done": number, **finished}

                stopped = monitor(
                    number, np.zeros(0), objective=total, violation=found.evidence.violation, steps=found.steps,
                    support=int(np.count_nonzero(found.coefficients)), state=saved,
                )  # fmt: skip
                if stopped and number < len(subs):
                    raise _StopError

        with suppress(_StopError):
            matrices.run_each(parts, work, consume)
        assign(done)
        self._evidence(done, monitor, names)

    def _centre(self, rows: Any) -> Any:
        """Rows about their mean for a linear function with a constant, which does not change by it; numbers do."""
        self._shift_ = None
        if not isinstance(self.kernel_, Linear) or sp.issparse(rows) or getattr(self, "solver", "smo") != "smo":
            return rows
        if not self._has_constant:
            return rows
        self._shift_ = rows.mean(axis=0, dtype=np.float64)
        return rows - self._shift_

    #: Whether the function has a constant that is not penalised.
    _has_constant: ClassVar[bool] = True

    def _evidence(self, done: list[Solved | None], monitor: Any, names: Callable[[int], str]) -> None:
        found = [s for s in done if s is not None]
        self.dual_objective_ = np.array([s.evidence.dual for s in found])
        self.duality_gap_ = np.array([s.evidence.gap for s in found])
        self.kkt_violation_ = np.array([s.evidence.violation for s in found])
        history = monitor.history()
        complete = len(found) == len(done)
        # The first that did not converge says why.
        worst = next((s for s in found if s.reason != "converged"), None)
        reason = "stopped" if not complete else "converged" if worst is None else worst.reason
        violation, gap = float(self.kkt_violation_.max()), float(self.duality_gap_.max())
        odd = next((k for k, s in enumerate(done) if s is not None and s.indefinite < 0), None)
        if odd is not None:
            seen = found[odd].indefinite
            self._run.notices.append(
                EpicycleWarning(
                    f"kernel: {self.kernel!r:.80} is no Mercer kernel on these rows{names(odd)}: a squared length of "
                    f"{seen:.2e} was met. The dual is not convex; the fit is a stationary point of it, which need not "
                    "be its optimum"
                )
            )
            meaning = f"no pair of coefficients breaks the optimality conditions by more than {violation:.1e}"
            certificate = Certificate("KKT violation", violation if complete else np.inf, self.tol, meaning)
        else:
            given = "" if known_mercer(self.kernel_) else ", if the kernel is a Mercer kernel"
            meaning = (
                f"the dual objective is within {gap:.1e} of its optimum, relative{given}, and no coefficients break "
                f"the optimality conditions by more than {violation:.1e}"
            )
            value = max(gap, violation) if complete else np.inf
            certificate = Certificate("duality gap and KKT violation", value, self.tol, meaning)
        message = next((s.message for s in found if s.message), "")
        state = self._last_state(done)
        if reason == "converged" and not certificate.holds:
            reason = "stalled"
        value = float(history.objective[-1]) if history.n_iter else float(-self.dual_objective_.sum())
        self._conclude(
            Solution(np.zeros(1), value, history, certificate, history.n_iter, reason, message=message, state=state)
        )

    def _last_state(self, done: list[Solved | None]) -> dict[str, Any]:
        if len(done) > 1:
            found = [s for s in done if s is not None]
            good = next((i for i, s in enumerate(found) if s.reason != "converged"), len(found))
            return {"done": good, **{f"problem{i}": s.saved() for i, s in enumerate(found[:good])}}
        return dict(done[0].state) if done[0] is not None else {}

    def _keep_support(self, rows: Any, kept: Array, support: Array, columns: Array, intercepts: Array) -> None:
        """Keep the rows with a coefficient, `columns` (n_support, n_functions) of them, and the constants."""
        self.support_ = kept[support].astype(np.int32)
        if self.kernel_.takes == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = select_rows(rows, self.kernel_, support)
        self._columns_ = columns
        self.intercept_ = intercepts
        if isinstance(self.kernel_, Linear):
            vectors = self.support_vectors_
            if self._shift_ is None:
                W = np.asarray((vectors.T @ columns).T)
            else:
                W = columns.T @ (vectors - self._shift_)
                self.intercept_ = intercepts - W @ self._shift_
            self.coef_ = np.ascontiguousarray(W, dtype=np.float64)

    # ------------------------------------------------------------------------------------------- prediction

    def _kept(self) -> Any:
        if self.kernel_.takes == "precomputed":
            return Entries(None, np.asarray(self.support_, dtype=np.intp))
        return self.kernel_.prepare(self.support_vectors_)

    def _raw_scores(self, X: Any) -> Array:
        """All functions at all rows of X: shape (n, n_functions)."""
        self._check_fitted()
        if isinstance(self.kernel_, Linear):
            data = self._predict_data(X)
            return np.asarray(engine.map(linear_batch, data, self.coef_, self.intercept_, n_jobs=self.n_jobs))
        if not len(self.support_):
            n = len(X) if self.kernel_.takes == "strings" else self._predict_data(X).n_rows
            return np.tile(self.intercept_, (int(n or 0), 1))
        return np.asarray(self._combine(X, self._columns_, self.intercept_))


_WITH_GAMMA = ("rbf", "gaussian", "laplacian", "poly", "polynomial", "sigmoid", "chi2")


class _StopError(Exception):
    """A callback asked to end a fit of several problems."""


_EVIDENCE = ("history_", "certificate_", "n_iter_", "converged_", "fit_seconds_", "n_features_in_", "feature_names_in_")


def linear_batch(batch: Batch, W: Array, offset: Array) -> Array:
    """W x + offset for a batch, in the type of its rows."""
    return np.asarray(np.asarray(batch.X @ W.T) + offset).astype(batch.X.dtype)


def _variance(data: ArrayData) -> float:
    """The variance of all entries of X, rows counted by their weights."""
    X, weight = data.X, data.weight
    if sp.issparse(X):
        row = np.ones(X.shape[0]) if weight is None else weight
        size = float(row.sum()) * X.shape[1]
        counts = np.repeat(row, np.diff(X.indptr))
        values = X.data.astype(np.float64)
        mean = float(counts @ values) / size
        inside = float(counts @ (values - mean) ** 2)
        return (inside + (size - float(counts.sum())) * mean * mean) / size
    if weight is None:
        return float(X.var(dtype=np.float64))
    row = weight / weight.sum()
    mean = float(row @ X.mean(axis=1, dtype=np.float64))
    return float(row @ np.square(X - mean).mean(axis=1, dtype=np.float64))
