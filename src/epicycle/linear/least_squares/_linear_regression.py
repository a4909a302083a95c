"""Linear regression:  minimise  1/2 sum_i w_i (y_i - b - w'x_i)^2.

w is optimal exactly when the residuals are orthogonal to the columns of X. If columns depend on each other, the
solution of minimum norm is given. Under y = b + w'x + noise of variance s^2 / w_i, the covariance of w is s^2
(X'WX)^-1 about the mean. Errors, tests, intervals and influence follow from a root of that inverse, the sums of
squares, and (for robust standard errors) one more matrix of that size; no row is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import scipy.linalg
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import DaskData, Data
from epicycle.linalg._dependencies import Dependencies
from epicycle.linear.least_squares._base import MAX_KEPT, SOLVER_PARAMETERS, LeastSquaresModel, add_rows, fit_by_solver
from epicycle.linear.least_squares._covariances import (
    COVARIANCES,
    Frame,
    Groups,
    groups_of,
    refuse_unordered,
    robust_covariance,
    with_groups,
)
from epicycle.linear.least_squares._direct import LeastSquaresFit, normal_equations
from epicycle.linear.least_squares._fit_statistics import (
    Influence,
    PredictionInterval,
    fit_statistics,
    influence_of,
    intervals_of,
    variance_root,
    wald_f,
)
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._summary import Summary, central_quantile, wald_summary


class LinearRegression(MultiOutputMixin, RegressorMixin, LeastSquaresModel):  # type: ignore[misc]
    r"""Least squares, with the statistics that go with it.

    .. math:: \min_{w, b} \; \tfrac12 \sum_i w_i \, (y_i - b - w'x_i)^2

    Parameters
    ----------
    cov_type : str, default="nonrobust"
        What standard errors and intervals allow for: "nonrobust" equal variances (or variances proportional to
        1 / w_i), "HC0" to "HC3" variances of any kind, "cluster" dependence within the `groups` given to `fit`, "HAC"
        dependence along the order of rows (Newey and West). The coefficients are the same.
    maxlags : int, optional
        Lags of "HAC"; 4 (n / 100)^(2/9), rounded down, by default.
    use_correction : bool, optional
        Factor for few rows: yes for "cluster" and no for "HAC" by default.

    Attributes
    ----------
    rank_ : int
        Number of independent features about their mean.
    dependent_features_ : dict
        Features that others give: for each the others and their factors, up to a constant; empty for a constant
        feature.
    singular_ : ndarray of shape (min(n_samples, n_features),)
        Singular values of the weighted rows about their mean, from second moments: those below 1e-8 of the largest are
        rounding. Up to 2,000 features.
    certificate_ : Certificate
        Newton decrement, which for a quadratic is the exact distance from the minimum.

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
        **SOLVER_PARAMETERS,
        "cov_type": Choice(*COVARIANCES),
        "maxlags": NoneOr(Integer(minimum=0)),
        "use_correction": NoneOr(Boolean()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A1", "A2"), engines=("memory", "files", "dask"), certificate="newton decrement"
    )

    _keeps_inverse: ClassVar[bool] = True

    # Names in files of before there were robust covariances: such models predict, and say that they have no more.
    _freedom_: int
    _total_squares_: float
    _unscaled_covariance_: np.ndarray

    @stores_arguments(fit_intercept=True, tol=1e-10, max_iter=1000, random_state=None, n_jobs=None, verbose=0)
    def __init__(
        self,
        *,
        cov_type: str = "nonrobust",
        maxlags: int | None = None,
        use_correction: bool | None = None,
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
        copy_X: bool = True,
        positive: bool = False,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to rows X with targets y.

        Parameters
        ----------
        groups : array-like of shape (n_samples,), optional
            Which rows belong together, for ``cov_type="cluster"``: labels, or a Dask array of numbers for Dask data.
        """
        data = self._training_data(X, y, sample_weight)
        if self.positive and self.cov_type != "nonrobust":
            raise ParameterError(f"cov_type={self.cov_type!r}: positive=True has no standard errors")
        members = self._checked_groups(groups, data)
        fit_by_solver(self, data)
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

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: the result is that of `fit` on all rows so far, because second moments add up."""
        if self.cov_type != "nonrobust":
            raise ParameterError(
                f"cov_type={self.cov_type!r}: needs residuals of all rows, which partial_fit no longer has; use fit, "
                "or cov_type='nonrobust'"
            )
        add_rows(self, X, y, sample_weight)
        return self

    def _penalty(self, n_targets: int, n_features: int) -> QuadraticPenalty:
        return QuadraticPenalty.none(n_targets, n_features)

    def _penalty_line(self) -> str:
        return "no penalty"

    # ------------------------------------------------------------------------------------------- what inference needs

    def _keep(self, data: Data, fit: LeastSquaresFit) -> None:
        """Sums of squares, the inverse of the second moments as a root, and the means."""
        super()._keep(data, fit)
        p = len(fit.coef)
        self._rows_, self._log_weight_ = fit.n_rows, fit.log_weight
        self._residual_squares_, self._squares_ = fit.residual_squares, fit.squares
        self._mean_ = fit.mean[:p] if self.fit_intercept else np.zeros(p)
        self._level_ = fit.mean[p:] if self.fit_intercept else np.zeros(fit.coef.shape[1])
        self._weight_ = fit.weight if self.fit_intercept else 0.0
        if fit.root is not None and np.isfinite(fit.root).all():
            self._root_ = fit.root
        if fit.dependencies is not None:
            d = fit.dependencies
            self._dependencies_ = {"independent": d.independent, "dependent": d.dependent, "combination": d.combination}

    def _keep_robust(self, data: Data, groups: Groups | None) -> None:
        frame = self._frame(0)
        robust = robust_covariance(
            data,
            frame,
            self.cov_type,
            n_rows=self._rows_,
            rank=self.rank_,
            groups=groups,
            maxlags=self.maxlags,
            use_correction=self.use_correction,
            n_jobs=self.n_jobs,
        )
        self._robust_covariance_, self._n_groups_ = robust.covariance, robust.n_groups

    def _frame(self, target: int) -> Frame:
        self._check_fitted()
        if self.positive:
            raise ParameterError("positive=True: the fit is not linear in y and has no hat matrix")
        if not hasattr(self, "_root_"):
            raise NotFittedError(
                f"{type(self).__name__}: with {self.n_features_in_} features the inverse of their second moments that "
                f"this needs was not kept (up to {MAX_KEPT} are)"
            )
        coef = np.atleast_2d(self.coef_).T.astype(np.float64)
        return Frame(self._mean_, coef, self._level_, self._root_, self._weight_)

    @property
    def _freedom_left(self) -> int:
        return int(self._rows_ - self.rank_ - int(self.fit_intercept))

    def _centred_covariance(self, target: int) -> np.ndarray:
        """The covariance of (coef, level), level being the fitted value at the mean of the features."""
        if hasattr(self, "_robust_covariance_"):
            return np.asarray(self._robust_covariance_[target])
        A = self._frame(target).whole_root
        return np.asarray(self._residual_squares_[target] / self._freedom_left * (A @ A.T))

    def covariance(self, *, target: int = 0) -> np.ndarray:
        """The covariance matrix of the coefficients, by `cov_type`; the intercept is last.

        Returns
        -------
        ndarray of shape (n_features + 1, n_features + 1), or (n_features, n_features) without an intercept
        """
        target = self._checked_target(target)
        if (why := self._why_none()) is not None:
            raise NotFittedError(f"covariance: {why}")
        V = self._centred_covariance(target)
        if not self.fit_intercept:
            return V
        back = np.eye(len(V))
        back[-1, :-1] = -self._mean_  # b = level - mean'w
        return np.asarray(back @ V @ back.T)

    def _why_none(self) -> str | None:
        """The reason for which there are no standard errors; None if there are."""
        if self.positive:
            return "coefficients at their bound of zero (positive=True): standard errors do not hold"
        if not hasattr(self, "_rows_"):
            return f"the second moments of {self.n_features_in_} features that standard errors need were not kept"
        if self._freedom_left <= 0:
            return f"{self._freedom_left} degrees of freedom are left for the noise: standard errors do not exist"
        if self.rank_ < self.n_features_in_:
            because = f" ({self._dependence_})" if self._dependence_ else ""
            rank = f"the features have rank {self.rank_} of {self.n_features_in_}"
            return f"{rank}{because}: standard errors do not exist"
        if not hasattr(self, "_root_"):
            return "the features are too close to dependent for standard errors"
        return None

    @property
    def singular_(self) -> np.ndarray:
        """Singular values of the weighted rows about their mean, the largest first."""
        moments = self._moments()
        if moments is None:
            raise AttributeError(f"singular_: there are none before a fit, or beyond {MAX_KEPT} features")
        values = scipy.linalg.eigvalsh(normal_equations(moments, self.fit_intercept)[0], check_finite=False)
        kept = min(moments.n_rows, moments.p)
        return np.asarray(np.sqrt(np.maximum(values[::-1][:kept], 0.0)), dtype=self.coef_.dtype)

    # ------------------------------------------------------------------------------------------- tables and intervals

    def _test_freedom(self, use_t: bool | None) -> float | None:
        """Degrees of freedom of Student's t, or None for the normal law."""
        robust = self.cov_type != "nonrobust" and hasattr(self, "_robust_covariance_")
        if not (not robust if use_t is None else use_t):
            return None
        return self._f_freedom()

    def _f_freedom(self) -> float:
        groups = getattr(self, "_n_groups_", None)
        return float(groups - 1 if groups is not None else self._freedom_left)

    def summary(self, confidence: float = 0.95, *, target: int = 0, use_t: bool | None = None) -> Summary:
        """Coefficients, standard errors, tests and intervals by `cov_type`, and numbers about the whole fit.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage of the intervals.
        use_t : bool, optional
            Student's t (with as many degrees of freedom as rows less parameters, or as groups less one) instead of the
            normal law; by default for ``cov_type="nonrobust"`` only.
        """
        target = self._checked_target(target)
        coef = np.atleast_2d(self.coef_)[target]
        intercept = float(np.atleast_1d(self.intercept_)[target]) if self.fit_intercept else None
        title = "Least squares" if self.cov_type == "nonrobust" else f"Least squares, {self.cov_type} standard errors"
        why = self._why_none()
        if why is not None:
            b = None if intercept is None else np.array([intercept])
            facts = self._facts(target, None) if hasattr(self, "_rows_") and not self.positive else {}
            return Summary.of_coefficients(self._names(), coef[None], b, ["y"], title, why, facts)
        covariance = self.covariance(target=target)
        f_test = None
        if hasattr(self, "_robust_covariance_"):
            p = self.n_features_in_
            f_test = wald_f(coef.astype(np.float64), covariance[:p, :p], self._f_freedom())
        return wald_summary(
            self._names(),
            coef,
            intercept,
            covariance,
            confidence=confidence,
            title=title,
            facts=self._facts(target, f_test),
            degrees_of_freedom=self._test_freedom(use_t),
        )

    def _facts(self, target: int, f_test: tuple[float, float] | None) -> dict[str, float]:
        facts = fit_statistics(
            squares=float(self._squares_[target]),
            residual_squares=float(self._residual_squares_[target]),
            n_rows=self._rows_,
            rank=self.rank_,
            intercept=self.fit_intercept,
            log_weight=self._log_weight_,
            f_test=f_test,
        )
        if (groups := getattr(self, "_n_groups_", None)) is not None:
            facts["groups"] = float(groups)
        return facts

    def predict_interval(
        self,
        X: Any,
        *,
        kind: Literal["prediction", "confidence"] = "prediction",
        level: float = 0.95,
        sample_weight: Any = None,
        use_t: bool | None = None,
    ) -> PredictionInterval:
        """Predictions with intervals: for a new y at x, or for the mean of y at x.

        Parameters
        ----------
        kind : {"prediction", "confidence"}, default="prediction"
            An interval that holds a new y, or one that holds the mean, with probability `level`.
        level : float, default=0.95
            That probability. It holds for normal noise, and for "confidence" about so for many rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the new y: their variance is that of the noise over the weight.
        use_t : bool, optional
            As for `summary`.

        Returns
        -------
        PredictionInterval
            ``prediction, lower, upper``, each of shape (n_samples,) or (n_samples, n_targets).
        """
        if kind not in ("prediction", "confidence"):
            raise ParameterError(f"kind={kind!r}; expected 'prediction' or 'confidence'")
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise ParameterError(f"level={level!r}; expected a number between 0 and 1")
        self._check_fitted()
        frame = self._frame(0)
        if self._freedom_left <= 0:
            raise NotFittedError(f"predict_interval: {self._why_none()}")
        data = self._weighted_data(X, sample_weight)
        k = len(self._level_)
        variances = self._residual_squares_ / self._freedom_left
        freedom = self._test_freedom(use_t)
        kept = getattr(self, "_dependencies_", None)
        values = intervals_of(
            data,
            frame,
            tuple(variance_root(self._centred_covariance(t)) for t in range(k)),
            variances if kind == "prediction" else np.zeros(k),
            None if kept is None else Dependencies(**kept),
            central_quantile(level, freedom),
            self.n_jobs,
        ).astype(self.coef_.dtype)
        if self.coef_.ndim == 1:
            values = values[:, :, 0]
        return PredictionInterval(values[:, 0], values[:, 1], values[:, 2])

    def influence(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: int = 0) -> Influence:
        """The influence of every row on the fit: leverages, studentized residuals, Cook's distances.

        Parameters
        ----------
        %(rows_of_fit)s
        %(targets)s
        %(weights_of_fit)s
        """
        target = self._checked_target(target)
        frame = self._frame(target)
        if self._freedom_left <= 0:
            raise NotFittedError(f"influence: {self._why_none()}")
        data = self._weighted_data(X, sample_weight, y)
        if data.n_targets != len(self._level_):
            raise DataError(f"y: has {data.n_targets} target(s), the fit had {len(self._level_)}")
        return influence_of(
            data, frame, target, float(self._residual_squares_[target]), self._freedom_left, self.n_jobs
        )
