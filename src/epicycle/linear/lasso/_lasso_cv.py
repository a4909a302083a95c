"""Lasso and elastic net with alpha (and l1_ratio) chosen by cross-validation along a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Domain, Real
from epicycle.core.estimator._estimator import MethodCard
from epicycle.linear.lasso._cross_validation import CrossValidatedRegressor
from epicycle.linear.lasso._folds import Grid

__all__ = ["ElasticNetCV", "LassoCV"]

_CARD = MethodCard(family="linear", catalogue=("A7",), engines=("memory", "files", "dask"), certificate="duality gap")


class LassoCV(CrossValidatedRegressor):
    """Lasso with alpha chosen by cross-validation along a path.

    Every fold follows a grid of alphas, each solution started from the one before and certified by its duality gap; the
    folds run side by side and copy no rows. The model is :class:`Lasso` with the alpha of least mean squared error on
    the held-out rows, or the largest alpha within one standard error of that.

    Parameters
    ----------
    eps : float, default=1e-3
        Smallest alpha of the grid, relative to the largest (at which all coefficients are zero).
    n_alphas : int, default=100
        Number of alphas in the grid.
    alphas : array-like, optional
        The alphas themselves.
    cv : int, splitter or iterable of (train, test), optional
        Folds, as for scikit-learn; five by default.
    rule : {"min", "1se"}, default="min"
        Alpha of the least error, or the largest alpha whose error is within one standard error of the least.
    penalty_weights : array-like of shape (n_features,), optional
        Factors of alpha for each feature; 0 leaves a feature unpenalised.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    positive : bool, default=False
        Whether coefficients have to be non-negative.
    tol : float, default=1e-8
        Largest duality gap, relative to half the (weighted) mean square of y about its mean.
    max_iter : int, default=1000
        Rounds at most for each alpha.
    n_jobs : int, optional
        Threads, one fold each; None follows the processors. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every round of the last fit.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        Mean squared error on the held-out rows.
    mse_mean_, mse_se_ : ndarray of shape (n_alphas,)
        Its mean over folds, and the standard error of that.
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
    certificate_ : Certificate
        Duality gap of the fit to all rows.
    history_ : History
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoCV(rule="1se").fit(X, y)
    >>> int((model.coef_ != 0).sum())
    6
    """

    _card: ClassVar[MethodCard] = _CARD

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: Any = None,
        cv: Any = None,
        rule: Literal["min", "1se"] = "min",
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratios(self) -> np.ndarray:
        return np.ones(1)


class ElasticNetCV(CrossValidatedRegressor):
    """Elastic net with alpha and l1_ratio chosen by cross-validation along paths.

    As :class:`LassoCV`, with a path for every l1_ratio.

    Parameters
    ----------
    l1_ratio : float or array-like, default=0.5
        Share, or shares to choose from, of the L1 term; above 0 unless `alphas` are given.
    eps, n_alphas, alphas, cv, rule, penalty_weights, fit_intercept, positive, tol, max_iter, n_jobs, verbose : optional
        As for :class:`LassoCV`.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        What was chosen.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)
    mse_mean_, mse_se_ : ndarray of the shape of `mse_path_` without its last axis
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
    certificate_ : Certificate
        Duality gap of the fit to all rows.
    history_ : History
    n_iter_ : int
    converged_ : bool

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
        "l1_ratio": AnyOf(Real(minimum=0, maximum=1), ArrayLike()),
    }
    _card: ClassVar[MethodCard] = _CARD

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: Any = None,
        cv: Any = None,
        rule: Literal["min", "1se"] = "min",
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.rule = rule
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _l1_ratios(self) -> np.ndarray:
        try:
            ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        except (TypeError, ValueError):
            raise ParameterError(f"l1_ratio={self.l1_ratio!r}; expected numbers between 0 and 1") from None
        if ratios.ndim != 1 or ratios.size == 0 or not ((ratios >= 0) & (ratios <= 1)).all():
            raise ParameterError(f"l1_ratio={self.l1_ratio!r}; expected numbers between 0 and 1")
        if self.alphas is None and (ratios == 0).any():
            raise ParameterError("l1_ratio=0: no alpha sets coefficients to zero, so there is no grid; pass alphas")
        return ratios

    def _choose(self, grids: list[Grid]) -> tuple[float, float]:
        alpha, self.l1_ratio_ = super()._choose(grids)
        return alpha, self.l1_ratio_
