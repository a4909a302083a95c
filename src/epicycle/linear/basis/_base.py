"""Shared by regressors in a basis: a fit from one factor, the choice by leave-one-out, prediction, statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle import engine
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import Domain
from epicycle.core._plot_style import COLOURS, Axes, axes_of, styled
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting
from epicycle.data import Data
from epicycle.linear._storage import stored_type
from epicycle.linear.basis._bases import Basis, predict_batch
from epicycle.linear.basis._penalised import PenalisedFit, factor_of, leave_one_out, solve_penalised
from epicycle.linear.least_squares._objective import StorageError, excess_certificate
from epicycle.optim import Solution
from epicycle.stats._moments import CentredFactor
from epicycle.stats._summary import Summary, wald_summary

#: Up to this many functions the covariance of the coefficients is kept.
MAX_KEPT = 500


class BasisRegressor(MultiOutputMixin, RegressorMixin, Estimator, ABC):  # type: ignore[misc]
    """Least squares in a basis that the fit places on the data."""

    _docs: ClassVar[Mapping[str, str]] = {
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    Weights w: the variance of the noise of a row is divided by its weight.""",
        "tol": """tol : float, default={default}
    Distance of the objective from its minimum, relative to half the sum of squares of y, that the certificate
    asserts.""",
        "effective_dof_": """effective_dof_ : float
    Effective number of parameters, the constant included.""",
        "certificate_": """certificate_ : Certificate
    Newton decrement, which for a quadratic is the exact distance from the minimum.""",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("effective_dof_",)
    _parameters: ClassVar[Mapping[str, Domain]] = {}
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A4",), engines=("memory", "files", "dask"), certificate="newton decrement"
    )

    alpha: Any
    tol: float
    n_jobs: int | None
    coef_: np.ndarray
    intercept_: Any

    @abstractmethod
    def _place(self, data: Data) -> None:
        """Learn where the basis lies, in fitted attributes."""

    @abstractmethod
    def _basis(self) -> Basis:
        """The basis, from the fitted attributes."""

    @abstractmethod
    def _candidates(self, factor: Any) -> list[tuple[Any, np.ndarray]]:
        """The candidates: (name, penalties of the leading functions of the basis)."""

    @abstractmethod
    def _keep_choice(self, candidates: list[Any], errors: np.ndarray | None, chosen: int) -> None:
        """Keep what was chosen and, where there was a choice, the errors."""

    @abstractmethod
    def _range(self, column: int) -> tuple[float, float]:
        """The range of the training data in one column."""

    def _facts(self, coef: np.ndarray) -> dict[str, float]:
        """Numbers about the fitted function for the summary."""
        return {}

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, data frame, Scan or Dask collection of shape (n_samples, n_features)
        """
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True)
        self._place(data)
        basis = self._basis()
        factor = factor_of(data, basis, self.n_jobs)
        candidates = self._candidates(factor)
        fits = [solve_penalised(factor, penalty) for _, penalty in candidates]
        errors, chosen = None, 0
        if len(fits) > 1:
            errors = leave_one_out(data, basis, factor, fits, self.n_jobs)
            if not np.isfinite(errors).any():
                raise ParameterError(
                    f"{type(self).__name__}: leave-one-out cannot choose, because every candidate passes through at "
                    "least one row exactly; give fewer functions or a larger alpha"
                )
            chosen = int(np.nanargmin(errors))
        self._keep_choice([name for name, _ in candidates], errors, chosen)
        fit = fits[chosen]
        self._keep(data, fit, factor, candidates[chosen][1])
        monitor = self._monitor(1, lambda _x: self._attributes(data, fit))
        monitor(1, fit.coef.ravel(), objective=fit.objective)
        total, mean = float(fit.total_squares.sum()) / 2, factor.mean
        m, level, weight = len(fit.coef), mean[basis.n_functions :], factor.weight
        storage = StorageError.of(
            self._attributes(data, fit),
            fit.coef,
            mean=np.append(mean[:m], level),
            lengths=np.linalg.norm(factor.R_x[:, :m], axis=0),
            weight=weight,
            intercept=True,
        )
        certificate = excess_certificate(fit.excess, total, self.tol, mean=level, weight=weight, storage=storage)
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(Solution(fit.coef.ravel(), fit.objective, monitor.history(), certificate, 1, reason, "by QR"))
        return self

    def _attributes(self, data: Data, fit: PenalisedFit) -> dict[str, Any]:
        dtype = stored_type(data.dtype, fit.coef, fit.intercept)
        coef, intercept = fit.coef.T.astype(dtype), fit.intercept.astype(dtype)
        if data.target_is_vector:
            return {"coef_": coef[0], "intercept_": intercept[0]}
        return {"coef_": coef, "intercept_": intercept}

    def _keep(self, data: Data, fit: PenalisedFit, factor: CentredFactor, penalty: np.ndarray) -> None:
        for name, value in self._attributes(data, fit).items():
            setattr(self, name, value)
        self.rank_ = fit.rank
        self.effective_dof_ = fit.effective_dof
        self._freedom_ = factor.n_rows - fit.effective_dof
        self._residual_squares_, self._total_squares_ = fit.residual_squares, fit.total_squares
        if fit.rank == len(fit.coef) <= MAX_KEPT and not penalty.any():
            # b = mean(y) - mean(phi)'beta, and mean(y) is uncorrelated with beta.
            half = np.vstack([fit.half, -(factor.mean[: len(fit.coef)] @ fit.half)])
            unscaled = half @ half.T
            unscaled[-1, -1] += 1 / factor.weight
            self._unscaled_covariance_ = unscaled

    # ------------------------------------------------------------------------------------------- prediction

    def predict(self, X: Any) -> Any:
        """The fitted function at every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        data = self._predict_data(X)
        coef = np.atleast_2d(self.coef_).T.astype(np.float64)
        intercept = np.atleast_1d(self.intercept_).astype(np.float64)
        values = engine.map(predict_batch, data, self._basis(), coef, intercept, n_jobs=self.n_jobs)
        return values[:, 0] if self.coef_.ndim == 1 else values

    def derivative(self, X: Any, column: int = 0, order: int = 1) -> Any:
        """The derivative of the fitted function with respect to one column of X, at every row.

        Parameters
        ----------
        X : array, data frame, Scan or Dask collection of shape (n_samples, n_features)
        column : int, default=0
            The column of X.
        order : int, default=1
            1 for slopes, 2 for curvatures, and so on.

        Returns
        -------
        ndarray of the shape that `predict` gives
        """
        data = self._predict_data(X)
        self._check_column(column)
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
            raise ParameterError(f"order={order!r}; expected an integer >= 1")
        coef = np.atleast_2d(self.coef_).T.astype(np.float64)
        values = engine.map(derivative_batch, data, self._basis(), coef, int(column), int(order), n_jobs=self.n_jobs)
        return values[:, 0] if self.coef_.ndim == 1 else values

    def _check_column(self, column: Any) -> None:
        if (
            isinstance(column, bool)
            or not isinstance(column, int | np.integer)
            or not 0 <= column < self.n_features_in_
        ):
            raise ParameterError(f"column={column!r}; expected an integer from 0 to {self.n_features_in_ - 1}")

    # ------------------------------------------------------------------------------------------- statistics

    def summary(self, confidence: float = 0.95, *, target: int = 0) -> Summary:
        """The coefficients of the basis, and in `facts` effective degrees of freedom, residual spread and roughness.

        Standard errors, t, p-values and intervals are given where nothing was penalised and nothing was chosen by the
        data; otherwise they would not hold, and the note says so.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage of the intervals.
        target : int, default=0
            Which target, if there are several.
        """
        self._check_fitted()
        coefs = np.atleast_2d(self.coef_)
        if isinstance(target, bool) or not 0 <= target < len(coefs):
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {len(coefs) - 1}")
        coef, intercept = coefs[target].astype(np.float64), float(np.atleast_1d(self.intercept_)[target])
        names = self._basis().names(self._names())[: len(coef)]
        facts = {"effective dof": self.effective_dof_, **self._facts(coef)}
        freedom = self._freedom_
        if freedom > 1e-6:
            facts["residual std"] = float(np.sqrt(self._residual_squares_[target] / freedom))
        if self._total_squares_[target] > 0:
            facts["R2"] = float(1 - self._residual_squares_[target] / self._total_squares_[target])
        title = f"{type(self).__name__}: coefficients of its basis"
        why = self._why_no_errors(freedom)
        if why:
            return Summary(title, ("intercept", *names), {"coef": np.append(intercept, coef)}, facts, why)
        variance = self._residual_squares_[target] / freedom
        return wald_summary(
            names,
            coef,
            intercept,
            variance * self._unscaled_covariance_,
            confidence=confidence,
            title=title,
            facts=facts,
            degrees_of_freedom=freedom,
        )

    def _why_no_errors(self, freedom: float) -> str:
        if self._chose():
            return "the data chose the model: standard errors that ignore this do not hold and are not given"
        if np.any(self._penalty_value() > 0):
            return "the fit is penalised: naive standard errors do not hold and are not given"
        if freedom <= 1e-6:
            return "no degrees of freedom are left for the noise: standard errors do not exist"
        if not hasattr(self, "_unscaled_covariance_"):
            return f"the functions have rank {self.rank_} of {self.coef_.shape[-1]}, or are too many to list errors for"
        return ""

    @abstractmethod
    def _chose(self) -> bool:
        """Whether leave-one-out chose among candidates."""

    @abstractmethod
    def _penalty_value(self) -> float:
        """The alpha of the fit."""

    # ------------------------------------------------------------------------------------------- drawing

    @styled
    def plot(self, X: Any = None, y: Any = None, *, column: int = 0, target: int = 0, ax: Axes | None = None) -> Axes:
        """Draw the fitted function of one column, the others held at the middle of their range.

        Parameters
        ----------
        X, y : array-like, optional
            Data to draw as points.
        column, target : int, default=0
            Which column of X, and which target.
        """
        self._check_fitted()
        self._check_column(column)
        ax = axes_of(ax)
        grid = np.tile([np.mean(self._range(j)) for j in range(self.n_features_in_)], (400, 1))
        grid[:, column] = np.linspace(*self._range(column), 400)
        basis, coef = self._basis(), np.atleast_2d(self.coef_)[target].astype(np.float64)
        curve = basis.expand(grid)[:, : len(coef)] @ coef + float(np.atleast_1d(self.intercept_)[target])
        if X is not None and y is not None:
            points, values = np.asarray(X), np.asarray(y)
            ax.plot(
                points.reshape(len(points), -1)[:, column],
                values.reshape(len(values), -1)[:, target],
                ".",
                color=COLOURS["grey"],
                ms=4,
                alpha=0.7,
                zorder=1,
            )
        ax.plot(grid[:, column], curve, lw=2, zorder=3)
        self._decorate(ax, column)
        ax.set(xlabel=self._names()[column], ylabel="fit")
        return ax

    def _decorate(self, ax: Axes, column: int) -> None:
        """Draw what belongs to the basis."""


def derivative_batch(batch: Any, basis: Basis, coef: np.ndarray, column: int, order: int) -> np.ndarray:
    """The derivative for every row of a batch, in the type of X."""
    X = np.asarray(batch.X, dtype=np.float64)
    out = np.empty((len(X), coef.shape[1]), dtype=batch.X.dtype)
    for start in range(0, len(X), 4096):
        part = slice(start, start + 4096)
        out[part] = basis.derivative(X[part], column, order)[:, : len(coef)] @ coef
    return out


def penalties_of(alpha: Any, scale: float, owner: str) -> list[float]:
    """The values of alpha to choose from: one number, the caller's, or for "loo" nine decades below `scale`."""
    if isinstance(alpha, str):
        return [float(a) for a in np.geomspace(1e-8, 10.0, 28) * max(scale, np.finfo(float).tiny)]
    try:
        values = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(f"{owner}: alpha={alpha!r}; expected numbers >= 0 or 'loo'") from None
    if values.ndim > 1 or not values.size or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ParameterError(f"{owner}: alpha={alpha!r}; expected numbers >= 0 or 'loo'")
    return [float(value) for value in values]
