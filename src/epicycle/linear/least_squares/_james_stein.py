"""James and Stein's estimator: least squares, shrunken towards a target by a factor that the data choose.

For an estimate x ~ N(theta, sigma^2 I) of p > 2 numbers, (1 - (p - 2) sigma^2 / |x - m|^2) (x - m) + m has a smaller
expected squared error than x, whatever theta is. In a regression, x are the coefficients in coordinates in which they
are independent and of equal variance: |x - m|^2 becomes the sum of squares that the regression explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._arguments import SharedArguments
from epicycle.core._checks import as_floats
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import ArrayLike, Boolean, Domain, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard, in_catalogue
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import Data
from epicycle.data._dask_data import is_dask
from epicycle.linear._storage import stored_type
from epicycle.linear.least_squares._direct import LeastSquaresFit, fit_direct, settled_moments
from epicycle.linear.least_squares._objective import StorageError, excess_certificate
from epicycle.optim import Solution
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._class_scores import linear_prediction


def shrinkage_factor(
    square: float, dimension: int, variance: float, degrees_of_freedom: float | None, positive_part: bool
) -> float:
    """1 - (p - 2) sigma^2 / |x - m|^2, with the factor of James and Stein for an estimated variance; 1 for p <= 2.

    An estimate of sigma^2 with v degrees of freedom is multiplied by v / (v + 2).
    """
    if dimension <= 2:
        return 1.0
    if degrees_of_freedom is not None:
        variance *= degrees_of_freedom / (degrees_of_freedom + 2)
    if square <= 0:
        return 0.0 if positive_part else 1.0
    factor = 1 - (dimension - 2) * variance / square
    return max(factor, 0.0) if positive_part else factor


@dataclass(frozen=True)
class ShrunkenMeans:
    """The result of :func:`shrink_means`.

    values : the shrunken estimates.
    factor : by which their distances from the target were multiplied.
    target : what they were shrunken towards.
    prior_variance : tau^2 of the normal prior that the factor implies: sigma^2 factor / (1 - factor).
    """

    values: np.ndarray
    factor: float
    target: np.ndarray
    prior_variance: float


@in_catalogue("linear", "A14", certificate="closed form")
def shrink_means(
    x: Any,
    variance: float,
    *,
    target: str | float | Any = "mean",
    positive_part: bool = True,
    degrees_of_freedom: float | None = None,
) -> ShrunkenMeans:
    """Shrink several independent estimates of equal variance towards each other, or towards a target.

    Parameters
    ----------
    x : array-like of shape (p,)
        Estimates, such as the means of p groups.
    variance : float
        The variance of each.
    target : "mean", float or array-like of shape (p,), default="mean"
        Towards their own mean, which costs a dimension, or towards fixed numbers.
    positive_part : bool, default=True
        Whether a negative factor is replaced by zero, which is better still.
    degrees_of_freedom : float, optional
        Of the variance, where it is an estimate.

    Examples
    --------
    >>> from epicycle import shrink_means
    >>> shrunken = shrink_means([4.0, 6.0, 8.0, 10.0, 12.0], variance=2.0)
    >>> shrunken.factor
    0.9
    >>> shrunken.values
    array([ 4.4,  6.2,  8. ,  9.8, 11.6])
    """
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise DataError(f"x: expected a vector of finite numbers, got shape {values.shape}")
    if not (np.isfinite(variance) and variance >= 0):
        raise ParameterError(f"variance={variance!r}; expected a number >= 0")
    if degrees_of_freedom is not None and not degrees_of_freedom > 0:
        raise ParameterError(f"degrees_of_freedom={degrees_of_freedom!r}; expected a number > 0, or None")
    dimension = values.size
    if isinstance(target, str):
        if target != "mean":
            raise ParameterError(f"target={target!r}; expected 'mean', a number or an array")
        centre = np.full(values.shape, values.mean())
        dimension -= 1
    else:
        try:
            centre = np.broadcast_to(np.asarray(target, dtype=np.float64), values.shape).copy()
        except (TypeError, ValueError):
            raise ParameterError(f"target: expected 'mean', a number or an array of shape {values.shape}") from None
    away = values - centre
    factor = shrinkage_factor(float(away @ away), dimension, variance, degrees_of_freedom, positive_part)
    prior = variance * factor / (1 - factor) if factor < 1 else np.inf
    return ShrunkenMeans(centre + factor * away, factor, centre, float(max(prior, 0.0)))


class JamesStein(RegressorMixin, Estimator):  # type: ignore[misc]
    r"""Linear regression with all coefficients of least squares multiplied by one factor that the data choose.

    .. math:: \hat w = m + \Bigl( 1 - \frac{(r - 2)\, \hat\sigma^2}{(w_{LS} - m)' G (w_{LS} - m)} \Bigr)_+
              (w_{LS} - m) , \qquad G = X'SX \text{ about the mean},

    with r the rank of X about its mean. For r > 2 and normal noise, the expected squared error of the predictions at
    the rows of X is below that of least squares, wherever the true coefficients are (Stein 1956; James and Stein
    1961). It is also the posterior mean under a prior :math:`w \sim N(m, \tau^2 G^{-1})` of which :math:`\tau^2` is
    estimated (empirical Bayes, Efron and Morris 1973). For independent groups, see :func:`shrink_means`.

    Parameters
    ----------
    target : array-like of shape (n_features,), optional
        The coefficients m to shrink towards; zero by default, which with an intercept means the mean of y.
    variance : float, optional
        The variance of the noise, where it is known. Otherwise it is estimated from the v = n - r - 1 degrees of
        freedom of the residuals, times v / (v + 2).
    positive_part : bool, default=True
        Whether a negative factor is replaced by zero.
    fit_intercept : bool, default=True
        Whether b is fitted (and not shrunken) or 0.
    tol : float, default=1e-10
        Half the sum of squares of the distance of the fitted values from those of shrunken least squares, relative to
        that of y, that the certificate asserts of the coefficients as they are stored.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    shrinkage_ : float
        The factor; 1 for rank 2 or less, where nothing is gained by shrinking.
    prior_variance_ : float
        :math:`\tau^2` of the prior that the factor implies.
    noise_variance_ : float
    rank_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from epicycle import JamesStein
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = JamesStein().fit(X[:40], y[:40])
    >>> round(model.shrinkage_, 3)
    0.884
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "sample_weight": """sample_weight : array-like of shape (n_samples,), optional
    Weights w: the variance of the noise of a row is divided by its weight.""",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "target": NoneOr(ArrayLike()),
        "variance": NoneOr(Real(minimum=0)),
        "positive_part": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="linear", catalogue=("A14",), engines=("memory", "files", "dask"), certificate="newton decrement"
    )
    _takes_sparse: ClassVar[bool] = True

    @stores_arguments(fit_intercept=True, tol=1e-10, n_jobs=None)
    def __init__(
        self,
        *,
        target: Any = None,
        variance: float | None = None,
        positive_part: bool = True,
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit by least squares and shrink."""
        data = self._fit_data(X, y, sample_weight, target="numeric", check_finite=is_dask(X))
        p = data.n_features
        m = self._target(p)
        fit = fit_direct(
            data,
            QuadraticPenalty.none(1, p),
            intercept=self.fit_intercept,
            solver="auto",
            inverse=False,
            n_jobs=self.n_jobs,
        )
        w, mean = fit.coef[:, 0], fit.mean
        freedom = fit.n_rows - fit.rank - int(self.fit_intercept)
        noise = float(fit.residual_squares[0]) / freedom if freedom > 0 else 0.0
        known = self.variance is not None
        variance = noise if self.variance is None else float(self.variance)
        away = w - m
        # About zero the squared length of w in G is what the fit explains: squares of y less those of the residuals.
        square = 2 * fit.total - float(fit.residual_squares[0]) if not m.any() else self._square(data, fit, away)
        square = max(square, 0.0)
        factor = shrinkage_factor(square, fit.rank, variance, None if known else max(freedom, 0), self.positive_part)
        if not known and freedom <= 0:
            factor = 1.0  # nothing is left to tell the noise by
        coef = m + factor * away
        intercept = float(mean[p] - coef @ mean[:p]) if self.fit_intercept else 0.0
        dtype = stored_type(data.dtype, coef, intercept)
        self.coef_ = coef.astype(dtype)
        self.intercept_ = dtype.type(intercept) if self.fit_intercept else 0.0
        self.shrinkage_, self.rank_, self.noise_variance_ = factor, fit.rank, variance
        self.prior_variance_ = float(max(variance * factor / (1 - factor), 0.0)) if factor < 1 else np.inf
        monitor = self._monitor(1, lambda _x: {"coef_": self.coef_, "intercept_": self.intercept_})
        monitor(1, coef, objective=fit.objective, shrinkage=factor)
        storage = StorageError.of(
            {"coef_": self.coef_, "intercept_": self.intercept_},
            coef[:, None],
            mean=mean,
            lengths=fit.lengths,
            weight=fit.weight,
            intercept=self.fit_intercept,
        )
        certificate = excess_certificate(
            factor**2 * fit.excess,
            fit.total,
            self.tol,
            mean=mean[p:],
            weight=fit.weight,
            storage=storage,
            claim="half the squares of the distance from the fitted values of shrunken least squares are {:.1e}",
        )
        reason = "converged" if certificate.holds else "stalled"
        self._conclude(Solution(coef, fit.objective, monitor.history(), certificate, 1, reason))
        return self

    def _target(self, p: int) -> np.ndarray:
        if self.target is None:
            return np.zeros(p)
        m = as_floats(self.target, ParameterError("target: expected an array of numbers"))
        if m.shape != (p,) or not np.isfinite(m).all():
            raise ParameterError(f"target: expected {p} finite numbers, got shape {m.shape}")
        return m

    def _square(self, data: Data, fit: LeastSquaresFit, away: np.ndarray) -> float:
        """(w - m)'G(w - m), from the second moments."""
        moments = fit.moments or settled_moments(data, self.fit_intercept, self.n_jobs)
        about = moments.about_mean() if self.fit_intercept else moments.about_zero()
        return float(away @ about[: len(away), : len(away)] @ away)

    def predict(self, X: Any) -> Any:
        """b + w'x for every row."""
        return linear_prediction(self._predict_data(X), self.coef_, self.intercept_, self.n_jobs)

    def _penalty_line(self) -> str:
        return f"least squares times {self.shrinkage_:.4g}" if hasattr(self, "shrinkage_") else ""
