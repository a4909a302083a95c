"""Ratings as users have them: pairs with ratings beside them, tables with named columns, sparse matrices, files, Dask.

Whatever comes becomes a table of two columns, user and item, and ratings y; then ids become codes 0, 1, ... in the
order of the sorted ids.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data import Scan
from epicycle.data._categories import distinct_values, is_dask_frame
from epicycle.data._dask_data import is_dask
from epicycle.data._frames import frame_columns, is_frame
from epicycle.data._scan import require_numbers

Array = np.ndarray

#: Ids whose range is at most this many times their number are counted instead of sorted.
_DENSE_RANGE = 8


@dataclass(frozen=True)
class Columns:
    """Names of the columns of users, items and ratings; None is the first, the second and the third."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None

    def pair(self, names: list[str]) -> list[str]:
        """The names of the columns of users and items."""
        if len(names) < 2:
            raise DataError(f"X: Found array with {len(names)} feature(s); expected a column of users and one of items")
        return [_named("user", self.user, names, 0), _named("item", self.item, names, 1)]

    def ratings(self, names: list[str]) -> str | None:
        """The name of the column of ratings; None where no third column is."""
        if self.rating is not None:
            return _named("rating", self.rating, names, 2)
        rest = [name for name in names if name not in self.pair(names)]
        return rest[0] if rest else None


def _named(argument: str, name: str | None, names: list[str], place: int) -> str:
    if name is None:
        return names[place]
    if name not in names:
        shown = ", ".join(map(repr, names[:10]))
        raise DataError(f"{argument}={name!r}: X has no such column; it has {shown}")
    return name


def split(X: Any, y: Any, columns: Columns) -> tuple[Any, Any]:
    """X as a table of users and items, and y: as given, else from the column of ratings, else None."""
    if isinstance(X, Scan):
        return _split_scan(X, columns), None
    if is_dask_frame(X) or is_frame(X):
        names = [*X.columns] if is_dask_frame(X) else list(nw.from_native(_table(X), eager_only=True).columns)
        if is_frame(X):
            frame_columns(X)  # refuses names that are not unique
        pair, rating = columns.pair(names), None if y is not None else columns.ratings(names)
        if is_dask_frame(X):
            return X[pair], y if rating is None else X[rating]
        frame = nw.from_native(_table(X), eager_only=True)
        return frame.select(pair).to_native(), y if rating is None else frame.get_column(rating).to_numpy()
    if not is_dask(X):
        X = as_rows(X)
    if X.ndim != 2 or X.shape[1] < 2:
        shape = "x".join(map(str, X.shape))
        raise DataError(
            f"X: an array of shape {shape}; expected two columns, user and item, and ratings as y or as a third. "
            "Reshape your data: X.reshape(-1, 2) for pairs in one row"
        )
    if y is None and X.shape[1] > 2:
        y = X[:, 2] if is_dask(X) else np.array(X[:, 2].tolist())
    return X[:, :2], y


def _table(X: Any) -> Any:
    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def as_rows(X: Any) -> Array:
    """An array or nested list as an array; ids of lists keep their types."""
    if sp.issparse(X):
        raise DataTypeError(
            "X: a sparse matrix holds the ratings of users (rows) for items (columns) and takes no y; "
            "pairs of ids have to be dense"
        )
    if isinstance(X, np.ndarray):
        return X
    try:
        rows = [list(row) for row in X]
    except TypeError:
        raise DataTypeError(
            f"X: {type(X).__name__}; expected pairs (user, item) as an array, list, data frame, scan or Dask "
            "collection, or a sparse matrix of ratings"
        ) from None
    if len({len(row) for row in rows}) > 1:
        raise DataError("X: rows of different lengths; expected pairs (user, item)")
    out = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def _split_scan(scan: Scan, columns: Columns) -> Scan:
    """The same files, of which users and items are the features and ratings the target."""
    other = copy.copy(scan)
    other.columns = tuple(columns.pair(list(scan.columns)))
    if not scan.targets:
        rating = columns.ratings(list(scan.columns))
        if rating is not None:
            for table in scan.tables:
                require_numbers(table, rating, "rating")
            other.targets, other.target_is_vector = (rating,), True
    return other


def coded(column: Any, label: str) -> tuple[Array, Array]:
    """The sorted ids of an array or Arrow column, and for each row the place of its id among them."""
    if not isinstance(column, np.ndarray) and column.null_count == 0 and str(column.type).startswith(("int", "uint")):
        column = column.to_numpy()
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low <= _DENSE_RANGE * len(column) + 1000:
            shifted = (column.astype(np.int64) if high < 2**63 else column) - low
            present = np.bincount(shifted) > 0
            place = np.cumsum(present) - 1
            return np.flatnonzero(present) + low, place[shifted].astype(np.int32)
    values, index = distinct_values(column)
    if (index < 0).any():
        row = int(np.argmax(index < 0))
        raise DataError(f"Input X contains NaN: the {label} of row {row} is missing; expected an id in every row")
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise DataTypeError(f"X: the column of {label}s mixes text and numbers; expected ids of one kind")
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        raise DataTypeError(f"X: ids of {label}s that cannot be ordered; expected numbers or text") from None
    place = np.empty(len(values), dtype=np.int32)
    place[order] = np.arange(len(values), dtype=np.int32)
    return whole(np.array([values[i] for i in order])), place[index]


def whole(ids: Array) -> Array:
    """Ids that are whole numbers in floating point, as files and mixed arrays give them, as integers."""
    if ids.dtype.kind == "f" and np.all(np.isfinite(ids) & (np.abs(ids) < 2.0**53) & (ids == np.floor(ids))):
        return ids.astype(np.int64)
    return ids


def pair_columns(X: Any) -> tuple[Any, Any]:
    """The columns of users and items of a table in memory that :func:`split` gave."""
    if isinstance(X, np.ndarray):
        return X[:, 0], X[:, 1]
    frame = nw.from_native(X, eager_only=True)
    user, item = (frame.get_column(name).to_arrow() for name in frame.columns)
    return user, item


def features_by_id(name: str, features: Any, id_column: str | None) -> tuple[Array, Array]:
    """Ids and features of users or items, sorted by id.

    A mapping from ids to vectors; a data frame whose column `id_column` (else the first) holds the ids; or a pair of
    ids and a matrix.
    """
    if isinstance(features, Mapping):
        rows = [np.atleast_1d(np.asarray(row, dtype=np.float64)) for row in features.values()]
        if len({row.shape for row in rows}) > 1:
            raise DataError(f"{name}: vectors of different lengths; expected one number of features for all ids")
        matrix: Any = np.array(rows)
        column: Any = np.array([*features], dtype=object)
    elif is_frame(features):
        frame = nw.from_native(_table(features), eager_only=True)
        key = id_column if id_column in frame.columns else frame.columns[0]
        column = frame.get_column(key).to_arrow()
        rest = [other for other in frame.columns if other != key]
        try:
            matrix = np.column_stack([frame.get_column(other).to_numpy().astype(np.float64) for other in rest])
        except ValueError:
            raise DataTypeError(f"{name}: expected columns of numbers besides the ids in {key!r}") from None
    elif isinstance(features, tuple) and len(features) == 2:
        column, matrix = np.asarray(features[0]), np.asarray(features[1], dtype=np.float64)
    else:
        raise DataTypeError(
            f"{name}: {type(features).__name__}; expected a mapping from ids to vectors, a data frame with a column of "
            "ids, or a pair (ids, matrix)"
        )
    if matrix.ndim != 2 or matrix.shape[0] != len(column) or matrix.shape[1] == 0:
        raise DataError(f"{name}: {len(column)} ids and features of shape {matrix.shape}; expected a row for each id")
    if not np.isfinite(matrix).all() or np.abs(matrix).max(initial=0.0) > 1e100:
        raise DataError(f"{name}: expected finite numbers of at most 1e100 in size")
    ids, place = coded(column, name)
    if len(ids) < len(place):
        raise DataError(f"{name}: an id occurs twice; expected one row of features for each")
    out = np.empty(matrix.shape)
    out[place] = matrix
    return ids, out
