"""Targets and weights, checked against the rows of X."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Literal

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._numbers import exact_in_float64, numbers_of_objects, refuse_non_numbers, require_finite

TargetKind = Literal["none", "numeric", "labels"]


def as_numbers(values: Any, name: str) -> np.ndarray:
    """An array of real numbers as float64, of any shape; what is not finite stays."""
    return _as_float64(_plain(values, name), name)


def require_target(y: Any, estimator_name: str) -> None:
    """Raise if there is no y."""
    if y is None:
        raise DataError(f"{estimator_name} requires y to be passed, but the target y is None")


def as_numeric_target(y: Any, n_rows: int, *, multi_output: bool, estimator_name: str) -> np.ndarray:
    """y as float64 of shape (n,), or (n, k) where `multi_output` allows it."""
    values = _plain(y, "y")
    if not (multi_output and values.ndim == 2):
        values = _one_dimensional(values, "y", estimator_name)
    elif values.shape[1] == 0:
        raise DataError(f"y: has no columns (shape {values.shape})")
    _same_length(values, n_rows, "y")
    values = _as_float64(values, "y")
    require_finite(values, "y", estimator_name=estimator_name)
    return values


def as_labels(y: Any, n_rows: int, *, estimator_name: str) -> np.ndarray:
    """y as a vector of class labels, as they are: integers, strings, booleans, or floats that are whole numbers."""
    labels = _one_dimensional(_plain(y, "y"), "y", estimator_name)
    _same_length(labels, n_rows, "y")
    check_labels(labels, estimator_name)
    return labels


def check_labels(y: np.ndarray, estimator_name: str) -> None:
    """Raise unless the elements of y can be class labels."""
    if y.dtype.kind in "cMm":
        refuse_non_numbers(y, "y")
    if y.dtype.kind == "f":
        require_finite(y, "y", estimator_name=estimator_name)
        # 1.0 and 2.0 are labels that passed through a float column; 1.5 is a target of regression.
        fractional = y != np.floor(y)
        if fractional.any():
            raise DataError(
                f"y: Unknown label type: continuous ({y[int(fractional.argmax())]:g}, say); {estimator_name} is a "
                "classifier and expects labels: whole numbers, booleans or strings"
            )
    elif y.dtype == object:
        missing = [i for i, v in enumerate(y.tolist()) if v is None or type(v).__name__ == "NAType" or v != v]
        if missing:
            raise DataError(f"Input y contains NaN (first at row {missing[0]}): every row needs a label")
        if len({isinstance(v, str) for v in y.tolist()}) > 1:
            raise DataTypeError("y: Unknown label type: holds both strings and other objects; expected one kind")


def as_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """sample_weight as float64 of shape (n,): finite, not negative, not all zero; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real) and not isinstance(sample_weight, bool):
        sample_weight = np.full(n_rows, float(sample_weight))
    weight = as_partial_weight(sample_weight, n_rows)
    if not weight.any():
        raise DataError("sample_weight: every weight is zero; at least one must be positive")
    return weight


def as_partial_weight(sample_weight: Any, n_rows: int, *, signed: bool = False) -> np.ndarray:
    """The same for some of the rows, whose weights may all be zero, or with `signed` also negative."""
    weight = _plain(sample_weight, "sample_weight")
    if weight.ndim == 0:
        raise DataTypeError(
            "sample_weight: Input should have at least 1 dimension i.e. satisfy `len(x.shape) > 0`, got scalar "
            f"`{_as_float64(weight, 'sample_weight')!r}` instead."
        )
    if weight.ndim != 1:
        raise DataError(
            f"sample_weight: Sample weights must be 1D array or scalar, got shape {weight.shape}; expected ({n_rows},)"
        )
    _same_length(weight, n_rows, "sample_weight")
    weight = _as_float64(weight, "sample_weight")
    require_finite(weight, "sample_weight")
    if not signed and weight.min() < 0:
        row = int((weight < 0).argmax())
        raise DataError(f"sample_weight: Negative values in data: {weight[row]:g} at row {row}; expected none below 0")
    return weight


def _plain(values: Any, name: str) -> np.ndarray:
    if sp.issparse(values):
        raise DataTypeError(f"{name}: is sparse; Sparse data is only taken for X: expected a dense array")
    if isinstance(values, str | bytes | dict | set | numbers.Number):
        raise DataTypeError(f"{name} should be a 1d array, one value for each row; got {type(values).__name__}")
    if isinstance(values, nw.DataFrame | nw.Series):
        values = values.to_native()
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "iloc") and not isinstance(dtype, np.dtype) and hasattr(dtype, "na_value"):
        return _nullable(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None


def _nullable(series: Any) -> np.ndarray:
    """A pandas column of an extension type; numbers with missing values as float64 with NaN."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iufb" and series.isna().any():
        values: np.ndarray = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif kind in "iufb" and hasattr(series.dtype, "numpy_dtype"):
        values = series.to_numpy(dtype=series.dtype.numpy_dtype)
    else:
        values = np.asarray(series)
    return values


def _one_dimensional(y: np.ndarray, name: str, estimator_name: str) -> np.ndarray:
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=2,
        )
        return y.reshape(-1)
    if y.ndim != 1:
        raise DataError(f"{name} should be a 1d array, got an array of shape {y.shape} instead ({estimator_name})")
    return y


def _as_float64(values: np.ndarray, name: str) -> np.ndarray:
    refuse_non_numbers(values, name)
    if values.dtype == object:
        return numbers_of_objects(values, name)
    exact_in_float64(values, name)
    return np.require(values, np.float64, "A")


def _same_length(values: np.ndarray, n_rows: int, name: str) -> None:
    if len(values) != n_rows:
        shape = f"; {name}.shape == {values.shape}, expected ({n_rows},)" if name == "sample_weight" else ""
        raise DataError(
            f"{name}: Found input variables with inconsistent numbers of samples: [{n_rows}, {len(values)}], "
            f"that is, X has {n_rows} rows and {name} has {len(values)}{shape}"
        )
