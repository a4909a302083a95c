"""Data checks: profiles of the columns, leakage, duplicates across the split, and drift between training and test set.

The checks after the profiles use rows encoded in the form for trees: numbers, and levels by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import chdtrc, kolmogorov

from epicycle.automl._columns import as_dates, as_numbers, as_text, distinct_values, kind_of_column, sample_of
from epicycle.core._random import stream

#: Bars of a histogram and levels of a category in a sketch: what a cell of the report has room for.
_SKETCH_BINS, _SKETCH_LEVELS = 24, 10


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
    """

    name: str
    kind: str
    type: str
    missing: int
    distinct: int
    treatment: str
    warnings: list[str] = field(default_factory=list)
    sketch: dict[str, Any] = field(default_factory=dict)


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
            sketch=sketch_of(column, found.kind),
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
    if kind == "number" or kind.startswith("date"):
        dates = kind.startswith("date")
        if dates:
            values = as_numbers(as_dates(column, kind.removeprefix("date").strip()).cast(pa.int64())) / 1e6
        else:
            values = as_numbers(column)
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


_LEAK_BINS = 64
#: Share of the variance of the target that a single column explains from which leakage is suspected.
_LEAKAGE_SHARE = 0.99
#: Probability of any false alarm about drift, over all columns.
_DRIFT_LEVEL = 0.01
#: Distance of two distributions below which drift is not reported, however significant: it hardly changes a score.
_MIN_DRIFT = 0.1


def row_keys(features: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """A number for each row of numbers, equal for equal rows and (but for one chance in 2^64) for these alone."""
    with np.errstate(over="ignore"):
        # A 64-bit hash in the manner of Murmur's finalizer, column by column: no copy of the rows is made.
        keys = np.full(len(features), 0x9E3779B97F4A7C15, dtype=np.uint64)
        columns = [features[:, j] for j in range(features.shape[1])]
        if y is not None:
            columns.append(y)
        for values in columns:
            # Adding 0.0 turns -0.0 into 0.0, and all NaN become one value: equal rows have equal bits.
            word = np.where(np.isnan(values.astype(np.float64)), np.inf, values.astype(np.float64) + 0.0).view(
                np.uint64
            )
            keys = (keys ^ word) * np.uint64(0xFF51AFD7ED558CCD)
            keys ^= keys >> np.uint64(32)
    return keys


@dataclass(frozen=True)
class Duplicates:
    """Number of repeated training rows, and a mask of the test rows that are also training rows."""

    within: int
    across: np.ndarray


def duplicates(
    train: np.ndarray, y_train: np.ndarray, test: np.ndarray, y_test: np.ndarray
) -> tuple[Duplicates, list[DataIssue]]:
    """Find rows that are equal in all features and the target."""
    n = len(y_train)
    coded = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)[1].astype(np.float64)
    own, others = row_keys(train, coded[:n]), row_keys(test, coded[n:])
    unique = np.unique(own)
    across = np.isin(others, unique)
    found = Duplicates(n - len(unique), across)
    issues = []
    if found.within:
        share = found.within / n
        text = f"{found.within:,} rows ({share:.1%}) repeat another row of the training set"
        issues.append(DataIssue("duplicate rows", "medium" if share > 0.01 else "low", text))
    if across.any() and across.mean() > 0.002:
        text = (
            f"{int(across.sum()):,} of {len(others):,} test rows are equal to a training row, target included: they "
            "make the test score too high, and it is also given without them"
        )
        issues.append(DataIssue("duplicates across the split", "high" if across.mean() > 0.02 else "medium", text))
    return found, issues


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


@dataclass(frozen=True)
class Drift:
    """Distance between the distributions of a column in two sets of rows, and its p-value."""

    column: str
    distance: float
    p_value: float


def drift_between(
    first: np.ndarray,
    second: np.ndarray,
    names: Sequence[str],
    categorical: Sequence[int],
    seed: int,
    rows: int = 20_000,
) -> tuple[list[Drift], list[DataIssue]]:
    """Columns whose distribution differs between two sets of rows.

    Numbers are compared by the Kolmogorov-Smirnov test, levels and missing values by chi-squared; Holm's correction
    keeps the probability of any false alarm below 1% over all columns.
    """
    a, b = (part[stream(seed, "drift").permutation(len(part))[:rows]] for part in (first, second))
    found: dict[str, Drift] = {}
    for j, name in enumerate(names):
        if j in set(categorical):
            distance, p = _chi_squared(a[:, j], b[:, j])
        else:
            distance, p = _kolmogorov_smirnov(a[:, j], b[:, j])
            # A change in the share of missing values is drift too; the smaller p-value counts, times 2 for the two
            # tests.
            gap, p_gap = _chi_squared(np.isnan(a[:, j]).astype(float), np.isnan(b[:, j]).astype(float))
            if p_gap < p:
                distance, p = gap, p_gap
            p = min(1.0, 2 * p)
        if name not in found or p < found[name].p_value:
            found[name] = Drift(name, distance, p)
    ranked = sorted(found.values(), key=lambda d: d.p_value)
    drifted = []
    for i, one in enumerate(ranked):
        # Holm: the i-th smallest p-value is compared with the level over the number of those left.
        if one.p_value * (len(names) - i) > _DRIFT_LEVEL:
            break
        if one.distance >= _MIN_DRIFT:
            drifted.append(one)
    issues = []
    if drifted:
        listed = ", ".join(f"{d.column} ({d.distance:.2f})" for d in sorted(drifted, key=lambda d: -d.distance)[:6])
        more = f" and {len(drifted) - 6} more" if len(drifted) > 6 else ""
        issues.append(
            DataIssue(
                "drift",
                "medium",
                f"the test rows differ from the training rows in {listed}{more} (0: same distribution, 1: no overlap)",
                tuple(d.column for d in drifted),
            )
        )
    return ranked, issues


def _kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    a, b = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    if len(a) < 5 or len(b) < 5:
        return 0.0, 1.0
    at = np.concatenate([a, b])
    below = np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
    distance = float(np.abs(below).max())
    m = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    # Stephens' correction of the asymptotic distribution for small samples.
    return distance, float(kolmogorov((m + 0.12 + 0.11 / m) * distance))


def _chi_squared(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    a, b = np.nan_to_num(a, nan=-1.0), np.nan_to_num(b, nan=-1.0)
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack(
        [np.bincount(codes[: len(a)], minlength=len(values)), np.bincount(codes[len(a) :], minlength=len(values))]
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    rare = expected.min(axis=0) < 5  # the chi-squared approximation fails there: they count as one level
    if rare.any():
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
        expected = np.column_stack([expected[:, ~rare], expected[:, rare].sum(axis=1)])
    usable = expected.min(axis=0) >= 1
    if usable.sum() < 2:
        return 0.0, 1.0
    chi = float(((counts[:, usable] - expected[:, usable]) ** 2 / expected[:, usable]).sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(chdtrc(int(usable.sum()) - 1, chi))
