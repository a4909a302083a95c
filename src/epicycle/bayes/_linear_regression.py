"""Linear regression with a conjugate prior:  y ~ N(Xw + b, s^2),  (w, b) ~ N(m, s^2 P^-1),  s^2 ~ inverse gamma(a, c).

With t = (w, b) and Z = (X, 1) the posterior is of the same form, with

    P_n = P + Z'Z,   m_n = P_n^-1 (P m + Z'y),   a_n = a + n/2,   c_n = c + (|y - Z m_n|^2 + |m_n - m|_P^2) / 2,

and the evidence is  (2 pi)^(-n/2) sqrt(det P / det P_n) c^a / c_n^a_n  G(a_n) / G(a),  G the gamma function. All of it
is a least-squares problem over the compact rows with the rows of a root of P below them, solved by QR about the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from scipy.special import gammaln

from epicycle.bayes._regression import BayesianRegression, require_representable
from epicycle.bayes._rows import CompactRows, compact_rows
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Domain, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.data import Data

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NormalInverseGamma:
    """t ~ N(mean, s^2 (root'root)^-1) and s^2 ~ inverse gamma(shape, rate)."""

    mean: np.ndarray
    root: np.ndarray
    shape: float
    rate: float

    @property
    def log_det(self) -> float:
        """log det of root'root."""
        return 2 * float(np.linalg.slogdet(self.root)[1])


def updated(prior: NormalInverseGamma, rows: CompactRows) -> tuple[NormalInverseGamma, float, float]:
    """(posterior, log evidence of the rows, relative gradient that rounding left)."""
    p, r = len(rows.x_mean), len(rows.R)
    intercept = len(prior.mean) > p
    # About the mean the intercept is b + x_mean'w, and the rows of the two do not mix.
    T = np.eye(len(prior.mean))
    A, t = rows.R, rows.q
    if intercept:
        T[p, :p] = -rows.x_mean
        level = np.append(np.zeros(p), np.sqrt(rows.weight))
        A = np.vstack([np.hstack([rows.R, np.zeros((r, 1))]), level])
        t = np.append(rows.q, np.sqrt(rows.weight) * rows.y_mean)
    A, t = np.vstack([A, prior.root @ T]), np.append(t, prior.root @ prior.mean)
    Q, R = np.linalg.qr(A)
    moved = scipy.linalg.solve_triangular(R, Q.T @ t)
    residual = t - A @ moved
    size = float(np.linalg.norm(A, axis=0).max() * np.linalg.norm(t))
    gradient = float(np.abs(A.T @ residual).max()) / size if size > 0 else 0.0
    back = np.eye(len(T))
    if intercept:
        back[p, :p] = rows.x_mean
    n = rows.weight
    posterior = NormalInverseGamma(
        T @ moved, R @ back, prior.shape + n / 2, prior.rate + 0.5 * (rows.rest + float(residual @ residual))
    )
    evidence = (
        -0.5 * n * np.log(2 * np.pi)
        + 0.5 * (prior.log_det - posterior.log_det)
        + prior.shape * np.log(prior.rate)
        - posterior.shape * np.log(posterior.rate)
        + gammaln(posterior.shape)
        - gammaln(prior.shape)
    )
    return posterior, float(evidence), gradient


class BayesianLinearRegression(BayesianRegression):
    r"""Linear regression with a conjugate prior: posterior, predictive distribution and evidence in closed form.

    .. math:: y \sim \mathcal N(Xw + b, \sigma^2), \qquad
              (w, b) \sim \mathcal N(m, \sigma^2 P^{-1}), \qquad \sigma^2 \sim \text{inverse gamma}(a, c)

    The predictive distribution of a new y is Student's t. With :math:`\sigma^2` given it is a Gaussian process with the
    linear kernel.

    Parameters
    ----------
    prior_precision : float or array-like of shape (n_features,) or (n_features, n_features), default=1.0
        P of the coefficients, relative to :math:`1 / \sigma^2`: one number, a diagonal, or a matrix.
    prior_mean : float or array-like of shape (n_features,), default=0.0
        m of the coefficients.
    intercept_precision : float, default=1e-6
        The same of the intercept, about zero.
    noise_shape, noise_rate : float, default=1.0
        a and c.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Mean of the posterior.
    intercept_ : float
    precision_ : ndarray of shape (n_coefficients, n_coefficients)
        :math:`P_n`; the intercept, where there is one, is the last.
    sigma_ : ndarray of shape (n_coefficients, n_coefficients)
        Covariance of the posterior of the coefficients and the intercept, noise integrated out; infinite where
        `noise_shape_` is at most 1.
    noise_shape_, noise_rate_ : float
        :math:`a_n` and :math:`c_n`.
    log_evidence_ : float
        Logarithm of the density of y given X; for models with proper priors its differences are log Bayes factors.
    certificate_ : Certificate
        Closed form: the gradient of the log posterior that rounding left, relative.

    Examples
    --------
    >>> from epicycle import BayesianLinearRegression
    >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> mean, interval = model.predict([[1.5]], return_interval=True, level=0.9)
    >>> print(f"{mean[0]:.2f} in [{interval[0, 0]:.2f}, {interval[0, 1]:.2f}], log evidence {model.log_evidence_:.2f}")
    1.50 in [0.02, 2.98], log evidence -12.49
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "prior_precision": AnyOf(Real(minimum=0, inclusive=False), ArrayLike()),
        "prior_mean": AnyOf(Real(), ArrayLike()),
        **{name: Real(minimum=0, inclusive=False) for name in ("intercept_precision", "noise_shape", "noise_rate")},
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="bayes", catalogue=("B4",), engines=("memory", "files", "dask"), certificate="closed form"
    )

    prior_precision: Any
    prior_mean: Any
    intercept_precision: float
    noise_shape: float
    noise_rate: float
    log_evidence_: float
    noise_shape_: float
    noise_rate_: float
    _mean_: np.ndarray
    _root_: np.ndarray

    @stores_arguments
    def __init__(
        self,
        *,
        prior_precision: Any = 1.0,
        prior_mean: Any = 0.0,
        intercept_precision: float = 1e-6,
        noise_shape: float = 1.0,
        noise_rate: float = 1.0,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X with targets y."""
        data = self._fit_data(X, y, sample_weight, target="numeric")
        self._learn(data, self._prior(data.n_features), 0.0)
        return self

    @fitting(incremental=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows: the posterior so far is the prior of the new rows."""
        first = not hasattr(self, "coef_")
        data = self._fit_data(X, y, sample_weight, target="numeric", reset=first)
        if first:
            self._learn(data, self._prior(data.n_features), 0.0)
        else:
            prior = NormalInverseGamma(self._mean_, self._root_, self.noise_shape_, self.noise_rate_)
            self._learn(data, prior, self.log_evidence_)
        return self

    def _learn(self, data: Data, prior: NormalInverseGamma, evidence: float) -> None:
        p = data.n_features
        rows = compact_rows(data, intercept=self.fit_intercept, n_jobs=self.n_jobs)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is refused
            posterior, more, gradient = updated(prior, rows)
            self.coef_ = posterior.mean[:p].astype(data.dtype)
        require_representable(self, data.dtype)
        if not np.isfinite([posterior.rate, more, gradient]).all():
            raise DataError("X, y and the prior: sums of squares of the posterior overflow; scale them down")
        self._mean_, self._root_ = posterior.mean, posterior.root
        self.noise_shape_, self.noise_rate_ = posterior.shape, posterior.rate
        self.log_evidence_ = evidence + more
        self.intercept_ = float(posterior.mean[p]) if self.fit_intercept else 0.0
        meaning = "the gradient of the log posterior, relative to the sizes of X and y"
        self._conclude_directly(
            Certificate("closed form", gradient, _TOLERANCE, meaning),
            x=posterior.mean,
            objective=-self.log_evidence_,
            log_evidence=self.log_evidence_,
        )

    def _prior(self, p: int) -> NormalInverseGamma:
        mean = np.asarray(self.prior_mean, dtype=np.float64)
        if mean.shape not in ((), (p,)) or not np.isfinite(mean).all():
            raise ParameterError(f"prior_mean: has shape {mean.shape}; expected a number or ({p},), finite")
        given = np.asarray(self.prior_precision, dtype=np.float64)
        if given.shape not in ((), (p,), (p, p)):
            raise ParameterError(f"prior_precision: has shape {given.shape}; expected a number, ({p},) or ({p}, {p})")
        P = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (p,)))
        if not (np.isfinite(P).all() and np.allclose(P, P.T, rtol=1e-10, atol=0)):
            raise ParameterError("prior_precision: expected finite numbers, and a symmetric matrix")
        try:
            root = np.linalg.cholesky(P).T
        except np.linalg.LinAlgError:
            raise ParameterError("prior_precision: expected a positive definite matrix, or positive numbers") from None
        mean = np.broadcast_to(mean, (p,))
        if self.fit_intercept:
            root = scipy.linalg.block_diag(root, np.sqrt(self.intercept_precision))
            mean = np.append(mean, 0.0)
        return NormalInverseGamma(mean, root, float(self.noise_shape), float(self.noise_rate))

    @property
    def precision_(self) -> np.ndarray:
        return np.asarray(self._root_.T @ self._root_)

    @property
    def sigma_(self) -> np.ndarray:
        freedom = 2 * self.noise_shape_
        variance = self.noise_rate_ / self.noise_shape_ * freedom / (freedom - 2) if freedom > 2 else np.inf
        return self._scale_matrix() * variance

    def _scale_matrix(self) -> np.ndarray:
        inverse = scipy.linalg.solve_triangular(self._triangle(), np.eye(len(self._root_)))
        return np.asarray(inverse @ inverse.T)

    def _triangle(self) -> np.ndarray:
        return np.asarray(np.linalg.qr(self._root_, mode="r"))

    def _spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float, float]:
        # With the intercept at its mean given w, x is compared with the point at which the two do not depend.
        p, C = self.n_features_in_, self._scale_matrix()
        noise = self.noise_rate_ / self.noise_shape_
        centre, of_level = np.zeros(p), 0.0
        if self.fit_intercept:
            centre = np.linalg.solve(C[:p, :p], -C[:p, p])
            of_level = max(float(C[p, p] + centre @ C[:p, p]), 0.0)
        freedom = 2 * self.noise_shape_
        factor = float(np.sqrt(freedom / (freedom - 2))) if freedom > 2 else float("inf")
        return np.arange(p), centre, noise * C[:p, :p], noise * (1.0 + of_level), factor, freedom
