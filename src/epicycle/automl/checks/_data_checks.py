"""Checks of the training rows: profiles of the columns, and leakage of the target into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import (
    as_numbers,
    as_text,
    base_kind,
    distinct_values,
    form_of,
    kind_of_column,
    sample_of,
)
from epicycle.automl.tables._dates import as_dates
from epicycle.core._random import stream

#: Bars of a histogram and levels of a category in a sketch: what a cell of the report has room for.
_SKETCH_BINS, _SKETCH_LEVELS = 24, 10
#: Different whole numbers that are shown one by one.
_FEW_VALUES = 10


@dataclass(frozen=True)
class DataIssue:
    """A result of a data check: its kind, its severity ("low", "medium" or "high"), and the columns concerned."""

    kind: str
    severity: str
    text: str
    columns: tuple[str, ...] = ()


@dataclass
class ColumnProfile:
    """Contents of a column, and how it is encoded.

    sketch : ``{"edges": ..., "counts": ...}`` of numbers and dates, ``{"levels": ..., "counts": ..., "other": ...}`` of
        categories; empty where there is nothing to show.
    association : share of the target that the column explains on its own; None where that is not known.
    """

    name: str
    kind: str
    type: str
    missing: int
    distinct: int
    treatment: str
    warnings: list[str] = field(default_factory=list)
    sketch: dict[str, Any] = field(default_factory=dict)
    association: float | None = None


def profile_columns(
    table: pa.Table, roles: Mapping[str, str], drop: tuple[str, ...] = (), rows: int = 50_000
) -> tuple[list[ColumnProfile], list[DataIssue]]:
    """Profiles of all columns and the issues found in them; `roles` names target, weight, group and order.

    Distinct values and sketches come from a sample of at most `rows` rows.
    """
    some = sample_of(table, rows)
    profiles, issues = [], []
    for name in table.column_names:
        column = some[name]
        found = kind_of_column(column, name)
        role = roles.get(name)
        treatment, kind = found.treatment, found.kind
        if name in drop:
            kind, treatment = "drop", "left out, as requested"
        elif role == "order" and kind.startswith("date"):
            treatment = f"gives the order of the rows; {treatment}"
        elif role is not None:
            kind, treatment = role, _ROLES[role]
        profile = ColumnProfile(
            name,
            kind,
            str(table.schema.field(name).type),
            int(table[name].null_count),
            distinct_values(column),
            treatment,
            sketch=_sketch_of_few(column) or sketch_of(column, found.kind),
        )
        if found.warning and role is None and name not in drop:
            profile.warnings.append(found.warning)
        profiles.append(profile)
    odd: dict[str, list[str]] = {}
    for profile in profiles:
        for text in profile.warnings:
            odd.setdefault(text if "such as" not in text else "mixes numbers with text", []).append(profile.name)
    for text, names in odd.items():
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        kind = next((kind for word, kind in _ISSUES.items() if word in text), "column")
        issues.append(DataIssue(kind, "low", f"{listed}: {text}", tuple(names)))
    return profiles, issues


_ROLES = {
    "target": "is predicted",
    "drop": "another target; no feature",
    "weight": "weighs the rows",
    "group": "keeps the rows of a group on one side of a split; no feature",
    "order": "gives the order of the rows; no feature",
}


#: The kind of an issue by a word of its text.
_ISSUES = {
    "identifier": "identifier",
    "same value": "constant",
    "missing": "missing",
    "free text": "text",
    "mixes": "mixed types",
}


def sketch_of(column: Any, kind: str) -> dict[str, Any]:
    """A histogram, or the most frequent levels."""
    if base_kind(kind) in ("number", "date"):
        dates = base_kind(kind) == "date"
        if dates:
            values = as_numbers(as_dates(column, form_of(kind)).cast(pa.int64())) / 1e6
        else:
            values = as_numbers(column, form_of(kind))
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return {}
        low, high = np.quantile(values, [0.005, 0.995])  # with long tails nearly all values would share one bar
        if low == high:
            low, high = values.min(), values.max()
        if low == high:
            return {"edges": [float(low), float(low)], "counts": [len(values)]}
        counts, edges = np.histogram(np.clip(values, low, high), bins=_SKETCH_BINS)
        sketch: dict[str, Any] = {"edges": [float(e) for e in edges], "counts": [int(c) for c in counts]}
        sketch["quantiles"] = [float(q) for q in np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])]
        return {**sketch, "unit": "seconds since 1970"} if dates else sketch
    if kind in ("category", "target") or pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        counts = as_text(column).drop_null().value_counts()
        pairs = sorted(
            zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True),
            key=lambda p: (-p[0], p[1]),
        )
        top = pairs[:_SKETCH_LEVELS]
        if not top or top[0][0] == 1:
            return {}
        return {
            "levels": [str(level)[:40] for _, level in top],
            "counts": [int(c) for c, _ in top],
            "other": int(sum(c for c, _ in pairs[_SKETCH_LEVELS:])),
        }
    return {}


def _sketch_of_few(column: Any) -> dict[str, Any]:
    """The levels of whole numbers that have few different values; empty for other columns."""
    if not pa.types.is_integer(column.type):
        return {}
    counts = column.drop_null().value_counts()
    if not 1 < len(counts) <= _FEW_VALUES:
        return {}
    pairs = sorted(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
    return {"levels": [str(value) for value, _ in pairs], "counts": [count for _, count in pairs], "other": 0}


_LEAK_BINS = 64
#: Share of the variance of the target that a single column explains from which leakage is suspected.
_LEAKAGE_SHARE = 0.99


def leaking_columns(
    features: np.ndarray,
    sources: Sequence[str],
    categorical: Sequence[int],
    y: np.ndarray,
    task: str,
    seed: int,
    rows: int = 20_000,
) -> tuple[dict[str, float], list[DataIssue]]:
    """Share of the target that each column explains on its own, and the columns that explain nearly all of it.

    Column by column: the target's mean (or the frequent class) in bins of one half of the rows predicts the other half.
    """
    n = len(y)
    chosen = stream(seed, "leaks").permutation(n)[:rows]
    half = len(chosen) // 2
    # Means in bins from one half, scored on the other: within one half many bins would explain noise.
    fit, rest = chosen[:half], chosen[half:]
    if task == "classification":
        classes, codes = np.unique(y, return_inverse=True)
        targets = np.eye(len(classes))[codes]
    else:
        targets = y.astype(np.float64)[:, None]
    power: dict[str, float] = {}
    for j, name in enumerate(sources):
        share = _explained(features[fit, j], targets[fit], features[rest, j], targets[rest], j in set(categorical))
        power[name] = max(power.get(name, 0.0), share)
    leaks = [name for name, share in power.items() if share >= _LEAKAGE_SHARE]
    issues = [
        DataIssue(
            "leakage",
            "high",
            f"{name} alone explains {power[name]:.1%} of the target: suspected leakage. Is it known when the "
            f"prediction is made? If not, leave it out (--drop {name!r})",
            (name,),
        )
        for name in leaks[:5]
    ]
    return power, issues


def _explained(x: np.ndarray, t: np.ndarray, x_new: np.ndarray, t_new: np.ndarray, categorical: bool) -> float:
    """Share of the variance of the targets that means in bins explain on other rows."""
    total = float(((t_new - t_new.mean(axis=0)) ** 2).sum())
    known = x[~np.isnan(x)]
    if total == 0 or len(known) < 20:
        return 0.0
    if categorical:
        if known.max() > len(x) / 10:
            return 0.0  # levels of a few rows each explain any target
        bins, bins_new = np.nan_to_num(x, nan=-1).astype(int) + 1, np.nan_to_num(x_new, nan=-1).astype(int) + 1
    else:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, min(_LEAK_BINS, max(2, len(known) // 10)) + 1)[1:-1]))
        bins = np.where(np.isnan(x), 0, np.searchsorted(edges, x) + 1)
        bins_new = np.where(np.isnan(x_new), 0, np.searchsorted(edges, x_new) + 1)
    size = int(max(bins.max(), bins_new.max())) + 1
    count = np.bincount(bins, minlength=size).astype(float)
    off = 0.0
    for k in range(t.shape[1]):
        mean = np.bincount(bins, t[:, k], minlength=size)
        mean = np.where(count > 0, mean / np.maximum(count, 1), t[:, k].mean())
        off += float(((t_new[:, k] - mean[bins_new]) ** 2).sum())
    within = 1 - off / total
    # 64 bins of a copy of the target leave 1/64^2 of its variance; a line leaves none.
    if not categorical and t.shape[1] == 1 and within > 0.9:
        within = max(within, _straight(x, t[:, 0], x_new, t_new[:, 0], total))
    return max(0.0, within)


def _straight(x: np.ndarray, t: np.ndarray, x_new: np.ndarray, t_new: np.ndarray, total: float) -> float:
    """Share of the variance that a straight line explains, which can be closer than any bins."""
    known, there = ~np.isnan(x), ~np.isnan(x_new)
    if not there.all() or not known.any():
        return 0.0
    centre, scale = x[known].mean(), x[known].std() or 1.0
    slope = float(np.mean((x[known] - centre) / scale * (t[known] - t[known].mean())))
    predicted = t[known].mean() + slope * (x_new - centre) / scale
    return 1 - float(((t_new - predicted) ** 2).sum()) / total
