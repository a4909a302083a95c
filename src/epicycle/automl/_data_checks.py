"""What makes a score too good or too old: leakage, rows on both sides of the split, drift between them.

Each looks at encoded rows of the form for trees: numbers, and levels by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, kolmogorov

from epicycle.automl._profiles import Warned
from epicycle.core._random import stream

__all__ = ["Drift", "drift_between", "duplicates", "leaking_columns", "row_keys"]

_BINS = 64
_LEAKS = 0.99  # share of what can be explained that one column may explain
_SURE = 0.01  # probability of any false alarm about drift
_MATTERS = 0.1  # distance of two distributions below which drift is not worth a word


def row_keys(features: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """A number for each row of numbers, equal for equal rows and (but for one chance in 2^64) for these alone."""
    with np.errstate(over="ignore"):
        keys = np.full(len(features), 0x9E3779B97F4A7C15, dtype=np.uint64)
        columns = [features[:, j] for j in range(features.shape[1])]
        if y is not None:
            columns.append(y)
        for values in columns:
            word = np.where(np.isnan(values.astype(np.float64)), np.inf, values.astype(np.float64) + 0.0).view(
                np.uint64
            )
            keys = (keys ^ word) * np.uint64(0xFF51AFD7ED558CCD)
            keys ^= keys >> np.uint64(32)
    return keys


@dataclass(frozen=True)
class Duplicates:
    """Rows that occur more than once among those to learn from, and test rows that have a twin among these."""

    within: int
    across: np.ndarray


def duplicates(
    train: np.ndarray, y_train: np.ndarray, test: np.ndarray, y_test: np.ndarray
) -> tuple[Duplicates, list[Warned]]:
    """Rows equal in all features and the target."""
    n = len(y_train)
    coded = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)[1].astype(np.float64)
    own, others = row_keys(train, coded[:n]), row_keys(test, coded[n:])
    unique = np.unique(own)
    across = np.isin(others, unique)
    found = Duplicates(n - len(unique), across)
    warned = []
    if found.within:
        share = found.within / n
        said = f"{found.within:,} rows ({share:.1%}) repeat another row of the training part"
        warned.append(Warned("duplicate rows", "medium" if share > 0.01 else "low", said))
    if across.any() and across.mean() > 0.002:
        said = (
            f"{int(across.sum()):,} of {len(others):,} test rows are equal to a training row, target included: the "
            "test score flatters by them, and is also given without them"
        )
        warned.append(Warned("duplicates across the split", "high" if across.mean() > 0.02 else "medium", said))
    return found, warned


def leaking_columns(
    features: np.ndarray, sources: Sequence[str], categorical: Sequence[int], y: np.ndarray, task: str, seed: int,
    rows: int = 20_000,
) -> tuple[dict[str, float], list[Warned]]:  # fmt: skip
    """How much of the target each column explains on its own, and those that explain nearly all of it.

    Column by column: the target's mean (or the frequent class) in bins of one half of the rows predicts the other half.
    """
    n = len(y)
    chosen = stream(seed, "leaks").permutation(n)[:rows]
    half = len(chosen) // 2
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
    leaks = [name for name, share in power.items() if share >= _LEAKS]
    warned = [
        Warned(
            "leakage", "high",
            f"{name} alone explains {power[name]:.1%} of the target: it smells of leakage. Is it known when the "
            f"prediction is made? If not, leave it out (--drop {name!r})",
            (name,),
        )
        for name in leaks[:5]
    ]  # fmt: skip
    return power, warned


def _explained(x: np.ndarray, t: np.ndarray, x_new: np.ndarray, t_new: np.ndarray, categorical: bool) -> float:
    """Share of the variance of the targets that means in bins explain on other rows."""
    total = float(((t_new - t_new.mean(axis=0)) ** 2).sum())
    known = x[~np.isnan(x)]
    if total == 0 or len(known) < 20:
        return 0.0
    if categorical:
        if known.max() > len(x) / 10:
            return 0.0  # levels of a few rows each repeat the target by themselves
        bins, bins_new = np.nan_to_num(x, nan=-1).astype(int) + 1, np.nan_to_num(x_new, nan=-1).astype(int) + 1
    else:
        cuts = np.unique(np.quantile(known, np.linspace(0, 1, min(_BINS, max(2, len(known) // 10)) + 1)[1:-1]))
        bins = np.where(np.isnan(x), 0, np.searchsorted(cuts, x) + 1)
        bins_new = np.where(np.isnan(x_new), 0, np.searchsorted(cuts, x_new) + 1)
    size = int(max(bins.max(), bins_new.max())) + 1
    count = np.bincount(bins, minlength=size).astype(float)
    off = 0.0
    for k in range(t.shape[1]):
        mean = np.bincount(bins, t[:, k], minlength=size)
        mean = np.where(count > 0, mean / np.maximum(count, 1), t[:, k].mean())
        off += float(((t_new[:, k] - mean[bins_new]) ** 2).sum())
    within = 1 - off / total
    if not categorical and t.shape[1] == 1 and within > 0.9:
        within = max(within, _straight(x, t[:, 0], x_new, t_new[:, 0], total))
    return max(0.0, within)


def _straight(x: np.ndarray, t: np.ndarray, x_new: np.ndarray, t_new: np.ndarray, total: float) -> float:
    """A line can be closer than any bins."""
    known, there = ~np.isnan(x), ~np.isnan(x_new)
    if not there.all() or not known.any():
        return 0.0
    centre, scale = x[known].mean(), x[known].std() or 1.0
    slope = float(np.mean((x[known] - centre) / scale * (t[known] - t[known].mean())))
    said = t[known].mean() + slope * (x_new - centre) / scale
    return 1 - float(((t_new - said) ** 2).sum()) / total


@dataclass(frozen=True)
class Drift:
    """How far the distributions of a column are apart in two parts, and the probability of that by chance."""

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
) -> tuple[list[Drift], list[Warned]]:
    """Columns whose values are distributed otherwise in the second part.

    Numbers by the test of Kolmogorov and Smirnov, levels by chi-squared, missing values among both; with m columns the
    probability of any false alarm is below one in a hundred (Holm).
    """
    a, b = (part[stream(seed, "drift").permutation(len(part))[:rows]] for part in (first, second))
    found: dict[str, Drift] = {}
    for j, name in enumerate(names):
        if j in set(categorical):
            distance, p = _levels_apart(a[:, j], b[:, j])
        else:
            distance, p = _numbers_apart(a[:, j], b[:, j])
            gap, p_gap = _levels_apart(np.isnan(a[:, j]).astype(float), np.isnan(b[:, j]).astype(float))
            if p_gap < p:
                distance, p = gap, p_gap
            p = min(1.0, 2 * p)
        if name not in found or p < found[name].p_value:
            found[name] = Drift(name, distance, p)
    ranked = sorted(found.values(), key=lambda d: d.p_value)
    drifted = []
    for i, one in enumerate(ranked):
        if one.p_value * (len(names) - i) > _SURE:
            break
        if one.distance >= _MATTERS:
            drifted.append(one)
    warned = []
    if drifted:
        listed = ", ".join(f"{d.column} ({d.distance:.2f})" for d in sorted(drifted, key=lambda d: -d.distance)[:6])
        more = f" and {len(drifted) - 6} more" if len(drifted) > 6 else ""
        warned.append(
            Warned(
                "drift",
                "medium",
                f"the test rows differ from the training rows in {listed}{more} (0: same, 1: nothing in common)",
                tuple(d.column for d in drifted),
            )
        )
    return ranked, warned


def _numbers_apart(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    a, b = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    if len(a) < 5 or len(b) < 5:
        return 0.0, 1.0
    at = np.concatenate([a, b])
    below = np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
    distance = float(np.abs(below).max())
    m = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    return distance, float(kolmogorov((m + 0.12 + 0.11 / m) * distance))


def _levels_apart(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    a, b = np.nan_to_num(a, nan=-1.0), np.nan_to_num(b, nan=-1.0)
    values, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack(
        [np.bincount(codes[: len(a)], minlength=len(values)), np.bincount(codes[len(a) :], minlength=len(values))]
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    rare = expected.min(axis=0) < 5  # chi-squared is not to be trusted there: they count as one
    if rare.any():
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
        expected = np.column_stack([expected[:, ~rare], expected[:, rare].sum(axis=1)])
    usable = expected.min(axis=0) >= 1
    if usable.sum() < 2:
        return 0.0, 1.0
    chi = float(((counts[:, usable] - expected[:, usable]) ** 2 / expected[:, usable]).sum())
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(chdtrc(int(usable.sum()) - 1, chi))


def summary_of(smells: Sequence[Any]) -> list[dict[str, Any]]:
    """Drift of the columns as plain values, the clearest first."""
    return [{"column": d.column, "distance": d.distance, "p_value": d.p_value} for d in smells[:20]]
