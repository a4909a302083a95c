"""Columns of categories: their levels are learnt by value, kept with the model, and found by value again.

A level becomes a code 0, 1, ... in the order of the sorted values; missing values, levels beyond the 255 most
frequent, and levels that the fit did not see become NaN. What a column's own codes or its declared levels are plays no
part.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError, EpicycleWarning
from epicycle.data import Scan
from epicycle.data._categories import (
    category_columns,
    column_label,
    dictionary,
    dictionary_of,
    is_table,
    kind_of_level,
    level_counts,
    level_counts_in_files,
)
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import frame_columns, is_frame
from epicycle.tree._dask_categories import encode_on_dask, level_counts_on_dask

__all__ = ["MAX_LEVELS", "Categories", "encode", "learn"]

MAX_LEVELS = 255

#: Sorted levels of each column of categories, by the column's number.
Categories = dict[int, np.ndarray]


def learn(X: Any, asked: Any, estimator_name: str) -> Categories:
    """The levels of the columns of categories of X; `asked` is as for :func:`category_columns`."""
    columns = category_columns(X, asked)
    if not columns:
        return {}
    if isinstance(X, Scan):
        found = level_counts_in_files(X, columns)
    elif is_dask(X):
        found = level_counts_on_dask(X, columns, level_counts)
    elif is_table(X) or isinstance(X, np.ndarray):
        found = level_counts(X, columns)
    else:
        raise DataTypeError(
            f"categorical_features: X is {type(X).__name__}; {estimator_name} takes categories of frames, arrays and "
            "files"
        )
    categories = {}
    for j, (values, counts) in found.items():
        present = [i for i in range(len(values)) if counts[i] > 0]
        if len(present) > MAX_LEVELS:
            present = sorted(present, key=lambda i: (-counts[i], str(values[i])))[:MAX_LEVELS]
            warnings.warn(
                f"{estimator_name}: column {column_label(X, j)} has {np.count_nonzero(counts)} levels; the "
                f"{MAX_LEVELS} most frequent are told apart, the others count as missing",
                EpicycleWarning,
                stacklevel=5,
            )
        levels = [values[i] for i in present]
        if len({kind_of_level(level) for level in levels}) > 1:
            raise DataTypeError(
                f"X: column {column_label(X, j)} mixes levels of different types; expected strings or numbers"
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
    if isinstance(X, Scan):
        return _encode_files(X, categories, handle_unknown)
    if not isinstance(X, np.ndarray) and not is_frame(X):
        raise DataTypeError(f"X: {estimator_name} learnt categories from an array, and X is {type(X).__name__}")
    if is_frame(X):
        frame_columns(X)  # says what is wrong with names
    frame = nw.from_native(X, eager_only=True) if is_frame(X) else None
    n_columns = len(frame.columns) if frame is not None else X.shape[-1]
    if n_columns <= max(categories):
        return X  # the number of features is wrong: said by the check that follows
    coded = {}
    for j, levels in categories.items():
        values, index = dictionary(X, j)
        codes = _codes(values, index, levels, column_label(X, j), handle_unknown)
        if frame is not None or X.dtype.kind != "f" or not np.array_equal(codes, X[:, j], equal_nan=True):
            coded[j] = codes
    if not coded:
        return X  # levels that are their own codes: no copy for them
    if frame is None:
        kind = object if X.dtype.kind in "OUS" else np.float32 if X.dtype == np.float32 else np.float64
        out = X.astype(kind)
        for j, codes in coded.items():
            out[:, j] = codes
        return out
    names = list(frame.columns)
    series = [nw.new_series(names[j], codes, nw.Float32, backend=frame.implementation) for j, codes in coded.items()]
    if frame.implementation.is_pandas_like():
        native = frame.to_native()
        return native.assign(**{names[j]: codes for j, codes in coded.items()})
    return frame.with_columns(*series).to_native()


def _encode_files(scan: Scan, categories: Categories, handle_unknown: str) -> Scan:
    if len(scan.columns) <= max(categories):
        return scan
    coders = {
        scan.columns[j]: partial(
            _column_codes,
            empty=scan.empty_words,
            levels=levels,
            label=column_label(scan, j),
            handle_unknown=handle_unknown,
        )
        for j, levels in categories.items()
    }
    return scan.coded(coders)


def _column_codes(
    column: Any, *, empty: frozenset[str], levels: np.ndarray, label: str, handle_unknown: str
) -> np.ndarray:
    """Codes of a piece of a column of a file."""
    values, index = dictionary_of(column, empty)
    return _codes(values, index, levels, label, handle_unknown)


def _codes(values: list[Any], index: np.ndarray, levels: np.ndarray, label: str, handle_unknown: str) -> np.ndarray:
    """The code of each row: NaN where the value is missing or, if that is allowed, unknown."""
    code_of = {level: float(code) for code, level in enumerate(levels.tolist())}
    present = np.unique(index[index >= 0])
    kinds = {kind_of_level(values[i]) for i in present}
    if len(present) and len(levels) and kinds.isdisjoint({kind_of_level(v) for v in code_of}):
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


def _listed(categories: Categories) -> str:
    return "columns " + ", ".join(map(str, sorted(categories)))
