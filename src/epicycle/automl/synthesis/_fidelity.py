"""Fidelity of drawn rows: distances of their columns from the real ones, one by one, and of the dependence of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import rankdata

from epicycle.automl.synthesis._table_codes import ColumnCode

#: Rows and columns that pairs are compared on.
_ROWS, _COLUMNS = 5_000, 30
_BINS, _LEVELS = 24, 12


def marginals(columns: Sequence[ColumnCode], real: pa.Table, held: pa.Table, drawn: pa.Table) -> list[dict[str, Any]]:
    """Of each column the distance of drawn from real rows, that of held-out rows, and both histograms.

    Of categories the total variation, of numbers and dates the Kolmogorov-Smirnov distance. A missing entry is a level,
    or below all numbers.
    """
    found = []
    for code in columns:
        if code.kind == "counter":
            continue
        a, h, b = (_values(code, table) for table in (real, held, drawn))
        if code.kind == "category":
            k = len(code.levels) + 1  # the first is that of missing entries
            p, q, r = (np.bincount(values + 1, minlength=k) / len(values) for values in (a, b, h))
            row = {"distance": 0.5 * np.abs(p - q).sum(), "noise": 0.5 * np.abs(p - r).sum()}
            shown = np.argsort(-p, kind="stable")[:_LEVELS]
            names = ["missing", *code.levels]
            sketch = {"levels": [names[j] for j in shown if p[j] + q[j] > 0]}
            sketch |= {name: [float(s[j]) for j in shown if p[j] + q[j] > 0] for name, s in (("real", p), ("drawn", q))}
        else:
            row = {"distance": _kolmogorov_smirnov(a, b), "noise": _kolmogorov_smirnov(a, h)}
            sketch = _histograms(code, a, b)
        missing = [float(np.mean(v < 0 if code.kind == "category" else np.isneginf(v))) for v in (a, b)]
        found.append({"name": code.name, "kind": code.kind, **row, "missing": missing, "sketch": sketch})
    return found


def _values(code: ColumnCode, table: pa.Table) -> np.ndarray:
    """Numbers, -inf where they are missing; of a category the numbers of its levels, -1 where missing."""
    column = table[code.name]
    if code.kind == "category":
        return code.codes(column)
    values = code.values(column)
    return np.where(np.isnan(values), -np.inf, values)


def _kolmogorov_smirnov(a: np.ndarray, b: np.ndarray) -> float:
    points = np.union1d(a, b)
    first, second = (np.searchsorted(np.sort(v), points, side="right") / len(v) for v in (a, b))
    return float(np.abs(first - second).max())


def _histograms(code: ColumnCode, real: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    known = real[np.isfinite(real)]
    low, high = np.quantile(known, [0.005, 0.995])  # with long tails nearly all values would share one bar
    if not high > low:
        low, high = known.min(), known.max() + (known.min() == known.max())
    edges = np.linspace(low, high, _BINS + 1)
    shares = {}
    for name, values in (("real", real), ("drawn", drawn)):
        inside = values[np.isfinite(values)].clip(low, high)
        shares[name] = (np.histogram(inside, edges)[0] / max(len(inside), 1)).tolist()
    unit = "date" if code.kind == "date" else "number"
    ends = code.offset + code.step * edges if code.step else edges
    return {"edges": ends.tolist(), "unit": unit, **shares}


def pairs(columns: Sequence[ColumnCode], real: pa.Table, held: pa.Table, drawn: pa.Table) -> list[dict[str, Any]]:
    """Association of each pair of columns in real and in drawn rows, the largest difference first.

    Of two numbers the rank correlation, of two categories Cramer's V without its bias, of a number and a category the
    root of the share of the variance of ranks between levels. `noise` is the difference of held-out from real rows.
    """
    chosen = [code for code in columns if code.kind != "counter"][:_COLUMNS]
    n = min(len(real), len(drawn), _ROWS)
    tables = (real.slice(0, n), drawn.slice(0, n), real.slice(0, len(held)), held)
    values = [[_values(code, table) for code in chosen] for table in tables]
    found = []
    for i, first in enumerate(chosen):
        for j, second in enumerate(chosen[:i]):
            kinds = (first.kind == "category", second.kind == "category")
            r, d, part, h = (association(v[i], v[j], *kinds) for v in values)
            found.append(
                {
                    "names": [second.name, first.name],
                    "real": r,
                    "drawn": d,
                    "difference": abs(r - d),
                    "noise": abs(part - h),
                }
            )
    return sorted(found, key=lambda pair: -pair["difference"])


def association(a: np.ndarray, b: np.ndarray, a_levels: bool, b_levels: bool) -> float:
    """Association of two columns over the rows that have both; 0 where one does not vary."""
    known = (a >= 0 if a_levels else np.isfinite(a)) & (b >= 0 if b_levels else np.isfinite(b))
    a, b = a[known], b[known]
    if len(a) < 3 or len(np.unique(a)) < 2 or len(np.unique(b)) < 2:
        return 0.0
    if not a_levels and not b_levels:
        return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
    if a_levels and b_levels:
        return _cramers_v(a, b)
    levels, ranks = (a, rankdata(b)) if a_levels else (b, rankdata(a))
    _, codes = np.unique(levels, return_inverse=True)
    counts = np.bincount(codes)
    means = np.bincount(codes, ranks) / counts
    n, k = len(ranks), len(counts)
    within = ((ranks - means[codes]) ** 2).sum() / max(n - k, 1)
    return float(np.sqrt(max(0.0, 1 - within / ranks.var(ddof=1))))  # the bias of many levels is taken off


def _cramers_v(a: np.ndarray, b: np.ndarray) -> float:
    """Cramer's V with the correction of Bergsma (2013) for its bias."""
    (_, a), (_, b) = (np.unique(v, return_inverse=True) for v in (a, b))
    r, k, n = int(a.max()) + 1, int(b.max()) + 1, len(a)
    counts = np.bincount(a * k + b, minlength=r * k).reshape(r, k)
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / n
    chi2 = ((counts - expected) ** 2 / expected).sum()
    phi2 = max(0.0, chi2 / n - (r - 1) * (k - 1) / (n - 1))
    smaller = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return float(np.sqrt(min(phi2 / smaller, 1.0))) if smaller > 0 else 0.0
