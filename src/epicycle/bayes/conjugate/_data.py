"""Data and prior parameters as users bring them: numbers, counts, rows, weights; each error names the argument."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError
from epicycle.data._frames import frame_to_matrix, is_frame
from epicycle.data._numbers import exact_in_float64, numbers_of_objects, refuse_non_numbers, require_finite
from epicycle.data._target import as_partial_weight


def positive(name: str, value: Any) -> float:
    """A finite parameter above zero: with any other the prior would be improper."""
    x = finite(name, value)
    if x <= 0:
        raise ParameterError(f"{name}={value!r}; expected a number above 0: the prior would be improper")
    return x


def finite(name: str, value: Any) -> float:
    """A finite parameter."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool | np.bool_):
        raise ParameterTypeError(f"{name}={value!r}; expected a number")
    if not np.isfinite(float(value)):
        raise ParameterError(f"{name}={value!r}; expected a finite number: the prior would be improper")
    return float(value)


def as_table(data: Any) -> np.ndarray | sp.csr_array:
    """Data as float64 of shape (n, p), one column for a vector; sparse data as CSR."""
    if sp.issparse(data):
        refuse_non_numbers(data, "data")
        table: Any = sp.csr_array(data, dtype=np.float64)
        require_finite(table.data, "data")
        return table
    if data is None or isinstance(data, str | bytes | dict | set):
        raise DataTypeError(f"data: expected numbers, got {type(data).__name__}")
    try:
        values = frame_to_matrix(data) if is_frame(data) else np.asarray(data)
    except ValueError as error:
        raise DataError(f"data: {error} (rows differ in length?)") from None
    if sp.issparse(values):
        return as_table(values)
    refuse_non_numbers(values, "data")
    exact_in_float64(values, "data")
    values = numbers_of_objects(values, "data") if values.dtype == object else values.astype(np.float64)
    if values.ndim > 2:
        raise DataError(f"data: shape {values.shape}; expected rows, or one number for each row")
    values = values.reshape(-1, 1) if values.ndim < 2 else values
    require_finite(values, "data")
    return np.asarray(values)


def as_columns(data: Any, wanted: tuple[int, ...], what: str) -> np.ndarray:
    """Dense rows of one of the wanted numbers of columns."""
    table = as_table(data)
    dense = table if isinstance(table, np.ndarray) else np.asarray(table.toarray())
    if dense.shape[1] not in wanted:
        raise DataError(f"data: {dense.shape[1]} columns; expected {what}")
    return dense


def as_values(data: Any, what: str = "one number for each row") -> np.ndarray:
    """One number for each row."""
    return as_columns(data, (1,), what)[:, 0]


def require_counts(values: np.ndarray, what: str = "counts: whole numbers of at least 0") -> None:
    """Raise for anything but 0, 1, 2, ..."""
    wrong = (values < 0) | (values != np.floor(values))
    if wrong.any():
        raise DataError(f"data: holds {values[wrong][0]:g}; expected {what}")


def as_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of all rows: 1 where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    if n_rows == 0 and np.size(sample_weight) == 0:
        return np.empty(0)
    return as_partial_weight(sample_weight, n_rows)


def require_rows(total: float, model: str) -> None:
    """Raise where there is nothing whose likelihood could have a maximum."""
    if not total > 0:
        raise DataError(f"data: no rows of positive weight; the likelihood of {model} has no maximum")
