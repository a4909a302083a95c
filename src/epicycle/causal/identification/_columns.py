"""Columns of a table by the names of the nodes of a diagram."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray
LARGEST = 1e150  # sums of squares of numbers beyond it leave the range of floating point


def columns_of(data: Any, names: Iterable[str]) -> dict[str, Array]:
    """Columns of a data frame or mapping, all of one length and without gaps."""
    out: dict[str, Array] = {}
    for name in names:
        try:
            out[name] = np.asarray(data[name])
        except (KeyError, TypeError, IndexError, ValueError):
            raise DataError(f"data: expected a data frame or mapping with a column {name!r} of the diagram") from None
        except Exception as error:  # polars has an error of its own for a column that is not there
            raise DataError(f"data: expected a column {name!r} of the diagram ({error})") from None
        if out[name].ndim != 1:
            raise DataError(f"data[{name!r}]: expected one column, got shape {out[name].shape}")
    if len({len(c) for c in out.values()}) > 1:
        raise DataError(f"data: columns have lengths {sorted({len(c) for c in out.values()})}; expected one length")
    for name, column in out.items():
        if column.dtype.kind == "c":
            raise DataError(f"data[{name!r}]: holds complex numbers; expected numbers or categories")
        if gaps(column):
            raise DataError(f"data[{name!r}]: {gaps(column)} missing values; expected none")
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise DataError(
                f"data[{name!r}]: row {int(np.isinf(column).argmax())} is infinite; expected finite numbers"
            )
        if column.dtype.kind == "O" and len({isinstance(v, str) for v in column.tolist()}) > 1:
            raise DataError(f"data[{name!r}]: mixes text with other values; expected one kind")
        if len(column) == 0:
            raise DataError(f"data[{name!r}]: expected at least one row")
    return out


def gaps(column: Array) -> int:
    """Number of missing values."""
    if column.dtype.kind == "f":
        return int(np.isnan(column).sum())
    return int(sum(v is None or v != v for v in column.tolist())) if column.dtype.kind == "O" else 0


def numeric(name: str, column: Array) -> Array:
    """A column as numbers."""
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"data[{name!r}]: expected numbers, got {column.dtype} such as {column[0]!r}") from None
    if not np.abs(values).max(initial=0.0) <= LARGEST:
        raise DataError(
            f"data[{name!r}]: holds {np.abs(values).max():.1e}, whose square is no number; divide it by a constant"
        )
    return values


def encoded(columns: dict[str, Array], names: Iterable[str]) -> Array:
    """Numbers as they are, categories as indicators of all but the first."""
    blocks = [np.empty((len(next(iter(columns.values()))), 0))]
    for name in names:
        column = columns[name]
        if column.dtype.kind in "fiub":
            blocks.append(numeric(name, column)[:, None])
        else:
            levels = np.unique(column)
            blocks.append((column[:, None] == levels[None, 1:]).astype(np.float64))
    return np.hstack(blocks)
