"""The lasso along the path of least angle regression, with alpha chosen by an information criterion.

With n the sum of the weights, w the coefficients at a breakpoint and d the number of those that are not zero (an
unbiased estimate of the degrees of freedom: Zou, Hastie and Tibshirani 2007),

    criterion = n log(2 pi s^2) + |y - Xw|^2 / s^2 + k d,      k = 2 (Akaike) or log n (Bayes),

where s^2 is the variance of the noise: given, or that of the residuals of least squares on all features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, NoneOr, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._path import PathOptions
from epicycle.linear.lars._path_model import PATH_PARAMETERS, PathModel
from epicycle.linear.lasso._solver import LassoSolver


class LassoLarsIC(PathModel):
    r"""The lasso with alpha chosen by the information criterion of Akaike (AIC) or Bayes (BIC).

    At every breakpoint of the path

    .. math:: n \log(2 \pi \sigma^2) + \frac{1}{\sigma^2} \sum_i (y_i - b - w'x_i)^2 + k\, |\{j : w_j \ne 0\}|

    is computed, with k = 2 for AIC and log n for BIC; the model is the breakpoint at which it is smallest.

    Parameters
    ----------
    criterion : {"aic", "bic"}, default="aic"
        BIC asks more of a feature than AIC, and chooses fewer.
    noise_variance : float, optional
        :math:`\sigma^2`; by default that of the residuals of least squares, for which there have to be more rows than
        features.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_steps + 1,)
        The breakpoints of the path, decreasing.
    criterion_ : ndarray of shape (n_steps + 1,)
        The criterion at the breakpoints.
    noise_variance_ : float
        :math:`\sigma^2` as it was used.
    active_ : ndarray
        Features of the model.
    coef_path_ : ndarray of shape (n_features, n_steps + 1)
    intercept_path_ : ndarray of shape (n_steps + 1,)
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    %(gap_of_path)s

    See Also
    --------
    LassoLarsCV : chooses alpha by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LassoLarsIC
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoLarsIC(criterion="bic").fit(X, y)
    >>> (model.coef_ != 0).nonzero()[0]
    array([1, 2, 3, 4, 6, 8, 9])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PATH_PARAMETERS,
        "positive": Boolean(),
        "criterion": Choice("aic", "bic"),
        "noise_variance": NoneOr(Real(minimum=0, inclusive=False)),
    }
    _docs: ClassVar[Mapping[str, str]] = {
        "max_iter": "max_iter : int, default={default}\n"
        "    Steps at most: longer paths are not among the candidates. None for 1000 and twenty for each feature.",
        "fit_y": "y : array-like of shape (n_samples,)\n    A scan brings its own.",
    }

    @stores_arguments(fit_intercept=True, verbose=0, max_iter=500, tol=1e-8, n_jobs=None)
    def __init__(
        self,
        criterion: Literal["aic", "bic"] = "aic",
        *,
        precompute: Any = "auto",
        eps: float = 2.2e-16,
        copy_X: bool = True,
        positive: bool = False,
        noise_variance: float | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, copy_X: bool | None = None) -> Self:
        """Follow the path and choose a breakpoint of it.

        Parameters
        ----------
        copy_X : bool, optional
            Accepted for compatibility: X is never written to, whatever the value.
        """
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
        problem = lars_problem(data, centre=self.fit_intercept, n_jobs=self.n_jobs)
        n = problem.weight
        self.noise_variance_ = (
            _noise_variance(problem.solvers[0], data, n, self.fit_intercept)
            if self.noise_variance is None
            else float(self.noise_variance)
        )
        options = PathOptions(lasso=True, positive=self.positive, eps=self.eps, max_iter=self.max_iter)
        (knots,) = self._fit_path(data, problem, options, may_end_early=True)
        path = np.asarray(self.coef_path_)
        # Coefficients below the rounding of the type count as zero, where a path ends on its way through zero.
        degrees = np.count_nonzero(np.abs(path) > np.finfo(path.dtype).eps, axis=0)
        penalty = 2.0 if self.criterion == "aic" else np.log(n)
        variance = self.noise_variance_
        self.criterion_ = n * np.log(2 * np.pi * variance) + n * knots.squares / variance + penalty * degrees
        best = int(np.argmin(self.criterion_))
        self.alpha_ = float(self.alphas_[best])
        self.coef_ = path[:, best].copy()
        if self.fit_intercept:
            self.intercept_ = self.intercept_path_[best].astype(path.dtype)
        self.active_ = np.flatnonzero(self.coef_)
        return self

    def _penalty_line(self) -> str:
        return f"{self.alpha_:g} |w|_1, by {self.criterion.upper()}" if hasattr(self, "alpha_") else ""


def _noise_variance(solver: LassoSolver, data: Data, n: float, fit_intercept: bool) -> float:
    """The variance of the residuals of least squares on all features, by the degrees of freedom that they have."""
    left = n - data.n_features - int(fit_intercept)
    if not left > 0:
        raise DataError(
            f"You are using LassoLarsIC in the case where the number of samples is smaller than the number of features "
            f"(X has {n:g} rows and {data.n_features} features), in which least squares leave no residuals to estimate "
            "the variance of the noise from; expected noise_variance to be given"
        )
    kept = np.flatnonzero(solver.square > 0)
    if len(kept):
        solver.fit_unpenalised(kept)
    # Residuals that are nothing but rounding have no variance of their own.
    return max(n * solver.rr / left, np.finfo(float).eps ** 2 * solver.yy, np.finfo(float).tiny)
