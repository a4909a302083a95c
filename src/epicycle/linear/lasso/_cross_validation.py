"""What the cross-validated lasso and elastic net share: a path on every fold, a choice, a last fit, a plot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.model_selection import check_cv

from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core._parameters import Choice, Domain, InstanceOf, NoneOr
from epicycle.core._plot_style import axes_of, ink, styled
from epicycle.core._settings import get_config
from epicycle.core.estimator._estimator import fitting
from epicycle.data import ArrayData, Data
from epicycle.linear.lasso._base import PenalisedRegressor, SparseLinearModel
from epicycle.linear.lasso._duality import gap_certificate, penalty_factors, penalty_of
from epicycle.linear.lasso._folds import Fold, Grid, PathSettings, choose, errors_of_folds, standard_error
from epicycle.linear.lasso._moment_folds import Cells, cell_moments, count_rows, errors_from_moments, problem_of
from epicycle.linear.lasso._path import PATH_PARAMETERS, checked_alphas, grid_of_alphas
from epicycle.linear.lasso._problem import LassoProblem, lasso_problem
from epicycle.optim import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CrossValidatedRegressor"]


class CrossValidatedRegressor(SparseLinearModel, ABC):
    """Base of the two: a path on every fold, a choice, and a last fit to all rows."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: domain for name, domain in PATH_PARAMETERS.items() if name != "l1_ratio"},
        "cv": NoneOr(InstanceOf(object)),
        "rule": Choice("min", "1se"),
        "verbose": PenalisedRegressor._parameters["verbose"],
    }

    eps: float
    n_alphas: int
    alphas: Any
    cv: Any
    rule: Literal["min", "1se"]
    penalty_weights: Any
    positive: bool
    tol: float
    max_iter: int

    @abstractmethod
    def _l1_ratios(self) -> np.ndarray:
        """The shares of the L1 term to choose from."""

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose alpha by cross-validation and fit to all rows.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
            Files and Dask collections are read once, for the second moments of every fold, and may have a few thousand
            features; their folds are made by the numbers of rows, without y.
        y : array-like of shape (n_samples,)
            A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in training and in the error of a fold.

        Returns
        -------
        self
            The fitted estimator.
        """
        ratios = self._l1_ratios()
        given = None if self.alphas is None else checked_alphas(self.alphas)
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
        factors = penalty_factors(self.penalty_weights, data.n_features, self.positive)
        settings = PathSettings(factors, self.positive, self.fit_intercept, self.tol, self.max_iter)
        if isinstance(data, ArrayData):
            problem = lasso_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs, many=True)
            grids = self._grids(problem, ratios, given, factors)
            errors, failed = errors_of_folds(data, self._folds(data), grids, settings, self.n_jobs)
        else:
            cells = self._cells(data)
            parts = cell_moments(data, cells, centre=self.fit_intercept, n_jobs=self.n_jobs)
            problem = problem_of(parts, centre=self.fit_intercept)
            grids = self._grids(problem, ratios, given, factors)
            errors, failed = errors_from_moments(parts, cells, grids, settings, self.n_jobs)
        self._keep_errors(grids, errors)
        best = self._choose(grids)
        self._fit_last(data, problem, best, factors)
        if failed:
            self._warn_of_folds(failed)
        return self

    def _grids(
        self, problem: LassoProblem, ratios: np.ndarray, given: np.ndarray | None, factors: np.ndarray
    ) -> list[Grid]:
        solver = problem.solvers[0]
        if given is not None:
            return [Grid(float(ratio), given) for ratio in ratios]
        return [
            Grid(float(ratio), grid_of_alphas(solver, float(ratio), factors, self.positive, self.eps, self.n_alphas))
            for ratio in ratios
        ]

    def _warn_of_folds(self, failed: int) -> None:
        """The last fit speaks for itself; solutions of the folds that fell short are named too."""
        message = (
            f"{type(self).__name__}: {failed} solutions of the cross-validation did not reach tol={self.tol:g} in "
            f"max_iter={self.max_iter} rounds; raise max_iter, or loosen tol."
        )
        mode = get_config().on_nonconvergence
        if mode == "raise":
            raise ConvergenceError(message)
        if mode == "warn":
            self._run.warning = f"{self._run.warning} {message}".strip()

    def _folds(self, data: ArrayData) -> list[Fold]:
        try:
            splitter = check_cv(self.cv, data.y, classifier=False)
            folds = [Fold(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.empty((data.n_rows, 0)), data.y)]
        except (TypeError, ValueError) as error:
            raise ParameterError(f"cv={self.cv!r}: {error}") from None
        for fold in folds:
            if data.weight is not None and not data.weight[fold.train].any():
                raise DataError("sample_weight: all rows that a fold is trained on have weight zero")
        return folds

    def _cells(self, data: Data) -> Cells:
        """The folds of rows that are not in memory, by their numbers."""
        n = count_rows(data)
        try:
            return Cells.of_splitter(check_cv(self.cv, None, classifier=False), n)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"cv={self.cv!r}: {error}") from None

    def _keep_errors(self, grids: list[Grid], errors: np.ndarray) -> None:
        single = len(grids) == 1
        alphas = np.array([grid.alphas for grid in grids])
        self.alphas_ = alphas[0] if single else alphas
        self.mse_path_ = errors[0] if single else errors
        self.mse_mean_, self.mse_se_ = self.mse_path_.mean(axis=-1), standard_error(self.mse_path_)

    def _choose(self, grids: list[Grid]) -> tuple[float, float]:
        mean, se = np.atleast_2d(self.mse_mean_), np.atleast_2d(self.mse_se_)
        g, a = choose(mean, se, self.rule)
        self.alpha_ = float(grids[g].alphas[a])
        return self.alpha_, grids[g].l1_ratio

    def _fit_last(self, data: Data, problem: LassoProblem, best: tuple[float, float], factors: np.ndarray) -> None:
        solver = problem.solvers[0]
        solver.start_at(np.zeros(data.n_features))
        monitor = self._monitor(self.max_iter + 1, lambda x: self._attributes(data, problem, x[None]))

        def report(done: int, w: np.ndarray, objective: float, gap: float, working_set: int, left: int) -> bool:
            return monitor(done + 1, w, objective=objective, gap=gap, working_set=working_set, not_screened=left)

        outcome = solver.minimise(penalty_of(*best, factors, self.positive), self.tol, self.max_iter, report)
        for name, value in self._attributes(data, problem, outcome.w[None]).items():
            setattr(self, name, value)
        self.dual_gap_ = outcome.gap
        certificate = gap_certificate(outcome.gap, solver.total, self.tol)
        history = monitor.history()
        self._conclude(
            Solution(outcome.w, outcome.objective, history, certificate, max(1, history.n_iter), outcome.reason)
        )

    def _penalty_line(self) -> str:
        return f"alpha={self.alpha_:g} by cross-validation" if hasattr(self, "alpha_") else ""

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error of cross-validation against alpha: its mean and one standard error to each side.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        self._check_fitted()
        ax = axes_of(ax)
        alphas, mean, se = (np.atleast_2d(a) for a in (self.alphas_, self.mse_mean_, self.mse_se_))
        for i, ratio in enumerate(self._l1_ratios()):
            (line,) = ax.plot(alphas[i], mean[i], lw=1.6, label=f"l1_ratio {ratio:g}" if len(alphas) > 1 else "mean")
            ax.fill_between(
                alphas[i], mean[i] - se[i], mean[i] + se[i], alpha=0.2, color=line.get_color(), lw=0,
                label="mean ± standard error" if len(alphas) == 1 else None,
            )  # fmt: skip
        chosen = f"chosen: alpha {self.alpha_:.3g}"
        if len(alphas) > 1:
            chosen += f", l1_ratio {vars(self)['l1_ratio_']:g}"
        ax.axvline(self.alpha_, color=ink(ax, 0.7), ls="--", lw=1, label=chosen)
        ax.set_xscale("log")
        ax.invert_xaxis()
        ax.set_xlabel(r"$\alpha$ (decreasing)")
        ax.set_ylabel("mean squared error on held-out rows")
        ax.legend()
        return ax
