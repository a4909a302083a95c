"""Laplace's estimating equations:  sum_i s_i w_ik (y_i - b - x_i'beta) = 0  for as many k as there are unknowns.

With W'SA nonsingular, beta = (W'SA)^-1 W'Sy is linear in y and unbiased, with covariance
sigma^2 (W'SA)^-1 W'SW (A'SW)^-1 for noise of variance sigma^2 / s_i. Gauss chose W = A, least squares, and proved that
no other choice has a smaller covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lstsq, svd
from sklearn.base import MultiOutputMixin, RegressorMixin

from epicycle import engine
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, NotFittedError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Callable as CallableDomain, Choice, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData, Batch, Data, ScanData
from epicycle.data._dask_data import is_dask
from epicycle.linear._storage import stored_type
from epicycle.linear.least_squares._direct import settled_moments
from epicycle.optim import Solution
from epicycle.stats._class_scores import linear_prediction
from epicycle.stats._moments import target_columns
from epicycle.stats._summary import Summary, wald_summary

# --------------------------------------------------------------------------------------------------------------------
# The weights w_ik with which observation equations are combined: one matrix for each batch of rows, from the rows.
#
# z = (x - mean) / scale stands for the features about their mean (about zero without an intercept), in units of their
# spread; with an intercept there is one more unknown, and its weight comes last.


#: Deviations below this many spreads count as none: a tie with the mean must not be decided by rounding.
TIE_IN_SDS = 1e-9
#: Laplace left out the equations in which an unknown had a small coefficient.
SMALL_COEFFICIENT = 0.5


@dataclass(frozen=True)
class Combination:
    """The combination of rows: a rule by name, a function of X, or a matrix with one row for each row of the data."""

    rule: str | Callable[[np.ndarray], np.ndarray] | np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    intercept: bool


def _least_squares(X: np.ndarray, _z: np.ndarray, _intercept: bool) -> np.ndarray:
    """Gauss: every equation times its coefficient."""
    return X


def _signs(_X: np.ndarray, z: np.ndarray, _intercept: bool) -> np.ndarray:
    """Every equation with the sign of the coefficient: above the mean less below it."""
    return np.where(np.abs(z) > TIE_IN_SDS, np.sign(z), 0.0)


def _laplace(_X: np.ndarray, z: np.ndarray, _intercept: bool) -> np.ndarray:
    """Laplace 1787: added, subtracted or left out, as the coefficient is large, largely negative or small."""
    return np.where(np.abs(z) > SMALL_COEFFICIENT, np.sign(z), 0.0)


def _mayer(_X: np.ndarray, z: np.ndarray, intercept: bool) -> np.ndarray:
    """Disjoint groups of rows, each summed (Mayer 1750).

    A row goes to the unknown on which it bears most; what bears on none, being below the mean of all, is the group of
    the intercept. Without one, a row goes in with its sign.
    """
    n, p = z.shape
    out = np.zeros((n, p))
    rows = np.arange(n)
    most = (z if intercept else np.abs(z)).argmax(axis=1)
    bears = z[rows, most]
    out[rows, most] = (
        np.where(bears > TIE_IN_SDS, 1.0, 0.0) if intercept else np.where(np.abs(bears) > TIE_IN_SDS, np.sign(bears), 0)
    )
    return out


RULES: dict[str, Callable[[np.ndarray, np.ndarray, bool], np.ndarray]] = {
    "laplace": _laplace,
    "least_squares": _least_squares,
    "mayer": _mayer,
    "sign": _signs,
}


def combine(batch: Batch, how: Combination) -> tuple[np.ndarray, np.ndarray]:
    """(A, W): the coefficients (x - mean, 1) of the unknowns and the weights of the equations, both (n, d)."""
    X = batch.X.toarray() if sp.issparse(batch.X) else np.asarray(batch.X, dtype=np.float64)
    n = len(X)
    centred = X - how.mean
    ones = np.ones((n, int(how.intercept)))
    A = np.hstack([centred, ones])
    if isinstance(how.rule, str):
        z = np.divide(centred, how.scale, out=np.zeros_like(centred), where=how.scale > 0)
        W = RULES[how.rule](centred, z, how.intercept)
        if how.rule == "mayer" and how.intercept:
            return A, np.hstack([W, 1.0 - W.sum(axis=1, keepdims=True)])
        return A, np.hstack([W, ones])
    if isinstance(how.rule, np.ndarray):
        W = how.rule[batch.start : batch.start + n]
    else:
        W = np.asarray(how.rule(X), dtype=np.float64)
    if W.shape != A.shape:
        raise DataError(
            f"weights: expected shape {A.shape} for {n} rows, one column for each of the {A.shape[1]} unknowns"
            f"{' (the intercept last)' if how.intercept else ''}, got {W.shape}"
        )
    if not np.isfinite(W).all():
        raise DataError("weights: expected finite numbers")
    return A, W


EPS = float(np.finfo(np.float64).eps)


class EstimatingEquations(MultiOutputMixin, RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Linear regression by combining the observation equations with given weights, before and beside least squares.

    .. math:: \sum_i s_i\, w_{ik} \bigl( y_i - b - x_i'\beta \bigr) = 0 , \qquad k = 1, \dots, d .

    Parameters
    ----------
    weights : {"laplace", "mayer", "sign", "least_squares"}, callable or array, default="laplace"
        How equations are combined; d counts the features and, last, the intercept, whose equation is the plain sum.

        - "laplace": equation k adds the rows in which feature k is more than half a standard deviation above its mean,
          subtracts those as far below, and leaves out the rest (Laplace 1787).
        - "mayer": disjoint groups of rows, one for each unknown, each row in the group of the feature in which it is
          furthest above the mean, are summed (Mayer 1750). One feature: the rows above the mean and those below.
        - "sign": like "laplace", without leaving out any row.
        - "least_squares": :math:`w_{ik} = x_{ik}` (Gauss, Legendre).
        - a function that maps rows X to their weights, or the weights themselves. With instruments for the features
          this is the method of instrumental variables. Both have the shape (n_samples, d).
    fit_intercept : bool, default=True
        Whether b is fitted or 0. Without it, means above are zero.
    tol : float, default=1e-10
        Residual of the equations, relative to the size of their terms, that the certificate asserts.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    rank_ : int
        Number of independent equations; below d, the solution of least norm is given.
    certificate_ : Certificate
        Residual of the equations.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import EstimatingEquations
    >>> x = np.arange(10.0)[:, None]
    >>> y = 3 + 2 * x[:, 0] + np.tile([0.1, -0.1], 5)
    >>> model = EstimatingEquations(weights="mayer").fit(x, y)
    >>> float(model.coef_[0].round(3))  # (mean of the last five y - mean of the first five) / 5
    1.992
    >>> model.efficiency().round(3)  # variances of least squares against those of this choice
    array([0.758, 0.815])
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    Weights w: the variance of the noise of a row is divided by its weight.""",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "weights": AnyOf(Choice(*RULES), CallableDomain(), ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A14",), engines=("memory", "files", "dask"), certificate="equation residual"
    )
    _takes_sparse: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, n_jobs=None)
    def __init__(
        self, *, weights: str | Callable[[np.ndarray], np.ndarray] | Any = "laplace", **shared: Unpack[SharedArguments]
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Combine the equations of all rows and solve the result."""
        data = self._fit_data(X, y, sample_weight, target="numeric", multi_output=True, check_finite=is_dask(X))
        p = data.n_features
        moments = settled_moments(data, self.fit_intercept, self.n_jobs)
        mean, weight = moments.mean, moments.weight
        about = moments.about_mean() if self.fit_intercept else moments.about_zero()
        if not self.fit_intercept:
            mean = np.zeros(p + data.n_targets)
        spread = np.sqrt(np.maximum(np.diagonal(about)[:p], 0.0) / weight)
        spread[spread <= 1e-12 * np.abs(moments.mean[:p])] = 0.0  # constant but for rounding
        how = Combination(self._rule(data), mean[:p], spread, self.fit_intercept)
        WA, WY, sizes = engine.sum(equation_statistic, data, how, mean[p:], n_jobs=self.n_jobs)
        beta, rank = _solve(WA, WY)
        residual, middle, robust, gram, squares = engine.sum(
            residual_statistic, data, how, mean[p:], beta, n_jobs=self.n_jobs
        )
        correction, _ = _solve(WA, residual)
        if np.isfinite(correction).all() and rank == len(WA):  # one sweep of refinement
            beta = beta + correction
            residual = residual - WA @ correction

        coef = beta[:p].T
        intercept = mean[p:] + (beta[p] if self.fit_intercept else 0.0) - coef @ mean[:p]
        vector = data.target_is_vector
        dtype = stored_type(data.dtype, coef, intercept)
        self.coef_ = (coef[0] if vector else coef).astype(dtype)
        value = intercept.astype(dtype)
        self.intercept_ = 0.0 if not self.fit_intercept else value[0] if vector else value
        self.rank_ = rank
        self._keep_inference(WA, middle, robust, gram, squares, moments.n_rows, mean[:p])

        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.abs(residual) / np.where(sizes > 0, sizes, 1.0)
        worst = float(relative.max(initial=0.0))
        meaning = f"no equation is missed by more than {worst:.1e}, relative to the sum of the sizes of its terms"
        certificate = Certificate("equation residual", worst, self.tol, meaning)
        monitor = self._monitor(1, lambda _x: {"coef_": self.coef_, "intercept_": self.intercept_})
        monitor(1, beta.ravel(), objective=worst)
        reason = "converged" if certificate.holds else "stalled"
        message = "" if certificate.holds else f"{rank} of the {len(WA)} equations are independent: they contradict"
        self._conclude(Solution(beta.ravel(), worst, monitor.history(), certificate, 1, reason, message))
        return self

    def _rule(self, data: Data) -> Any:
        if isinstance(self.weights, str) or callable(self.weights):
            return self.weights
        if not isinstance(data, ArrayData | ScanData):
            raise DataError("weights: an array belongs to data in memory or in files; give Dask a function of X")
        W = as_floats(self.weights, ParameterError("weights: expected an array of numbers"))
        d = data.n_features + int(self.fit_intercept)
        if W.ndim != 2 or W.shape[1] != d or data.n_rows not in (None, len(W)):
            raise ParameterError(
                f"weights: expected shape ({data.n_rows}, {d}), one column for each unknown"
                f"{' (the intercept last)' if self.fit_intercept else ''}, got {W.shape}"
            )
        return W

    # ------------------------------------------------------------------------------------------- statistics

    def _keep_inference(
        self,
        WA: np.ndarray,
        middle: np.ndarray,
        robust: np.ndarray,
        gram: np.ndarray,
        squares: np.ndarray,
        n: int,
        mean: np.ndarray,
    ) -> None:
        """Unscaled covariances of (beta, b) for this choice of weights and for least squares."""
        d = len(WA)
        self._freedom_, self._residual_squares_ = n - d, squares
        if self.rank_ < d:
            return
        back = np.eye(d)
        if self.fit_intercept:
            back[-1, :-1] = -mean  # from the value at the mean to that at the origin
        inverse = back @ np.linalg.inv(WA)
        self._unscaled_ = inverse @ middle @ inverse.T
        self._robust_ = np.array([inverse @ one @ inverse.T for one in robust])
        self._least_squares_ = back @ np.linalg.pinv(gram, hermitian=True) @ back.T

    def covariance(self, *, kind: str = "classical", target: int = 0) -> np.ndarray:
        """Covariance of ``coef_`` and ``intercept_``, in this order.

        Parameters
        ----------
        kind : {"classical", "robust"}, default="classical"
            "classical" takes noise of variance s^2 / sample_weight, "robust" whatever each row shows (White's HC0).
        target : int, default=0
            Which target, if there are several.

        Returns
        -------
        ndarray of shape (d, d)
        """
        self._check_fitted()
        k = len(self._residual_squares_)
        if isinstance(target, bool) or not 0 <= target < k:
            raise ParameterError(f"target={target!r}; expected an integer from 0 to {k - 1}")
        if kind not in ("classical", "robust"):
            raise ParameterError(f"kind={kind!r}; expected 'classical' or 'robust'")
        if not hasattr(self, "_unscaled_") or self._freedom_ <= 0:
            raise NotFittedError(f"covariance: there is none, {self._why_none()}")
        if kind == "robust":
            return np.array(self._robust_[target])
        return np.asarray(self._residual_squares_[target] / self._freedom_ * self._unscaled_)

    def efficiency(self) -> np.ndarray:
        """Variances of least squares relative to those of this choice, for each coefficient and then the intercept.

        At most 1, which is the theorem of Gauss and Markov; 0.5 means that least squares needs half the rows.
        """
        self._check_fitted()
        if not hasattr(self, "_unscaled_"):
            raise NotFittedError(f"efficiency: there is none, {self._why_none()}")
        return np.asarray(np.diagonal(self._least_squares_) / np.diagonal(self._unscaled_))

    def _why_none(self) -> str:
        if not hasattr(self, "_unscaled_"):
            return f"{self.rank_} of the equations are independent"
        return f"{self._freedom_} degrees of freedom are left for the noise"

    def summary(self, confidence: float = 0.95, *, kind: str = "classical", target: int = 0) -> Summary:
        """Coefficients, standard errors, t, p-values and intervals.

        Parameters
        ----------
        confidence : float, default=0.95
            Coverage of the intervals.
        kind, target
            As for :meth:`covariance`.
        """
        self._check_fitted()
        name = self.weights if isinstance(self.weights, str) else "given"
        title = f"Estimating equations, {name} weights"
        coef, b = np.atleast_2d(self.coef_), np.atleast_1d(np.asarray(self.intercept_))
        if not hasattr(self, "_unscaled_") or self._freedom_ <= 0:
            intercept = b[:1] if self.fit_intercept else None
            return Summary.of_coefficients(self._names(), coef[:1], intercept, ["y"], title, self._why_none())
        covariance = self.covariance(kind=kind, target=target)
        variance = self._residual_squares_[target] / self._freedom_
        return wald_summary(
            self._names(),
            coef[target],
            float(b[target]) if self.fit_intercept else None,
            covariance,
            confidence=confidence,
            title=title,
            degrees_of_freedom=self._freedom_,
            facts={
                "residual std": float(np.sqrt(variance)),
                "degrees of freedom": float(self._freedom_),
                "least efficiency": float(self.efficiency().min()),
            },
        )

    def predict(self, X: Any) -> Any:
        """b + x'beta for every row: shape (n_samples,) or (n_samples, n_targets), as y had."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)


def _weights(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def _targets(batch: Batch, y_mean: np.ndarray) -> np.ndarray:
    return np.asarray(target_columns(batch.y) - y_mean)


def equation_statistic(batch: Batch, how: Combination, y_mean: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(W'SA, W'SY, sum of the sizes of the terms of each equation)."""
    A, W = combine(batch, how)
    W = W * _weights(batch)[:, None]
    Y = _targets(batch, y_mean)
    return W.T @ A, W.T @ Y, np.abs(W).T @ np.abs(Y)


def residual_statistic(
    batch: Batch, how: Combination, y_mean: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(W'S r, W'SW, sum of (s r)^2 w w' for each target, A'SA, sum of s r^2) for the residuals r at beta."""
    A, W = combine(batch, how)
    s = _weights(batch)[:, None]
    r = _targets(batch, y_mean) - A @ beta
    robust = np.array([W.T @ (W * (s * r[:, [t]]) ** 2) for t in range(r.shape[1])])
    return W.T @ (s * r), W.T @ (s * W), robust, A.T @ (s * A), (s * r**2).sum(axis=0)


def _solve(M: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, int]:
    """M^-1 rhs after scaling rows and columns; the solution of least norm where M is singular."""
    rows = np.linalg.norm(M, axis=1)
    rows = np.where(rows > 0, rows, 1.0)
    columns = np.linalg.norm(M / rows[:, None], axis=0)
    columns = np.where(columns > 0, columns, 1.0)
    S = M / rows[:, None] / columns
    singular = svd(S, compute_uv=False, check_finite=False)
    cut = 8 * len(M) * EPS
    rank = int(np.count_nonzero(singular > cut * singular.max(initial=0.0)))
    x = lstsq(S, rhs / rows[:, None], cond=cut, check_finite=False)[0]
    return x / columns[:, None], rank
