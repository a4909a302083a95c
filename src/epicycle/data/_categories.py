"""Columns of categories, in whatever container: which they are, their distinct values, and which value a row has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataTypeError, ParameterError, ParameterTypeError
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import frame_columns, is_frame
from epicycle.data._scan import Scan
from epicycle.data._scan_data import read_columns

__all__ = [
    "category_columns",
    "column_label",
    "dictionary",
    "dictionary_of",
    "is_dask_frame",
    "is_table",
    "kind_of_level",
    "level_counts",
    "level_counts_in_files",
]

_CHUNK_ROWS = 1 << 16

#: Distinct values, and how often each occurs.
LevelCounts = tuple[list[Any], np.ndarray]


def is_dask_frame(X: Any) -> bool:
    """Whether X is a data frame of Dask."""
    return is_dask(X) and hasattr(X, "map_partitions")


def is_table(X: Any) -> bool:
    """Whether X has columns of several types: a data frame, in memory or of Dask, or files that name their columns."""
    return is_frame(X) or is_dask_frame(X) or (isinstance(X, Scan) and X.feature_names is not None)


def category_columns(X: Any, asked: Any) -> list[int]:
    """Numbers of the columns of categories.

    `asked` is "from_dtype" (columns of a frame whose type is categorical or an enumeration, and columns of text in
    files), None (no column), or a list of names, numbers or truth values.
    """
    if asked is None or (isinstance(asked, str) and not is_table(X)):
        return []
    if sp.issparse(X):
        raise DataTypeError(
            "categorical_features: X is sparse; expected a data frame, an array, a scan or a collection"
        )
    if is_frame(X):
        frame_columns(X)  # says what is wrong with names
    if isinstance(asked, str):
        if isinstance(X, Scan):
            return [j for j, name in enumerate(X.columns) if name in X.text_columns]
        schema = nw.from_native(X._meta if is_dask(X) else X, eager_only=True).schema
        kinds = (nw.Categorical, nw.Enum)
        return [j for j, dtype in enumerate(schema.values()) if isinstance(dtype, kinds) or dtype in kinds]
    names = _names(X)
    p = len(names) if names is not None else int(np.shape(X)[-1])
    chosen = list(np.asarray(asked).tolist())
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


def _names(X: Any) -> list[str] | None:
    if isinstance(X, Scan):
        return list(X.columns)
    if is_dask_frame(X):
        return [str(c) for c in X.columns]
    if is_frame(X):
        names = frame_columns(X)
        return list(names) if names is not None else [str(c) for c in nw.from_native(X, eager_only=True).columns]
    return None


def column_label(X: Any, j: int) -> str:
    """A column for messages: its name where it has one, else its number."""
    if isinstance(X, Scan):
        return repr(X.columns[j])
    X = X._meta if is_dask(X) and hasattr(X, "_meta") else X
    names = frame_columns(X) if is_frame(X) else None
    return str(j) if names is None else repr(names[j])


def kind_of_level(level: Any) -> str:
    """What may be compared with what."""
    return "text" if isinstance(level, str) else "truth" if isinstance(level, bool) else "number"


# ------------------------------------------------------------------------------------------------ values


def dictionary(X: Any, j: int) -> tuple[list[Any], np.ndarray]:
    """Distinct values of column j of a frame or array and for every row its place among them, -1 where missing."""
    if not is_frame(X):
        return dictionary_of(np.asarray(X[:, j]))
    frame = nw.from_native(X, eager_only=True)
    return dictionary_of(frame.get_column(frame.columns[j]).to_arrow())


def dictionary_of(column: Any, empty: frozenset[str] = frozenset()) -> tuple[list[Any], np.ndarray]:
    """The same for an Arrow column, whose texts in `empty` count as missing, or for an array."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OUS":
        found, index = np.unique(column, return_inverse=True)
        missing = column != column
        return found.tolist(), np.where(missing, -1, index) if missing.any() else index
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        try:
            column = pa.array(column.tolist(), from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise DataTypeError(
                "X: a column of categories mixes levels of different types; expected strings or numbers"
            ) from None
    if isinstance(column, pa.ChunkedArray):
        is_dictionary = pa.types.is_dictionary(column.type)
        column = (column.unify_dictionaries() if is_dictionary else column).combine_chunks()
    if pa.types.is_null(column.type):
        return [], np.full(len(column), -1)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.to_pylist()
    index = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False).copy()
    nothing = [i for i, value in enumerate(values) if value is None or value != value or value in empty]
    if nothing:
        index[np.isin(index, nothing)] = -1
    return values, index


def level_counts(X: Any, columns: Sequence[int]) -> dict[int, LevelCounts]:
    """Distinct values of some columns of a frame or an array, and how often they occur."""
    found = {}
    for j in columns:
        values, index = dictionary(X, j)
        found[j] = values, np.bincount(index[index >= 0], minlength=len(values))
    return found


def level_counts_in_files(scan: Scan, columns: Sequence[int]) -> dict[int, LevelCounts]:
    """The same for files, of which only these columns are read."""
    totals: dict[int, Counter[Any]] = {j: Counter() for j in columns}
    empty = scan.empty_words
    names = [scan.columns[j] for j in columns]
    text = scan.text_columns & set(names)
    for chunk in read_columns(scan, names, _CHUNK_ROWS, frozenset(names) - text, text):
        for k, j in enumerate(columns):
            values, index = dictionary_of(chunk[:, k] if isinstance(chunk, np.ndarray) else chunk.column(k), empty)
            counts = np.bincount(index[index >= 0], minlength=len(values)).tolist()
            totals[j].update({value: n for value, n in zip(values, counts, strict=True) if n})
    return {j: (list(total), np.array(list(total.values()), np.int64)) for j, total in totals.items()}
