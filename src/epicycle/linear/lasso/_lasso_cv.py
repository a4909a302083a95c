"""Lasso and elastic net with alpha (and l1_ratio) chosen by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments, defaults_of
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, InstanceOf, NoneOr, Real
from epicycle.core._plot_style import Axes, axes_of, ink, styled
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.linear._folds import RoutesToSplitter, cell_moments, cells_of, folds_of, report_folds
from epicycle.linear.lasso._base import DESCENT_PARAMETERS, SparseLinearModel
from epicycle.linear.lasso._duality import gap_certificate, penalty_factors, penalty_of
from epicycle.linear.lasso._folds import choose, errors_from_moments, errors_of_folds, problem_of
from epicycle.linear.lasso._path import (
    NO_GRID,
    PATH_PARAMETERS,
    Grid,
    PathSettings,
    checked_alphas,
    enet_path,
    grid_of_alphas,
    lasso_path,
)
from epicycle.linear.lasso._problem import LassoProblem, check_columns, lasso_problem
from epicycle.optim import Solution
from epicycle.stats._intervals import standard_error

#: Arguments that not all of these models have.
_OWN = ("l1_ratio", "penalty_weights", "positive")
_SINGLE_TARGET: dict[str, Domain] = {
    "penalty_weights": PATH_PARAMETERS["penalty_weights"],
    "positive": PATH_PARAMETERS["positive"],
    "precompute": DESCENT_PARAMETERS["precompute"],
}


class GridArguments(SharedArguments, total=False):
    """Arguments of the constructors of these models, with their defaults."""

    eps: Annotated[float, 1e-3]
    n_alphas: Annotated[int, 100]
    alphas: Annotated[Any, None]
    cv: Annotated[Any, None]
    rule: Annotated[Literal["min", "1se"], "min"]
    copy_X: Annotated[bool, True]  # noqa: N815  # as scikit-learn spells it
    selection: Annotated[str, "cyclic"]


GRID_DEFAULTS: Mapping[str, Any] = defaults_of(
    GridArguments, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None, verbose=0, random_state=None
)


class CrossValidatedRegressor(RoutesToSplitter, SparseLinearModel):
    """Parameters and drawing of these models; they differ in the shares of the L1 term to choose from."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **{name: domain for name, domain in PATH_PARAMETERS.items() if name not in _OWN},
        "copy_X": DESCENT_PARAMETERS["copy_X"],
        "selection": DESCENT_PARAMETERS["selection"],
        "cv": NoneOr(InstanceOf(object)),
        "rule": Choice("min", "1se"),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "eps": "eps : float, default={default}\n"
        "    Smallest alpha of the grid, relative to the largest (at which all coefficients are zero).",
        "n_alphas": "n_alphas : int, default={default}\n    Number of alphas in the grid.",
        "alphas": "alphas : array-like or int, optional\n"
        "    The alphas themselves, or their number in place of `n_alphas`.",
        "rule": 'rule : {"min", "1se"}, default={default}\n'
        "    Alpha of the least error, or the largest alpha whose error is within one standard error of the least.",
        "max_iter": "max_iter : int, default={default}\n    Maximum number of rounds for each alpha.",
        "n_jobs": "n_jobs : int, optional\n"
        "    Threads, one fold each; None follows the processors. The result does not depend on it.",
        "shares": "alpha_, l1_ratio_ : float\n    What was chosen.\n"
        "alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)\n"
        "    The alphas of every share, or those that were given.\n"
        "mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)\n"
        "mse_mean_, mse_se_ : ndarray of the shape of `mse_path_` without its last axis",
        "fit": "coef_ : ndarray of shape (n_features,)\nintercept_ : float\ndual_gap_ : float\n"
        "certificate_ : Certificate\n    Duality gap of the fit to all rows.\n"
        "history_ : History\nn_iter_ : int\nconverged_ : bool",
        "fit_X": "X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, "
        "n_features)\n"
        "    Files and Dask collections are read once, for the second moments of every fold, and may have a few\n"
        "    thousand features; their folds are made by the numbers of rows, without y.",
        "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
        "    Weights of the rows, in training and in the error of a fold.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("fit",)

    eps: float
    n_alphas: int
    alphas: Any
    cv: Any
    rule: Literal["min", "1se"]
    l1_ratio: Any
    alpha_: float
    alphas_: np.ndarray
    mse_path_: np.ndarray
    mse_mean_: np.ndarray
    mse_se_: np.ndarray

    def _penalty_line(self) -> str:
        return f"alpha={self.alpha_:g} by cross-validation" if hasattr(self, "alpha_") else ""

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the error of cross-validation against alpha: its mean and one standard error to each side."""
        self._check_fitted()
        ax = axes_of(ax)
        mean, se = np.atleast_2d(self.mse_mean_), np.atleast_2d(self.mse_se_)
        alphas = np.broadcast_to(self.alphas_, mean.shape)
        ratios = l1_ratios(self.l1_ratio, self.alphas) if len(alphas) > 1 else np.ones(1)
        for i, ratio in enumerate(ratios):
            (line,) = ax.plot(alphas[i], mean[i], lw=1.6, label=f"l1_ratio {ratio:g}" if len(alphas) > 1 else "mean")
            band = "mean ± standard error" if len(alphas) == 1 else None
            low, high = mean[i] - se[i], mean[i] + se[i]
            ax.fill_between(alphas[i], low, high, alpha=0.2, color=line.get_color(), lw=0, label=band)
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


class LassoCV(CrossValidatedRegressor):
    """Lasso with alpha chosen by cross-validation along a path.

    Every fold follows a grid of alphas, each solution started from the one before and certified by its duality gap; the
    folds run side by side and copy no rows. The model is :class:`Lasso` with the alpha of least mean squared error on
    the held-out rows, or the largest alpha within one standard error of that.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        Mean squared error on the held-out rows.
    mse_mean_, mse_se_ : ndarray of shape (n_alphas,)
        Its mean over folds, and the standard error of that.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(rule="1se").fit(X, y)
    >>> int((model.coef_ != 0).sum())
    6
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**CrossValidatedRegressor._parameters, **_SINGLE_TARGET}

    @stores_arguments(**GRID_DEFAULTS)
    def __init__(
        self,
        *,
        penalty_weights: Any = None,
        precompute: Any = "auto",
        positive: bool = False,
        **shared: Unpack[GridArguments],
    ) -> None: ...

    path = staticmethod(lasso_path)

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha by cross-validation and fit to all rows."""
        fit_by_cross_validation(self, X, y, sample_weight, params, np.ones(1))
        return self


class ElasticNetCV(CrossValidatedRegressor):
    """Elastic net with alpha and l1_ratio chosen by cross-validation along paths.

    As :class:`LassoCV`, with a path for every l1_ratio.

    Parameters
    ----------
    l1_ratio : float or array-like, default=0.5
        Share, or shares to choose from, of the L1 term; above 0 unless `alphas` are given.

    Attributes
    ----------
    %(shares)s

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import ElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9, 1.0], n_alphas=30).fit(X, y)
    >>> model.mse_path_.shape
    (3, 30, 5)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **CrossValidatedRegressor._parameters,
        **_SINGLE_TARGET,
        "l1_ratio": AnyOf(Real(minimum=0, maximum=1), ArrayLike()),
    }

    @stores_arguments(**GRID_DEFAULTS)
    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        penalty_weights: Any = None,
        precompute: Any = "auto",
        positive: bool = False,
        **shared: Unpack[GridArguments],
    ) -> None: ...

    path = staticmethod(enet_path)

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha and l1_ratio by cross-validation and fit to all rows."""
        self.l1_ratio_ = fit_by_cross_validation(
            self, X, y, sample_weight, params, l1_ratios(self.l1_ratio, self.alphas)
        )
        return self


def _is_number(alphas: Any) -> bool:
    """Whether the alphas are to be made: none are given, or only how many."""
    return alphas is None or isinstance(alphas, int | np.integer)


def l1_ratios(given: Any, alphas: Any) -> np.ndarray:
    """The shares of the L1 term to choose from."""
    ratios = np.atleast_1d(as_floats(given, ParameterError(f"l1_ratio={given!r}; expected numbers between 0 and 1")))
    if ratios.ndim != 1 or ratios.size == 0 or not ((ratios >= 0) & (ratios <= 1)).all():
        raise ParameterError(f"l1_ratio={given!r}; expected numbers between 0 and 1")
    if _is_number(alphas) and (ratios == 0).any():
        raise ParameterError(NO_GRID)
    return ratios


def fit_by_cross_validation(
    model: CrossValidatedRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    params: Mapping[str, Any],
    ratios: np.ndarray,
    *,
    together: bool = False,
) -> float:
    """Follow a path on every fold, choose, and fit to all rows; returns the share of the L1 term that was chosen.

    With `together` there are several targets, and a feature is used for all of them or for none.
    """
    given = None if _is_number(model.alphas) else checked_alphas(model.alphas)
    arguments = model._split_arguments(params)
    data = model._fit_data(X, y, sample_weight, target="numeric", multi_output=together, check_finite=False)
    centre, n_jobs = model.fit_intercept, model.n_jobs
    positive = getattr(model, "positive", False)
    factors = penalty_factors(getattr(model, "penalty_weights", None), data.n_features, positive)
    settings = PathSettings(factors, positive, centre, model.tol, model.max_iter, together)
    if isinstance(data, ArrayData):
        problem = lasso_problem(data, centre=centre, n_jobs=n_jobs, many=True, together=together)
        grids = _grids(model, problem, ratios, given, settings)
        errors, failed = errors_of_folds(data, folds_of(model.cv, data, arguments=arguments), grids, settings, n_jobs)
    else:
        if arguments:
            raise ParameterError(f"{sorted(arguments)}: folds of rows that are not in memory are made by their numbers")
        check_columns(data.n_features)
        cells = cells_of(model.cv, data)
        parts = cell_moments(data, cells, centre=centre, n_jobs=n_jobs)
        problem = problem_of(parts, centre=centre, together=together)
        grids = _grids(model, problem, ratios, given, settings)
        errors, failed = errors_from_moments(parts, cells, grids, settings, n_jobs)
    mean, se = errors.mean(axis=-1), np.nan_to_num(standard_error(errors))
    g, a = choose(mean, se, model.rule)
    kept = (errors, mean, se)
    if len(grids) == 1:
        kept = tuple(of_grid[0] for of_grid in kept)
    model.mse_path_, model.mse_mean_, model.mse_se_ = kept
    alphas = np.array([grid.alphas for grid in grids])
    model.alphas_ = alphas if given is None and len(grids) > 1 else alphas[0]
    model.alpha_, l1_ratio = float(grids[g].alphas[a]), grids[g].l1_ratio
    _fit_to_all(model, data, problem, l1_ratio, settings)
    if failed:
        report_folds(model, failed, "rounds", "or loosen tol")
    return l1_ratio


def _fit_to_all(
    model: CrossValidatedRegressor, data: Data, problem: LassoProblem, l1_ratio: float, settings: PathSettings
) -> None:
    """Fit to all rows with the alpha and the share that were chosen."""
    solver = problem.solvers[0]
    solver.start_at(np.zeros_like(solver.w))
    shape = (data.n_targets, data.n_features)
    monitor = model._monitor(model.max_iter + 1, lambda x: model._attributes(data, problem, x.reshape(shape)))

    def report(done: int, w: np.ndarray, objective: float, **columns: Any) -> bool:
        return monitor(done, w.ravel(), objective=objective, **columns)

    penalty = penalty_of(model.alpha_, l1_ratio, settings.factors, settings.positive)
    outcome = solver.minimise(penalty, model.tol, model.max_iter, report)
    for name, value in model._attributes(data, problem, outcome.x.reshape(shape)).items():
        setattr(model, name, value)
    model.dual_gap_ = outcome.gap
    certificate, history = gap_certificate(outcome.gap, solver.total, model.tol), monitor.history()
    model._conclude(
        Solution(outcome.x.ravel(), outcome.objective, history, certificate, max(1, history.n_iter), outcome.reason)
    )


def _grids(
    model: CrossValidatedRegressor,
    problem: LassoProblem,
    ratios: np.ndarray,
    given: np.ndarray | None,
    settings: PathSettings,
) -> list[Grid]:
    """The alphas of every share of the L1 term."""
    if given is not None:
        return [Grid(float(ratio), given) for ratio in ratios]
    solver, n = problem.solvers[0], model.n_alphas if model.alphas is None else int(model.alphas)
    return [
        Grid(float(r), grid_of_alphas(solver, float(r), settings.factors, settings.positive, model.eps, n))
        for r in ratios
    ]
