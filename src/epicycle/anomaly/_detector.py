"""Common parts of all detectors: scores, the threshold and how it is chosen, p-values, explanations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from epicycle import engine
from epicycle.anomaly._threshold import (
    anomalies_of,
    benjamini_hochberg,
    conformal_p_values,
    f1_threshold,
    share_threshold,
)
from epicycle.core._checks import open_unit
from epicycle.core._exceptions import DataError, NotFittedError
from epicycle.core._parameters import AnyOf, Choice, Domain, Real
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData, Batch, Data

#: The share of anomalies among the rows, or the threshold of the method's own.
CONTAMINATION: Domain = AnyOf(Choice("auto"), Real(minimum=0, maximum=0.5, inclusive=(False, True)))


class OutlierDetector(OutlierMixin, Estimator, ABC):  # type: ignore[misc]  # untyped mixin
    """Scores of rows, low where a row is unusual, and the threshold below which it is an anomaly.

    The threshold may be chosen by labelled rows; p-values compare with the scores of normal ones.
    """

    _docs: ClassVar[Mapping[str, str]] = {
        "offset_": "offset_ : float\n    Threshold epsilon: rows whose score is below are anomalies.",
        "X": "X : array, sparse matrix or data frame of shape (n_samples, n_features)",
        "decision_function_returns": "array of shape (n_samples,)",
        "p_values_X": "X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("offset_",)

    n_jobs: int | None
    offset_: float
    calibration_scores_: np.ndarray
    f1_: float
    precision_: float
    recall_: float

    @abstractmethod
    def score_samples(self, X: Any) -> Any:
        """The score of every row: the lower, the more unusual."""

    @abstractmethod
    def explain(self, X: Any) -> Any:
        """Contributions of the features to the score of a row."""

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Choose the threshold by labelled rows, and keep the scores of the normal ones for p-values.

        Rows that the fit did not see make both honest.

        Parameters
        ----------
        y : array-like of shape (n_samples,), optional
            True or 1 for anomalies and False or 0 for normal rows, or scikit-learn's -1 and 1: `offset_` becomes the
            threshold of the largest F1, and `f1_`, `precision_` and `recall_` are set. Without labels all rows are
            taken as normal, and the threshold stays.
        """
        scores = _in_memory(self.score_samples(X))
        if y is None:
            self.calibration_scores_ = np.sort(scores)
            return self
        anomaly = anomalies_of(y, len(scores))
        self._take_labelled(scores, anomaly, None)
        self.calibration_scores_ = np.sort(scores[~anomaly])
        return self

    def p_values(self, X: Any) -> np.ndarray:
        """Conformal p-values: the chance that a normal row is as unusual as this one, whatever the detector.

        Returns
        -------
        ndarray of shape (n_samples,)
            At least ``1 / (m + 1)`` for m rows of :meth:`calibrate`.
        """
        self._check_fitted()
        if not hasattr(self, "calibration_scores_"):
            raise NotFittedError(
                f"{type(self).__name__}: p-values compare with rows that are known to be normal; call calibrate(X) "
                "with such rows first"
            )
        return conformal_p_values(_in_memory(self.score_samples(X)), self.calibration_scores_)

    def detect(self, X: Any, *, fdr: float = 0.1) -> np.ndarray:
        """Anomalies among rows X with a bounded share of false ones (Benjamini and Hochberg).

        Parameters
        ----------
        fdr : float, default=0.1
            Expected share of normal rows among those reported.

        Returns
        -------
        ndarray of shape (n_samples,)
            -1 for anomalies, 1 for all other rows. It depends on all rows of X together, unlike `predict`.
        """
        rate = open_unit("fdr", fdr)
        return np.where(benjamini_hochberg(self.p_values(X), rate), -1, 1)

    def _take_labelled(self, scores: np.ndarray, anomaly: np.ndarray, weight: np.ndarray | None) -> None:
        found = f1_threshold(scores, anomaly, weight)
        self.offset_, self.f1_, self.precision_, self.recall_ = found.offset, found.f1, found.precision, found.recall

    # ------------------------------------------------------------------------------------------- use of the threshold

    def decision_function(self, X: Any) -> Any:
        """The score less the threshold: negative for anomalies."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """-1 for anomalies, 1 for all other rows."""
        decision = self.decision_function(X)
        return 1 - 2 * (decision < 0).astype(int)

    def _take_share(self, scores: Any, data: Data, share: float) -> None:
        weight = None
        if not isinstance(data, ArrayData) or data.weight is not None:
            weight = np.asarray(_in_memory(engine.map(_weight_of, data)))
            weight = None if bool((weight == 1).all()) else weight
        self.offset_ = share_threshold(_in_memory(scores), weight, share)


def _weight_of(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def _in_memory(scores: Any) -> np.ndarray:
    values = np.asarray(scores.compute() if hasattr(scores, "compute") else scores, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(f"scores have the shape {values.shape}; expected one for each row")
    return values
