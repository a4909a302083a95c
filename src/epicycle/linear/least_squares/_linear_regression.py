"""Linear regression:  minimise  1/2 sum_i w_i (y_i - b - w'x_i)^2.

w is optimal exactly when the residuals are orthogonal to the columns of X. If columns depend on each other, the
solution of minimum norm is given. Under y = b + w'x + noise of variance s^2 / w_i, the covariance of w is s^2
(X'WX)^-1 about the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr
from epicycle.core.estimator._estimator import MethodCard, fitting
from epicycle.data import DaskData, Data
from epicycle.linear.least_squares._covariances import COVARIANCES, Groups, groups_of, refuse_unordered, with_groups
from epicycle.linear.least_squares._inference import InferringRegressor
from epicycle.optim._quadratic_penalty import QuadraticPenalty

__all__ = ["LinearRegression"]


class LinearRegression(InferringRegressor):
    r"""Least squares, with the statistics that go with it.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether b is fitted or 0.
    cov_type : str, default="nonrobust"
        What standard errors and intervals allow for: "nonrobust" equal variances (or variances proportional to
        1 / w_i), "HC0" to "HC3" variances of any kind, "cluster" dependence within the `groups` given to `fit`, "HAC"
        dependence along the order of rows (Newey and West). The coefficients are the same.
    maxlags : int, optional
        Lags of "HAC"; 4 (n / 100)^(2/9), rounded down, by default.
    use_correction : bool, optional
        Factor for few rows: yes for "cluster" and no for "HAC" by default.
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
    dependent_features_ : dict
        Features that others give: for each the others and their factors, up to a constant; empty for a constant
        feature.
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
    >>> robust = LinearRegression(cov_type="HC3").fit(X, y)
    >>> robust.summary()["std err"].round(1)[:4]
    array([ 2.6, 58.2, 59.6, 68.6])
    >>> low, high = robust.predict_interval(X[:1], level=0.9)[1:]
    >>> print(low.round(1), high.round(1))
    [116.3] [296.]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **InferringRegressor._parameters,
        "cov_type": Choice(*COVARIANCES),
        "maxlags": NoneOr(Integer(minimum=0)),
        "use_correction": NoneOr(Boolean()),
    }
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
        cov_type: str = "nonrobust",
        maxlags: int | None = None,
        use_correction: bool | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        tol: float = 1e-10,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.cov_type = cov_type
        self.maxlags = maxlags
        self.use_correction = use_correction
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Scan or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            A scan brings its own.
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Which rows belong together, for ``cov_type="cluster"``: labels, or a Dask array of numbers for Dask data.

        Returns
        -------
        self
            The fitted estimator.
        """
        data = self._training_data(X, y, sample_weight)
        members = self._checked_groups(groups, data)
        self._fit(data)
        if self.cov_type != "nonrobust":
            if isinstance(data, DaskData) and members is not None:
                data = with_groups(X, y, sample_weight, members)
            self._keep_robust(data, members)
        return self

    def _checked_groups(self, groups: Any, data: Data) -> Groups | None:
        if self.cov_type == "cluster":
            return groups_of(groups, data)
        if groups is not None:
            raise DataError(f"groups: are for cov_type='cluster', not for cov_type={self.cov_type!r}")
        if self.cov_type == "HAC":
            refuse_unordered(data)
        return None

    def _allow_batches(self) -> None:
        if self.cov_type != "nonrobust":
            raise ParameterError(
                f"cov_type={self.cov_type!r}: needs residuals of all rows, which partial_fit no longer has; use fit, "
                "or cov_type='nonrobust'"
            )

    def _penalty(self, n_targets: int, n_features: int) -> QuadraticPenalty:
        return QuadraticPenalty.none(n_targets, n_features)

    def _penalty_line(self) -> str:
        return "no penalty"
