"""Columns of categories: which they are, their levels, and codes in the place of levels.

Levels are learnt by value and found by value again: a level becomes a code 0, 1, ... in the order of the sorted values,
whatever codes or declared levels the column itself has. The same functions serve arrays, frames, files and Dask
collections. Indicator columns are never made.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError, EpicycleWarning, ParameterError, ParameterTypeError
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import frame_columns, is_frame
from epicycle.data._scan import Scan
from epicycle.data._scan_data import read_columns

#: Sorted levels of each column of categories, by the column's number.
Levels = dict[int, np.ndarray]

#: Rows of files that are counted at a time; a column of them is half a megabyte.
_CHUNK_ROWS = 1 << 16
#: From this many levels on, codes are no longer exact in float32 (24 bits of mantissa).
_FLOAT32_CODES = 1 << 24


# ------------------------------------------------------------------------------------------------ columns


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
        frame_columns(X)  # refuses names that are not unique
    if isinstance(asked, str):
        return _columns_by_type(X)
    names = _names(X)
    p = len(names) if names is not None else int(np.shape(X)[-1])
    given = np.asarray(asked)
    chosen = list(given.tolist())
    if any(not isinstance(c, bool | int | str) for c in chosen):
        kinds = given.dtype.name if given.dtype != object else ", ".join(sorted({type(c).__name__ for c in chosen}))
        raise ParameterTypeError(
            f"categorical_features must be an array-like of bool, int or str, got: {kinds}. Expected names, numbers or "
            f"truth values in {chosen!r:.60}"
        )
    if chosen and all(isinstance(c, bool) for c in chosen):
        if len(chosen) != p:
            raise ParameterError(
                "categorical_features set as a boolean mask must have shape (n_features,): a mask of "
                f"{len(chosen)} values; X has {p} columns"
            )
        return [j for j, c in enumerate(chosen) if c]
    return sorted({_column_number(c, names, p) for c in chosen})


def _columns_by_type(X: Any) -> list[int]:
    if isinstance(X, Scan):
        return [j for j, name in enumerate(X.columns) if name in X.text_columns]
    schema = nw.from_native(X._meta if is_dask(X) else X, eager_only=True).schema
    kinds = (nw.Categorical, nw.Enum)
    return [j for j, dtype in enumerate(schema.values()) if isinstance(dtype, kinds) or dtype in kinds]


def _column_number(column: Any, names: list[str] | None, p: int) -> int:
    if isinstance(column, str):
        if names is None:
            raise ParameterError(
                "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
                f"fitted on data without feature names. It names {column!r}, which X does not have"
            )
        if column not in names:
            raise ParameterError(
                f"categorical_features has an item value {column!r} which is not a valid feature name of the training "
                f"data. It names {column!r}, which X does not have"
            )
        return names.index(column)
    if isinstance(column, bool):
        raise ParameterTypeError(
            f"categorical_features: {column!r}; expected names, numbers or truth values, of one kind"
        )
    if not 0 <= column < p:
        raise ParameterError(
            f"categorical_features set as integer indices must be in [0, n_features - 1]: column {column}; X has {p} "
            "columns"
        )
    return int(column)


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


def _kind_of_level(level: Any) -> str:
    """Values of different kinds are never compared: text, truth values, numbers."""
    return "text" if isinstance(level, str) else "truth" if isinstance(level, bool) else "number"


# ------------------------------------------------------------------------------------------------ levels


@dataclass
class LevelCounts:
    """Number of occurrences of each level of a column; counts of consecutive rows add up."""

    counts: dict[Any, float] = field(default_factory=dict)
    n_rows: int = 0
    first_missing: int | None = None

    def __add__(self, other: LevelCounts) -> LevelCounts:
        counts = dict(self.counts)
        for level, n in other.counts.items():
            counts[level] = counts.get(level, 0) + n
        missing = self.first_missing
        if missing is None and other.first_missing is not None:
            missing = self.n_rows + other.first_missing
        return LevelCounts(counts, self.n_rows + other.n_rows, missing)

    def most_frequent(self, n: int) -> list[Any]:
        """At most n levels, the most frequent first; equally frequent ones in the order of their texts."""
        return sorted(self.counts, key=lambda level: (-self.counts[level], str(level)))[:n]


def learn_levels(
    X: Any,
    columns: Sequence[int],
    estimator_name: str,
    *,
    max_levels: int | None = None,
    allow_missing: bool = True,
) -> Levels:
    """Sorted levels of columns of an array, a frame, files or a Dask collection.

    Beyond `max_levels` only the most frequent levels are kept, with a warning.
    """
    if not columns:
        return {}
    levels = {}
    for j, found in _level_counts(X, columns, estimator_name).items():
        if found.first_missing is not None and not allow_missing:
            raise _missing_level(column_label(X, j), found.first_missing)
        kept = list(found.counts)
        if max_levels is not None and len(kept) > max_levels:
            warnings.warn(
                f"{estimator_name}: column {column_label(X, j)} has {len(kept)} levels; the {max_levels} most frequent "
                "are kept, the others count as missing",
                EpicycleWarning,
                stacklevel=5,
            )
            kept = found.most_frequent(max_levels)
        if len({_kind_of_level(level) for level in kept}) > 1:
            raise DataTypeError(
                f"X: column {column_label(X, j)} mixes levels of different types; expected strings or numbers"
            )
        levels[j] = np.array(sorted(kept)) if kept else np.empty(0, dtype="U1")
    return levels


def declared_levels(X: Any, j: int) -> np.ndarray:
    """The levels that a categorical column of a Dask frame declares: known without a pass over the rows."""
    series = X[X.columns[j]]
    if not hasattr(series, "cat"):
        raise DataTypeError(
            f"X: column {X.columns[j]!r} of the Dask frame is not categorical; astype('category').cat.as_known() makes "
            "it so"
        )
    if not series.cat.known:
        raise DataError(f"X: the levels of column {X.columns[j]!r} are not known; call .cat.as_known() on it")
    return np.array(sorted(series.cat.categories.tolist()))


def _level_counts(X: Any, columns: Sequence[int], estimator_name: str) -> dict[int, LevelCounts]:
    if isinstance(X, Scan):
        return _total(_file_counts(X, columns), columns)
    if is_dask(X):
        return _total(_dask_counts(X, columns), columns)
    if is_frame(X) or isinstance(X, np.ndarray):
        return {j: count_levels(_column(X, j)) for j in columns}
    raise DataTypeError(
        f"categorical_features: X is {type(X).__name__}; {estimator_name} takes categories of frames, arrays and files"
    )


def _total(parts: Iterable[Sequence[LevelCounts]], columns: Sequence[int]) -> dict[int, LevelCounts]:
    total = {j: LevelCounts() for j in columns}
    for part in parts:
        for j, counts in zip(columns, part, strict=True):
            total[j] = total[j] + counts
    return total


def _file_counts(scan: Scan, columns: Sequence[int]) -> Iterable[list[LevelCounts]]:
    """Counts of pieces of files, of which only these columns are read."""
    names = [scan.columns[j] for j in columns]
    text = scan.text_columns & set(names)
    for chunk in read_columns(scan, names, _CHUNK_ROWS, frozenset(names) - text, text):
        of_array = isinstance(chunk, np.ndarray)
        pieces = [chunk[:, k] if of_array else chunk.column(k) for k in range(len(names))]
        yield [count_levels(piece, empty=scan.empty_words) for piece in pieces]


def _dask_counts(X: Any, columns: Sequence[int]) -> Iterable[list[LevelCounts]]:
    """Counts of all partitions, in one pass where they are."""
    from dask import compute, delayed

    parts = X.to_delayed(optimize_graph=False) if is_dask_frame(X) else list(X.rechunk({1: -1}).to_delayed().ravel())
    counted = delayed(_partition_counts, pure=False)
    found: Iterable[list[LevelCounts]] = compute(*[counted(part, list(columns)) for part in parts])
    return found


def _partition_counts(part: Any, columns: Sequence[int]) -> list[LevelCounts]:
    return [count_levels(_column(part, j)) for j in columns]


def count_levels(column: Any, weight: np.ndarray | None = None, *, empty: frozenset[str] = frozenset()) -> LevelCounts:
    """Levels of an array or Arrow column and their counts, or sums of weights; texts in `empty` count as missing."""
    values, index = distinct_values(column, empty)
    known = index >= 0
    counts = np.bincount(index[known], None if weight is None else weight[known], len(values)).tolist()
    found = {value: n for value, n in zip(values, counts, strict=True) if n > 0}
    return LevelCounts(found, len(index), None if known.all() else int(np.argmin(known)))


def distinct_values(column: Any, empty: frozenset[str] = frozenset()) -> tuple[list[Any], np.ndarray]:
    """Distinct values of an array or Arrow column, and for every row its place among them, -1 where missing.

    Texts in `empty` count as missing.
    """
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


def _column(X: Any, j: int) -> Any:
    """Column j of a frame, as Arrow has it, or of an array."""
    if not is_frame(X):
        return np.asarray(X[:, j])
    frame = nw.from_native(X, eager_only=True)
    return frame.get_column(frame.columns[j]).to_arrow()


# ------------------------------------------------------------------------------------------------ codes


def codes_among(column: Any, levels: np.ndarray) -> np.ndarray:
    """For every value of an array or Arrow column its place among sorted levels, -1 where it is none of them."""
    if isinstance(column, np.ndarray):
        # A sorted search beats np.unique, which sorts the rows. No level is equal to NaN.
        if column.dtype.kind in "iuf" and levels.dtype.kind in "iuf" and len(levels):
            at = np.minimum(np.searchsorted(levels, column), len(levels) - 1)
            return np.where(levels[at] == column, at, -1)
    elif levels.dtype.kind == "U" and _is_text(column.type):
        import pyarrow as pa
        import pyarrow.compute as pc

        # One hash per row; the list of all distinct values of the column is not made.
        found = pc.index_in(column, value_set=pa.array(levels.tolist(), column.type))
        codes: np.ndarray = pc.fill_null(found, -1).to_numpy().astype(np.int64)
        return codes
    # The last entry is for the index -1 of a missing value.
    values, index = distinct_values(column)
    code_of = {level: code for code, level in enumerate(levels.tolist())}
    code: np.ndarray = np.array([*(code_of.get(value, -1) for value in values), -1])[index]
    return code


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True)
class LevelEncoder:
    """Puts codes in the place of levels.

    levels : sorted levels of the columns of categories.
    unknown : whether a level that is none of them is an error or counts as missing.
    missing_code : code of missing values; None refuses them.
    dtype : of the codes in a frame; None is float32 where all other columns are, else float64.
    estimator_name : for messages.
    advice : what to do about unknown levels, for their message.
    """

    levels: Levels
    unknown: Literal["error", "missing"] = "missing"
    missing_code: float | None = np.nan
    dtype: type[np.floating[Any]] | None = None
    estimator_name: str = ""
    advice: str = ""

    def encode(self, X: Any) -> Any:
        """X with codes; X itself where nothing has to change. Collections and files stay lazy."""
        if not self.levels:
            return X
        if is_dask_frame(X):
            return X.map_partitions(self.encode, meta=self.encode(X._meta))
        if is_dask(X):
            return X.rechunk({1: -1}).map_blocks(self.encode, dtype=np.float64, meta=np.empty((0, 0)))
        if isinstance(X, Scan):
            return self._encode_files(X)
        if is_frame(X):
            return self._encode_frame(X)
        if isinstance(X, np.ndarray):
            return self._encode_array(X)
        raise DataTypeError(
            f"X: {self.estimator_name} learnt categories from a frame or an array; X is {type(X).__name__}, whose "
            "values cannot be compared with them"
        )

    # In each of these a wrong number of columns is left for the check of features that follows: it has the words.

    def _encode_files(self, scan: Scan) -> Scan:
        if len(scan.columns) <= max(self.levels):
            return scan
        return scan.coded(
            {
                scan.columns[j]: partial(self.codes, levels=levels, label=column_label(scan, j), empty=scan.empty_words)
                for j, levels in self.levels.items()
            }
        )

    def _encode_frame(self, X: Any) -> Any:
        frame_columns(X)  # refuses names that are not unique
        frame = nw.from_native(X, eager_only=True)
        names = list(frame.columns)
        if len(names) <= max(self.levels):
            return X
        dtype = self.dtype or self._dtype_beside(list(frame.schema.values()))
        coded = {
            names[j]: self.codes(_column(X, j), levels, column_label(X, j)).astype(dtype, copy=False)
            for j, levels in self.levels.items()
        }
        if frame.implementation.is_pandas_like():
            native = frame.to_native().copy(deep=False)  # names of columns need not be strings
            for name, codes in coded.items():
                native[name] = codes
            return native
        kind = nw.Float32 if dtype is np.float32 else nw.Float64
        series = [nw.new_series(name, codes, kind, backend=frame.implementation) for name, codes in coded.items()]
        return frame.with_columns(*series).to_native()

    def _encode_array(self, X: np.ndarray) -> np.ndarray:
        if X.ndim != 2 or X.shape[1] <= max(self.levels):
            return X
        coded = {}
        for j, levels in self.levels.items():
            codes = self.codes(X[:, j], levels, str(j))
            # Levels that are their own codes need no copy.
            if X.dtype.kind not in "iuf" or not np.array_equal(codes, X[:, j], equal_nan=True):
                coded[j] = codes
        if not coded:
            return X
        out = X.astype(object if X.dtype.kind in "OUS" else np.float32 if X.dtype == np.float32 else np.float64)
        for j, codes in coded.items():
            out[:, j] = codes
        return out

    def _dtype_beside(self, dtypes: list[Any]) -> type[np.floating[Any]]:
        others = [dtype for j, dtype in enumerate(dtypes) if j not in self.levels]
        exact = max(map(len, self.levels.values())) < _FLOAT32_CODES
        return np.float32 if exact and others and all(dtype == nw.Float32 for dtype in others) else np.float64

    def codes(self, column: Any, levels: np.ndarray, label: str, *, empty: frozenset[str] = frozenset()) -> np.ndarray:
        """Codes of a column as floating-point numbers."""
        codes = codes_among(column, levels)
        absent = np.flatnonzero(codes < 0)
        out = codes.astype(self.dtype or np.float64)
        if len(absent):
            self._check_absent(column, absent, levels, label, empty)
            out[absent] = self.missing_code
        return out

    def _check_absent(
        self, column: Any, absent: np.ndarray, levels: np.ndarray, label: str, empty: frozenset[str]
    ) -> None:
        """Refuse rows without a known level where they are not allowed."""
        values, index = distinct_values(
            column[absent] if isinstance(column, np.ndarray) else column.take(absent), empty
        )
        missing = index < 0
        unknown = [values[i] for i in np.unique(index[~missing])]
        kinds = {_kind_of_level(value) for value in unknown}
        if unknown and len(levels) and kinds.isdisjoint({_kind_of_level(level) for level in levels.tolist()}):
            raise DataTypeError(
                f"X: column {label} holds {type(unknown[0]).__name__}s such as {unknown[0]!r:.40}; its levels at fit "
                f"were {type(levels.tolist()[0]).__name__}s such as {levels.tolist()[0]!r:.40}"
            )
        if self.missing_code is None and missing.any():
            raise _missing_level(label, int(absent[np.argmax(missing)]))
        if unknown and self.unknown == "error":
            shown = ", ".join(map(repr, unknown[:5]))
            raise DataError(f"X: column {label} has levels that the fit did not see: {shown}{self.advice}")


def _missing_level(label: str, row: int) -> DataError:
    return DataError(f"Input X contains NaN: column {label} has a missing level in row {row}")
