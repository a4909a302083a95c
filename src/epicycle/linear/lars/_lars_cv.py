"""Least angle regression and its lasso with alpha chosen by cross-validation.

Every fold has a path of its own. Its coefficients are linear in alpha between breakpoints, and so are the residuals on
the rows left out: the error at any alpha follows exactly from those at the breakpoints of all folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import Boolean, Domain, InstanceOf, Integer, NoneOr
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear._folds import RoutesToSplitter
from epicycle.linear.lars._folds import paths_of_folds
from epicycle.linear.lars._path import PathOptions, follow
from epicycle.linear.lars._path_model import PATH_PARAMETERS, PathModel
from epicycle.linear.lasso._path import MAX_ALPHAS
from epicycle.linear.lasso._problem import LassoProblem

_PARAMETERS: dict[str, Domain] = {
    **PATH_PARAMETERS,
    "cv": NoneOr(InstanceOf(object)),
    "max_n_alphas": Integer(minimum=1, maximum=MAX_ALPHAS),
    "max_iter": Integer(minimum=0),
}
_DOCS = {
    "max_iter": "max_iter : int, default={default}\n"
    "    Steps at most, of every fold and of the fit to all rows: longer paths are not among the candidates.",
    "max_n_alphas": "max_n_alphas : int, default={default}\n"
    "    Most alphas that are compared; every second, third, ... breakpoint of the folds where there are more.",
    "n_jobs": "n_jobs : int, optional\n"
    "    Threads, one fold each; None follows the processors. The result does not depend on it.",
    "fit_y": "y : array-like of shape (n_samples,)\n    A scan brings its own.",
    "sample_weight": "sample_weight : array-like of shape (n_samples,), optional\n"
    "    Weights of the rows, in training and in the error of a fold.",
    "chosen": "alpha_ : float\n    The alpha that was chosen, or where `max_iter` ended the path before it.\n"
    "cv_alphas_ : ndarray of shape (n_cv_alphas,)\n    The alphas that were compared, increasing.\n"
    "mse_path_ : ndarray of shape (n_cv_alphas, n_folds)\n    Mean squared error on the held-out rows.\n"
    "alphas_ : ndarray of shape (n_steps + 1,)\n    Breakpoints of the path on all rows down to `alpha_`.\n"
    "active_ : ndarray\n    Features of the model in the order in which they entered.\n"
    "coef_path_ : ndarray of shape (n_features, n_steps + 1)\n"
    "intercept_path_ : ndarray of shape (n_steps + 1,)\n"
    "coef_ : ndarray of shape (n_features,)\nintercept_ : float",
}


class LarsCV(RoutesToSplitter, PathModel):
    r"""Least angle regression that stops where cross-validation says.

    Every fold follows the path of :class:`Lars`,

    .. math:: \tfrac1n\, |x_j'(y - b - Xw)| = \alpha \;\text{ for active } j, \qquad \le \alpha \;\text{ for others},

    and the model is the point of the path on all rows at the alpha of least mean squared error on the held-out rows.

    Attributes
    ----------
    %(chosen)s
    certificate_ : Certificate
        The condition above on all rows: by how much it is missed at the worst breakpoint, relative to the largest
        correlation at the beginning.

    See Also
    --------
    LassoLarsCV : the same for the lasso.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LarsCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LarsCV(cv=5).fit(X, y)
    >>> len(model.active_)
    8
    """

    _parameters: ClassVar[Mapping[str, Domain]] = _PARAMETERS
    _docs: ClassVar[Mapping[str, str]] = _DOCS

    cv_alphas_: np.ndarray
    mse_path_: np.ndarray

    @stores_arguments(fit_intercept=True, verbose=0, max_iter=500, n_jobs=None, tol=1e-8)
    def __init__(
        self,
        *,
        precompute: Any = "auto",
        cv: Any = None,
        max_n_alphas: int = 1000,
        eps: float = 2.2e-16,
        copy_X: bool = True,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha by cross-validation and follow the path on all rows to it."""
        _fit(self, X, y, sample_weight, params, PathOptions(lasso=False, eps=self.eps, max_iter=self.max_iter))
        return self


class LassoLarsCV(RoutesToSplitter, PathModel):
    r"""The lasso with alpha chosen by cross-validation over the exact paths of least angle regression.

    .. math:: \min_{w, b} \; \frac{1}{2n} \sum_i (y_i - b - w'x_i)^2 + \alpha \sum_j |w_j|

    As :class:`LassoCV`, but without a grid: the alphas compared are the breakpoints of the paths of all folds.

    Attributes
    ----------
    %(chosen)s
    %(gap_of_path)s

    See Also
    --------
    LassoCV : on a grid of alphas, by coordinate descent; faster for many features.
    LassoLarsIC : chooses alpha by an information criterion.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LassoLarsCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoLarsCV(cv=5).fit(X, y)
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {**_PARAMETERS, "positive": Boolean()}
    _docs: ClassVar[Mapping[str, str]] = _DOCS

    cv_alphas_: np.ndarray
    mse_path_: np.ndarray

    @stores_arguments(fit_intercept=True, verbose=0, max_iter=500, n_jobs=None, tol=1e-8)
    def __init__(
        self,
        *,
        precompute: Any = "auto",
        cv: Any = None,
        max_n_alphas: int = 1000,
        eps: float = 2.2e-16,
        copy_X: bool = True,
        positive: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha by cross-validation and follow the path on all rows to it."""
        options = PathOptions(lasso=True, positive=self.positive, eps=self.eps, max_iter=self.max_iter)
        _fit(self, X, y, sample_weight, params, options)
        return self

    def _penalty_line(self) -> str:
        return f"{self.alpha_:g} |w|_1, by cross-validation" if hasattr(self, "alpha_") else ""


def _fit(
    model: LarsCV | LassoLarsCV, X: Any, y: Any, sample_weight: Any, params: Mapping[str, Any], options: PathOptions
) -> None:
    """Follow the path of every fold, choose alpha, and follow the path on all rows to it."""

    def trace(problem: LassoProblem) -> tuple[np.ndarray, np.ndarray]:
        _, record, _ = follow(problem.solvers[0], options)
        return np.array(record.alphas), np.asarray(record.matrix(problem.solvers[0].p).toarray().T)

    data = model._fit_data(X, y, sample_weight, target="numeric", check_finite=False)
    problem, paths = paths_of_folds(model, data, trace, params)
    alphas = np.unique(np.concatenate([path.points for path in paths]))
    alphas = alphas[:: max(1, -(-len(alphas) // model.max_n_alphas))]
    errors = np.stack([path.errors(_between(path.points, alphas)) for path in paths], axis=1)
    chosen = float(alphas[int(np.argmin(errors.mean(axis=1)))])
    model.cv_alphas_, model.mse_path_ = alphas, errors
    model._fit_path(data, problem, replace(options, alpha=chosen), may_end_early=True)


def _between(breakpoints: np.ndarray, alphas: np.ndarray) -> sp.csc_array:
    """The matrix that mixes values at decreasing breakpoints into those at alphas.

    Above the first breakpoint all coefficients are zero, as they are there; below the last the path has ended.
    """
    where = np.clip(alphas, breakpoints[-1], breakpoints[0])
    after = np.clip(np.searchsorted(-breakpoints, -where, side="left"), 1, max(len(breakpoints) - 1, 1))
    if len(breakpoints) == 1:
        return sp.csc_array(np.ones((1, len(alphas))))
    high, low = breakpoints[after - 1], breakpoints[after]
    share = np.divide(high - where, high - low, out=np.zeros_like(where), where=high > low)
    columns = np.arange(len(alphas))
    return sp.csc_array(
        (
            np.concatenate([1 - share, share]),
            (np.concatenate([after - 1, after]), np.concatenate([columns, columns])),
        ),
        shape=(len(breakpoints), len(alphas)),
    )
