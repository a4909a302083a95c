"""The lasso and the elastic net along a path of penalties, each solution started from the one before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._checks import as_floats
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    AnyOf,
    ArrayLike,
    Boolean,
    Domain,
    Integer,
    NoneOr,
    Real,
    check_parameter,
)
from epicycle.core._plot_style import Axes
from epicycle.data import Data, as_data
from epicycle.engine import single_threaded_blas
from epicycle.linear._scikit_learn import COMPATIBILITY_PARAMETERS
from epicycle.linear.lasso._duality import penalty_factors, penalty_of
from epicycle.linear.lasso._path_plot import PATH_PLOT_DOCS, Against, draw_path
from epicycle.linear.lasso._problem import LassoProblem, check_given_gram, csc_data, lasso_problem
from epicycle.linear.lasso._solver import LassoSolver
from epicycle.optim._working_set import Outcome

#: Longest grid of alphas: a longer one is a mistake, and would take memory and time without end.
MAX_ALPHAS = 100_000

NO_GRID = (
    "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing your estimator "
    "with the appropriate `alphas=` argument. No alpha sets coefficients to zero where the penalty is L2 alone."
)

PATH_PARAMETERS: dict[str, Domain] = {
    "l1_ratio": Real(minimum=0, maximum=1),
    "eps": Real(minimum=0, maximum=1, inclusive=(False, True)),
    "n_alphas": Integer(minimum=1, maximum=MAX_ALPHAS),
    "alphas": NoneOr(AnyOf(Integer(minimum=1, maximum=MAX_ALPHAS), ArrayLike())),
    "penalty_weights": NoneOr(ArrayLike()),
    "fit_intercept": SHARED_PARAMETERS["fit_intercept"],
    "positive": Boolean(),
    "tol": Real(minimum=0),  # 0 asks for all that rounding leaves
    "max_iter": SHARED_PARAMETERS["max_iter"],
    "n_jobs": SHARED_PARAMETERS["n_jobs"],
}
_FUNCTION_PARAMETERS: dict[str, Domain] = {
    **PATH_PARAMETERS,
    **COMPATIBILITY_PARAMETERS,
    "coef_init": NoneOr(ArrayLike()),
    "verbose": SHARED_PARAMETERS["verbose"],
    "return_n_iter": Boolean(),
    "check_input": Boolean(),
    "random_state": SHARED_PARAMETERS["random_state"],
}


@dataclass(frozen=True)
class Grid:
    """The alphas of one l1_ratio, decreasing."""

    l1_ratio: float
    alphas: np.ndarray


@dataclass(frozen=True)
class PathSettings:
    """The settings of a path: penalty factors, signs, centring, accuracy, whether all targets share their features."""

    factors: np.ndarray
    positive: bool
    centre: bool
    tol: float
    max_iter: int
    together: bool = False


@dataclass(frozen=True)
class RegularizationPath:
    """Solutions for a decreasing sequence of alphas.

    It unpacks as ``alphas, coefs, dual_gaps = path``.

    alphas : array of shape (n_alphas,), decreasing.
    coefs : array of shape (n_features, n_alphas), or (n_targets, n_features, n_alphas).
    dual_gaps : array of shape (n_alphas,), proven distances from the minimum.
    intercepts : array of shape (n_alphas,) or (n_targets, n_alphas); zeros without an intercept.
    objectives : array of shape (n_alphas,).
    converged : array of shape (n_alphas,), whether the gap reached the tolerance.
    n_iters : array of shape (n_alphas,), rounds that each solution took.
    feature_names : names of the features, where the data had them.
    gives_n_iters : whether it unpacks with `n_iters` as a fourth part.
    """

    alphas: np.ndarray
    coefs: np.ndarray
    dual_gaps: np.ndarray
    intercepts: np.ndarray
    objectives: np.ndarray
    converged: np.ndarray
    n_iters: np.ndarray
    feature_names: tuple[str, ...] | None = field(default=None)
    gives_n_iters: bool = field(default=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        first = (self.alphas, self.coefs, self.dual_gaps)
        return iter((*first, self.n_iters) if self.gives_n_iters else first)

    def __len__(self) -> int:
        return 4 if self.gives_n_iters else 3

    def __getitem__(self, part: int) -> np.ndarray:
        return tuple(self)[part]

    @documented(PATH_PLOT_DOCS)
    def plot(self, against: Against = "alpha", *, target: int = 0, labels: int = 10, ax: Axes | None = None) -> Axes:
        """Draw the coefficients along the path."""
        coefs = self.coefs if self.coefs.ndim == 2 else self.coefs[target]
        return draw_path(self.alphas, coefs, against, names=self.feature_names, labels=labels, ax=ax)


def grid_of_alphas(
    solver: LassoSolver, l1_ratio: float, factors: np.ndarray, positive: bool, eps: float, n_alphas: int
) -> np.ndarray:
    """A geometric grid from the smallest alpha at which all coefficients are zero down to eps times that."""
    if l1_ratio == 0:
        raise ParameterError(NO_GRID)
    largest = solver.alpha_of_zero(l1_ratio, factors, positive)
    least = float(np.finfo(np.float64).resolution)
    if not largest > least:  # y is constant, or orthogonal to all columns: every alpha gives zero
        return np.full(n_alphas, least)
    return np.geomspace(largest, largest * eps, n_alphas) if n_alphas > 1 else np.array([largest])


def checked_alphas(alphas: Any) -> np.ndarray:
    """The alphas that a user gave, in decreasing order."""
    if np.ndim(alphas) == 1:
        for i, alpha in enumerate(alphas):
            if isinstance(alpha, str | bytes):
                raise ParameterTypeError(f"alphas[{i}] must be an instance of float, not {type(alpha).__name__}")
    grid = as_floats(alphas, ParameterError("alphas: expected numbers"))
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise ParameterError(f"alphas: expected a sequence of finite numbers >= 0, got {alphas!r:.80}")
    if (grid < 0).any():
        i = int(np.argmax(grid < 0))
        raise ParameterError(f"alphas[{i}] == {alphas[i]}, must be >= 0.0.")
    return np.sort(grid)[::-1].copy()


def follow(solver: LassoSolver, grid: Grid, settings: PathSettings) -> list[Outcome]:
    """The solutions for the decreasing alphas of a grid, each from the one before."""
    if (grid.alphas == 0).any():  # nothing is penalised there: the rules for unpenalised columns hold
        penalty_factors(np.zeros(solver.p), solver.p, settings.positive)
    return [
        solver.minimise(
            penalty_of(float(alpha), grid.l1_ratio, settings.factors, settings.positive),
            settings.tol,
            settings.max_iter,
        )
        for alpha in grid.alphas
    ]


def lasso_path(
    X: Any,
    y: Any = None,
    *,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: Any = None,
    sample_weight: Any = None,
    penalty_weights: Any = None,
    fit_intercept: bool = False,
    positive: bool = False,
    tol: float = 1e-8,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: int = 0,
    return_n_iter: bool = False,
    check_input: bool = True,
    random_state: Any = None,
    selection: str = "cyclic",
    **params: Any,
) -> RegularizationPath:
    r"""Solutions of the lasso for many alphas.

    .. math:: \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2 + \alpha \sum_j f_j |w_j|

    Of several targets it is the path of :class:`MultiTaskLasso`: a feature is used for all of them or for none, and
    :math:`|w_j|` is the length of its coefficients. As in scikit-learn's function there is no intercept by default: X
    and y are taken as they are.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    eps : float, default=1e-3
        Smallest alpha of the grid, relative to the largest (at which all coefficients are zero).
    n_alphas : int, default=100
        Number of alphas in the grid.
    alphas : array-like or int, optional
        The alphas themselves, or their number in place of `n_alphas`.
    sample_weight : array-like of shape (n_samples,), optional
    penalty_weights : array-like of shape (n_features,), optional
        Factors of alpha for each feature; 0 leaves a feature unpenalised.
    fit_intercept : bool, default=False
        Whether b is fitted or 0.
    positive : bool, default=False
        Whether coefficients have to be non-negative; for one target.
    tol : float, default=1e-8
        Largest duality gap, relative to half the (weighted) mean square of y about its mean.
    max_iter : int, default=1000
        Rounds at most for each alpha.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    coef_init : array-like of shape (n_features,) or (n_targets, n_features), optional
        Where the solution of the largest alpha starts.
    return_n_iter : bool, default=False
        Whether the path unpacks with the numbers of rounds as a fourth part.
    precompute : bool, "auto" or array-like of shape (n_features, n_features), default="auto"
        A Gram matrix that is given is compared with X, and refused where it is another; the solutions do not depend
        on it.
    Xy, copy_X, verbose, check_input, random_state, selection
        Accepted for compatibility; the solutions do not depend on them.
    **params : dict
        Nothing else: other arguments are refused.

    Returns
    -------
    RegularizationPath
        Unpacks as ``alphas, coefs, dual_gaps``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import lasso_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, coefs, dual_gaps = lasso_path(X, y)
    >>> coefs.shape
    (10, 100)
    >>> [int((w != 0).sum()) for w in coefs.T[::25]]
    [0, 4, 7, 10]
    """
    return enet_path(
        X,
        y,
        l1_ratio=1.0,
        eps=eps,
        n_alphas=n_alphas,
        alphas=alphas,
        sample_weight=sample_weight,
        penalty_weights=penalty_weights,
        fit_intercept=fit_intercept,
        positive=positive,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
        precompute=precompute,
        Xy=Xy,
        copy_X=copy_X,
        coef_init=coef_init,
        verbose=verbose,
        return_n_iter=return_n_iter,
        check_input=check_input,
        random_state=random_state,
        selection=selection,
        **params,
    )


def enet_path(
    X: Any,
    y: Any = None,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: Any = None,
    sample_weight: Any = None,
    penalty_weights: Any = None,
    fit_intercept: bool = False,
    positive: bool = False,
    tol: float = 1e-8,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    precompute: Any = "auto",
    Xy: Any = None,  # noqa: ARG001 - as in scikit-learn
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: int = 0,
    return_n_iter: bool = False,
    check_input: bool = True,
    random_state: Any = None,
    selection: str = "cyclic",
    **params: Any,
) -> RegularizationPath:
    r"""Solutions of the elastic net for many alphas.

    .. math::
        \min_{w, b} \; \frac{1}{2 \sum_i v_i} \sum_i v_i \, (y_i - b - w'x_i)^2
        + \alpha \sum_j f_j \left( \rho |w_j| + \tfrac{1 - \rho}{2} w_j^2 \right)

    Of several targets it is the path of :class:`MultiTaskElasticNet`; there is no intercept by default.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    l1_ratio : float, default=0.5
        Share of the L1 term, between 0 (ridge; then `alphas` has to be given) and 1 (lasso).
    eps, n_alphas, alphas, sample_weight, penalty_weights, fit_intercept, positive, tol, max_iter, n_jobs
        As for :func:`lasso_path`.
    precompute, Xy, copy_X, coef_init, verbose, return_n_iter, check_input, random_state, selection, params
        As for :func:`lasso_path`.

    Returns
    -------
    RegularizationPath
        Unpacks as ``alphas, coefs, dual_gaps``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import enet_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = enet_path(X, y, l1_ratio=0.8, n_alphas=5)
    >>> bool(path.converged.all())
    True
    """
    if params:
        raise ParameterError(f"Unexpected parameters in params: {sorted(params)}")
    given = {
        "l1_ratio": l1_ratio,
        "eps": eps,
        "n_alphas": n_alphas,
        "alphas": alphas,
        "penalty_weights": penalty_weights,
        "fit_intercept": fit_intercept,
        "positive": positive,
        "tol": tol,
        "max_iter": max_iter,
        "n_jobs": n_jobs,
        "precompute": precompute,
        "copy_X": copy_X,
        "coef_init": coef_init,
        "verbose": verbose,
        "return_n_iter": return_n_iter,
        "check_input": check_input,
        "random_state": random_state,
        "selection": selection,
    }
    for name, value in given.items():
        check_parameter("enet_path", name, value, _FUNCTION_PARAMETERS[name])
    data = path_data(X, y, sample_weight, "enet_path")
    factors = penalty_factors(penalty_weights, data.n_features, positive)
    if isinstance(alphas, int | np.integer):
        alphas, n_alphas = None, int(alphas)
    grid = None if alphas is None else checked_alphas(alphas)
    start = None if coef_init is None else start_of(coef_init, data.n_targets, data.n_features)
    together = not data.target_is_vector
    if together and positive:
        raise ParameterError("positive=True is for one target: the signs of features shared by several are not bounded")
    settings = PathSettings(factors, positive, fit_intercept, tol, max_iter, together)
    with single_threaded_blas():
        check_given_gram(precompute, data, fit_intercept)
        problem = lasso_problem(data, centre=fit_intercept, n_jobs=n_jobs, many=True, together=together)
        solver = problem.solvers[0]
        if grid is None:
            grid = grid_of_alphas(solver, l1_ratio, factors, positive, eps, n_alphas)
        if start is not None:
            solver.start_at(start.T if together else start[0])
        outcomes = follow(solver, Grid(l1_ratio, grid), settings)
    return replace(_as_path(data, problem, grid, outcomes), gives_n_iters=return_n_iter)


def start_of(given: Any, k: int, p: int) -> np.ndarray:
    """The coefficients to start from, of shape (k, p)."""
    W = np.array(as_floats(given, DataError("coef_init: expected an array of numbers")))
    if W.shape not in ((k, p), (p,) if k == 1 else (k, p)) or not np.isfinite(W).all():
        raise DataError(f"coef_init: expected finite numbers of shape {(p,) if k == 1 else (k, p)}, got {W.shape}")
    return W.reshape(k, p)


def path_data(X: Any, y: Any, sample_weight: Any, name: str) -> Data:
    """The data, checked; CSC stays CSC."""
    if sp.issparse(X) and X.format == "csc" and X.ndim == 2 and 0 not in X.shape:
        return csc_data(X, y, sample_weight, estimator_name=name, multi_output=True)
    return as_data(X, y, sample_weight, target="numeric", multi_output=True, estimator_name=name, check_finite=False)


def _as_path(data: Data, problem: LassoProblem, grid: np.ndarray, outcomes: list[Outcome]) -> RegularizationPath:
    W = np.array([np.atleast_2d(outcome.x) for outcome in outcomes])  # (alphas, targets, features)
    intercepts, coefs = problem.intercepts(W).T, W.transpose(1, 2, 0).astype(data.dtype)
    return RegularizationPath(
        grid,
        coefs[0] if data.target_is_vector else coefs,
        np.array([outcome.gap for outcome in outcomes]),
        intercepts[0] if data.target_is_vector else intercepts,
        np.array([outcome.objective for outcome in outcomes]),
        np.array([outcome.reason == "converged" for outcome in outcomes]),
        np.array([outcome.n_rounds for outcome in outcomes]),
        feature_names=data.feature_names,
    )
