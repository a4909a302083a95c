"""Least angle regression and the exact path of the lasso. The mathematics is in `_least_angle.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from sklearn.base import MultiOutputMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core._random import seed_of
from epicycle.core.estimator._estimator import fitting, require_sizes, stores_arguments
from epicycle.data import ArrayData, Data
from epicycle.linear.lars._angles import lars_problem
from epicycle.linear.lars._path import PathOptions
from epicycle.linear.lars._path_model import PATH_PARAMETERS, PathModel


class Lars(MultiOutputMixin, PathModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""Least angle regression: the whole path of coefficients, from one exact breakpoint to the next.

    The feature most correlated with y enters first. Its coefficient grows until another feature has as much correlation
    with the residuals; then both move so that the correlations stay equal, until a third one joins, and so on:

    .. math:: \tfrac1n\, |x_j'(y - b - Xw)| = \alpha \;\text{ for active } j, \qquad \le \alpha \;\text{ for others}

    while :math:`\alpha` falls. With ``method="lasso"`` a feature leaves when its coefficient reaches zero, and the path
    is that of :class:`Lasso` for all alphas at once.

    Parameters
    ----------
    method : {"lar", "lasso"}, default="lar"
        Least angle regression, or the lasso.
    alpha : float, default=0.0
        Where the path ends: the correlation of the active features with the residuals, which is alpha of the lasso.
        At 0 the path ends with least squares.
    n_nonzero_coefs : int, optional
        Maximum number of features; 500 by default, None for as many as are independent.
    positive : bool, default=False
        Whether coefficients have to be non-negative; for the lasso only.

    Attributes
    ----------
    %(path)s
    certificate_ : Certificate
        The worst over all breakpoints. For the lasso the duality gap, relative to half the mean square of y. For least
        angle regression its condition: how far the correlations of the active features are from being equal, and those
        of others from being smaller, relative to the largest at the beginning.

    See Also
    --------
    Lasso : for one alpha, by coordinate descent; faster for many features.
    Stagewise : reaches much the same path in many small steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Lars
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Lars().fit(X, y).active_
    array([2, 8, 3, 6, 1, 9, 4, 7, 5, 0])
    >>> lasso = Lars(method="lasso").fit(X, y)
    >>> lasso.n_iter_
    12
    >>> coef, intercept = lasso.at(bound=1000.0)
    >>> round(float(abs(coef).sum()), 6)
    1000.0
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PATH_PARAMETERS,
        "positive": Boolean(),
        "method": Choice("lar", "lasso"),
        "alpha": Real(minimum=0),
        "n_nonzero_coefs": NoneOr(Integer(minimum=1)),
        "fit_path": Boolean(),
        "jitter": NoneOr(Real(minimum=0)),
    }

    @stores_arguments(fit_intercept=True, tol=1e-8, max_iter=None, n_jobs=None, verbose=0, random_state=None)
    def __init__(
        self,
        method: Literal["lar", "lasso"] = "lar",
        *,
        alpha: float = 0.0,
        n_nonzero_coefs: int | None = 500,
        precompute: Any = "auto",
        copy_X: bool = True,
        positive: bool = False,
        fit_path: bool = True,
        eps: float = 2.2e-16,
        jitter: float | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, Xy: Any = None) -> Self:
        """Follow the path for rows X with targets y."""
        if self.positive and self.method == "lar":
            raise ParameterError(
                "positive=True; expected method='lasso' with it: least angle regression keeps no signs"
            )
        options = PathOptions(
            lasso=self.method == "lasso",
            positive=self.positive,
            alpha=float(self.alpha),
            max_columns=self.n_nonzero_coefs,
            eps=self.eps,
            max_iter=self.max_iter,
        )
        _fit(self, X, y, sample_weight, options)
        return self

    def _penalty_line(self) -> str:
        return "" if self.method == "lar" else f"{np.max(vars(self).get('alpha_', self.alpha)):g} |w|_1"


class LassoLars(MultiOutputMixin, PathModel):  # type: ignore[misc]  # scikit-learn has no types
    r"""The lasso by least angle regression: the exact path of coefficients down to one alpha.

    .. math:: \min_{w, b} \; \frac{1}{2n} \sum_i (y_i - b - w'x_i)^2 + \alpha \sum_j |w_j|

    The solution is that of :class:`Lasso`; on the way to it every breakpoint of the path is computed. It is
    :class:`Lars` with ``method="lasso"``.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty, where the path ends; at 0 with least squares.

    Attributes
    ----------
    %(path)s
    %(gap_of_path)s

    See Also
    --------
    Lasso : for one alpha, by coordinate descent; faster for many features.
    LassoLarsCV : chooses alpha by cross-validation.
    LassoLarsIC : chooses alpha by an information criterion.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LassoLars
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LassoLars(alpha=0.5).fit(X, y)
    >>> model.active_
    array([2, 8, 3, 6])
    >>> model.certificate_.holds
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **PATH_PARAMETERS,
        "positive": Boolean(),
        "alpha": Real(minimum=0),
        "fit_path": Boolean(),
        "jitter": NoneOr(Real(minimum=0)),
    }

    @stores_arguments(fit_intercept=True, verbose=0, max_iter=None, random_state=None, tol=1e-8, n_jobs=None)
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        precompute: Any = "auto",
        eps: float = 2.2e-16,
        copy_X: bool = True,
        fit_path: bool = True,
        positive: bool = False,
        jitter: float | None = None,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, Xy: Any = None) -> Self:
        """Follow the path for rows X with targets y."""
        options = PathOptions(
            lasso=True, positive=self.positive, alpha=float(self.alpha), eps=self.eps, max_iter=self.max_iter
        )
        _fit(self, X, y, sample_weight, options)
        return self

    def _penalty_line(self) -> str:
        return f"{np.max(vars(self).get('alpha_', self.alpha)):g} |w|_1"


def _fit(model: Lars | LassoLars, X: Any, y: Any, sample_weight: Any, options: PathOptions) -> None:
    """Follow the path of every target down to `options.alpha`."""
    data = model._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=False)
    if model.jitter is not None:
        data = _jittered(model, data)
    problem = lars_problem(data, centre=model.fit_intercept, n_jobs=model.n_jobs)
    model._fit_path(data, problem, options, keep=model.fit_path)


def _jittered(model: Lars | LassoLars, data: Data) -> Data:
    """The data with noise added to y."""
    if not isinstance(data, ArrayData):
        raise DataError("jitter: adds noise to y, which has to be in memory; expected jitter=None")
    y: Any = data.y
    noise = np.random.default_rng(seed_of(model.random_state)).uniform(high=model.jitter, size=y.shape)
    noisy = ArrayData(data.X, y + noise, data.weight, feature_names=data.feature_names)
    try:
        require_sizes(noisy, "numeric")
    except DataError as error:
        raise ParameterError(f"jitter={model.jitter!r}: with the noise that it adds, {error}") from None
    return noisy
