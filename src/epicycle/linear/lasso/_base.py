"""What the lasso and the elastic net share as estimators: fit on any engine, predict, evidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._exceptions import DataError
from epicycle.core._monitor import Monitor
from epicycle.core._parameters import AnyOf, ArrayLike, Boolean, Domain, Integer, NoneOr, Real
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import Data
from epicycle.linear.lasso._duality import gap_certificate, penalty_factors, penalty_of
from epicycle.linear.lasso._problem import LassoProblem, csc_data, lasso_problem
from epicycle.linear.lasso._solver import Outcome
from epicycle.optim import ElasticNet as Penalty, Solution
from epicycle.stats._linear_predictor import linear_predictor

__all__ = ["PenalisedRegressor", "SparseLinearModel"]


class SparseLinearModel(RegressorMixin, Estimator):
    """A linear predictor with many coefficients at zero."""

    fit_intercept: bool
    n_jobs: int | None
    coef_: np.ndarray
    intercept_: float | np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        target: Literal["none", "numeric", "labels"],
        multi_output: bool = False,
        reset: bool = True,
        check_finite: bool = True,
        missing: bool = False,
    ) -> Data:
        """As everywhere, except that CSC stays CSC."""
        checked = X
        if sp.issparse(X) and X.format == "csc" and X.ndim == 2 and 0 not in X.shape:
            checked = csc_data(X, y, sample_weight, estimator_name=type(self).__name__, multi_output=multi_output)
        data = super()._fit_data(
            checked,
            y,
            sample_weight,
            target=target,
            multi_output=multi_output,
            reset=reset,
            check_finite=check_finite,
            missing=missing,
        )
        if "X" in self._run.inputs:
            self._run.inputs["X"] = X
        return data

    def _attributes(self, data: Data, problem: LassoProblem, W: np.ndarray) -> dict[str, Any]:
        coef = W.astype(data.dtype)
        intercept = problem.intercepts(W).astype(data.dtype)
        if data.target_is_vector:
            return {"coef_": coef[0], "intercept_": intercept[0] if self.fit_intercept else 0.0}
        return {"coef_": coef, "intercept_": intercept if self.fit_intercept else 0.0}

    @property
    def sparse_coef_(self) -> sp.csr_array:
        """The coefficients as a sparse matrix of one row for each target."""
        return sp.csr_array(np.atleast_2d(self.coef_))

    def predict(self, X: Any) -> Any:
        """b + w'x for every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        data = self._predict_data(X)
        coef = np.atleast_2d(self.coef_)
        intercept = np.broadcast_to(np.asarray(self.intercept_, dtype=coef.dtype), (len(coef),))
        values = linear_predictor(data, coef, np.ascontiguousarray(intercept), self.n_jobs)
        return values[:, 0] if self.coef_.ndim == 1 else values


class PenalisedRegressor(MultiOutputMixin, SparseLinearModel, ABC):
    """Least squares with the penalty alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2) for one alpha."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "alpha": Real(minimum=0),
        "penalty_weights": NoneOr(ArrayLike()),
        "fit_intercept": Boolean(),
        "positive": Boolean(),
        "tol": Real(minimum=0, inclusive=False),
        "max_iter": Integer(minimum=1),
        "warm_start": Boolean(),
        "n_jobs": NoneOr(Integer()),
        "verbose": AnyOf(Boolean(), Integer(minimum=0)),
    }

    alpha: float
    penalty_weights: Any
    positive: bool
    tol: float
    max_iter: int
    warm_start: bool

    @abstractmethod
    def _l1_ratio(self) -> float:
        """The share of the L1 term."""

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            A Fortran-ordered array and a CSC matrix are used as they are; of a C-ordered array only the columns of the
            working set are copied, CSR is converted. Files and Dask collections are read once, for their second
            moments, and may have a few thousand features.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            A scan brings its own. Several targets are fitted one by one.
        sample_weight : array-like of shape (n_samples,), optional
        coef_init : array-like of the shape of `coef_`, optional
            Where to start, such as the coefficients of a neighbouring alpha. With ``warm_start=True`` those of the
            earlier fit, where there was one.

        Returns
        -------
        self
            The fitted estimator.
        """
        if coef_init is None and self.warm_start:
            coef_init = self._run.earlier.get("coef_")
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=False)
        p, k = data.n_features, data.n_targets
        penalty = self._penalty(penalty_factors(self.penalty_weights, p, self.positive))
        W = _start(self._resume_state(), coef_init, k, p)
        problem = lasso_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        monitor = self._monitor((self.max_iter + 1) * k, lambda x: self._attributes(data, problem, x.reshape(k, p)))
        outcomes = self._minimise(problem, penalty, W, monitor)
        for name, value in self._attributes(data, problem, W).items():
            setattr(self, name, value)
        gaps = np.array([outcome.gap for outcome in outcomes])
        self.dual_gap_ = float(gaps[0]) if data.target_is_vector else gaps
        self._keep_outcomes(outcomes, penalty, vector=data.target_is_vector)
        self._conclude(self._solution(problem, outcomes, W, monitor))
        return self

    def _penalty(self, factors: np.ndarray) -> Penalty:
        """What is added to half the mean square."""
        if self.alpha == 0:
            penalty_factors(0 * factors, len(factors), self.positive)  # nothing is penalised: the same rules hold
        return penalty_of(self.alpha, self._l1_ratio(), factors, self.positive)

    def _keep_outcomes(self, outcomes: list[Outcome], penalty: Penalty, *, vector: bool) -> None:
        """Set what a subclass has to say of the solutions."""

    def _minimise(self, problem: LassoProblem, penalty: Penalty, W: np.ndarray, monitor: Monitor) -> list[Outcome]:
        outcomes: list[Outcome] = []
        rounds = 0
        for t, solver in enumerate(problem.solvers):
            if W[t].any():
                solver.start_at(W[t])

            def report(
                done: int, w: np.ndarray, objective: float, gap: float, working_set: int, left: int,
                t: int = t, before: int = rounds,
            ) -> bool:  # fmt: skip
                W[t] = w
                columns = {"gap": gap, "working_set": working_set, "not_screened": left}
                if len(problem.solvers) > 1:
                    columns["target"] = t
                return monitor(
                    before + done + 1, W.ravel(), objective=objective, state=lambda: {"coef": W.copy()}, **columns
                )

            outcome = solver.minimise(penalty, self.tol, self.max_iter, report)
            W[t] = outcome.w
            outcomes.append(outcome)
            rounds += outcome.n_rounds + 1
        return outcomes

    def _solution(self, problem: LassoProblem, outcomes: list[Outcome], W: np.ndarray, monitor: Monitor) -> Solution:
        certificates = [
            gap_certificate(outcome.gap, solver.total, self.tol)
            for outcome, solver in zip(outcomes, problem.solvers, strict=True)
        ]
        worst = int(np.argmax([certificate.value for certificate in certificates]))
        history = monitor.history()
        value = float(sum(outcome.objective for outcome in outcomes))
        return Solution(
            W.ravel(), value, history, certificates[worst], max(1, history.n_iter), outcomes[worst].reason,
            state={"coef": W.copy()},
        )  # fmt: skip

    def _penalty_line(self) -> str:
        ratio = self._l1_ratio()
        shape = "|w|_1" if ratio == 1 else f"({ratio:g} |w|_1 + {(1 - ratio) / 2:g} |w|^2)"
        extra = ", with a factor for each feature" if self.penalty_weights is not None else ""
        sign = ", w >= 0" if self.positive else ""
        return f"{self.alpha:g} {shape}{extra}{sign}"


def _start(state: Mapping[str, Any] | None, coef_init: Any, k: int, p: int) -> np.ndarray:
    """Where to start, of shape (k, p): an interrupted fit, the caller's coefficients, or zero."""
    given = coef_init if state is None else state["coef"]
    if given is None:
        return np.zeros((k, p))
    try:
        W = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("coef_init: expected an array of numbers") from None
    if W.shape not in ((k, p), (p,) if k == 1 else (k, p)) or not np.isfinite(W).all():
        raise DataError(f"coef_init: expected finite numbers of shape {(p,) if k == 1 else (k, p)}, got {W.shape}")
    return W.reshape(k, p)
