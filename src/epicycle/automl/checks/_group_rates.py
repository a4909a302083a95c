"""Rates of a model by group of the test rows, with intervals: who is predicted what, and where it errs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from epicycle.automl.tables._columns import as_numbers, as_text, kind_of_column
from epicycle.core._exceptions import DataError
from epicycle.report._plain import brief, percent
from epicycle.report.curves import wilson

#: Groups of a report at most, and parts of a column of numbers.
_MOST, _PARTS = 12, 4


def group_rates(
    table: pa.Table, name: str, y: np.ndarray, predicted: np.ndarray, classes: np.ndarray | None
) -> dict[str, Any]:
    """Rates of each group, and whether intervals of two groups lie apart.

    Of two classes the rarer one is the positive: rows predicted positive, recall, false positive rate. Of numbers the
    mean error and its size.
    """
    labels = _groups(table, name)
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:_MOST]
    rates = _rates(y, predicted, classes)
    found = []
    for k in sorted(kept, key=lambda k: str(names[k])):
        rows = codes == k
        values = {label: _rate(given[rows & of], interval) for label, (given, of, interval) in rates.items()}
        found.append({"group": str(names[k]), "rows": int(rows.sum()), "rates": values})
    kind = "number" if classes is None else "share"
    verdict = _verdict(found, list(rates), name, brief if classes is None else percent)
    return {"column": name, "kind": kind, "rates": list(rates), "groups": found, "verdict": verdict}


def _groups(table: pa.Table, name: str) -> np.ndarray:
    """The group of each row; numbers of many values in four parts of about equal size."""
    if name not in table.column_names:
        raise DataError(f"group_report={name!r}: the table has no such column")
    column = table[name]
    kind = kind_of_column(column, name).kind
    if kind == "number":
        values = as_numbers(column)
        known = values[~np.isnan(values)]
        if len(np.unique(known)) > _MOST:
            edges = np.unique(np.quantile(known, np.linspace(0, 1, _PARTS + 1)))
            part = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
            text = np.array([f"{low:,.6g} to {high:,.6g}" for low, high in pairwise(edges)])
            return np.where(np.isnan(values), "missing", text[part])
    return np.array([value if value is not None else "missing" for value in as_text(column).to_pylist()], dtype=str)


def _rates(
    y: np.ndarray, predicted: np.ndarray, classes: np.ndarray | None
) -> dict[str, tuple[np.ndarray, np.ndarray, str]]:
    """Of each rate: a value for each row, the rows it is about, and the kind of its interval."""
    every = np.ones(len(y), bool)
    if classes is None:
        error = np.asarray(predicted, np.float64) - np.asarray(y, np.float64)
        return {"mean error": (error, every, "mean"), "mean absolute error": (np.abs(error), every, "mean")}
    found = {"accuracy": ((predicted == y).astype(float), every, "share")}
    if len(classes) == 2:
        counts = [int(np.sum(y == label)) for label in classes]
        positive = classes[int(np.argmin(counts)) if counts[0] != counts[1] else 1]
        called = (predicted == positive).astype(float)
        found[f"predicted {positive}"] = (called, every, "share")
        found[f"recall of {positive}"] = (called, y == positive, "share")
        found["false positive rate"] = (called, y != positive, "share")
    return found


def _rate(values: np.ndarray, interval: str) -> dict[str, Any]:
    n = len(values)
    if n == 0:
        return {"value": None, "lower": None, "upper": None, "rows": 0}
    mean = float(values.mean())
    low: float | None
    high: float | None
    if interval == "share":
        low, high = wilson(mean, n)
    else:
        reach = 1.96 * float(values.std(ddof=1)) / np.sqrt(n) if n > 1 else np.inf
        low, high = (mean - reach, mean + reach) if np.isfinite(reach) else (None, None)
    return {"value": mean, "lower": low, "upper": high, "rows": n}


def _verdict(found: list[dict[str, Any]], rates: list[str], name: str, said: Callable[[Any], str]) -> str:
    """The pair of groups that lies furthest apart in each rate, where their intervals do not meet."""
    apart = []
    for rate in rates:
        known = [(row["group"], row["rates"][rate]) for row in found if row["rates"][rate]["lower"] is not None]
        if len(known) < 2:
            continue
        low = min(known, key=lambda pair: pair[1]["upper"])
        high = max(known, key=lambda pair: pair[1]["lower"])
        if low[1]["upper"] < high[1]["lower"]:
            apart.append(f"{rate}: {said(low[1]['value'])} for {low[0]}, {said(high[1]['value'])} for {high[0]}")
    if not apart:
        return f"No two groups of {name} lie clearly apart on the test rows."
    return f"Groups of {name} whose intervals do not meet: {'; '.join(apart)}."
