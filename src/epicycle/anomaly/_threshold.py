"""Thresholds of scores: by a share of the rows, by labelled rows (F1), by conformal p-values.

A score is low where a row is unusual, and a row is an anomaly where its score is below the threshold epsilon.

*F1.* With TP, FP and FN the anomalies found, the normal rows reported and the anomalies missed,
``F1 = 2 TP / (2 TP + FP + FN)``. Only gaps between neighbouring scores give different answers, so that all of them are
tried: one sort.

*Conformal p-values.* For m normal rows that the fit did not see, with scores s_1 .. s_m, a further normal row with
score s has ``p = (1 + #{i : s_i <= s}) / (m + 1)``, and P(p <= a) <= a whatever the detector. The procedure of
Benjamini and Hochberg (1995) reports the rows with the k smallest p-values, k the largest with ``p_(k) <= k fdr / n``;
the expected share of normal rows among those reported is then at most fdr (Bates et al., 2023, for p-values that share
their calibration rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, DataTypeError


@dataclass(frozen=True)
class LabelledThreshold:
    """A threshold and what it does to the labelled rows."""

    offset: float
    f1: float
    precision: float
    recall: float


def is_label(y: Any) -> bool:
    """Whether y holds two kinds of labels: True and False, 1 and 0, or -1 and 1."""
    values = np.asarray(y)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or values.size == 0:
        return False
    found = set(np.unique(values).tolist())
    return found in ({0, 1}, {-1, 1})


def anomalies_of(y: Any, n: int) -> np.ndarray:
    """Mask of the anomalies: True or 1 among True and False or 1 and 0, or scikit-learn's -1 among -1 and 1."""
    values = np.asarray(y)
    if values.ndim != 1 or len(values) != n:
        raise DataError(f"y: has the shape {values.shape}; expected a label for each of {n} rows")
    if values.dtype.kind not in "biuf":
        raise DataTypeError(
            f"y: holds {values.dtype}; expected labels True (anomaly) and False, 1 (anomaly) and 0, or -1 (anomaly) "
            "and 1"
        )
    if not is_label(values):
        shown = ", ".join(f"{v:g}" for v in np.unique(values)[:6].astype(float))
        raise DataError(
            f"y: holds {shown}; expected both labels of True (anomaly) and False, 1 (anomaly) and 0, or -1 (anomaly) "
            "and 1"
        )
    return np.asarray(values < 0) if values.min() < 0 else np.asarray(values > 0)


def share_threshold(scores: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """The quantile of the scores below which this share of the rows lies; a row of weight v counts as v rows."""
    if weight is None:
        return float(np.percentile(scores, 100.0 * share))
    order = np.argsort(scores, kind="stable")
    order = order[weight[order] > 0]
    ends = np.cumsum(weight[order])
    place = max(float(ends[-1]) - 1.0, 0.0) * share
    low, high = (min(int(np.searchsorted(ends, at, side="right")), len(order) - 1) for at in (place, place + 1.0))
    below, above = float(scores[order[low]]), float(scores[order[high]])
    within = place - np.floor(place)
    if np.floor(place) + 1.0 < ends[low]:  # the next of the repeated rows is the same row
        above = below
    return float(below + (above - below) * within)


def f1_threshold(scores: np.ndarray, anomaly: np.ndarray, weight: np.ndarray | None = None) -> LabelledThreshold:
    """The threshold of the largest F1; of several the one that reports the fewest rows."""
    w = np.ones(len(scores)) if weight is None else weight
    order = np.argsort(scores, kind="stable")
    s = scores[order]
    hits = np.concatenate([[0.0], np.cumsum(np.where(anomaly, w, 0.0)[order])])
    reported = np.concatenate([[0.0], np.cumsum(w[order])])
    if not hits[-1] > 0:
        raise DataError("y: no anomaly has a positive weight; expected some, F1 is about them")
    ends = np.concatenate([[True], s[1:] > s[:-1], [True]])  # rows of one score are reported together
    f1 = np.where(ends, 2 * hits / (reported + hits[-1]), -1.0)
    f1[0] = -1.0
    k = int(np.argmax(f1))
    # Halfway to the next score: a new row has to be nearer to the anomalies than to the others.
    offset = float(np.nextafter(s[-1], np.inf)) if k == len(s) else float(s[k - 1] / 2 + s[k] / 2)
    if k < len(s) and not s[k - 1] < offset <= s[k]:
        offset = float(s[k])
    share = hits[k] / reported[k] if reported[k] > 0 else 0.0
    return LabelledThreshold(offset, float(f1[k]), float(share), float(hits[k] / hits[-1]))


def conformal_p_values(scores: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """p-values of scores against the sorted scores of normal rows."""
    return np.asarray((1.0 + np.searchsorted(calibration, scores, side="right")) / (len(calibration) + 1.0))


def benjamini_hochberg(p: np.ndarray, fdr: float) -> np.ndarray:
    """Mask of the hypotheses that are rejected with a false discovery rate of at most `fdr`."""
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= fdr * np.arange(1, len(p) + 1) / len(p))
    rejected = np.zeros(len(p), dtype=bool)
    if len(below):
        rejected[order[: below[-1] + 1]] = True
    return rejected
