"""Columns that a design is given, checked; scores of rows and their sums in groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._matrix import as_matrix
from epicycle.data._numbers import require_finite

Array = np.ndarray


def column(name: str, values: Any, n: int | None = None) -> Array:
    """A column of finite numbers, of n rows where n is known."""
    try:
        array = np.asarray(values)
        array = array.astype(np.float64) if array.dtype != np.float64 else array
    except (TypeError, ValueError):
        raise DataTypeError(f"{name}: expected a column of numbers, got {type(values).__name__}") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise DataError(f"{name}: expected one number for each row, got shape {array.shape}")
    if n is not None and len(array) != n:
        raise DataError(f"{name}: has {len(array)} rows; expected {n}, as y has")
    require_finite(array, name)
    return array


def columns(name: str, values: Any, n: int, owner: str) -> tuple[Array, list[str]]:
    """A table of finite numbers with n rows, and the names of its columns; one column may come as a vector."""
    if values is None:
        return np.zeros((n, 0)), []
    if np.ndim(values) == 1:
        return column(name, values, n)[:, None], [name]
    X, names = as_matrix(values, estimator_name=owner)
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if len(dense) != n:
        raise DataError(f"{name}: has {len(dense)} rows; expected {n}, as y has")
    return dense, [f"{name}{j}" for j in range(dense.shape[1])] if names is None else [str(x) for x in names]


def binary(name: str, values: Any, n: int) -> Array:
    """A column of zeros and ones, both of which occur."""
    d = column(name, values, n)
    found = np.unique(d)
    if not np.array_equal(found, [0.0, 1.0]):
        raise DataError(f"{name}: holds the values {found[:5].tolist()}; expected 0 and 1, both of them")
    return d


def codes(name: str, values: Any, n: int) -> tuple[Array, Array]:
    """Labels of rows as codes 0, 1, ... and the distinct labels in order."""
    try:
        labels = np.asarray(values)
        distinct, code = np.unique(labels, return_inverse=True)
    except TypeError:
        raise DataTypeError(f"{name}: expected labels of one kind, numbers or strings") from None
    if labels.shape != (n,):
        raise DataError(f"{name}: has shape {labels.shape}; expected ({n},), as y has")
    return code.astype(np.int64), distinct


def residuals_after(W: Array, *targets: Array) -> list[Array]:
    """What least squares on W leaves of each target."""
    Q, R = np.linalg.qr(W)
    weak = np.abs(np.diag(R)) <= 1e-10 * np.linalg.norm(W, axis=0)
    if weak.any():
        raise DataError(f"X: column {int(weak.argmax()) - 1} is a combination of the others or constant; leave it out")
    return [t - Q @ (Q.T @ t) for t in targets]


def grouped(scores: Array, groups: Array | None) -> Array:
    """Scores of rows, summed within groups where there are any."""
    if groups is None:
        return scores
    sums = np.zeros((int(groups.max()) + 1, scores.shape[1]))
    np.add.at(sums, groups, scores)
    return sums


def correction(n: int, parameters: int, groups: Array | None) -> tuple[float, int]:
    """Factor of a robust covariance in small samples, and degrees of freedom of the tests that follow."""
    if groups is None:
        return n / max(n - parameters, 1), max(n - parameters, 1)
    count = int(groups.max()) + 1
    if count < 2:
        raise DataError("groups: every row is in the same group; expected at least two")
    return count / (count - 1) * (n - 1) / max(n - parameters, 1), count - 1
