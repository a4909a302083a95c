"""Columns of categories: their levels are learnt by value, kept with the model, and found by value again.

A level becomes a code 0, 1, ... in the order of the sorted values. Codes take the place of the column; indicator
columns are never made.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data import Batch, Data
from epicycle.data._categories import column_label, dictionary, is_dask_frame, kind_of_level
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import is_frame

__all__ = ["Levels", "encode", "learn", "learn_in_passes", "unknown_level"]

#: Sorted levels of each column of categories, by the column's number.
Levels = dict[int, np.ndarray]
#: Beyond this many levels codes are no longer exact in float32.
SINGLE = 1 << 24


def learn(X: Any, columns: list[int]) -> Levels:
    """Levels of columns of a frame or an array."""
    levels = {}
    for j in columns:
        if is_dask_frame(X):
            levels[j] = _known_categories(X, j)
            continue
        values, index = dictionary(X, j)
        present = np.flatnonzero(np.bincount(index[index >= 0], minlength=len(values)))
        found = [values[i] for i in present]
        if (index < 0).any():
            raise DataError(
                f"Input X contains NaN: column {column_label(X, j)} has a missing level in row {_first(index < 0)}"
            )
        if len({kind_of_level(level) for level in found}) > 1:
            raise DataTypeError(f"X: column {column_label(X, j)} mixes levels of different types; expected one")
        levels[j] = np.array(sorted(found))
    return levels


def encode(X: Any, levels: Levels, *, ignore_unknown: bool, estimator_name: str) -> Any:
    """X with levels replaced by their codes, -1 for those that are not known; X itself where nothing has to change."""
    if not levels:
        return X
    if is_dask_frame(X):
        return X.map_partitions(_encode_partition, levels, ignore_unknown, estimator_name, meta=_coded_meta(X, levels))
    if is_frame(X):
        return _encode_frame(X, levels, ignore_unknown)
    if isinstance(X, np.ndarray):
        return _encode_array(X, levels, ignore_unknown)
    raise DataTypeError(
        f"X: {estimator_name} learnt categories from a frame or an array; X is {type(X).__name__}, whose values cannot "
        "be compared with them"
    )


def _encode_frame(X: Any, levels: Levels, ignore_unknown: bool) -> Any:
    frame = nw.from_native(X, eager_only=True)
    names = list(frame.columns)
    if len(names) <= max(levels):
        return X  # the number of features is wrong: said by the check that follows
    rest = [dtype for j, dtype in enumerate(frame.schema.values()) if j not in levels]
    single = rest and all(dtype == nw.Float32 for dtype in rest) and max(map(len, levels.values())) < SINGLE
    dtype = np.float32 if single else np.float64
    coded = {}
    for j, known in levels.items():
        values, index = dictionary(X, j)
        coded[names[j]] = _codes(values, index, known, column_label(X, j), ignore_unknown).astype(dtype)
    if frame.implementation.is_pandas_like():
        return frame.to_native().assign(**coded)
    kind = nw.Float32 if single else nw.Float64
    series = [nw.new_series(name, codes, kind, backend=frame.implementation) for name, codes in coded.items()]
    return frame.with_columns(*series).to_native()


def _encode_array(X: np.ndarray, levels: Levels, ignore_unknown: bool) -> np.ndarray:
    if X.ndim != 2 or X.shape[1] <= max(levels):
        return X
    coded = {}
    for j, known in levels.items():
        codes = array_codes(X[:, j], known)
        if not ignore_unknown and (codes < 0).any():
            raise unknown_level(str(j), X[_first(codes < 0), j])
        if not np.array_equal(codes, X[:, j]):
            coded[j] = codes
    if not coded:
        return X
    out = X.astype(X.dtype if X.dtype.kind == "f" else np.float64)
    for j, codes in coded.items():
        out[:, j] = codes
    return out


def array_codes(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Positions of numbers among sorted levels, -1 for others."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1)


def unknown_level(column: str, value: Any) -> DataError:
    """The error for a level that the fit did not see."""
    return DataError(
        f"X: column {column} has a level that the fit did not see: {value!r}; with handle_unknown='ignore' it has no "
        "effect"
    )


# ------------------------------------------------------------------------------------------------ files, collections


def learn_in_passes(data: Data, columns: list[int], n_jobs: int | None) -> Levels:
    """Levels of columns of numbers, wherever the rows are."""
    sets = engine.sum(_distinct_statistic, data, tuple(columns), n_jobs=n_jobs)
    return {j: found.values for j, found in zip(columns, sets, strict=True)}


class _Distinct:
    """Sorted distinct values; they add up by union."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __add__(self, other: _Distinct) -> _Distinct:
        return _Distinct(np.union1d(self.values, other.values))


def _distinct_statistic(batch: Batch, columns: tuple[int, ...]) -> tuple[_Distinct, ...]:
    return tuple(_Distinct(np.unique(batch.X[:, j])) for j in columns)


def _known_categories(X: Any, j: int) -> np.ndarray:
    series = X[X.columns[j]]
    if not hasattr(series, "cat"):
        raise DataTypeError(
            f"X: column {X.columns[j]!r} of the Dask frame is not categorical; astype('category').cat.as_known() makes "
            "it so"
        )
    if not series.cat.known:
        raise DataError(f"X: the levels of column {X.columns[j]!r} are not known; call .cat.as_known() on it")
    return np.array(sorted(series.cat.categories.tolist()))


def _encode_partition(part: Any, levels: Levels, ignore_unknown: bool, estimator_name: str) -> Any:
    return _encode_frame(part, levels, ignore_unknown) if len(part) else _coded_meta(part, levels)


def _coded_meta(X: Any, levels: Levels) -> Any:
    meta = X._meta if is_dask(X) else X.iloc[:0]
    rest = [str(dtype) for j, dtype in enumerate(meta.dtypes) if j not in levels]
    single = rest and all(name == "float32" for name in rest)
    return meta.assign(**{meta.columns[j]: np.zeros(0, np.float32 if single else np.float64) for j in levels})


# ------------------------------------------------------------------------------------------------ values


def _codes(values: list[Any], index: np.ndarray, known: np.ndarray, label: str, ignore_unknown: bool) -> np.ndarray:
    code_of = {level: code for code, level in enumerate(known.tolist())}
    table = np.array([*(code_of.get(value, -1) for value in values), -1])
    codes = table[index]
    if not ignore_unknown and (codes < 0).any():
        row = _first(codes < 0)
        if index[row] < 0:
            raise DataError(f"Input X contains NaN: column {label} has a missing level in row {row}")
        raise unknown_level(label, values[index[row]])
    return codes


def _first(mask: np.ndarray) -> int:
    return int(np.argmax(mask))
