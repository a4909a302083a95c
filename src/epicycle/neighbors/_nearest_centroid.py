"""The class of the nearest centroid:  argmin_c d(q, m_c),  with m_c the mean, or the median, of the rows of class c.

With s_j the deviation within classes and m_k = sqrt(1/n_k - 1/n), centroids may be shrunk towards the mean of all rows:
in units of m_k (s_j + median s) every deviation of a centroid is brought closer to zero by a threshold, and a column
whose deviations all vanish does not count any more (Tibshirani, Hastie, Narasimhan and Chu, 2002).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, NoneOr, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments
from epicycle.data import ArrayData
from epicycle.data._dask_data import is_dask
from epicycle.spatial._metric import metric_by_name
from epicycle.spatial._search import distance_block
from epicycle.stats._labels import codes, distinct


def _is_euclidean(model: Any) -> bool:
    if model.metric != "euclidean":
        raise AttributeError(f"metric={model.metric!r} has no discriminant scores; they need metric='euclidean'")
    return True


class NearestCentroid(ClassifierMixin, Estimator):  # type: ignore[misc]  # untyped mixin
    r"""The class whose centroid is nearest.

    .. math:: \hat y(q) = \arg\min_c d(q, m_c)

    with :math:`m_c` the mean of the rows of class :math:`c`, or their median by columns for the manhattan distance.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}, default="euclidean"
        The distance. Means minimise the sum of squared euclidean distances, medians that of manhattan distances.
    shrink_threshold : float, optional
        Amount by which standardised centroids are shrunk towards the mean of all rows, which leaves out columns that
        do not tell classes apart.
    priors : {"uniform", "empirical"} or array of shape (n_classes,), default="uniform"
        Probabilities of the classes. Unless they are equal, predictions follow the discriminant scores.

    Attributes
    ----------
    centroids_ : ndarray of shape (n_classes, n_features)
    classes_ : ndarray of shape (n_classes,)
    deviations_ : ndarray of shape (n_classes, n_features)
        Standardised differences of the centroids from the mean of all rows, shrunk.
    within_class_std_dev_ : ndarray of shape (n_features,)
        Standard deviation within classes.
    class_prior_ : ndarray of shape (n_classes,)
    certificate_ : Certificate
        The centroids are exact.

    Examples
    --------
    >>> from epicycle import NearestCentroid
    >>> X = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]]
    >>> NearestCentroid().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "rows": """Parameters
----------
X : array, sparse matrix or data frame of shape (n_samples, n_features)

Returns
-------""",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "metric": Choice("euclidean", "manhattan"),
        "shrink_threshold": NoneOr(Real(minimum=0, inclusive=False)),
        "priors": AnyOf(Choice("uniform", "empirical"), ArrayLike()),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="kernel", catalogue=("C5",), engines=("memory",), certificate="closed form"
    )
    _takes_sparse: ClassVar[bool] = True

    metric: str
    shrink_threshold: float | None
    priors: Any

    @stores_arguments
    def __init__(
        self, metric: str = "euclidean", *, shrink_threshold: float | None = None, priors: Any = "uniform"
    ) -> None: ...

    @fitting
    def fit(self, X: Any, y: Any = None) -> Self:
        """Centroids of the rows X with labels y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        if is_dask(X):
            raise DataError("X: NearestCentroid is fitted in memory; compute() the rows first")
        data = self._fit_data(X, y, target="labels")
        if not isinstance(data, ArrayData):
            raise DataError("X: NearestCentroid is fitted in memory; collect the rows first")
        self.classes_ = distinct(np.asarray(data.y))
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise DataError(f"The number of classes has to be greater than one; got {n_classes} class")
        code = codes(np.asarray(data.y), labels=self.classes_)
        counts = np.bincount(code, minlength=n_classes)
        self.class_prior_ = self._prior(counts)
        rows = data.X.astype(np.float64)
        _refuse_constant(rows)
        parts = [rows[code == c] for c in range(n_classes)]
        average = _means if self.metric == "euclidean" else _medians
        self.centroids_ = np.array([average(part) for part in parts])
        squares = sum(_squares(part, m) for part, m in zip(parts, self.centroids_, strict=True))
        self.within_class_std_dev_ = np.sqrt(squares / max(data.n_rows - n_classes, 1))
        self._shrink(_means(rows), np.sqrt(1.0 / counts - 1.0 / data.n_rows))
        meaning = "the centroids are means or medians, computed directly"
        self._conclude_directly(Certificate("closed form", 0.0, 0.0, meaning))
        return self

    def _prior(self, counts: np.ndarray) -> np.ndarray:
        if isinstance(self.priors, str):
            return counts / counts.sum() if self.priors == "empirical" else np.full(len(counts), 1 / len(counts))
        prior = np.asarray(self.priors, dtype=np.float64)
        if prior.shape != counts.shape:
            raise ParameterError(f"priors: have shape {prior.shape}; expected one for each of {len(counts)} classes")
        if not np.isfinite(prior).all() or (prior < 0).any() or prior.sum() == 0:
            raise ParameterError("priors must be non-negative, finite, and not all zero")
        if not np.isclose(prior.sum(), 1.0):
            warnings.warn("The priors do not sum to 1. Normalizing such that it sums to one.", stacklevel=5)
        return np.asarray(prior / prior.sum())

    def _shrink(self, mean: np.ndarray, size: np.ndarray) -> None:
        """Deviations in units of `size` and of the spread of columns; shrunk centroids where a threshold is given."""
        unit = size[:, None] * (self.within_class_std_dev_ + np.median(self.within_class_std_dev_))
        difference = self.centroids_ - mean
        # A column without spread within classes has no unit: a difference there is beyond every threshold.
        with np.errstate(divide="ignore", over="ignore"):
            deviations = np.divide(difference, unit, out=np.copysign(np.inf, difference), where=unit > 0)
        deviations[difference == 0] = 0.0
        self.deviations_ = deviations
        if self.shrink_threshold is None:
            return
        self.deviations_ = np.sign(deviations) * np.maximum(np.abs(deviations) - self.shrink_threshold, 0.0)
        kept = np.isinf(self.deviations_)
        self.centroids_ = np.where(kept, self.centroids_, mean + unit * np.where(kept, 0.0, self.deviations_))

    def _rows(self, X: Any) -> Any:
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataError("X: has to be in memory; collect it first")
        return data.X.astype(np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the nearest centroid, or of the largest score where the priors differ.

        %(rows)s
        ndarray of shape (n_samples,)
        """
        rows = self._rows(X)
        if np.allclose(self.class_prior_, 1 / len(self.classes_)):
            best = _distances(rows, self.centroids_, self.metric).argmin(axis=1)
        else:
            best = self._scores(rows).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _scores(self, rows: Any) -> np.ndarray:
        """-d^2 + 2 log prior, with columns in units of their deviation within classes."""
        spread = np.where(self.within_class_std_dev_ > 0, self.within_class_std_dev_, 1.0)
        scaled = sp.csr_array(rows.multiply(1 / spread)) if sp.issparse(rows) else rows / spread
        with np.errstate(divide="ignore"):
            prior = 2.0 * np.log(self.class_prior_)
        return np.asarray(prior - _distances(scaled, self.centroids_ / spread, self.metric) ** 2)

    @available_if(_is_euclidean)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Discriminant scores; for two classes the difference of theirs.

        %(rows)s
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(self._rows(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @available_if(_is_euclidean)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities by the discriminant scores, in the order of `classes_`.

        %(rows)s
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_is_euclidean)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities.

        %(rows)s
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(log_softmax(self._scores(self._rows(X)), axis=1))


def _distances(rows: Any, centroids: np.ndarray, metric: str) -> np.ndarray:
    return distance_block(metric_by_name(metric, 2), rows, sp.csr_array(centroids) if sp.issparse(rows) else centroids)


def _means(rows: Any) -> np.ndarray:
    return np.asarray(rows.mean(axis=0)).ravel()


def _medians(rows: Any) -> np.ndarray:
    if not sp.issparse(rows):
        return np.asarray(np.median(rows, axis=0))
    columns = rows.tocsc()
    return np.array([np.median(columns[:, [j]].toarray()) for j in range(rows.shape[1])])


def _squares(rows: Any, centre: np.ndarray) -> np.ndarray:
    """Sums of squared differences from the centre, by columns; what is not stored differs by the centre."""
    if not sp.issparse(rows):
        return np.asarray(((rows - centre) ** 2).sum(axis=0))
    columns = rows.tocsc()
    column = np.repeat(np.arange(rows.shape[1]), np.diff(columns.indptr))
    stored = np.bincount(column, (columns.data - centre[column]) ** 2, minlength=rows.shape[1])
    return np.asarray(stored + (rows.shape[0] - np.diff(columns.indptr)) * centre**2)


def _refuse_constant(rows: Any) -> None:
    spread = rows.max(axis=0) - rows.min(axis=0)
    if not (spread.toarray() if sp.issparse(spread) else spread).any():
        raise DataError("All features have zero variance. Division by zero: no column tells classes apart")
