r"""Anomalies by principal components: the distance from their space, and how far out a row is within it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle import engine
from epicycle.anomaly._columns import Columns, correlation, fit_columns
from epicycle.anomaly._density_detector import DensityDetector
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ParameterError
from epicycle.core._parameters import AnyOf, Boolean, Choice, Domain, Integer, Real
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Batch, Data
from epicycle.decomposition.pca._number_of_components import by_retained_variance

_ROUNDING = 1e-10  # residual of the eigenvalue equation, relative to the largest eigenvalue
_LEAST_VARIANCE = 1e-9  # along an axis, relative to the mean


class PCAAnomalyDetector(DensityDetector):
    r"""Anomalies by principal components: residual, Hotelling's :math:`T^2`, or both.

    .. math:: Q(x) = \|y - V V' y\|^2, \qquad T^2(x) = \sum_{k} \frac{(v_k' y)^2}{\lambda_k}, \qquad
              s(x) = -\tfrac12 Q(x), \quad -\tfrac12 T^2(x) \quad\text{or}\quad -\tfrac12 (T^2(x) + Q(x) / \sigma^2)

    with y the columns about their means in standard deviations, :math:`v_k` and :math:`\lambda_k` the leading axes and
    eigenvalues of their correlation, and :math:`\sigma^2` the mean of the other eigenvalues: both together are the
    log-density of probabilistic PCA up to a constant.

    Parameters
    ----------
    n_components : int or float, default=0.9
        Axes of the space of normal rows, or the share of the variance that they exceed.
    statistic : {"both", "residual", "hotelling"}, default="both"
        Which distances count.
    scale : bool, default=True
        Whether columns are divided by their standard deviations; otherwise by the root of their mean variance.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Axes as rows.
    explained_variance_ : ndarray of shape (n_components,)
        :math:`\lambda`.
    noise_variance_ : float
        :math:`\sigma^2`.
    n_components_ : int
    centre_, range_, location_, deviation_ : ndarray of shape (n_features,)
        Middle and half of the range of every column; mean and standard deviation in units of that half.
    certificate_ : Certificate
        The largest residual of an axis in its eigenvalue equation.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import PCAAnomalyDetector
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=400)
    >>> X = np.column_stack([z, z + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> model = PCAAnomalyDetector(n_components=2, statistic="residual", contamination=0.01).fit(X)
    >>> model.predict([[2.0, 2.0, 0.0], [1.0, -1.0, 0.0]])
    array([ 1, -1])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_components": AnyOf(Integer(minimum=1), Real(minimum=0, maximum=1, inclusive=False)),
        "statistic": Choice("both", "residual", "hotelling"),
        "scale": Boolean(),
        **DensityDetector._parameters,
    }

    n_components: float
    statistic: str
    scale: bool
    components_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        n_components: float = 0.9,
        *,
        statistic: str = "both",
        scale: bool = True,
        contamination: float = 0.1,
        threshold: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _fit_model(self, data: Data) -> None:
        p = data.n_features
        if isinstance(self.n_components, int | np.integer) and self.n_components > p:
            raise ParameterError(f"n_components={self.n_components}; expected at most {p}, the number of columns")
        columns, weight = fit_columns(data, transform=False, n_jobs=self.n_jobs)
        R = correlation(data, columns, weight, self.n_jobs)
        self._width_ = np.ones(p) if self.scale else columns.relative_widths()
        R = R * np.outer(self._width_, self._width_)
        values, axes = np.linalg.eigh(R)
        values, axes = values[::-1].clip(min=0.0), axes[:, ::-1].T
        k = self.n_components
        k = int(k) if isinstance(k, int | np.integer) else min(by_retained_variance(values, float(k)), p)
        least = _LEAST_VARIANCE * float(values.mean())
        self.centre_, self.range_ = columns.centre, columns.scale
        self.location_, self.deviation_ = columns.mean, columns.deviation
        self.components_, self.explained_variance_ = axes[:k], np.maximum(values[:k], least)
        self.noise_variance_ = max(float(values[k:].mean()) if k < p else least, least)
        self.n_components_ = k
        residual = np.abs(R @ self.components_.T - self.components_.T * values[:k]).max() / max(values[0], least)
        meaning = "every axis satisfies its eigenvalue equation, relative to the largest eigenvalue"
        self._conclude_directly(Certificate("eigenvalue residual", residual, _ROUNDING, meaning), x=values)

    def _columns(self) -> Columns:
        return Columns.untransformed(self.centre_, self.range_, self.location_, self.deviation_)

    def _scores(self, data: Data) -> Any:
        return engine.map(_scores_of, data, self, n_jobs=self.n_jobs)

    def _contributions(self, X: Any) -> np.ndarray:
        Y = self._columns().standardised(X) * self._width_
        Z = Y @ self.components_.T
        # y_j times the j-th entry of the projected and weighted y: both quadratic forms, column by column.
        within = Y * ((Z / self.explained_variance_) @ self.components_) / 2
        outside = (Y - Z @ self.components_) ** 2 / 2
        if self.statistic == "hotelling":
            return np.asarray(within)
        return np.asarray(outside if self.statistic == "residual" else within + outside / self.noise_variance_)


def _scores_of(batch: Batch, detector: PCAAnomalyDetector) -> np.ndarray:
    return np.asarray(-detector._contributions(batch.X).sum(axis=1))
