"""Linear regression:  minimise  1/2 sum_i w_i (y_i - b - w'x_i)^2.

w is optimal exactly when the residuals are orthogonal to the columns of X. If columns depend on each other, the
solution of minimum norm is given. Under y = b + w'x + noise of variance s^2 / w_i, the covariance of w is s^2
(X'WX)^-1 about the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.base import MethodCard
from epicycle.exceptions import NotFittedError, ParameterError
from epicycle.linear.direct import LeastSquaresFit
from epicycle.linear.inference import Summary, wald_summary
from epicycle.linear.regression import LeastSquaresRegressor

__all__ = ["LinearRegression"]


class LinearRegression(LeastSquaresRegressor):
    r"""Least squares, with the statistics that go with it.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2

    Parameters
    ----------
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
        Number of independent features about their mean.
    certificate_ : Certificate
        Newton decrement, which for a quadratic is the exact distance from the minimum.
    history_ : History
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LinearRegression().fit(X, y)
    >>> round(model.score(X, y), 4)
    0.5177
    >>> model.summary()["std err"].round(1)
    array([ 2.6, 59.7, 61.2, 66.5, 65.4, 416.7, 339. , 212.5, 161.5, 171.9,
           66. ])
    """

    _card: ClassVar[MethodCard] = MethodCard(
        family="linear",
        catalogue=("A1", "A2"),
        engines=("memory", "files", "dask"),
        certificate="newton decrement",
    )

    def __init__(
        self,
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
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _alphas(self, n_targets: int) -> np.ndarray:
        return np.zeros(n_targets)

    def _infers(self) -> bool:
        return True

    def _penalty_line(self) -> str:
        return "no penalty"

    def _keep_inference(self, fit: LeastSquaresFit) -> None:
        """The unscaled covariance of (w, b), the residual variance of every target, and the degrees of freedom."""
        p = len(fit.coef)
        self._freedom_ = fit.n_rows - fit.rank - int(self.fit_intercept)
        self._residual_squares_, self._total_squares_ = fit.residual_squares, fit.total * 2
        if fit.gram_inverse is None:
            return
        unscaled = fit.gram_inverse
        if self.fit_intercept:
            # b = mean(y) - mean(x)'w, and mean(y) is uncorrelated with w.
            with_mean = unscaled @ fit.mean[:p]
            corner = 1 / fit.weight + fit.mean[:p] @ with_mean
            unscaled = np.block([[unscaled, -with_mean[:, None]], [-with_mean[None, :], np.array([[corner]])]])
        self._unscaled_covariance_ = unscaled

    def summary(self, confidence: float = 0.95, *, target: int = 0) -> Summary:
        """Coefficients, standard errors, t, p-values and intervals, as under independent noise of variance s^2 / w_i.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage of the intervals.
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        Summary
        """
        self._check_fitted()
        coef = np.atleast_2d(self.coef_)
        if isinstance(target, bool) or not 0 <= target < len(coef):
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {len(coef) - 1}")
        intercept = float(np.atleast_1d(self.intercept_)[target]) if self.fit_intercept else None
        freedom = getattr(self, "_freedom_", None)
        if freedom is None:
            raise NotFittedError(
                f"summary: with {self.n_features_in_} features the second moments that it needs were not kept"
            )
        if freedom <= 0 or not hasattr(self, "_unscaled_covariance_"):
            why = (
                f"the features have rank {self.rank_} of {self.n_features_in_}: standard errors do not exist"
                if freedom > 0
                else f"{freedom} degrees of freedom are left for the noise: standard errors do not exist"
            )
            outputs = ["y"]
            b = None if intercept is None else np.array([intercept])
            return Summary.of_coefficients(self._names(), coef[target : target + 1], b, outputs, "Least squares", why)
        variance = self._residual_squares_[target] / freedom
        facts = {"residual std": float(np.sqrt(variance)), "degrees of freedom": float(freedom)}
        if len(coef) == 1 and self._total_squares_ > 0:
            facts["R2"] = float(1 - self._residual_squares_[0] / self._total_squares_)
        return wald_summary(
            self._names(), coef[target], intercept, variance * self._unscaled_covariance_,
            confidence=confidence, title="Least squares", facts=facts, degrees_of_freedom=freedom,
        )  # fmt: skip
