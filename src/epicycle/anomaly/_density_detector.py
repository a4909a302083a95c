"""Detectors that fit a model to normal rows: the fit, its threshold, and labelled rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from epicycle import engine
from epicycle.anomaly._detector import OutlierDetector
from epicycle.anomaly._threshold import anomalies_of, is_label
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain, Real
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import fitting
from epicycle.data import ArrayData, Data


class DensityDetector(OutlierDetector):
    """A model of normal rows and a threshold: F1 where labels are given, otherwise a share of the rows."""

    _docs: ClassVar[Mapping[str, str]] = {
        "contamination": "contamination : float, default={default}\n"
        "    Share of anomalies among the rows, at most 0.5: `offset_` is that quantile of their scores. Not used\n"
        "    with labels.",
        "threshold": 'threshold : {"auto", "f1", "contamination"}, default={default}\n'
        "    How `offset_` is chosen: by F1 on the labels y, which then have to be given, or by `contamination`;\n"
        '    "auto" takes F1 where y holds two labels (True and False, 1 and 0, or -1 and 1), and does not look at y\n'
        "    otherwise.",
        "fit_y": "y : array-like of shape (n_samples,), optional\n"
        "    True or 1 for anomalies and False or 0 for normal rows, or scikit-learn's -1 and 1: the model is fitted\n"
        "    to the normal rows, and the threshold is the one of the largest F1 on all of them.",
        "f1_": "f1_, precision_, recall_ : float\n    Of the threshold on the labelled rows; only with labels.",
        "X": "X : array, sparse matrix, data frame, scan or Dask collection of shape (n_samples, n_features)",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("f1_",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "contamination": Real(minimum=0, maximum=0.5, inclusive=(False, True)),
        "threshold": Choice("auto", "f1", "contamination"),
    }
    _card: ClassVar[MethodCard] = MethodCard(
        family="anomaly", catalogue=("E16",), engines=("memory", "files", "dask"), certificate="closed form"
    )
    _takes_sparse = True

    contamination: float
    threshold: str

    @abstractmethod
    def _fit_model(self, data: Data) -> None:
        """Fit the model of normal rows, and set the evidence."""

    @abstractmethod
    def _scores(self, data: Data) -> Any:
        """The score of every row."""

    @abstractmethod
    def _contributions(self, X: Any) -> np.ndarray:
        """Contributions of the features to the scores of rows."""

    @fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows X, and choose the threshold."""
        data = self._fit_data(X, None, sample_weight, target="none")
        if self.threshold == "f1" and y is None:
            raise DataError("y: is None; expected labels of anomalies with threshold='f1'")
        labelled = y is not None and (self.threshold == "f1" or (self.threshold == "auto" and is_label(y)))
        if not labelled:
            self._fit_model(data)
            self._take_share(self._scores(data), data, float(self.contamination))
            return self
        if not isinstance(data, ArrayData):
            raise DataError(
                "y: labels are for rows in memory; fit without them and call calibrate(X, y) with some rows"
            )
        anomaly = anomalies_of(y, data.n_rows)
        weight = None if data.weight is None else data.weight[~anomaly]
        self._fit_model(ArrayData(data.X[~anomaly], None, weight, feature_names=data.feature_names))
        self._take_labelled(np.asarray(self._scores(data)), anomaly, data.weight)
        return self

    def score_samples(self, X: Any) -> Any:
        """The score of every row: the lower, the more unusual."""
        return self._scores(self._predict_data(X))

    def explain(self, X: Any) -> Any:
        """Contributions of the features to the score of a row.

        Returns
        -------
        array of shape (n_samples, n_features)
            Large where a feature is the reason.
        """
        return engine.map(_contributions_of, self._predict_data(X), self, n_jobs=self.n_jobs)


def _contributions_of(batch: Any, detector: DensityDetector) -> np.ndarray:
    return detector._contributions(batch.X)
