"""Class labels and class probabilities of tree methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_sample_weight

from epicycle import engine
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.data import ArrayData, Batch, Data
from epicycle.data._target import as_labels
from epicycle.stats._labels import codes, label_statistic


def encode_classes(
    data: Data, n_jobs: int | None = None, *, weightless: bool = False
) -> tuple[np.ndarray, np.ndarray, Data]:
    """(classes, their weights, the data with codes for targets); one class is enough.

    Classes whose rows all have weight zero are left out, unless `weightless`.
    """
    if isinstance(data, ArrayData):
        (found,) = label_statistic(Batch(data.X, data.y, data.weight))
    else:
        (found,) = engine.sum(label_statistic, data, n_jobs=n_jobs)
    present = found.weights > 0
    if not present.any():
        raise DataError("sample_weight: no row of positive weight is left to learn from")
    kept = present | weightless
    classes, weights = found.labels[kept], found.weights[kept]
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


def most_probable(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class with the largest share; of two with the same share the first, as 1 - p and p are rounded."""
    return np.asarray(classes[class_shares(values, len(classes)).argmax(axis=1)])


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


# ------------------------------------------------------------------------------------------------ several label columns


def has_label_columns(y: Any) -> bool:
    """Whether y is a table of several columns of labels."""
    if sp.issparse(y):
        raise DataTypeError("y: sparse multilabel-indicator for y is not supported. Expected a dense array")
    if nw.dependencies.is_into_dataframe(y):
        return bool(nw.from_native(y).shape[1] > 1)
    if isinstance(y, np.ndarray):
        return y.ndim == 2 and y.shape[1] > 1
    rows = isinstance(y, list | tuple) and len(y) > 0
    return rows and all(isinstance(row, list | tuple | np.ndarray) and len(row) > 1 for row in y)


def encode_label_columns(y: Any, estimator_name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """(the classes of every column, codes (n, n_outputs))."""
    table = np.asarray(y)
    classes, found = [], np.empty(table.shape)
    for k in range(table.shape[1]):
        labels = as_labels(table[:, k], len(table), estimator_name=estimator_name)
        values, found[:, k] = np.unique(labels, return_inverse=True)
        classes.append(values)
    return classes, found


def label_column_weights(class_weight: Any, y: Any) -> np.ndarray | None:
    """Factors on the weights of the rows: the product of those of the classes of all columns."""
    if class_weight is None:
        return None
    try:
        return np.asarray(compute_sample_weight(class_weight, np.asarray(y)))
    except ValueError as error:
        raise ParameterError(f"class_weight: {error}") from None


def refuse_label_columns(classes: Any, what: str) -> None:
    """Raise where the model was fitted to several label columns."""
    if isinstance(classes, list):
        raise DataError(f"y had {len(classes)} label columns: {what} is for one")


def same_classes(one: Any, other: Any) -> bool:
    """Whether two fits had the same classes."""
    if isinstance(one, list) or isinstance(other, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(np.array_equal(a, b) for a, b in pairs)
    return bool(np.array_equal(one, other))


def split_outputs(values: np.ndarray, classes: list[np.ndarray]) -> list[np.ndarray]:
    """Shares (n, K) of all classes, output by output."""
    return np.split(values, np.cumsum([len(c) for c in classes])[:-1], axis=1)


def choose_labels(values: np.ndarray, classes: list[np.ndarray]) -> np.ndarray:
    """The most frequent class of every output, (n, n_outputs)."""
    chosen = [c[v.argmax(axis=1)] for v, c in zip(split_outputs(values, classes), classes, strict=True)]
    return np.stack(chosen, axis=1)
