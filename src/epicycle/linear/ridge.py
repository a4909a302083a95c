"""Ridge regression:  minimise  1/2 sum_i w_i (y_i - b - w'x_i)^2 + alpha/2 ||w||^2.

The minimum is unique for alpha > 0: (X'WX + alpha I) w = X'Wy about the mean. Its dual point is the vector of
residuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.base import MethodCard
from epicycle.exceptions import ParameterError
from epicycle.linear.regression import LeastSquaresRegressor
from epicycle.parameters import AnyOf, ArrayLike, Domain, Real

__all__ = ["Ridge"]


class Ridge(LeastSquaresRegressor):
    r"""Least squares with an L2 penalty on the coefficients.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2 + \tfrac{\alpha}{2} \|w\|^2

    The intercept is not penalised.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of the penalty, for all targets or for each.
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    solver : str, default="auto"
        "auto" solves the normal equations by Cholesky, refines them where the condition asks for it, and falls back
        to QR; "cholesky" and "qr" insist on one; any solver of :data:`epicycle.optim.SOLVERS` iterates to the same
        solution.
    solver_options : dict, optional
        Options of an iterating solver, such as ``{"step": 0.1}``.
    tol : float, default=1e-10
        Distance of the objective from its minimum, relative to half the sum of squares of y, that the certificate
        asserts.
    max_iter : int, default=1000
        Iterations at most (epochs for the stochastic solvers).
    random_state : int, Generator, RandomState or None, default=None
        Order of rows of the stochastic solvers.
    n_jobs : int, optional
        Threads; None follows the size of the work. The result does not depend on it.
    verbose : int, default=0
        1 shows progress when the fit takes more than about two seconds, 2 logs every iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    rank_ : int
        Rank of X'WX + alpha I.
    certificate_ : Certificate
        Newton decrement, which for a quadratic is the exact distance from the minimum; the duality gap where the Gram
        matrix is too large to form.
    history_ : History
    n_iter_ : int
    converged_ : bool

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
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **LeastSquaresRegressor._parameters,
        "alpha": AnyOf(Real(minimum=0), ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A2", "A6"),
        engines=("memory", "files", "dask"),
        certificate="newton decrement or duality gap",
    )

    def __init__(
        self,
        alpha: float | Any = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-10,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _alphas(self, n_targets: int) -> np.ndarray:
        try:
            alpha = np.asarray(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"alpha={self.alpha!r}; expected a number or one for each target") from None
        if alpha.ndim > 1 or alpha.size not in (1, n_targets):
            raise ParameterError(
                f"alpha has shape {alpha.shape}; expected a number or one for each of {n_targets} target(s)"
            )
        if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
            raise ParameterError(f"alpha={self.alpha!r}; expected finite numbers >= 0")
        return np.broadcast_to(alpha.ravel(), (n_targets,)).astype(np.float64)

    def _penalty_line(self) -> str:
        return f"L2 penalty alpha/2 ||w||^2, alpha={self.alpha}"
