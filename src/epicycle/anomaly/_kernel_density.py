r"""Anomalies by a kernel density:  s(x) = log f(y),  f the mean of kernels at the other rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
from scipy.spatial.distance import cdist

from epicycle import engine
from epicycle.anomaly._columns import Columns, fit_columns
from epicycle.anomaly._density_detector import DensityDetector
from epicycle.core._arguments import SharedArguments
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import ArrayData, Batch, Data
from epicycle.neighbors import KernelDensity
from epicycle.neighbors._kernel_density import REACHING_KERNELS, values, weights_left

_LEAST_SCORE = -1e300  # of rows that are too far for a number
_LEAST_BANDWIDTH = 1e-60  # of explanations: squares of distances in bandwidths stay numbers
_ENTRIES = 1 << 21  # of a block of distances


class KernelDensityAnomalyDetector(DensityDetector):
    r"""Anomalies by a kernel density: rows that are far from all others, whatever shape these have.

    .. math:: s(x) = \log \frac{1}{W h^p Z} \sum_i w_i\, k\!\left(\frac{\|y - y_i\|}{h}\right)

    with y the columns about their means in standard deviations. A row that equals one of the fit is scored without it
    (leave one out; of a row of weight 3 two such rows stay): its own kernel would hide it. The sum runs over a tree,
    with a bound of its error. A fitted object keeps the training rows.

    Parameters
    ----------
    bandwidth : float, "scott", "silverman" or "likelihood", default="scott"
        h, in standard deviations of a column: a number, :math:`n^{-1/(p+4)}`, :math:`(n (p + 2) / 4)^{-1/(p+4)}`, or
        the one of the largest mean score of the rows of the fit.
    kernel : {"gaussian", "exponential"}, default="gaussian"
        k, above zero everywhere, so that all rows are ranked.
    scale : bool, default=True
        Whether columns are divided by their standard deviations; otherwise by the root of their mean variance.
    rtol : float, default=0
        Allowed relative error of the density; 0 is exact to rounding.

    Attributes
    ----------
    density_ : KernelDensity
        Of the standardised rows.
    bandwidth_ : float
        h.
    centre_, range_, location_, deviation_ : ndarray of shape (n_features,)
        Middle and half of the range of every column; mean and standard deviation in units of that half.
    certificate_ : Certificate
        The allowed error of the density: the bound is kept by every sum.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import KernelDensityAnomalyDetector
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 500)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = KernelDensityAnomalyDetector(bandwidth="likelihood", contamination=0.01).fit(ring)
    >>> model.predict([[1.0, 0.0], [0.0, 0.0], [0.0, 1.5]])
    array([ 1, -1, -1])
    >>> model.explain([[0.0, 1.5]]).argmax()
    np.int64(1)
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features); scores also of scans and Dask\n"
        "    collections",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "bandwidth": KernelDensity._parameters["bandwidth"],
        "kernel": Choice(*REACHING_KERNELS),
        "scale": Boolean(),
        "rtol": Real(minimum=0, maximum=1),
        **DensityDetector._parameters,
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="anomaly", catalogue=("E16",), engines=("memory",), certificate="error bound", keeps_rows=True
    )

    bandwidth: float | str
    kernel: str
    scale: bool
    rtol: float
    density_: KernelDensity
    bandwidth_: float
    centre_: np.ndarray
    range_: np.ndarray
    location_: np.ndarray
    deviation_: np.ndarray
    _width_: np.ndarray

    @stores_arguments(n_jobs=None)
    def __init__(
        self,
        *,
        bandwidth: float | str = "scott",
        kernel: str = "gaussian",
        scale: bool = True,
        rtol: float = 0.0,
        contamination: float = 0.1,
        threshold: str = "auto",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _fit_model(self, data: Data) -> None:
        if not isinstance(data, ArrayData):
            raise DataError(
                "X: KernelDensityAnomalyDetector keeps its rows and needs them in memory; collect them first"
            )
        columns, weight = fit_columns(data, transform=False, n_jobs=self.n_jobs)
        if not weight > 1 and (data.n_rows if data.weight is None else np.count_nonzero(data.weight)) < 2:
            raise DataError("X: 1 sample of positive weight; expected at least two, each is scored by the others")
        self.centre_, self.range_ = columns.centre, columns.scale
        self.location_, self.deviation_ = columns.mean, columns.deviation
        self._width_ = np.ones(data.n_features) if self.scale else columns.relative_widths()
        self.density_ = KernelDensity(
            bandwidth=self.bandwidth, kernel=self.kernel, rtol=float(self.rtol), n_jobs=self.n_jobs
        ).fit(self._standardised(data.X), sample_weight=data.weight)
        self.bandwidth_ = self.density_.bandwidth_
        meaning = "every density is within rtol times itself of the sum over all other rows"
        self._conclude_directly(Certificate("error bound", float(self.rtol), float(self.rtol), meaning))

    def _standardised(self, X: Any) -> np.ndarray:
        return np.asarray(self._columns().standardised(X) * self._width_)

    def _columns(self) -> Columns:
        return Columns.untransformed(self.centre_, self.range_, self.location_, self.deviation_)

    def _scores(self, data: Data) -> Any:
        # The sums of a batch run in threads, and its batches one by one.
        return engine.map(_log_densities, data, self, n_jobs=1)

    def _contributions(self, X: Any) -> np.ndarray:
        Q, out = self._standardised(X), np.empty((X.shape[0], X.shape[1]))
        step = max(_ENTRIES // len(self.density_.X_fit_), 1)
        for i in range(0, len(Q), step):
            out[i : i + step] = self._parts(Q[i : i + step])
        return out

    def _parts(self, Q: np.ndarray) -> np.ndarray:
        r"""Parts of the columns in  sum_i r_i (-log k(||y - y_i|| / h)),  r_i the share of row i in the density."""
        rows, weight, h = self.density_.X_fit_, self.density_.weight_, max(self.bandwidth_, _LEAST_BANDWIDTH)
        D = cdist(Q, rows)
        left, _ = weights_left(D, weight, 1.0)
        with np.errstate(divide="ignore"):
            logs = values(self.kernel, D / h) + np.log(left)
        top = logs.max(axis=1, keepdims=True)
        share = np.exp(logs - np.where(top > -np.inf, top, 0.0))
        share /= np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        # -log k is d^2 / 2h^2 or d / h = d^2 / dh: squares of differences, which the columns add up to.
        if self.kernel == "gaussian":
            share /= 2 * h * h
        else:
            share /= np.where(D > 0, D * h, np.inf)
        total = share.sum(axis=1, keepdims=True)
        share /= np.where(total > 0, total, 1.0)
        mean = share @ rows
        return np.asarray(total * ((Q - mean) ** 2 + np.maximum(share @ rows**2 - mean**2, 0.0)))


def _log_densities(batch: Batch, detector: KernelDensityAnomalyDetector) -> np.ndarray:
    Q = np.ascontiguousarray(detector._standardised(batch.X))
    return np.asarray(np.maximum(detector.density_._log_densities(Q, detector.bandwidth_, 1.0), _LEAST_SCORE))
