r"""Local outlier factor:  LOF(x) = mean over neighbours o of lrd(o) / lrd(x),  with lrd(x) = 1 / mean reach(x, o).

reach(x, o) = max(d(x, o), distance of o to its own k-th neighbour) (Breunig, Kriegel, Ng and Sander, 2000).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, Unpack

import numpy as np
from sklearn.utils.metaestimators import available_if

from epicycle.anomaly._detector import CONTAMINATION, OutlierDetector
from epicycle.anomaly._threshold import share_threshold
from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Boolean, Domain
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting, stores_arguments
from epicycle.neighbors._base import K, KNeighborsSearch
from epicycle.spatial._options import SEARCH_PARAMETERS, SearchArguments
from epicycle.stats._class_scatter import dense_rows

F = TypeVar("F", bound=Callable[..., Any])
# Added to mean reaches: more than k equal rows have reaches of zero (scikit-learn's constant).
_LEAST_REACH = 1e-10
_TOO_FAR = -1e7  # factors beyond it come from groups of equal rows
_ROWS = 1 << 16  # at a time, so that ratios of neighbours stay small
_DIFFERENCES = 1 << 20  # between rows and their neighbours, held at a time for explanations


class FactorArguments(SearchArguments, total=False):
    """Types of the arguments of the constructor."""

    contamination: float | str
    novelty: bool


def _with_novelty(wanted: bool) -> Callable[[F], F]:
    """Decorate a method that exists only where `novelty` has this value."""

    def decorate(method: F) -> F:
        def check(self: Any) -> bool:
            if bool(self.novelty) == wanted:
                return True
            instead = "novelty=True scores new rows, fit_predict those of the fit"
            raise AttributeError(f"{method.__name__} is not available when novelty={self.novelty}; {instead}")

        available: F = available_if(check)(method)
        return available

    return decorate


class LocalOutlierFactor(OutlierDetector, KNeighborsSearch):
    r"""Local outlier factor: rows in places that are less dense than those of their neighbours.

    .. math:: \mathrm{LOF}(x) = \frac1k \sum_{o \in N_k(x)} \frac{\mathrm{lrd}(o)}{\mathrm{lrd}(x)}, \qquad
              \mathrm{lrd}(x)^{-1} = \frac1k \sum_{o \in N_k(x)} \max(d(x, o), d_k(o))

    with :math:`d_k(o)` the distance of o from its k-th neighbour: about 1 inside a cluster of any density, larger
    outside. The search is exact. A fitted object keeps the training rows.

    Parameters
    ----------
    n_neighbors : int, default=20
        k; all other rows where there are fewer.
    contamination : "auto" or float, default="auto"
        Share of anomalies among the rows, at most 0.5; "auto" takes factors above 1.5.
    novelty : bool, default=False
        Whether new rows are scored (`predict`, `decision_function`, `score_samples`, `calibrate`, `p_values`, `detect`,
        `explain`); otherwise the rows of the fit are (`fit_predict`, `negative_outlier_factor_`).

    Attributes
    ----------
    negative_outlier_factor_ : ndarray of shape (n_samples,)
        -LOF of the rows of the fit.
    n_neighbors_ : int
        k.
    offset_ : float
        Threshold: rows whose -LOF is below are anomalies.

    Examples
    --------
    >>> from epicycle import LocalOutlierFactor
    >>> model = LocalOutlierFactor(n_neighbors=2)
    >>> model.fit_predict([[-1.1], [0.2], [101.1], [0.3]])
    array([ 1,  1, -1,  1])
    >>> model.negative_outlier_factor_.round(2)
    array([ -0.98,  -1.04, -73.37,  -0.98])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **SEARCH_PARAMETERS,
        "n_neighbors": K,
        "contamination": CONTAMINATION,
        "novelty": Boolean(),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="anomaly", catalogue=("E16",), engines=("memory",), certificate="exact search", keeps_rows=True
    )

    n_neighbors: int
    contamination: float | str
    novelty: bool
    negative_outlier_factor_: np.ndarray
    n_neighbors_: int
    offset_: float
    _reach_: np.ndarray
    _density_: np.ndarray

    @stores_arguments(
        algorithm="auto",
        leaf_size=30,
        metric="minkowski",
        p=2,
        metric_params=None,
        contamination="auto",
        novelty=False,
        n_jobs=None,
    )
    def __init__(self, n_neighbors: int = 20, **shared: Unpack[FactorArguments]) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows of X, and compare the density at each with those at its neighbours."""
        self._keep_rows(X, None, target="none")
        n = self.n_samples_fit_
        if self.n_neighbors > n:
            warnings.warn(
                f"n_neighbors ({self.n_neighbors}) is greater than the total number of samples ({n}). n_neighbors will "
                "be set to (n_samples - 1) for estimation.",
                stacklevel=6,
            )
        self.n_neighbors_ = max(1, min(int(self.n_neighbors), n - 1))
        distances, rows = self.kneighbors(n_neighbors=self.n_neighbors_)
        self._reach_ = distances[:, -1].copy()
        self._density_ = self._densities(distances, rows)
        self.negative_outlier_factor_ = self._factors(self._density_, rows)
        self.offset_ = -1.5
        if self.contamination != "auto":
            self.offset_ = share_threshold(self.negative_outlier_factor_, None, float(self.contamination))
        if not self.novelty and self.negative_outlier_factor_.min() < _TOO_FAR:
            warnings.warn(
                "Duplicate values are leading to incorrect results. Increase the number of neighbors for more accurate "
                "results.",
                stacklevel=6,
            )
        self._conclude_exact()
        return self

    def _densities(self, distances: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """lrd of rows with these neighbours."""
        out = np.empty(len(rows), dtype=distances.dtype)
        with np.errstate(over="ignore"):
            for i in range(0, len(rows), _ROWS):
                part = slice(i, i + _ROWS)
                reach = np.maximum(distances[part], self._reach_[rows[part]])
                mean = np.minimum(reach.mean(axis=1), np.finfo(reach.dtype).max / 4)  # a sum of huge distances
                out[part] = 1 / (mean + _LEAST_REACH)
        return out

    def _factors(self, density: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """-LOF of rows with these densities and neighbours."""
        out = np.empty(len(rows), dtype=density.dtype)
        with np.errstate(over="ignore"):  # a ratio beyond all numbers is as large as the largest
            for i in range(0, len(rows), _ROWS):
                part = slice(i, i + _ROWS)
                ratio = (self._density_[rows[part]] / density[part, None]).mean(axis=1)
                out[part] = -np.minimum(ratio, np.finfo(density.dtype).max)
        return out

    def _predict(self, X: Any = None) -> np.ndarray:
        """-1 for anomalies among new rows, or those of the fit."""
        self._check_fitted()
        scores = self.negative_outlier_factor_ if X is None else self._scores(X)
        return np.where(scores < self.offset_, -1, 1)

    def _scores(self, X: Any) -> np.ndarray:
        distances, rows = self.kneighbors(X, n_neighbors=self.n_neighbors_)
        return self._factors(self._densities(distances, rows), rows)

    @_with_novelty(False)
    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit to rows X, and return -1 for anomalies among them, 1 for all others.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X)._predict()

    @_with_novelty(True)
    def predict(self, X: Any = None) -> np.ndarray:
        """-1 for anomalies among new rows, 1 for all others."""
        return self._predict(X)

    @_with_novelty(True)
    def score_samples(self, X: Any) -> np.ndarray:
        """-LOF of new rows among those of the fit: the lower, the more unusual."""
        self._check_fitted()
        return self._scores(X)

    @_with_novelty(True)
    def decision_function(self, X: Any) -> np.ndarray:
        """-LOF of new rows less the threshold: negative for anomalies."""
        scores = self.score_samples(X)
        return np.asarray(scores - np.asarray(self.offset_, dtype=scores.dtype))

    calibrate = _with_novelty(True)(OutlierDetector.calibrate)
    p_values = _with_novelty(True)(OutlierDetector.p_values)
    detect = _with_novelty(True)(OutlierDetector.detect)

    @_with_novelty(True)
    def explain(self, X: Any) -> np.ndarray:
        r"""Contributions of the features to the factor of a row: by their share in the distances from the neighbours.

        Distances split into :math:`d = \sum_j |x_j - o_j|^p d^{1-p}`; contributions are the factor times the share of a
        feature in the sum of the distances, and add up to the factor.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        self._check_fitted()
        power = self._power()
        distances, rows = self.kneighbors(X, n_neighbors=self.n_neighbors_)
        factors = -self._factors(self._densities(distances, rows), rows).astype(np.float64)
        Q = self._in_memory(X)
        (n, k), p = rows.shape, Q.shape[1]
        require_memory(8.0 * n * p, f"explanations of {n:,} rows", "explain fewer rows")
        out = np.empty((n, p))
        step = max(_DIFFERENCES // (k * p), 1)
        for i in range(0, n, step):
            part = slice(i, i + step)
            out[part] = factors[part, None] * _shares(
                dense_rows(Q[part]), dense_rows(self.X_fit_[rows[part].ravel()]), power
            )
        return out

    def _power(self) -> float:
        """p of Minkowski's distance."""
        powers = {"manhattan": 1.0, "cityblock": 1.0, "l1": 1.0, "euclidean": 2.0, "l2": 2.0}
        metric, options = self.effective_metric_, dict(self.effective_metric_params_ or {})
        power = (
            options.pop("p", 2.0) if metric == "minkowski" else powers.get(metric) if isinstance(metric, str) else None
        )
        if power is None or not np.isfinite(power) or options.get("w") is not None:
            raise ParameterError(
                f"metric={self.metric!r}: its distances are no sums over features, as explain needs them"
            )
        return float(power)


def _shares(Q: np.ndarray, near: np.ndarray, power: float) -> np.ndarray:
    """Shares of the features in the distances of rows Q from their neighbours, which follow each other in `near`."""
    with np.errstate(over="ignore"):
        D = np.abs(np.repeat(Q, len(near) // len(Q), axis=0) - near).clip(max=np.finfo(np.float64).max)
    D = D.reshape(len(Q), -1, Q.shape[1])
    largest = D.max(axis=(1, 2), keepdims=True)
    D /= np.where(largest > 0, largest, 1.0)  # powers neither overflow nor vanish
    parts = D**power
    d = parts.sum(axis=2, keepdims=True) ** (1.0 / power)
    parts *= np.where(d > 0, d, 1.0) ** (1.0 - power)
    found = parts.sum(axis=1) / np.where(d > 0, d, 0.0).sum(axis=1).clip(min=np.finfo(np.float64).tiny)
    found[largest.ravel() == 0] = 1.0 / Q.shape[1]  # a row that equals its neighbours
    return np.asarray(found)
