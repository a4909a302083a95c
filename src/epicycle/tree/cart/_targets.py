"""Labels as trees take them: one class is enough."""

from __future__ import annotations

from functools import partial

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData, Batch, Data
from epicycle.stats._labels import codes, label_statistic

__all__ = ["encode_classes"]


def encode_classes(data: Data, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray, Data]:
    """(classes of positive weight, their weights, the data with codes for targets)."""
    if isinstance(data, ArrayData):
        (found,) = label_statistic(Batch(data.X, data.y, data.weight))
    else:
        (found,) = engine.sum(label_statistic, data, n_jobs=n_jobs)
    present = found.weights > 0
    if not present.any():
        raise DataError("sample_weight: no row of positive weight is left to learn from")
    classes, weights = found.labels[present], found.weights[present]
    return classes, weights, data.encode_target(partial(_codes, classes=classes))


def _codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.zeros(len(y), np.intp) if len(classes) == 1 else codes(y, labels=classes)
