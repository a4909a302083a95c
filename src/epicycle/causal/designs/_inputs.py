"""Columns that a design is given, checked; scores of rows and their sums in groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._matrix import as_matrix
from epicycle.data._numbers import require_finite
from epicycle.data._target import as_numbers

Array = np.ndarray
_MOST_ROWS = 10_000_000
LARGEST = 1e152  # sums of squares of numbers beyond it leave the range of floating point


def column(name: str, values: Any, n: int | None = None) -> Array:
    """A column of finite numbers, of n rows where n is known."""
    array = as_numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise DataError(f"{name}: expected one number for each row, got shape {array.shape}")
    if n is not None and len(array) != n:
        raise DataError(f"{name}: has {len(array)} rows; expected {n}, as y has")
    require_finite(array, name)
    if not np.abs(array).max() <= LARGEST:
        raise DataError(f"{name}: holds {np.abs(array).max():.1e}, whose square is no number; divide it by a constant")
    return array


def columns(name: str, values: Any, n: int, owner: str) -> tuple[Array, list[str]]:
    """A table of finite numbers with n rows, and the names of its columns; one column may come as a vector."""
    if values is None:
        return np.zeros((n, 0)), []
    if np.ndim(values) == 1:
        return column(name, values, n)[:, None], [name]
    try:
        X, names = as_matrix(values, estimator_name=owner)
    except DataError as error:
        if name == "X":
            raise
        raise type(error)(f"{name}: {str(error).removeprefix('X: ').replace('Input X ', 'it ')}") from None
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if len(dense) != n:
        raise DataError(f"{name}: has {len(dense)} rows; expected {n}, as y has")
    if not np.abs(dense).max(initial=0.0) <= LARGEST:
        raise DataError(f"{name}: holds {np.abs(dense).max():.1e}, whose square is no number; divide by a constant")
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
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise DataError(f"{name}: row {int((~np.isfinite(labels)).argmax())} is not finite; expected a label")
    return code.astype(np.int64), distinct


def taken(name: str, values: Any, rows: Array) -> Array:
    """The rows (a mask) of a column that is checked later."""
    array = np.asarray(values)
    if array.shape[:1] != rows.shape:
        raise DataError(f"{name}: has shape {array.shape}; expected ({len(rows)},), as y has")
    return np.asarray(array[rows])


def solved(covariance: Array, vector: Array, name: str, what: str) -> Array:
    """covariance^{-1} vector; an error that says of `name` that `what` does not determine the covariance."""
    size = np.sqrt(np.diag(covariance))
    if not (size > 0).all():
        raise DataError(f"{name}: {what}")
    scaled = covariance / np.outer(size, size)
    if not np.linalg.cond(scaled) < 1e14:
        raise DataError(f"{name}: {what}")
    return np.asarray(np.linalg.solve(scaled, vector / size) / size)


def residuals_after(W: Array, *targets: Array) -> list[Array]:
    """Residuals of each target after least squares on W."""
    if len(W) < W.shape[1]:
        raise DataError(
            f"X: {W.shape[1] - 1} columns and a constant in n_samples={len(W)} rows; expected fewer than rows"
        )
    Q, R = np.linalg.qr(W)
    weak = np.abs(np.diag(R)) <= 1e-10 * np.linalg.norm(W, axis=0)
    if weak.any():
        raise DataError(f"X: column {int(weak.argmax()) - 1} is a combination of the others or constant; leave it out")
    return [t - Q @ (Q.T @ t) for t in targets]


def row_weights(sample_weight: Any, n: int) -> Array | None:
    """Weights of rows, none negative; None where none are given."""
    if sample_weight is None:
        return None
    w = column("sample_weight", sample_weight, n)
    if (w < 0).any():
        raise DataError(f"sample_weight: row {int((w < 0).argmax())} has {w.min():g}; expected no negative ones")
    with np.errstate(over="ignore"):
        total = float(w.sum())
    if not 1e-100 < total < 1e100:
        raise DataError(f"sample_weight: adds up to {total:.1e}; expected between 1e-100 and 1e100")
    return w


def repetitions(sample_weight: Any, n: int) -> Array:
    """The number of each row as often as its weight says, for what counts rows."""
    w = row_weights(sample_weight, n)
    assert w is not None
    counts = np.rint(w)
    if np.abs(w - counts).max() > 1e-9 or counts.sum() > _MOST_ROWS:
        raise DataError(f"sample_weight: rows are counted; expected whole numbers with a sum of at most {_MOST_ROWS:,}")
    return np.repeat(np.arange(n), counts.astype(np.int64))


def weights_of_units(sample_weight: Any, unit: Array, n_units: int) -> Array | None:
    """The weight of each unit of a panel, whose rows all have it."""
    w = row_weights(sample_weight, len(unit))
    if w is None:
        return None
    out = np.zeros(n_units)
    out[unit] = w
    if (out[unit] != w).any():
        raise DataError("sample_weight: differs between the times of a unit; expected one weight for each unit")
    return out


def unit_of(values: Array) -> float:
    """A power of two to divide by, so that squares stay in the range of floating point; 1 for usual numbers."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return 1.0 if largest == 0.0 or 1e-50 < largest < 1e50 else float(2.0 ** np.frexp(largest)[1])


def grouped(scores: Array, groups: Array | None, root: Array | None = None) -> Array:
    """Scores of rows, summed within groups where there are any.

    `root` are square roots of weights, by which both factors of a score were multiplied: a row of weight w stands for w
    rows, whose squares add up where they are groups of their own, and whose scores do inside a group.
    """
    if groups is None:
        return scores if root is None else scores / root[:, None]
    sums = np.zeros((int(groups.max()) + 1, scores.shape[1]))
    np.add.at(sums, groups, scores)
    return sums


def correction(n: float, parameters: int, groups: Array | None, count: float | None = None) -> tuple[float, float]:
    """Factor of a robust covariance in small samples, and degrees of freedom of the tests that follow.

    `count` is the number of groups where it is not that of their labels.
    """
    if groups is None:
        return n / max(n - parameters, 1), max(n - parameters, 1)
    count = int(groups.max()) + 1 if count is None else count
    if count < 2:
        raise DataError("groups: every row is in the same group; expected at least two")
    return count / (count - 1) * (n - 1) / max(n - parameters, 1), count - 1
