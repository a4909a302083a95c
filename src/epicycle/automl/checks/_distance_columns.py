"""Which columns of a table rows are compared by, where no target says which of them matter."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from epicycle.automl.checks._data_checks import ColumnProfile, DataIssue, profile_columns
from epicycle.automl.tables._columns import base_kind
from epicycle.core._exceptions import DataError

#: Treatments that are those of distances, by the kind of a column.
_TREATMENTS = {
    "number": "standardised; where missing, the median and a flag column",
    "category": "one column of zeros and ones for each level",
}
#: Levels of a category beyond which hardly two rows are alike in it.
_MOST_LEVELS = 40


def distance_columns(
    table: pa.Table, labels: str | None, use_of_labels: str, drop: Sequence[str], name: str
) -> tuple[list[ColumnProfile], list[DataIssue]]:
    """Profiles and issues of the columns; the column of labels, dates and categories of many levels are left out."""
    drop = (drop,) if isinstance(drop, str) else tuple(drop)
    for column in drop:
        if column not in table.column_names:
            raise DataError(f"drop={column!r}: the table has no such column")
    profile, issues = profile_columns(table, {}, drop)
    for p in profile:
        if p.name == labels:
            p.kind, p.treatment = "drop", f"left out; {use_of_labels}"
        elif p.kind in ("text", "sequence"):
            p.kind, p.treatment = "drop", "left out: free text"
        elif base_kind(p.kind) == "date":
            p.kind, p.treatment = "drop", "left out: a date, of which every part would count as a column"
        elif p.kind == "category" and p.distinct > _MOST_LEVELS:
            p.kind, p.treatment = "drop", f"left out: {p.distinct:,} levels, too many to compare rows by"
        else:
            p.treatment = _TREATMENTS.get(base_kind(p.kind), p.treatment)
    if not any(base_kind(p.kind) in _TREATMENTS for p in profile):
        raise DataError(f"{name}: no column is left to compare rows by; every one is constant, missing or left out")
    return profile, issues
