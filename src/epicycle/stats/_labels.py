"""Class labels: found in one pass wherever the data is, then replaced by codes 0 .. K-1."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError, DataTypeError, ParameterError
from epicycle.data import ArrayData, Batch, Data


class LabelSet:
    """Sorted distinct labels and their total weights; sets add up by union."""

    def __init__(self, labels: np.ndarray, weights: np.ndarray) -> None:
        self.labels, self.weights = labels, weights

    def __add__(self, other: LabelSet) -> LabelSet:
        if len(self.labels) == len(other.labels) and np.array_equal(self.labels, other.labels):
            return LabelSet(self.labels, self.weights + other.weights)
        labels = np.union1d(self.labels, other.labels)
        weights = np.zeros(len(labels))
        weights[np.searchsorted(labels, self.labels)] += self.weights
        weights[np.searchsorted(labels, other.labels)] += other.weights
        return LabelSet(labels, weights)


def distinct(y: np.ndarray) -> np.ndarray:
    """Sorted distinct labels; without sorting y where it has two, or small whole numbers."""
    if y.dtype.kind == "b":
        return np.unique(y)
    if y.dtype.kind in "iu" and y.dtype != np.uint64 and y.size and int(y.max()) - int(y.min()) < 4 * y.size:
        low = int(y.min())
        return (np.flatnonzero(np.bincount(y.astype(np.int64) - low)) + low).astype(y.dtype)
    if y.dtype.kind == "f" and y.size:
        first, last = y.min(), y.max()
        if bool(((y == first) | (y == last)).all()):
            return np.array([first, last]) if first != last else np.array([first])
    return np.unique(y)


def label_statistic(batch: Batch) -> tuple[LabelSet]:
    y = np.asarray(batch.y)
    labels = distinct(y)
    weights = np.bincount(codes(y, labels=labels), weights=batch.weight, minlength=len(labels))
    return (LabelSet(labels, weights.astype(np.float64)),)


def labels_of(data: Data, n_jobs: int | None) -> LabelSet:
    """The labels of all rows, with their weights."""
    if isinstance(data, ArrayData):
        return label_statistic(Batch(data.X, data.y, data.weight))[0]
    return engine.sum(label_statistic, data, n_jobs=n_jobs)[0]  # type: ignore[no-any-return]


def classes_of(data: Data, n_jobs: int | None) -> np.ndarray:
    """The classes of a fit: the labels that have weight; one without is as good as not there."""
    found = labels_of(data, n_jobs)
    classes = found.labels[found.weights > 0]
    if not len(classes):
        raise DataError("sample_weight: all weights are zero; expected one row of positive weight")
    return classes


def labels_among(data: Data, named: Any, n_jobs: int | None) -> LabelSet:
    """The labels of all rows, with their weights, where a call may name the classes that they belong to."""
    seen = labels_of(data, n_jobs)
    if named is not None and (strange := np.setdiff1d(seen.labels, np.asarray(named))).size:
        raise ParameterError(
            f"classes: The target label(s) {strange.tolist()} in y do not exist in the initial classes "
            f"{np.asarray(named).tolist()}; expected those of all rows of the call"
        )
    return seen


def joined_classes(seen: np.ndarray, given: Any, before: np.ndarray | None) -> np.ndarray:
    """The classes after a call of partial_fit: those of its rows, those it names, and those of the calls before it."""
    named = np.empty(0) if given is None else np.unique(np.asarray(given))
    if before is not None and given is not None and not np.array_equal(named, before):
        raise ParameterError(
            f"`classes={np.asarray(given).tolist()}` is not the same as on last call to partial_fit, was: "
            f"{before.tolist()}"
        )
    parts = [part for part in (named if before is None else before, seen) if len(part)]
    return np.unique(np.concatenate(parts))


def codes(y: np.ndarray, labels: np.ndarray, dtype: type = np.intp) -> np.ndarray:
    """The position of every label of y among the sorted `labels`; of one that is not among them, any position."""
    if len(labels) == 2:
        return np.asarray(y == labels[1], dtype=dtype)
    return np.minimum(np.searchsorted(labels, y), len(labels) - 1).astype(dtype)


def encode_labels(
    data: Data, estimator_name: str, n_jobs: int | None = None, *, at_least: int = 2
) -> tuple[np.ndarray, np.ndarray, Data]:
    """(classes, their weights, the data with codes for targets: float64 0/1 for two classes, integers otherwise)."""
    found = labels_of(data, n_jobs)
    present = found.weights > 0  # a class without weight is as good as not there: nothing would hold its intercept
    classes, weights = found.labels[present], found.weights[present]
    if len(classes) < at_least:
        raise _single_class(classes, estimator_name, trimmed=len(found.labels) > len(classes))
    encode = partial(codes, labels=classes, dtype=np.float64 if len(classes) == 2 else np.intp)
    return classes, weights, data.encode_target(encode)


def encode_array(y: np.ndarray, weight: np.ndarray, estimator_name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(classes, their weights, codes of the labels) for labels in memory that all have a positive weight."""
    classes = distinct(y)
    if len(classes) < 2:
        raise _single_class(classes, estimator_name)
    coded = codes(y, labels=classes)
    return classes, np.bincount(coded, weights=weight), coded


def _single_class(classes: np.ndarray, estimator_name: str, *, trimmed: bool = False) -> DataError:
    text = (
        f"y: {estimator_name} has nothing to tell apart. This solver needs samples of at least 2 classes in the data, "
        f"but the data contains only one class of positive weight: {classes.tolist()[0]!r}"
    )
    if trimmed:
        text += (
            ". y contains 1 class after sample_weight trimmed classes with zero weights, while a minimum of 2 classes "
            "are required."
        )
    return DataError(text)


def class_weights(
    spec: Mapping[Any, float] | str | None, classes: np.ndarray, totals: np.ndarray, *, zero: bool = False
) -> np.ndarray | None:
    """One factor for each class: from a mapping (1 for classes it leaves out), "balanced" (n / (K n_k)), or None.

    `zero` says whether a factor may be 0.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        with np.errstate(over="ignore"):  # a class of next to no weight: its factor stays finite
            return np.asarray(np.minimum(totals.sum() / (len(totals) * totals), 1e300))
    weights = np.ones(len(classes))
    known = {label: i for i, label in enumerate(classes.tolist())}
    for label, weight in spec.items():
        if label not in known:
            raise ParameterError(f"class_weight names the class {label!r}, which y does not have; it has {list(known)}")
        if not (isinstance(weight, numbers.Real) and np.isfinite(weight) and (weight > 0 or (zero and weight == 0))):
            raise ParameterError(
                f"class_weight[{label!r}]={weight!r}; expected a finite number {'>= 0' if zero else '> 0'}"
            )
        weights[known[label]] = weight
    return weights


def label_table(y: Any) -> np.ndarray | None:
    """A table of labels as zeros and ones (minus one is zero), one column for each; None where y is one label a row."""
    if sp.issparse(y):
        y = y.toarray()
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y) and isinstance(y[0], list | tuple | np.ndarray):
        y = np.asarray(y)
        shape = y.shape
    if shape is None or len(shape) != 2 or shape[1] < 2:
        return None
    table = np.asarray(y)
    if table.dtype.kind not in "biuf":
        raise DataTypeError("y: a table of labels has zeros and ones; expected numbers or booleans")
    if not (np.isin(table, (0, 1)).all() or np.isin(table, (-1, 1)).all()):
        raise DataError(
            "y should be a 1d array, or a table of zeros and ones with one column for each label; got other numbers"
        )
    return np.asarray(table > 0, dtype=np.int64)
