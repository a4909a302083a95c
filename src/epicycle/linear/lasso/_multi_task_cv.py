"""The lasso and the elastic net for several tasks, with alpha (and l1_ratio) chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import MultiOutputMixin

from epicycle.core._parameters import AnyOf, ArrayLike, Domain, Real
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear.lasso._lasso_cv import (
    GRID_DEFAULTS,
    CrossValidatedRegressor,
    GridArguments,
    fit_by_cross_validation,
    l1_ratios,
)

_DOCS = {
    "fit_y": "y : array-like of shape (n_samples, n_tasks)\n    A scan brings its own. A vector is one task.",
    "fit": "coef_ : ndarray of shape (n_tasks, n_features)\nintercept_ : ndarray of shape (n_tasks,)\n"
    "dual_gap_ : float\ncertificate_ : Certificate\n    Duality gap of the fit to all rows.\n"
    "history_ : History\nn_iter_ : int\nconverged_ : bool",
}


class MultiTaskLassoCV(MultiOutputMixin, CrossValidatedRegressor):  # type: ignore[misc]  # no types
    r"""The lasso for several tasks with alpha chosen by cross-validation along a path.

    Every fold follows a grid of alphas, each solution started from the one before and certified by its duality gap; the
    folds run side by side and copy no rows. The model is :class:`MultiTaskLasso`,

    .. math:: \min_{W, b} \; \frac{1}{2n} \sum_i \|y_i - b - W'x_i\|^2 + \alpha \sum_j \|W_j\|_2 ,

    with the alpha of least mean squared error on the held-out rows, over all tasks, or the largest alpha within one
    standard error of that.

    Attributes
    ----------
    alpha_ : float
        The alpha that was chosen.
    alphas_ : ndarray of shape (n_alphas,)
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        Mean squared error on the held-out rows, the mean over tasks.
    mse_mean_, mse_se_ : ndarray of shape (n_alphas,)
        Its mean over folds, and the standard error of that.

    See Also
    --------
    LassoCV : for one target.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MultiTaskLassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> Y = X[:, :2] @ [[1.0, 2.0, 0.5], [-1.0, 0.2, 1.0]] + 0.5 * rng.normal(size=(100, 3))
    >>> model = MultiTaskLassoCV(rule="1se").fit(X, Y)
    >>> model.coef_.any(axis=0).nonzero()[0]
    array([0, 1, 6])
    """

    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _keeps_targets: ClassVar[bool] = True

    @stores_arguments(**GRID_DEFAULTS)
    def __init__(self, **shared: Unpack[GridArguments]) -> None: ...

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha by cross-validation and fit to all rows."""
        fit_by_cross_validation(self, X, y, sample_weight, params, np.ones(1), together=True)
        return self


class MultiTaskElasticNetCV(MultiOutputMixin, CrossValidatedRegressor):  # type: ignore[misc]  # no types
    r"""The elastic net for several tasks with alpha and l1_ratio chosen by cross-validation along paths.

    As :class:`MultiTaskLassoCV`, with a path for every l1_ratio; the model is :class:`MultiTaskElasticNet`,

    .. math:: \min_{W, b} \; \frac{1}{2n} \sum_i \|y_i - b - W'x_i\|^2
              + \alpha \sum_j \left( \rho \|W_j\|_2 + \tfrac{1 - \rho}{2} \|W_j\|_2^2 \right) .

    Parameters
    ----------
    l1_ratio : float or array-like, default=0.5
        Share :math:`\rho`, or shares to choose from, of the first term; above 0 unless `alphas` are given.

    Attributes
    ----------
    %(shares)s

    See Also
    --------
    ElasticNetCV : for one target.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import MultiTaskElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> Y = X[:, :2] @ [[1.0, 2.0], [-1.0, 0.2]] + 0.1 * rng.normal(size=(60, 2))
    >>> MultiTaskElasticNetCV(l1_ratio=[0.5, 1.0], n_alphas=20, cv=3).fit(X, Y).mse_path_.shape
    (2, 20, 3)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **CrossValidatedRegressor._parameters,
        "l1_ratio": AnyOf(Real(minimum=0, maximum=1), ArrayLike()),
    }
    _docs: ClassVar[Mapping[str, str]] = _DOCS
    _keeps_targets: ClassVar[bool] = True

    @stores_arguments(**GRID_DEFAULTS)
    def __init__(self, *, l1_ratio: Any = 0.5, **shared: Unpack[GridArguments]) -> None: ...

    @fitting  # type: ignore[arg-type]  # for mypy `params` could hold "self"
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose alpha and l1_ratio by cross-validation and fit to all rows."""
        ratios = l1_ratios(self.l1_ratio, self.alphas)
        self.l1_ratio_ = fit_by_cross_validation(self, X, y, sample_weight, params, ratios, together=True)
        return self
