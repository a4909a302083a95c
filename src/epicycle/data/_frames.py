"""Data frames, of whatever library narwhals knows, to one matrix: names kept, types checked, at most one copy."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._numbers import exact_in_float64, numbers_of_objects


def is_frame(X: Any) -> bool:
    """Whether X is an eager data frame."""
    return bool(nw.dependencies.is_into_dataframe(X)) or (type(X).__name__ == "RecordBatch" and _is_arrow(X))


def is_lazy_frame(X: Any) -> bool:
    """Whether X is a query that would have to be collected first."""
    if isinstance(X, np.ndarray):
        return False
    native = nw.from_native(X, pass_through=True)
    return isinstance(native, nw.LazyFrame)


def _is_arrow(X: Any) -> bool:
    return type(X).__module__.startswith("pyarrow")


def _eager(X: Any) -> Any:
    if type(X).__name__ == "RecordBatch" and _is_arrow(X):
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    return X


def frame_columns(X: Any) -> tuple[str, ...] | None:
    """Names of the columns where all are strings; None where none is; mixed names are an error."""
    X = _eager(X)
    native = X.to_native() if isinstance(X, nw.DataFrame) else X
    if hasattr(native, "iloc"):  # narwhals refuses what is refused below in our words
        columns = list(native.columns)
    elif _is_arrow(native):
        columns = list(native.column_names)
    else:
        columns = list(nw.from_native(X, eager_only=True).columns)
    if len(set(columns)) < len(columns):
        twice = sorted({str(name) for name in columns if columns.count(name) > 1})
        raise DataError(f"X: several columns are named {', '.join(map(repr, twice))}; expected unique names")
    strings = sum(isinstance(name, str) for name in columns)
    if strings == 0:
        return None
    if strings < len(columns):
        kinds = sorted({type(name).__name__ for name in columns})
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types: give X string names, or none"
        )
    return tuple(columns)


def frame_to_matrix(X: Any) -> np.ndarray | sp.coo_array:
    """X as one floating array.

    float32 where every column is float32 or float16, otherwise float64. A pandas frame of one floating type is a view;
    all else is copied once, column by column. Missing values become NaN.
    """
    frame = nw.from_native(_eager(X), eager_only=True)
    native = frame.to_native()
    if frame.implementation.is_pandas():
        return _pandas_to_matrix(native)
    schema = frame.schema
    for name, dtype in schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            _refuse(name, dtype)
    single = len(schema) > 0 and all(dtype in (nw.Float32,) or str(dtype) == "Float16" for dtype in schema.values())
    # Columns are written one by one: in this order each write is contiguous.
    out = np.empty(frame.shape, np.float32 if single else np.float64, order="F")
    for j, name in enumerate(frame.columns):
        column = frame.get_column(name)
        values = column.to_numpy()
        if values.dtype.kind == "O":  # decimals, or booleans with missing values
            values = np.array([np.nan if v is None else v for v in values.tolist()], dtype=np.float64)
        exact_in_float64(values, f"X, column {name!r}")  # identifiers of 64 bits would be rounded
        out[:, j] = values
    return out


def _pandas_to_matrix(df: Any) -> np.ndarray | sp.coo_array:
    import pandas as pd

    dtypes = list(df.dtypes)
    if dtypes and all(dtype == dtypes[0] and isinstance(dtype, np.dtype) and dtype in _FLOATS for dtype in dtypes):
        values: np.ndarray = df.to_numpy()
        return values
    for name, dtype in zip(df.columns, dtypes, strict=True):
        numeric = pd.api.types.is_numeric_dtype(dtype) or dtype == np.dtype(object)
        if not numeric or getattr(dtype, "kind", "") == "c":
            if getattr(dtype, "kind", "") == "c":
                raise DataTypeError(f"Complex data not supported: column {name!r} of X is {dtype}")
            _refuse(name, dtype)
    if dtypes and all(isinstance(dtype, pd.SparseDtype) for dtype in dtypes):
        return df.sparse.to_coo()
    single = bool(dtypes) and all(getattr(dtype, "numpy_dtype", dtype) in _SINGLE for dtype in dtypes)
    out = np.empty(df.shape, np.float32 if single else np.float64, order="F")
    for j, name in enumerate(df.columns):
        series = df.iloc[:, j]
        if series.dtype == object:
            out[:, j] = numbers_of_objects(series.to_numpy(), f"X, column {name!r}", _ADVICE)
            continue
        if series.dtype.kind in "iu":
            exact_in_float64(series.dropna().to_numpy(), f"X, column {name!r}")
        out[:, j] = series.to_numpy(dtype=out.dtype, na_value=np.nan)
    return out


_SINGLE = (np.dtype(np.float32), np.dtype(np.float16))
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


_ADVICE = (
    " (encode it first, for example with OneHotEncoder or OrdinalEncoder in a ColumnTransformer; models with "
    '`categorical_features`, such as trees and boosting, split levels as they are after .astype("category"))'
)


def _refuse(name: Any, dtype: Any) -> None:
    raise DataTypeError(f"X: column {name!r} is of type {dtype}; expected numbers{_ADVICE}")
