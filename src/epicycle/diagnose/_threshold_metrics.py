"""Confusion counts at all thresholds of a score, metrics of them, and the best threshold."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._checks import number
from epicycle.core._exceptions import ParameterError, ParameterTypeError
from epicycle.report.curves import cumulative_counts

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Criterion:
    """A metric of the confusion counts, larger is better, with the smallest precision and recall allowed."""

    name: str
    measure: Metric
    min_precision: float = 0.0
    min_recall: float = 0.0

    def best(self, value: np.ndarray, precision: np.ndarray, recall: np.ndarray) -> int:
        """Index of the best threshold that is allowed; -1 where none is."""
        allowed = (np.nan_to_num(precision, nan=0.0) >= self.min_precision) & (recall >= self.min_recall)
        return int(np.argmax(np.where(allowed, value, -np.inf))) if allowed.any() else -1


def criterion_of(metric: Any, costs: Any, min_precision: float | None, min_recall: float | None) -> Criterion:
    """The criterion of the arguments of `threshold`."""
    given = (("min_precision", min_precision), ("min_recall", min_recall))
    least = [0.0 if value is None else number(name, value, low=0, high=1) for name, value in given]
    return Criterion(*metric_of(metric, costs), *least)


def metric_of(metric: Any, costs: Any) -> tuple[str, Metric]:
    """Name and function of a metric of the confusion counts."""
    if costs is not None:
        if not isinstance(costs, tuple | list) or len(costs) != 2:
            raise ParameterTypeError(
                f"costs={costs!r:.40}; expected two numbers, of a false positive and a false negative"
            )
        false_positive, false_negative = (number("costs", c, low=0) for c in costs)
        return "cost", lambda _tp, fp, fn, _tn: -(false_positive * fp + false_negative * fn)
    if callable(metric):
        return getattr(metric, "__name__", "metric"), metric
    if metric == "cost":
        raise ParameterError("costs: metric='cost' needs the costs of a false positive and of a false negative")
    if isinstance(metric, str) and (found := re.fullmatch(r"f(\d*\.?\d+)", metric)):
        square = float(found.group(1)) ** 2
        return metric, lambda tp, fp, fn, _tn: ratio((1 + square) * tp, (1 + square) * tp + square * fn + fp)
    known: dict[str, Metric] = {
        "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
        "balanced_accuracy": lambda tp, fp, fn, tn: (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2,
        "youden": lambda tp, fp, fn, tn: ratio(tp, tp + fn) + ratio(tn, tn + fp) - 1,
        "mcc": lambda tp, fp, fn, tn: ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
    }
    if metric not in known:
        raise ParameterError(f"metric={metric!r:.40}; expected 'f1', 'f2', ..., {sorted(known)}, 'cost' or a callable")
    return metric, known[metric]


def ratio(a: Any, b: Any) -> np.ndarray:
    """a / b, and 0 where b is 0."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.asarray(np.divide(a, b, out=np.zeros_like(a + b), where=b > 0))


def counts_at(s: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """Thresholds from large to small, and tp, fp, fn, tn of the rows at or above each."""
    values, tp, fp = cumulative_counts(s, y.astype(np.float64), w)
    between = values[:-1] + (values[1:] - values[:-1]) / 2
    # The midpoint may round to the larger score; the smaller one is then taken.
    between = np.where(between < values[:-1], between, values[1:])
    thresholds = np.concatenate([[np.nextafter(values[0], np.inf)], between, values[-1:]])
    return thresholds, tp, fp, tp[-1] - tp, fp[-1] - fp


def cross_validated(
    s: np.ndarray, y: np.ndarray, w: np.ndarray, fold: np.ndarray, criterion: Criterion
) -> tuple[float, float]:
    """The metric of all rows, each at a threshold chosen on the other folds, and its standard error."""
    names, measure = np.unique(fold), criterion.measure
    if len(names) < 2:
        return np.nan, np.nan
    total, by_fold, shares = np.zeros(4), [], []
    for j in names:
        inside = fold == j
        thresholds, *counts = counts_at(s[~inside], y[~inside], w[~inside])
        tp, fp, fn, tn = counts
        precision = np.where(tp + fp > 0, ratio(tp, tp + fp), np.nan)
        at = criterion.best(np.asarray(measure(tp, fp, fn, tn)), precision, ratio(tp, tp + fn))
        positive = s[inside] >= (thresholds[at] if at >= 0 else np.inf)
        truth, v = y[inside], w[inside]
        cells = np.array(
            [v @ (positive & truth), v @ (positive & ~truth), v @ (~positive & truth), v @ (~positive & ~truth)]
        )
        total += cells
        by_fold.append(float(measure(*(cells[[i]] for i in range(4)))[0]))
        shares.append(v.sum())
    value = float(measure(*(total[[i]] for i in range(4)))[0])
    k = len(names)
    spread = np.std(by_fold, ddof=1)
    # A cost is a sum over rows: it doubles with the counts and adds up over folds. Rates are means over folds.
    doubled = float(measure(*(2 * total[[i]] for i in range(4)))[0])
    adds_up = value != 0 and bool(np.isclose(doubled, 2 * value))
    return value, float(spread * (np.sqrt(k) if adds_up else 1 / np.sqrt(k)))
