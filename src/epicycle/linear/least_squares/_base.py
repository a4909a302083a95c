"""Shared by least squares and ridge regression: fit by any solver on any engine, more rows, predict, leverages.

The normal equations (X'WX + alpha D) w = X'Wy about the mean decide everything; the classes differ in the penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import get_tags

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import CollinearityWarning, DataError, NotFittedError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, InstanceOf, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import Data, as_data
from epicycle.data._dask_data import is_dask
from epicycle.linalg._dependencies import in_words
from epicycle.linear._scikit_learn import COMPATIBILITY_DOCS, COMPATIBILITY_PARAMETERS, RIDGE_SOLVERS
from epicycle.linear._storage import stored_type
from epicycle.linear.least_squares._covariances import Frame
from epicycle.linear.least_squares._direct import LeastSquaresFit, conclude, fit_direct, settled_moments, solve_moments
from epicycle.linear.least_squares._fit_statistics import hat_matrix_of, leverages_of
from epicycle.linear.least_squares._nonnegative import fit_nonnegative
from epicycle.linear.least_squares._objective import MomentsObjective, RowsObjective, StorageError, excess_certificate
from epicycle.optim import SOLVERS, Solution, solve
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._class_scores import linear_prediction
from epicycle.stats._moments import Moments, moments_about, refuse_non_finite

#: Above this number of features the p x p matrices of the closed form are not formed (200 MB each), or not kept with
#: the model (32 MB each), unless asked for.
MAX_GRAM, MAX_KEPT = 5000, 2000

#: Domains of the parameters that name a solver.
SOLVER_PARAMETERS: Mapping[str, Domain] = {
    "solver": Choice("auto", "cholesky", "qr", *SOLVERS, *RIDGE_SOLVERS),
    "solver_options": NoneOr(InstanceOf(dict)),
    "max_iter": NoneOr(Integer(minimum=1)),
    "tol": Real(minimum=0),
    "copy_X": COMPATIBILITY_PARAMETERS["copy_X"],
    "positive": Boolean(),
}
#: Maximum number of iterations where none is given.
MAX_ITER = 1000


class LeastSquaresModel(Estimator, ABC):
    """A linear model that minimises a sum of squares with a quadratic penalty, however that was chosen."""

    _docs: ClassVar[Mapping[str, str]] = {
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    Weights w: the variance of the noise of a row is divided by its weight.""",
        "solver": """solver : str, default={default}
    "auto" solves the normal equations by Cholesky, refines them where the condition asks for it, and falls back
    to QR; "cholesky" and "qr" insist on one; any solver of :data:`epicycle.optim.SOLVERS` iterates to the same
    solution. The names of scikit-learn's solvers stand for those of :ref:`this table <solver-names>`.""",
        "copy_X": COMPATIBILITY_DOCS["copy_X"],
        "positive": """positive : bool, default={default}
    Whether coefficients have to be non-negative. An active-set method on the second moments finds them, whatever
    the solver; there are no standard errors and no leverages then.""",
        "solver_": """solver_ : str
    The solver that was asked for; for "auto" the one that ran.
algorithm_ : str
    What ran: "cholesky", "qr", "active set" (`positive`), or the name of a solver that iterates.""",
        "solver_options": """solver_options : dict, optional
    Options of an iterating solver, such as ``{"step": 0.1}``.""",
        "tol": """tol : float, default={default}
    Distance of the objective from its minimum, relative to half the sum of squares of y, that the certificate
    asserts.""",
        "max_iter": """max_iter : int or None, default={default}
    Maximum number of iterations (epochs for the stochastic solvers); None for 1000.""",
        "random_state": """random_state : int, Generator, RandomState or None, default={default}
    Order of rows of the stochastic solvers.""",
        "penalty_weights": """penalty_weights : array-like of shape (n_features,), optional
    The diagonal of D: factors of alpha for each feature; 0 leaves a feature unpenalised.""",
        "penalty_matrix": """penalty_matrix : array-like or sparse matrix of shape (n_features, n_features), optional
    D itself, symmetric and positive semi-definite: a smoothness or a graph, say.""",
        "coef_": """coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
intercept_ : float or ndarray of shape (n_targets,)""",
        "rows_of_fit": """X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)
    The rows of the fit.""",
        "weights_of_fit": """sample_weight : array-like of shape (n_samples,), optional
    The weights of the fit.""",
        "target": """target : int, default={default}
    Which target, if there are several.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("coef_", "solver_")
    #: Whether a fit keeps the inverse of the second moments, for standard errors.
    _keeps_inverse: ClassVar[bool] = False
    #: Whether a target of shape (n_samples, 1) has coefficients and predictions of a vector, as in scikit-learn.
    _flattens: ClassVar[bool] = False

    fit_intercept: bool
    tol: float
    n_jobs: int | None

    @abstractmethod
    def _frame(self, target: int) -> Frame:
        """Means, coefficients and the inverse of X'WX + alpha D, for leverages."""

    @abstractmethod
    def _penalty(self, n_targets: int, n_features: int) -> QuadraticPenalty:
        """The penalty of every target."""

    _takes_sparse: ClassVar[bool] = True

    # ------------------------------------------------------------------------------------------- the fit

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> Data:
        # In memory the sums show NaN and infinity, and only then they are looked for; partitions check themselves.
        return self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=is_dask(X))

    def _attributes(self, data: Data, coef: np.ndarray, intercept: np.ndarray) -> dict[str, Any]:
        dtype = stored_type(data.dtype, coef, intercept)
        coef, intercept = coef.T.astype(dtype), intercept.astype(dtype)
        flat = data.target_is_vector or (self._flattens and len(coef) == 1)
        level = intercept[0] if data.target_is_vector else intercept
        return {"coef_": coef[0] if flat else coef, "intercept_": level if self.fit_intercept else 0.0}

    def _conclude_direct(self, data: Data, fit: LeastSquaresFit) -> None:
        attributes = self._attributes(data, fit.coef, fit.intercept)
        for name, value in attributes.items():
            setattr(self, name, value)
        self._keep(data, fit)
        self._name_solver(fit.method)
        monitor = self._monitor(1, lambda _x: attributes)
        monitor(0, fit.coef.ravel(), objective=fit.objective)
        certificate = self._certificate(fit, attributes, fit.excess, fit.total)
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(
            Solution(fit.coef.ravel(), fit.objective, monitor.history(), certificate, 1, reason, f"by {fit.method}")
        )

    def _name_solver(self, ran: str) -> None:
        asked = getattr(self, "solver", "auto")
        self.solver_, self.algorithm_ = ran if asked == "auto" else asked, ran

    def _certificate(
        self, fit: LeastSquaresFit, stored: Mapping[str, Any], excess: float, total: float, coef: Any = None
    ) -> Certificate:
        """The excess of the objective at the coefficients as they are stored; `coef` where they are not the fit's."""
        storage = StorageError.of(
            stored,
            fit.coef if coef is None else coef,
            mean=fit.mean,
            lengths=fit.lengths,
            weight=fit.weight,
            intercept=self.fit_intercept,
        )
        mean = fit.mean[len(fit.coef) :]
        return excess_certificate(excess, total, self.tol, mean=mean, weight=fit.weight, storage=storage)

    def _keep(self, data: Data, fit: LeastSquaresFit) -> None:
        """Keep what is learnt beside the coefficients: the rank, which features depend on which, second moments."""
        self.rank_ = fit.rank
        # Fewer rows than features are not the fault of any feature: none is named.
        enough = fit.rank < fit.n_rows - int(self.fit_intercept)
        named = fit.dependencies.named(self._names()) if fit.dependencies is not None and enough else {}
        self.dependent_features_: dict[str, dict[str, float]] = named
        means = dict(zip(self._names(), fit.mean[: data.n_features].tolist(), strict=True)) if named else {}
        self._dependence_ = in_words(named, means, intercept=self.fit_intercept)
        if data.n_features <= MAX_KEPT:
            self._keep_moments(fit.moments or moments_about(data, fit.mean, self.n_jobs))

    def _keep_moments(self, moments: Moments) -> None:
        self._moment_matrix_, self._moment_shift_, self._moment_rows_ = moments.M, moments.shift, moments.n_rows
        self._moment_log_weight_ = moments.log_weight

    def _moments(self) -> Moments | None:
        """The second moments of the rows, where they were kept."""
        if not hasattr(self, "_moment_matrix_"):
            return None
        return Moments(
            self._moment_matrix_,
            self._moment_shift_,
            self._moment_rows_,
            self.n_features_in_,
            getattr(self, "_moment_log_weight_", 0.0),
        )

    def _warn_of_dependencies(self) -> None:
        """Warn where dependent features are the exception; low rank throughout (few distinct rows) is no accident."""
        combined = sum(bool(others) for others in self.dependent_features_.values())
        if self.dependent_features_ and combined <= self.rank_:
            n, p = len(self.dependent_features_), self.n_features_in_
            self._run.notices.append(
                CollinearityWarning(
                    f"{type(self).__name__}: {n} of {p} features {'is' if n == 1 else 'are'} given by the others: "
                    f"{self._dependence_}. The coefficients are those of "
                    "least norm; leave such features out for coefficients, and standard errors, of their own."
                )
            )

    # ------------------------------------------------------------------------------------------- use of a fit

    def predict(self, X: Any) -> Any:
        """b + W x for every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)

    def leverage(self, X: Any, sample_weight: Any = None, *, target: int = 0) -> Any:
        """The diagonal of the hat matrix: how much the fitted value of a row follows its own y.

        For other rows than those of the fit it is the factor of the noise variance in the variance of their mean.

        Parameters
        ----------
        %(rows_of_fit)s
        %(weights_of_fit)s

        Returns
        -------
        array of shape (n_samples,)
            A lazy Dask array for a Dask collection.
        """
        data = self._weighted_data(X, sample_weight)
        return leverages_of(data, self._frame(self._checked_target(target)), self.n_jobs)

    def hat_matrix(self, X: Any, sample_weight: Any = None, *, target: int = 0) -> np.ndarray:
        """H with fitted values H y, for rows X in memory.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The rows of the fit.
        %(weights_of_fit)s

        Returns
        -------
        ndarray of shape (n_samples, n_samples)
            Refused where it would not fit into memory; `leverage` gives its diagonal for any number of rows.
        """
        data = self._weighted_data(X, sample_weight)
        return hat_matrix_of(data, self._frame(self._checked_target(target)), self.n_jobs)

    def _weighted_data(self, X: Any, sample_weight: Any, y: Any = None) -> Data:
        """Rows for a fitted model, with weights and, for `y`, targets."""
        self._check_fitted()
        has_target = y is not None or bool(getattr(X, "targets", None))
        data = as_data(
            X,
            y,
            sample_weight,
            target="numeric" if has_target else "none",
            multi_output=True,
            estimator_name=type(self).__name__,
            accept_sparse=get_tags(self).input_tags.sparse,
        )
        self._check_features(X, data, reset=False)
        return data

    def _checked_target(self, target: int) -> int:
        self._check_fitted()
        count = len(np.atleast_2d(self.coef_))
        if isinstance(target, bool) or not hasattr(target, "__index__") or not 0 <= target < count:
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {count - 1}")
        return int(target)


def fit_by_solver(model: Any, data: Data) -> None:
    """Fit a model by the solver that was asked for, or that suits the data."""
    penalty = model._penalty(data.n_targets, data.n_features)
    solver = RIDGE_SOLVERS.get(model.solver, model.solver)
    if model.positive:
        _fit_nonnegative(model, data, penalty)
        return
    if model.solver_options and solver not in SOLVERS:
        raise ParameterError(
            f"solver_options={model.solver_options!r}: solver={solver!r} has no options; name one that iterates"
        )
    too_many = data.n_features > MAX_GRAM and (data.sparse or (data.n_rows or np.inf) > data.n_features)
    if solver == "auto" and too_many:
        solver = "cg"
    if solver in SOLVERS:
        _iterate(model, data, penalty, solver, rows=data.n_features > MAX_GRAM)
    else:
        inverse = model._keeps_inverse and data.n_features <= MAX_KEPT
        fit = fit_direct(
            data, penalty, intercept=model.fit_intercept, solver=solver, inverse=inverse, n_jobs=model.n_jobs
        )
        model._conclude_direct(data, fit)
    if hasattr(model, "dependent_features_"):
        model._warn_of_dependencies()
    if model._run.warning and model.solver in RIDGE_SOLVERS:  # filters written for scikit-learn's warnings go by it
        model._run.warning = f"{model.solver} did not converge after {model.n_iter_} iterations. {model._run.warning}"


def _fit_nonnegative(model: Any, data: Data, penalty: QuadraticPenalty) -> None:
    if model.solver not in ("auto", "lbfgs"):
        raise ParameterError(
            f"solver={model.solver!r} does not support positive fitting; with positive=True expected 'auto' or 'lbfgs'"
        )
    if data.n_features > MAX_GRAM:
        raise DataError(
            f"X has {data.n_features} features; positive=True needs their second moments and takes up to {MAX_GRAM}"
        )
    moments = settled_moments(data, model.fit_intercept, model.n_jobs)
    model._conclude_direct(data, fit_nonnegative(moments, penalty, model.fit_intercept))


def _iterate(model: Any, data: Data, penalty: QuadraticPenalty, solver: str, rows: bool) -> None:
    intercept = model.fit_intercept
    objective: MomentsObjective | RowsObjective
    moments = None
    if rows:
        refuse_non_finite(data)
        objective = RowsObjective(data, penalty, intercept, model.n_jobs)
    else:
        moments = settled_moments(data, intercept, model.n_jobs)
        objective = MomentsObjective(moments, data, penalty, intercept)

    def attributes(x: np.ndarray) -> dict[str, Any]:
        if isinstance(objective, RowsObjective):
            found: dict[str, Any] = model._attributes(data, *objective.split(x))
        else:
            W, p = x.reshape(objective.shape), data.n_features
            found = model._attributes(data, W, objective.centre[p:] - objective.centre[:p] @ W)
        return found

    options = dict(model.solver_options or {})
    max_iter = MAX_ITER if model.max_iter is None else model.max_iter
    model._name_solver(solver)
    if SOLVERS[solver].stochastic and "seed" not in options:
        options["seed"] = seed_of(model.random_state)
    solution = solve(
        solver,
        objective,
        np.zeros(objective.size),
        tol=model.tol,
        max_iter=max_iter,
        monitor=model._monitor(max_iter, attributes),
        state=model._resume_state(),
        options=options,
    )
    stored = attributes(solution.x)
    for name, value in stored.items():
        setattr(model, name, value)
    if moments is not None:
        gradient, coef, solved = solve_moments(moments, penalty, intercept)
        inverse = model._keeps_inverse and data.n_features <= MAX_KEPT
        fit = conclude(moments, penalty, intercept, coef, gradient, solved, inverse=inverse, method=solver)
        model._keep(data, fit)
        if solution.certificate.kind == "newton decrement" and fit.total > 0:
            # Once more at the coefficients as they are stored.
            excess, found = solution.certificate.value * fit.total, solution.x.reshape(coef.shape)
            solution = replace(solution, certificate=model._certificate(fit, stored, excess, fit.total, found))
    model._conclude(solution)


def add_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit to the rows so far and these: second moments add up."""
    data = model._fit_data(
        X, y, sample_weight, target="numeric", multi_output=True, reset=not hasattr(model, "n_features_in_")
    )
    before = model._moments()
    if before is None and hasattr(model, "coef_"):
        raise NotFittedError(
            f"partial_fit: with {data.n_features} features the earlier fit kept no second moments to add to (up to "
            f"{MAX_KEPT} are kept); call partial_fit from the first rows on"
        )
    if before is None:
        moments = settled_moments(data, model.fit_intercept, model.n_jobs)
    else:
        known = 1 if model.coef_.ndim == 1 else len(model.coef_)
        if data.n_targets != known or (data.target_is_vector != (model.coef_.ndim == 1) and not model._flattens):
            raise DataError(
                f"y: has {data.n_targets} target(s), but {type(model).__name__} was fitted with {known} before"
            )
        moments = before + moments_about(data, before.shift, model.n_jobs)
    penalty = model._penalty(data.n_targets, data.n_features)
    if model.positive:
        fit = fit_nonnegative(moments, penalty, model.fit_intercept)
    else:
        gradient, coef, solved = solve_moments(moments, penalty, model.fit_intercept)
        inverse, intercept = model._keeps_inverse, model.fit_intercept
        fit = conclude(moments, penalty, intercept, coef, gradient, solved, inverse=inverse, method="cholesky")
    model._conclude_direct(data, fit)
    model._keep_moments(moments)
