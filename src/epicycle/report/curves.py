"""The curves of a report from targets and predictions: NumPy arrays in, short plain lists out.

However many rows there are, what comes out is bounded: 200 points of a curve, 20 bins, 20 classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data._target import as_weight
from epicycle.report.schema import (
    CalibrationCurve,
    ConfusionCounts,
    Importance,
    PrecisionRecallCurve,
    ResidualBands,
    RocCurve,
    ThresholdCurve,
)

__all__ = ["calibration", "confusion", "importances", "operating_points", "precision_recall", "residuals", "roc"]

#: Docstring entries of the curves of a score.
_DOCS = {
    "y": """y : array-like of shape (n,)
    Booleans: whether a row is of the positive class.""",
    "scores": """scores : array-like of shape (n,)
    Scores, larger for more likely positives.""",
    "most": """most : int, default={default}
    Number of points that are kept, evenly spread along the curve. Areas are those of all points.""",
    "sample_weight": """sample_weight : array-like of shape (n,), optional
    Weights of the rows.""",
}


def calibration(
    y: Any, probability: Any, *, bins: int = 10, level: float = 0.95, sample_weight: Any = None
) -> CalibrationCurve:
    """Observed shares against predicted probabilities, in bins of equal numbers of rows, with Wilson's intervals.

    Equal probabilities are never divided, so that there may be fewer bins. With weights the interval is that of the
    effective number of rows, the square of their sum over the sum of their squares.

    Parameters
    ----------
    y : array-like of shape (n,)
        Booleans: whether a row is of the positive class.
    probability : array-like of shape (n,)
        Predicted probabilities of that class.
    bins : int, default=10
    level : float, default=0.95
        Confidence level of each interval.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    dict
        Lists `predicted`, `observed`, `lower`, `upper` and `counts`.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.calibration([0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75], bins=2)["observed"]
    [0.5, 0.5]
    """
    p, truth, w = _scored(probability, y, sample_weight)
    if p.min() < 0 or p.max() > 1:
        raise DataError(f"probability: {p.min():.4g} to {p.max():.4g}; expected all between 0 and 1")
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r}; expected a number between 0 and 1")
    out: CalibrationCurve = {"predicted": [], "observed": [], "lower": [], "upper": [], "counts": []}
    found: list[tuple[float, ...]] = []
    for part in _equal_parts(p, bins):
        v = w[part]
        if v.sum() == 0:
            continue
        observed, n = float(v @ truth[part] / v.sum()), float(v.sum() ** 2 / (v @ v))
        low, high = wilson(observed, n, level)
        found.append((float(v @ p[part] / v.sum()), observed, low, high, len(part)))
    out["predicted"], out["observed"], out["lower"], out["upper"] = ([row[i] for row in found] for i in range(4))
    out["counts"] = [int(row[4]) for row in found]
    return out


@documented(_DOCS)
def roc(y: Any, scores: Any, *, most: int = 200, sample_weight: Any = None) -> RocCurve:
    """True against false positive rates by falling threshold, and the area under the whole curve.

    Returns
    -------
    dict
        Lists `fpr` and `tpr`, and the number `auc`.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])["auc"]
    0.75
    """
    _, tp, fp = _cumulative(y, scores, sample_weight)
    if not (tp[-1] > 0 and fp[-1] > 0):
        raise DataError("y: all rows are of one class; expected both")
    tpr, fpr = tp / tp[-1], fp / fp[-1]
    auc = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    at = along(fpr, tpr, most)
    return {"fpr": fpr[at].tolist(), "tpr": tpr[at].tolist(), "auc": auc}


@documented(_DOCS)
def precision_recall(y: Any, scores: Any, *, most: int = 200, sample_weight: Any = None) -> PrecisionRecallCurve:
    """Precision against recall by falling threshold.

    Returns
    -------
    dict
        Lists `precision` and `recall`, the numbers `average_precision` (the area as a step function, of all points) and
        `prevalence`.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> round(curves.precision_recall([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])["average_precision"], 4)
    0.8333
    """
    _, tp, fp = _cumulative(y, scores, sample_weight)
    if not tp[-1] > 0:
        raise DataError("y: no row is positive; expected some")
    precision, recall = _precision(tp, fp), tp / tp[-1]
    average = float(np.sum(np.diff(recall) * precision[1:]))
    at = along(recall, precision, most)
    return {
        "precision": precision[at].tolist(),
        "recall": recall[at].tolist(),
        "average_precision": average,
        "prevalence": float(tp[-1] / (tp[-1] + fp[-1])),
    }


@documented(_DOCS)
def operating_points(
    y: Any,
    scores: Any,
    *,
    chosen: float | None = None,
    default: float | None = None,
    most: int = 200,
    sample_weight: Any = None,
) -> ThresholdCurve:
    """Precision, recall and F1 by threshold; scores at or above it count as positive.

    Parameters
    ----------
    chosen, default : float, optional
        Thresholds to mark.

    Returns
    -------
    dict
        Lists `thresholds` (rising), `precision`, `recall` and `f1`, with `chosen` and `default` where given.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.operating_points([0, 1, 1], [0.2, 0.6, 0.9])["recall"]
    [1.0, 1.0, 0.5]
    """
    thresholds, tp, fp = _cumulative(y, scores, sample_weight)
    if not tp[-1] > 0:
        raise DataError("y: no row is positive; expected some")
    precision, recall = _precision(tp, fp)[1:], (tp / tp[-1])[1:]
    f1 = 2 * tp[1:] / (tp[1:] + fp[1:] + tp[-1])
    at = along(thresholds, recall, most)[::-1]
    out: ThresholdCurve = {
        "thresholds": thresholds[at].tolist(),
        "precision": precision[at].tolist(),
        "recall": recall[at].tolist(),
        "f1": f1[at].tolist(),
    }
    if chosen is not None:
        out["chosen"] = float(chosen)
    if default is not None:
        out["default"] = float(default)
    return out


def confusion(
    y: Any, predicted: Any, *, labels: Sequence[Any] | None = None, most: int = 20, sample_weight: Any = None
) -> ConfusionCounts:
    """Rows by true and predicted class; beyond `most` classes the rarest become "other".

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
    labels : sequence, optional
        The classes in the order wanted; by default all that occur, sorted. Rows of classes that are not in it are left
        out.
    most : int, default=20
        Classes that have a row of their own.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    dict
        The list `labels` and the list of lists `counts`, true classes first.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.confusion(["a", "b", "b"], ["a", "a", "b"])
    {'labels': ['a', 'b'], 'counts': [[1, 0], [1, 1]]}
    """
    t, q = np.asarray(y).ravel(), np.asarray(predicted).ravel()
    if t.shape != q.shape or t.size == 0:
        raise DataError(f"predicted: {q.size} rows; y has {t.size}, expected as many and at least one")
    if most < 1:
        raise ParameterError(f"most={most!r}; expected 1 or more")
    w = checked_weights(sample_weight, t.size)
    names = list(dict.fromkeys(labels)) if labels is not None else _sorted(set(t.tolist()) | set(q.tolist()))
    place = {name: i for i, name in enumerate(names)}
    i, j = (np.array([place.get(v, -1) for v in a.tolist()]) for a in (t, q))
    known = (i >= 0) & (j >= 0)
    i, j, w = i[known], j[known], w[known]
    shown = [str(name) for name in names]
    if len(names) > most:
        size = np.bincount(i, w, len(names)) + np.bincount(j, w, len(names)) * 1e-9  # a class that never occurs is last
        kept = np.sort(np.argsort(-size, kind="stable")[:most])
        new = np.full(len(names), most)
        new[kept] = np.arange(most)
        i, j = new[i], new[j]
        shown = [*(shown[k] for k in kept), f"other ({len(names) - most})"]
    k = len(shown)
    counts = np.bincount(i * k + j, w, k * k).reshape(k, k)
    whole = sample_weight is None
    return {"labels": shown, "counts": counts.astype(np.int64).tolist() if whole else counts.tolist()}


def residuals(
    y: Any, predicted: Any, *, bins: int = 20, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
) -> ResidualBands:
    """Quantiles of target minus prediction, in bins of the prediction with equal numbers of rows.

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
    bins : int, default=20
        Fewer where there are less than ten rows for each.
    levels : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)

    Returns
    -------
    dict
        Lists `predicted_edges`, `predicted` (the mean of each bin), `levels`, `counts`, and the list of lists
        `quantiles`, one for each level.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.residuals([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], levels=[0.5])["quantiles"]
    [[0.0]]
    """
    q, t, _ = _scored(predicted, y, None, truth=False)
    if any(not 0 <= level <= 1 for level in levels) or len(levels) == 0:
        raise ParameterError(f"levels={list(levels)!r}; expected numbers between 0 and 1")
    parts = _equal_parts(q, max(1, min(bins, q.size // 10)))
    spread = np.stack([np.quantile(t[part] - q[part], list(levels)) for part in parts], axis=1)
    lows = [float(q[part].min()) for part in parts]
    return {
        "predicted_edges": [*lows, float(q.max())],
        "predicted": [float(q[part].mean()) for part in parts],
        "levels": [float(level) for level in levels],
        "quantiles": spread.tolist(),
        "counts": [len(part) for part in parts],
    }


def importances(names: Sequence[Any], values: Any, *, most: int = 200) -> list[Importance]:
    """Means and standard errors over repetitions, the most important first.

    Parameters
    ----------
    names : sequence of length p
    values : array-like of shape (p,) or (p, repetitions)
        What is lost without each feature; with one repetition there is no standard error.
    most : int, default=200
        How many are kept.

    Returns
    -------
    list of dict
        `name`, `mean` and `se` of each.

    Examples
    --------
    >>> from epicycle.report import curves
    >>> curves.importances(["a", "b"], [[1.0, 3.0], [5.0, 5.0]])
    [{'name': 'b', 'mean': 5.0, 'se': 0.0}, {'name': 'a', 'mean': 2.0, 'se': 1.0}]
    """
    v = np.asarray(values, dtype=np.float64)
    v = v[:, None] if v.ndim == 1 else v
    if v.ndim != 2 or len(v) != len(names) or v.shape[1] == 0:
        raise DataError(f"values: shape {v.shape}; expected ({len(names)},) or ({len(names)}, repetitions)")
    mean, r = v.mean(axis=1), v.shape[1]
    errors = v.std(axis=1, ddof=1) / np.sqrt(r) if r > 1 else np.full(len(v), np.nan)
    order = np.argsort(-np.nan_to_num(mean, nan=-np.inf), kind="stable")[:most]
    return [{"name": str(names[i]), "mean": _or_none(mean[i]), "se": _or_none(errors[i])} for i in order]


# ---------------------------------------------------------------- shared


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share of n rows, which stays inside [0, 1] and is not empty at its ends."""
    if n <= 0:
        return 0.0, 1.0
    z = float(ndtri(0.5 + level / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2))
    return min(max(middle - reach, 0.0), share), max(min(middle + reach, 1.0), share)


def _or_none(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _sorted(found: set[Any]) -> list[Any]:
    try:
        return sorted(found)
    except TypeError:  # labels of several types
        return sorted(found, key=lambda label: (type(label).__name__, str(label)))


def checked_weights(weight: Any, n: int) -> np.ndarray:
    """Weights of n rows, by default ones."""
    checked = as_weight(weight, n)
    return np.ones(n) if checked is None else checked


def _scored(scores: Any, y: Any, weight: Any, *, truth: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, targets and weights as checked arrays of one length."""
    s, t = np.asarray(scores, dtype=np.float64).ravel(), np.asarray(y).ravel()
    if s.shape != t.shape or s.size == 0:
        raise DataError(f"predictions: {s.size} rows; y has {t.size}, expected as many and at least one")
    try:
        t = t.astype(np.float64)
    except ValueError:
        raise DataError("y: expected truth values or numbers") from None
    if not (np.isfinite(s).all() and np.isfinite(t).all()):
        raise DataError("y, predictions: expected finite numbers")
    if truth and not np.isin(t, (0.0, 1.0)).all():
        raise DataError("y: expected truth values, or 0 and 1")
    return s, t, checked_weights(weight, s.size)


def _cumulative(y: Any, scores: Any, weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores, falling; weights of true and false positives at or above each, after a first point (0, 0)."""
    return cumulative_counts(*_scored(scores, y, weight))


def cumulative_counts(s: np.ndarray, t: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of checked scores, truth values and weights."""
    order = np.argsort(-s, kind="stable")
    s, t, w = s[order], t[order], w[order]
    last = np.flatnonzero(np.append(np.diff(s) != 0, True))
    tp, fp = np.cumsum(w * t)[last], np.cumsum(w * (1 - t))[last]
    return s[last], np.append(0.0, tp), np.append(0.0, fp)


def _precision(tp: np.ndarray, fp: np.ndarray) -> np.ndarray:
    """1 where nothing is called positive, as for scikit-learn."""
    called = tp + fp
    return np.where(called > 0, tp / np.where(called > 0, called, 1), 1.0)


def along(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """At most so many points, evenly spread along the curve as it is drawn, with both ends."""
    if most < 2:
        raise ParameterError(f"most={most!r}; expected 2 or more")
    if len(x) <= most:
        return np.arange(len(x))
    spans = [max(float(np.ptp(a)), 1e-300) for a in (x, y)]
    way = np.append(0.0, np.cumsum(np.abs(np.diff(x)) / spans[0] + np.abs(np.diff(y)) / spans[1]))
    at = np.searchsorted(way, np.linspace(0, way[-1], most))
    at[0], at[-1] = 0, len(x) - 1
    return np.unique(np.clip(at, 0, len(x) - 1))


def _equal_parts(values: np.ndarray, bins: int) -> list[np.ndarray]:
    """Rows in parts of about equal size by rising value; equal values stay together."""
    if bins < 1:
        raise ParameterError(f"bins={bins!r}; expected 1 or more")
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    edges = np.unique(np.searchsorted(ranked, ranked[np.arange(1, bins) * len(ranked) // bins]))
    return [part for part in np.split(order, edges) if len(part)]
