r"""Anomalies by a normal density:  s(x) = log p(T(x)),  T of every column chosen by likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.linalg import solve_triangular

from epicycle import engine
from epicycle.anomaly._columns import Columns, correlation, fit_columns
from epicycle.anomaly._density_detector import DensityDetector
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data

_ROUNDING = 1e-12  # relative residual of a factorisation that rounding explains


class GaussianAnomalyDetector(DensityDetector):
    r"""Anomalies by a normal distribution, of independent columns or of all together.

    .. math:: s(x) = \log p(t) = -\tfrac12\, y' R^{-1} y - \tfrac12 \log |R| - \sum_j \log \sigma_j
              - \tfrac p2 \log 2\pi, \qquad y_j = \frac{t_j - \mu_j}{\sigma_j}, \quad t_j = T_j(x_j)

    with R the identity for independent columns, or the correlation of all. Columns are measured in halves of their
    range, and with ``transforms="auto"`` bent to be as normal as possible: :math:`T_j` is the identity,
    :math:`\log(x + c)` or :math:`(x + c)^a`, whichever has the largest likelihood. All of it are sums over rows.

    Parameters
    ----------
    covariance : {"independent", "multivariate"}, default="independent"
        Whether columns are independent; "multivariate" sees rows whose columns do not fit together.
    transforms : {"none", "auto"}, default="none"
        Whether columns are transformed.
    shrinkage : float, default=1e-9
        R becomes ``(1 - shrinkage) R + shrinkage I``, so that columns that follow from others can be inverted.

    Attributes
    ----------
    location_, deviation_ : ndarray of shape (n_features,)
        :math:`\mu` and :math:`\sigma` of the transformed columns, in halves of their ranges.
    centre_, range_ : ndarray of shape (n_features,)
        Middle and half of the range of every column.
    correlation_ : ndarray of shape (n_features, n_features) or None
        R; None for independent columns.
    exponent_, shift_, least_ : ndarray of shape (n_features,)
        Transforms of the columns (exponent 1: none, 0: logarithm), what is added to them before, and where they go on
        as tangents.
    transforms_ : dict of str to str
        The transforms in words.
    certificate_ : Certificate
        What rounding left of the equation of the factor of R.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import GaussianAnomalyDetector
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=500), rng.lognormal(size=500)])
    >>> model = GaussianAnomalyDetector(transforms="auto", contamination=0.01).fit(X)
    >>> model.predict([[0.0, 1.0], [0.0, 200.0]])
    array([ 1, -1])
    >>> model.explain([[0.0, 200.0]]).argmax()
    np.int64(1)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "covariance": Choice("independent", "multivariate"),
        "transforms": Choice("none", "auto"),
        "shrinkage": Real(minimum=0, maximum=1),
        **DensityDetector._parameters,
    }

    covariance: str
    transforms: str
    shrinkage: float
    location_: np.ndarray
    deviation_: np.ndarray
    centre_: np.ndarray
    range_: np.ndarray
    exponent_: np.ndarray
    shift_: np.ndarray
    least_: np.ndarray
    correlation_: np.ndarray | None
    _factor_: np.ndarray | None

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        *,
        covariance: str = "independent",
        transforms: str = "none",
        shrinkage: float = 1e-9,
        contamination: float = 0.1,
        threshold: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _fit_model(self, data: Data) -> None:
        columns, weight = fit_columns(data, transform=self.transforms == "auto", n_jobs=self.n_jobs)
        self.centre_, self.range_, self.shift_ = columns.centre, columns.scale, columns.shift
        self.exponent_, self.least_ = columns.exponent, columns.least
        self.location_, self.deviation_ = columns.mean, columns.deviation
        self.transforms_ = columns.words(self._names())
        self.correlation_ = self._factor_ = None
        residual = 0.0
        if self.covariance == "multivariate":
            R = correlation(data, columns, weight, self.n_jobs)
            R = (1 - self.shrinkage) * R + self.shrinkage * np.eye(len(R))
            self.correlation_, self._factor_ = R, _factor(R)
            residual = float(np.abs(self._factor_ @ self._factor_.T - R).max())
        meaning = "the covariance is that of the rows: its factor gives it back, relative to unit variances"
        tolerance = max(_ROUNDING, _LEAST_EIGENVALUE * len(self.centre_))
        self._conclude_directly(Certificate("closed form", residual, tolerance, meaning), x=self.location_)

    def _columns(self) -> Columns:
        return Columns(
            self.centre_, self.range_, self.shift_, self.exponent_, self.least_, self.location_, self.deviation_
        )

    def _scores(self, data: Data) -> Any:
        return engine.map(_log_densities, data, self._columns(), self._factor_, n_jobs=self.n_jobs)

    def _contributions(self, X: Any) -> np.ndarray:
        Y = self._columns().standardised(X)
        if self._factor_ is None:
            return np.asarray(Y**2 / 2)
        half = solve_triangular(self._factor_, Y.T, lower=True)
        return np.asarray(Y * solve_triangular(self._factor_, half, lower=True, trans="T").T / 2)


_LEAST_EIGENVALUE = 1e-10


def _factor(R: np.ndarray) -> np.ndarray:
    """Cholesky's factor of a correlation matrix, of which eigenvalues that rounding made zero are lifted."""
    try:
        return np.asarray(np.linalg.cholesky(R))
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(R)
        lifted = (axes * values.clip(min=_LEAST_EIGENVALUE)) @ axes.T
        return np.asarray(np.linalg.cholesky(lifted + _LEAST_EIGENVALUE / 10 * np.eye(len(R))))


def _log_densities(batch: Batch, columns: Columns, factor: np.ndarray | None) -> np.ndarray:
    Y = columns.standardised(batch.X)
    log_det = 2 * float(np.log(columns.deviation).sum())
    if factor is not None:
        Y = solve_triangular(factor, Y.T, lower=True).T
        log_det += 2 * float(np.log(np.diagonal(factor)).sum())
    return np.asarray(-((Y**2).sum(axis=1) + log_det + Y.shape[1] * np.log(2 * np.pi)) / 2)
