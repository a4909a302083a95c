"""What each column holds and what is done with it, as sketches of bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epicycle.automl._column_kinds import as_dates, as_numbers, as_text, kind_of_column, sample_of

__all__ = ["ColumnProfile", "Warned", "profile_columns", "sketch_of"]

_BINS, _LEVELS = 24, 10


@dataclass(frozen=True)
class Warned:
    """Something that a reader should know: its kind, how serious it is ("low", "medium" or "high"), and where."""

    kind: str
    severity: str
    text: str
    columns: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "columns": list(self.columns)}


@dataclass
class ColumnProfile:
    """One column.

    sketch : ``{"edges": ..., "counts": ...}`` of numbers and dates, ``{"levels": ..., "counts": ..., "other": ...}`` of
        categories; empty where there is nothing to show.
    """

    name: str
    kind: str
    type: str
    missing: int
    distinct: int
    treatment: str
    warnings: list[str] = field(default_factory=list)
    sketch: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def profile_columns(
    table: pa.Table, roles: Mapping[str, str], drop: tuple[str, ...] = (), rows: int = 50_000
) -> tuple[list[ColumnProfile], list[Warned]]:
    """Profiles of all columns, and what is odd about them; `roles` names target, weight, group and order.

    Distinct values and sketches come from a sample of so many rows where there are more.
    """
    some = sample_of(table, rows)
    profiles, warned = [], []
    for name in table.column_names:
        column = some[name]
        found = kind_of_column(column, name)
        role = roles.get(name)
        treatment, kind = found.treatment, found.kind
        if name in drop:
            kind, treatment = "drop", "left out, as asked"
        elif role == "order" and kind.startswith("date"):
            treatment = f"gives the order of the rows; {treatment}"
        elif role is not None:
            kind, treatment = role, _ROLES[role]
        profile = ColumnProfile(
            name, kind, str(table.schema.field(name).type), int(table[name].null_count), _distinct(column), treatment,
            sketch=sketch_of(column, found.kind),
        )  # fmt: skip
        if found.warning and role is None and name not in drop:
            profile.warnings.append(found.warning)
        profiles.append(profile)
    odd: dict[str, list[str]] = {}
    for profile in profiles:
        for text in profile.warnings:
            odd.setdefault(text if "such as" not in text else "mixes numbers with text", []).append(profile.name)
    for text, names in odd.items():
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        warned.append(Warned(_slug(text), "low", f"{listed}: {text}", tuple(names)))
    return profiles, warned


_ROLES = {
    "target": "is predicted",
    "weight": "weighs the rows",
    "group": "keeps rows together when they are divided; no feature",
    "order": "gives the order of the rows; no feature",
}


def _slug(text: str) -> str:
    for word, kind in (
        ("identifier", "identifier"),
        ("same value", "constant"),
        ("missing", "missing"),
        ("free text", "text"),
        ("mixes", "mixed types"),
    ):
        if word in text:
            return kind
    return "column"


def _distinct(column: Any) -> int:
    if pa.types.is_nested(column.type):
        return 0
    try:
        return int(pc.count_distinct(column, mode="only_valid").as_py())
    except pa.ArrowException:
        return 0


def sketch_of(column: Any, kind: str) -> dict[str, Any]:
    """A histogram, or the most frequent levels."""
    if kind == "number" or kind.startswith("date"):
        dates = kind.startswith("date")
        if dates:
            values = as_numbers(as_dates(column, kind.removeprefix("date").strip()).cast(pa.int64())) / 1e6
        else:
            values = as_numbers(column)
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return {}
        low, high = np.quantile(values, [0.005, 0.995])  # far tails would leave one bar
        if low == high:
            low, high = values.min(), values.max()
        if low == high:
            return {"edges": [float(low), float(low)], "counts": [len(values)]}
        counts, edges = np.histogram(np.clip(values, low, high), bins=_BINS)
        sketch: dict[str, Any] = {"edges": [float(e) for e in edges], "counts": [int(c) for c in counts]}
        sketch["quantiles"] = [float(q) for q in np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])]
        return {**sketch, "unit": "seconds since 1970"} if dates else sketch
    if kind in ("category", "target") or pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        counts = as_text(column).drop_null().value_counts()
        pairs = sorted(
            zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True),
            key=lambda p: (-p[0], p[1]),
        )
        top = pairs[:_LEVELS]
        if not top or top[0][0] == 1:
            return {}
        return {
            "levels": [str(level)[:40] for _, level in top], "counts": [int(c) for c, _ in top],
            "other": int(sum(c for c, _ in pairs[_LEVELS:])),
        }  # fmt: skip
    return {}
