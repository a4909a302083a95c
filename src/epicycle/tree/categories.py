"""Columns of categories: their levels are learnt by value, kept with the model, and found by value again.

A level becomes a code 0, 1, ... in the order of the sorted values; missing values, levels beyond the 255 most
frequent, and levels that the fit did not see become NaN. What a column's own codes or its declared levels are plays no
part.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.data import Scan
from epicycle.data.frames import frame_columns, is_frame
from epicycle.data.partitions import is_dask
from epicycle.exceptions import DataError, DataTypeError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.tree.dask_levels import encode_on_dask, is_table, level_counts_on_dask

__all__ = ["MAX_LEVELS", "Categories", "encode", "learn"]

MAX_LEVELS = 255

#: Sorted levels of each column of categories, by the column's number.
Categories = dict[int, np.ndarray]


def learn(X: Any, asked: Any, estimator_name: str) -> Categories:
    """The levels of the columns of categories of X.

    `asked` is "from_dtype" (columns of a frame whose type is categorical or an enumeration), None (no column), or a
    list of names, numbers or truth values.
    """
    columns = _columns(X, asked)
    if not columns:
        return {}
    if not is_table(X) and not isinstance(X, np.ndarray) and not is_dask(X):
        raise DataTypeError(
            f"categorical_features: X is {type(X).__name__}; {estimator_name} takes categories of frames and arrays"
        )
    categories = {}
    found = level_counts_on_dask(X, columns, level_counts) if is_dask(X) else level_counts(X, columns)
    for j, (values, counts) in found.items():
        present = [i for i in range(len(values)) if counts[i] > 0]
        if len(present) > MAX_LEVELS:
            present = sorted(present, key=lambda i: (-counts[i], str(values[i])))[:MAX_LEVELS]
            warnings.warn(
                f"{estimator_name}: column {_label(X, j)} has {np.count_nonzero(counts)} levels; the {MAX_LEVELS} most "
                "frequent are told apart, the others count as missing",
                EpicycleWarning,
                stacklevel=5,
            )
        levels = [values[i] for i in present]
        if len({_kind(level) for level in levels}) > 1:
            raise DataTypeError(
                f"X: column {_label(X, j)} mixes levels of different types; expected strings or numbers"
            )
        categories[j] = np.array(sorted(levels)) if levels else np.empty(0, dtype="U1")
    return categories


def encode(
    X: Any, categories: Categories, *, from_frame: bool, handle_unknown: str = "missing", estimator_name: str = ""
) -> Any:
    """X with levels replaced by their codes; X itself where there are none."""
    if not categories:
        return X
    if from_frame and not is_table(X):
        raise DataTypeError(
            f"X: {estimator_name} learnt categories from a frame ({_listed(categories)}); X is {type(X).__name__}, "
            "expected a data frame, whose levels are found by value"
        )
    if is_dask(X):
        of_part = partial(
            encode,
            categories=categories,
            from_frame=from_frame,
            handle_unknown=handle_unknown,
            estimator_name=estimator_name,
        )
        return encode_on_dask(X, of_part)
    if not isinstance(X, np.ndarray) and not is_frame(X):
        raise DataTypeError(f"X: {estimator_name} learnt categories from an array, and X is {type(X).__name__}")
    frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
    n_columns = len(frame.columns) if frame is not None else X.shape[-1]
    if n_columns <= max(categories):
        return X  # the number of features is wrong: said by the check that follows
    coded = {}
    for j, levels in categories.items():
        values, index = _dictionary(X, j)
        coded[j] = _codes(values, index, levels, _label(X, j), handle_unknown)
    if frame is None:
        out = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
        for j, codes in coded.items():
            out[:, j] = codes
        return out
    names = list(frame.columns)
    series = [nw.new_series(names[j], codes, nw.Float32, backend=frame.implementation) for j, codes in coded.items()]
    if frame.implementation.is_pandas_like():
        native = frame.to_native()
        return native.assign(**{names[j]: codes for j, codes in coded.items()})
    return frame.with_columns(*series).to_native()


def _codes(values: list[Any], index: np.ndarray, levels: np.ndarray, label: str, handle_unknown: str) -> np.ndarray:
    """The code of each row: NaN where the value is missing or, if that is allowed, unknown."""
    code_of = {level: float(code) for code, level in enumerate(levels.tolist())}
    present = np.unique(index[index >= 0])
    if len(present) and len(levels) and {_kind(values[i]) for i in present}.isdisjoint({_kind(v) for v in code_of}):
        raise DataTypeError(
            f"X: column {label} holds {type(values[present[0]]).__name__}s such as {values[present[0]]!r:.40}; its "
            f"levels at fit were {type(levels.tolist()[0]).__name__}s such as {levels.tolist()[0]!r:.40}"
        )
    unknown = [values[i] for i in present if values[i] not in code_of]
    if unknown and handle_unknown == "error":
        raise DataError(f"X: column {label} has levels that the fit did not see: {', '.join(map(repr, unknown[:5]))}")
    # The last is for -1. Codes are small: in half the bytes they leave a table of float32 what it is.
    table = np.array([*(code_of.get(value, np.nan) for value in values), np.nan], np.float32)
    return table[index]


def _columns(X: Any, asked: Any) -> list[int]:
    """Numbers of the columns of categories."""
    if asked is None or (isinstance(asked, str) and asked == "from_dtype" and not is_table(X)):
        return []
    if is_dask(X):  # types and names are known before any row is
        X = X._meta if is_table(X) else np.empty((0, X.shape[1]))
    if isinstance(X, Scan) or sp.issparse(X):
        raise DataTypeError(f"categorical_features: X is {type(X).__name__}; expected a data frame or an array")
    if isinstance(asked, str):
        frame = nw.from_native(X, eager_only=True)
        kinds = (nw.Categorical, nw.Enum)
        return [j for j, dtype in enumerate(frame.schema.values()) if isinstance(dtype, kinds) or dtype in kinds]
    chosen: Sequence[Any] = list(np.asarray(asked).tolist())
    names = frame_columns(X) if is_frame(X) else None
    p = len(nw.from_native(X, eager_only=True).columns) if is_frame(X) else np.asarray(X).shape[-1]
    if chosen and all(isinstance(c, bool) for c in chosen):
        if len(chosen) != p:
            raise ParameterError(f"categorical_features: a mask of {len(chosen)} values; X has {p} columns")
        return [j for j, c in enumerate(chosen) if c]
    found = []
    for c in chosen:
        if isinstance(c, str):
            if names is None or c not in names:
                raise ParameterError(f"categorical_features names {c!r}, which X does not have")
            found.append(names.index(c))
        elif isinstance(c, int) and not isinstance(c, bool):
            if not 0 <= c < p:
                raise ParameterError(f"categorical_features: column {c}; X has {p} columns")
            found.append(c)
        else:
            raise ParameterTypeError(f"categorical_features: {c!r}; expected names, numbers or truth values")
    return sorted(set(found))


def level_counts(X: Any, columns: Sequence[int]) -> dict[int, tuple[list[Any], np.ndarray]]:
    """Distinct values of some columns, and how often they occur."""
    found = {}
    for j in columns:
        values, index = _dictionary(X, j)
        found[j] = values, np.bincount(index[index >= 0], minlength=len(values))
    return found


def _dictionary(X: Any, j: int) -> tuple[list[Any], np.ndarray]:
    """Distinct values of column j and for every row its position among them, -1 where it is missing."""
    if not is_frame(X):
        column = np.asarray(X[:, j], dtype=np.float64)
        values, index = np.unique(column, return_inverse=True)
        index = np.where(np.isnan(column), -1, index)
        return values.tolist(), index
    import pyarrow as pa

    column = nw.from_native(X, eager_only=True).get_column(nw.from_native(X, eager_only=True).columns[j]).to_arrow()
    if isinstance(column, pa.ChunkedArray):
        column = (
            column.unify_dictionaries().combine_chunks()
            if pa.types.is_dictionary(column.type)
            else column.combine_chunks()
        )
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    index = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()
    missing = [i for i, value in enumerate(values) if value is None or value != value]
    if missing:
        index[np.isin(index, missing)] = -1
    return values, index


def _kind(level: Any) -> str:
    return "text" if isinstance(level, str) else "truth" if isinstance(level, bool) else "number"


def _label(X: Any, j: int) -> str:
    X = X._meta if is_dask(X) else X
    names = frame_columns(X) if is_frame(X) else None
    return str(j) if names is None else repr(names[j])


def _listed(categories: Categories) -> str:
    return "columns " + ", ".join(map(str, sorted(categories)))
