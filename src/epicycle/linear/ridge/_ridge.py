"""Ridge regression:  minimise  1/2 sum_i w_i (y_i - b - w'x_i)^2 + alpha/2 w'Dw.

The minimum solves (X'WX + alpha D) w = X'Wy about the mean; for D = I and alpha > 0 it is unique, and its dual point is
the vector of residuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, Unpack

from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._parameters import AnyOf, ArrayLike, Domain, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.linear.least_squares._base import SOLVER_PARAMETERS, add_rows, fit_by_solver
from epicycle.linear.ridge._base import PENALTY_PARAMETERS, BaseRidge


class Ridge(MultiOutputMixin, RegressorMixin, BaseRidge):  # type: ignore[misc]
    r"""Least squares with an L2 penalty on the coefficients, or any other quadratic one.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2 + \tfrac{\alpha}{2} \, w'Dw

    D is the identity unless given. The intercept is not penalised.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of the penalty, for all targets or for each.

    Attributes
    ----------
    effective_dof_ : float or ndarray of shape (n_targets,)
        Trace of the hat matrix, the intercept among it; up to 2,000 features.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> round(model.score(X, y), 4)
    0.5126
    >>> model.certificate_.holds
    True
    >>> round(model.effective_dof_, 2)
    8.64
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SOLVER_PARAMETERS,
        **PENALTY_PARAMETERS,
        "alpha": AnyOf(Real(minimum=0), ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A2", "A6"),
        engines=("memory", "files", "dask"),
        certificate="newton decrement or duality gap",
    )

    _flattens: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        alpha: float | Any = 1.0,
        *,
        penalty_weights: Any = None,
        penalty_matrix: Any = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        copy_X: bool = True,
        positive: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        fit_by_solver(self, self._training_data(X, y, sample_weight))
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the result is that of `fit` on all rows so far, because second moments add up."""
        add_rows(self, X, y, sample_weight)
        return self
