"""Class labels and class probabilities of tree methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData, Batch, Data
from epicycle.stats._labels import codes, label_statistic


def encode_classes(data: Data, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray, Data]:
    """(classes of positive weight, their weights, the data with codes for targets); one class is enough."""
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


def known_codes(y: np.ndarray, classes: np.ndarray, argument: str = "y") -> np.ndarray:
    """Labels as positions among the classes of the fit; other labels are refused."""
    position, unknown = np.empty(0, np.intp), y
    if (y.dtype.kind in "OUS") == (classes.dtype.kind in "OUS"):  # text and numbers cannot be compared
        position = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        unknown = y[classes[position] != y]
    if len(unknown):
        raise DataError(
            f"{argument}: the class {unknown.tolist()[0]!r} is not among those of the fit, {classes.tolist()!r:.80}"
        )
    return position.astype(np.float64)


def class_shares(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Shares of all classes, where two classes are stored as the share of the second."""
    if n_classes == 1:
        return np.ones((len(values), 1))
    return np.column_stack([1.0 - values, values]) if values.shape[1] == 1 else values


def second_of_two(probabilities: np.ndarray) -> np.ndarray:
    """The second column alone where there are two classes, else all columns."""
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def map_rows(scores: Any, function: Callable[..., np.ndarray], *parameters: Any) -> Any:
    """``function(scores, *parameters)``, block by block where the scores are a lazy Dask array."""
    if isinstance(scores, np.ndarray):
        return function(scores, *parameters)
    example = function(np.zeros((1, scores.shape[1])), *parameters)
    changed = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (scores.chunks[0], (example.shape[1],))}
    return scores.map_blocks(function, *parameters, dtype=example.dtype, **changed)
