"""What least squares and ridge regression share: fit by any solver on any engine, partial_fit, predict.

The normal equations (X'WX + alpha I) w = X'Wy about the mean decide everything; the classes differ in alpha.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.base import Estimator, fitting, seed_of
from epicycle.data import Data
from epicycle.data.partitions import is_dask
from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.linear.direct import LeastSquaresFit, conclude, fit_direct, settled_moments, solve_moments
from epicycle.linear.moments import Moments, moments_of, refuse_non_finite
from epicycle.linear.prediction import linear_predictor
from epicycle.linear.quadratic_objective import MomentsObjective, RowsObjective, excess_certificate
from epicycle.optim import SOLVERS, Solution, solve
from epicycle.parameters import AnyOf, Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, RandomState, Real

__all__ = ["LeastSquaresRegressor"]

#: Above this number of features the p x p matrices of the closed form are not formed, or not kept, unless asked for.
MAX_GRAM, MAX_KEPT = 5000, 2000


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, Estimator, ABC):
    """Base of the regressors that minimise a sum of squares with an L2 penalty."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "fit_intercept": Boolean(),
        "solver": Choice("auto", "cholesky", "qr", *SOLVERS),
        "solver_options": NoneOr(InstanceOf(dict)),
        "tol": Real(minimum=0, inclusive=False),
        "max_iter": Integer(minimum=1),
        "random_state": RandomState(),
        "n_jobs": NoneOr(AnyOf(Integer(minimum=1), Integer(maximum=-1))),
        "verbose": AnyOf(Boolean(), Integer(minimum=0)),
    }

    fit_intercept: bool
    solver: str
    solver_options: Mapping[str, Any] | None
    tol: float
    max_iter: int
    random_state: Any
    n_jobs: int | None

    @abstractmethod
    def _alphas(self, n_targets: int) -> np.ndarray:
        """The penalty of every target."""

    def _infers(self) -> bool:
        """Whether the fit keeps what standard errors need."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            The fitted estimator.
        """
        # In memory the sums show NaN and infinity, and only then they are looked for; partitions check themselves.
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=is_dask(X))
        alpha = self._alphas(data.n_targets)
        solver = self.solver
        if self.solver_options and solver not in SOLVERS:
            raise ParameterError(
                f"solver_options={self.solver_options!r}: solver={solver!r} has no options; name one that iterates"
            )
        too_many = data.n_features > MAX_GRAM and (data.sparse or (data.n_rows or np.inf) > data.n_features)
        if solver == "auto" and too_many:
            solver = "cg"
        if solver in SOLVERS:
            self._iterate(data, alpha, solver, rows=data.n_features > MAX_GRAM)
        else:
            self._conclude_direct(
                data,
                fit_direct(
                    data, alpha, intercept=self.fit_intercept, solver=solver,
                    inverse=self._infers() and data.n_features <= MAX_KEPT, n_jobs=self.n_jobs,
                ),
            )  # fmt: skip
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the result is that of `fit` on all rows so far, because second moments add up.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
            The fitted estimator.
        """
        data = self._fit_data(
            X, y, sample_weight, target="numeric", multi_output=True, reset=not hasattr(self, "n_features_in_")
        )
        before = self._moments()
        if before is None and hasattr(self, "coef_"):
            raise NotFittedError(
                f"partial_fit: with {data.n_features} features the earlier fit kept no second moments to add to (up to "
                f"{MAX_KEPT} are kept); call partial_fit from the first rows on"
            )
        if before is None:
            moments = settled_moments(data, self.fit_intercept, self.n_jobs)
        else:
            self._check_targets(data)
            moments = before + moments_of(data, before.shift, self.n_jobs)
        alpha = self._alphas(data.n_targets)
        gradient, coef, solved = solve_moments(moments, alpha, self.fit_intercept)
        self._conclude_direct(
            data,
            conclude(
                moments, alpha, self.fit_intercept, coef, gradient, solved, inverse=self._infers(), method="cholesky"
            ),
        )
        self._keep_moments(moments)
        return self

    def _moments(self) -> Moments | None:
        """What `partial_fit` adds to."""
        if not hasattr(self, "_moment_matrix_"):
            return None
        return Moments(self._moment_matrix_, self._moment_shift_, self._moment_rows_, self.n_features_in_)

    def _keep_moments(self, moments: Moments) -> None:
        self._moment_matrix_, self._moment_shift_, self._moment_rows_ = moments.M, moments.shift, moments.n_rows

    def _check_targets(self, data: Data) -> None:
        known = 1 if self.coef_.ndim == 1 else len(self.coef_)
        if data.n_targets != known or data.target_is_vector != (self.coef_.ndim == 1):
            raise DataError(
                f"y: has {data.n_targets} target(s), but {type(self).__name__} was fitted with {known} before"
            )

    # ------------------------------------------------------------------------------------------- ends of a fit

    def _attributes(self, data: Data, coef: np.ndarray, intercept: np.ndarray) -> dict[str, Any]:
        coef, intercept = coef.T.astype(data.dtype), intercept.astype(data.dtype)
        if data.target_is_vector:
            return {"coef_": coef[0], "intercept_": intercept[0] if self.fit_intercept else 0.0}
        return {"coef_": coef, "intercept_": intercept if self.fit_intercept else 0.0}

    def _conclude_direct(self, data: Data, fit: LeastSquaresFit) -> None:
        attributes = self._attributes(data, fit.coef, fit.intercept)
        for name, value in attributes.items():
            setattr(self, name, value)
        self.rank_ = fit.rank
        if self._infers():
            self._keep_inference(fit)
        if data.n_features <= MAX_KEPT:
            self._keep_moments(fit.moments or moments_of(data, fit.mean, self.n_jobs))
        monitor = self._monitor(1, lambda x: attributes)
        monitor(0, fit.coef.ravel(), objective=fit.objective)
        certificate = excess_certificate(
            fit.excess, fit.total, self.tol, mean=fit.mean[data.n_features :], weight=fit.weight
        )
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(
            Solution(fit.coef.ravel(), fit.objective, monitor.history(), certificate, 1, reason, f"by {fit.method}")
        )

    def _iterate(self, data: Data, alpha: np.ndarray, solver: str, rows: bool) -> None:
        intercept = self.fit_intercept
        objective: MomentsObjective | RowsObjective
        moments = None
        if rows:
            refuse_non_finite(data)
            objective = RowsObjective(data, alpha, intercept, self.n_jobs)
        else:
            moments = settled_moments(data, intercept, self.n_jobs)
            objective = MomentsObjective(moments, data, alpha, intercept)

        def attributes(x: np.ndarray) -> dict[str, Any]:
            if isinstance(objective, RowsObjective):
                return self._attributes(data, *objective.split(x))
            W = x.reshape(objective.shape)
            p = data.n_features
            return self._attributes(data, W, objective.centre[p:] - objective.centre[:p] @ W)

        options = dict(self.solver_options or {})
        if SOLVERS[solver].stochastic and "seed" not in options:
            options["seed"] = seed_of(self.random_state)
        solution = solve(
            solver, objective, np.zeros(objective.size), tol=self.tol, max_iter=self.max_iter,
            monitor=self._monitor(self.max_iter, attributes), state=self._resume_state(), options=options,
        )  # fmt: skip
        for name, value in attributes(solution.x).items():
            setattr(self, name, value)
        if moments is not None:
            gradient, coef, solved = solve_moments(moments, alpha, intercept)
            self.rank_ = min(s.rank for s in solved)
            if data.n_features <= MAX_KEPT:
                self._keep_moments(moments)
                if self._infers():
                    self._keep_inference(
                        conclude(moments, alpha, intercept, coef, gradient, solved, inverse=True, method=solver)
                    )
        self._conclude(solution)

    def _keep_inference(self, fit: LeastSquaresFit) -> None:
        """Keep what standard errors need; a penalised fit has none to give and keeps nothing."""

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """b + W x for every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        data = self._predict_data(X)
        coef = np.atleast_2d(self.coef_)
        intercept = np.broadcast_to(np.asarray(self.intercept_, dtype=coef.dtype), (len(coef),))
        values = linear_predictor(data, coef, np.ascontiguousarray(intercept), self.n_jobs)
        return values[:, 0] if self.coef_.ndim == 1 else values
