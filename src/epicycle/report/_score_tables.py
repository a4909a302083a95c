"""Tables of scores and the curves of a campaign from predictions: plain lists of bounded length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.report.curves import along, checked_weights, cumulative_counts, wilson
from epicycle.report.schema import ClassScore, GainCurve, Predictions

#: Points of a scatter: more would hide each other.
_POINTS = 400


def class_scores(confusion: Mapping[str, Any]) -> list[ClassScore]:
    """Precision, recall and F1 of each class out of a confusion matrix of counts; intervals of the two shares."""
    counts = np.asarray(confusion["counts"], dtype=np.float64)
    found: list[ClassScore] = []
    for k, name in enumerate(confusion["labels"]):
        right, called, there = counts[k, k], counts[:, k].sum(), counts[k].sum()
        precision = float(right / called) if called else None
        recall = float(right / there) if there else None
        line: ClassScore = {"name": name, "rows": float(there), "precision": precision, "recall": recall}
        line["f1"] = float(2 * right / (called + there)) if called + there else None
        if precision is not None:
            line["precision_interval"] = list(wilson(precision, called))
        if recall is not None:
            line["recall_interval"] = list(wilson(recall, there))
        found.append(line)
    return found


def gain(positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None, most: int = 200) -> GainCurve:
    """Share of the positives among the rows with the largest scores by the share of rows, and the lift, their ratio."""
    truth = np.asarray(positive, dtype=np.float64)
    w = checked_weights(weight, len(truth))
    _, tp, fp = cumulative_counts(np.asarray(scores, dtype=np.float64), truth, w)
    if not 0 < tp[-1] < tp[-1] + fp[-1]:
        raise DataError("y: one class only; expected rows of both")
    rows, found = (tp + fp) / (tp[-1] + fp[-1]), tp / tp[-1]
    kept = along(rows, found, most)
    rows, found = rows[kept], found[kept]
    lift = np.divide(found, rows, out=np.full(len(rows), np.nan), where=rows > 0)
    # The first rows are too few for a ratio.
    lift[rows < 0.01] = np.nan
    return {
        "rows": rows.tolist(),
        "found": found.tolist(),
        "lift": [None if np.isnan(value) else float(value) for value in lift],
        "prevalence": float((w @ truth) / w.sum()),
    }


def predictions(
    y: np.ndarray, predicted: np.ndarray, half_width: float | None = None, quantile: float | None = None
) -> Predictions:
    """Targets and predictions of evenly spread rows, in the order of the target."""
    order = np.argsort(y, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(y) - 1, min(_POINTS, len(y))).astype(int))]
    found: Predictions = {
        "actual": np.asarray(y, dtype=np.float64)[chosen].tolist(),
        "predicted": np.asarray(predicted, dtype=np.float64)[chosen].tolist(),
        "rows": len(y),
    }
    if half_width is not None and np.isfinite(half_width):
        found["half_width"] = float(half_width)
    if quantile is not None:
        found["quantile"] = float(quantile)
    return found
