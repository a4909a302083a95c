"""A table of items as numbers: standardised numbers, tags and categories as indicators; and names to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.core._exceptions import DataError
from epicycle.recommend._tables import whole

Array = np.ndarray

_TAGS = 100  # indicators that a column of text may give
_SEPARATOR = "|"


@dataclass(frozen=True)
class ItemTable:
    """Ids, features (items x columns), the names of the columns, a name of each item or None, and columns left out."""

    ids: Array
    features: Array
    columns: list[str]
    names: dict[Any, str]
    left_out: list[str]


def item_table(table: pa.Table, item: str) -> ItemTable:
    """Features of the items of a table whose column `item` holds their ids."""
    if item not in table.column_names:
        raise DataError(f"items: the table has no column {item!r}, which holds the ids; it has {table.column_names}")
    if table[item].null_count:
        raise DataError(f"items: {table[item].null_count} rows have no id in {item!r}")
    listed = table[item].to_pylist()
    if len(set(listed)) < len(listed):
        raise DataError(f"items: an id occurs twice in {item!r}; expected a row for each item")
    ids = whole(np.array(listed))
    blocks: list[Array] = []
    columns: list[str] = []
    left_out: list[str] = []
    names: dict[Any, str] = {}
    for name in table.column_names:
        if name == item:
            continue
        found = _numbers(table[name]) if _is_numeric(table[name]) else _indicators(table[name], name)
        if found is None:
            texts = [None if v is None else str(v) for v in table[name].to_pylist()]
            if not names and len(set(texts)) > 0.5 * len(texts):
                names = {k: v for k, v in zip(ids.tolist(), texts, strict=True) if v}
            left_out.append(name)
            continue
        blocks.append(found[0])
        columns += found[1] or [name]
    matrix = np.hstack(blocks) if blocks else np.empty((len(ids), 0))
    return ItemTable(ids, matrix, columns, names, left_out)


def _is_numeric(column: Any) -> bool:
    t = pa.types
    return bool(t.is_integer(column.type) or t.is_floating(column.type) or t.is_boolean(column.type))


def _numbers(column: Any) -> tuple[Array, list[str]] | None:
    values = np.array([np.nan if v is None else float(v) for v in column.to_pylist()])
    known = np.isfinite(values)
    if not known.any() or np.ptp(values[known]) == 0:
        return None
    centre, spread = values[known].mean(), values[known].std()
    return np.where(known, (values - centre) / spread, 0.0)[:, None], []


def _indicators(column: Any, name: str) -> tuple[Array, list[str]] | None:
    """One column for each tag; None where there are too many, or none occurs twice."""
    rows = [set() if v is None else set(str(v).split(_SEPARATOR)) for v in column.to_pylist()]
    counts: dict[str, int] = {}
    for row in rows:
        for tag in row:
            counts[tag] = counts.get(tag, 0) + 1
    tags = sorted(tag for tag, n in counts.items() if 1 < n < len(rows))
    if not tags or len(counts) > _TAGS:
        return None
    out = np.array([[tag in row for tag in tags] for row in rows], dtype=np.float64)
    return out, [f"{name}: {tag}" for tag in tags]
