"""Intervals of scores by resampling rows, quickly: a score as a function of how often each row counts.

Efron's bias-corrected and accelerated bootstrap, widened for small samples as Student's t is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from epicycle.core._random import stream

__all__ = ["accelerated_interval", "score_of_counts"]

ScoreOfCounts = Callable[[np.ndarray], float]

_MOST_DRAWS, _LEAST_DRAWS = 1000, 200


def score_of_counts(
    name: str, responses: Mapping[str, np.ndarray], y: np.ndarray, classes: np.ndarray | None, weight: np.ndarray | None
) -> ScoreOfCounts | None:
    """The metric `name` as a function of the counts of rows; larger is better. None where it is not known as one."""
    v = np.ones(len(y)) if weight is None else weight
    if classes is None:
        return _of_numbers(name, np.asarray(responses["predict"], dtype=np.float64), y.astype(np.float64), v)
    if name in ("accuracy", "balanced_accuracy"):
        right = (responses["predict"] == y).astype(np.float64)
        if name == "accuracy":
            return lambda c: float((c * v) @ right / (c @ v))
        code = np.searchsorted(classes, y)

        def balanced(c: np.ndarray) -> float:
            w = c * v
            total = np.bincount(code, w, len(classes))
            hit = np.bincount(code, w * right, len(classes))
            return float(np.mean(hit[total > 0] / total[total > 0]))

        return balanced
    if "predict_proba" not in responses:
        return None
    p = responses["predict_proba"]
    if name == "log_loss":
        tiny = np.finfo(p.dtype).eps
        loss = -np.log(np.clip(p[np.arange(len(y)), np.searchsorted(classes, y)], tiny, 1 - tiny))
        return lambda c: -float((c * v) @ loss / (c @ v))
    if name in ("roc_auc", "average_precision") and len(classes) == 2:
        return _of_ranks(name, p[:, 1], y == classes[1], v)
    return None


def _of_numbers(name: str, said: np.ndarray, y: np.ndarray, v: np.ndarray) -> ScoreOfCounts | None:
    off = y - said
    if name == "r2":
        at = y.mean()

        def r2(c: np.ndarray) -> float:
            w = c * v
            total = w @ (y - at) ** 2 - (w @ (y - at)) ** 2 / w.sum()
            return float(1 - (w @ off**2) / total) if total > 0 else np.nan

        return r2
    if name not in ("rmse", "mse", "mae"):
        return None
    loss, root = np.abs(off) if name == "mae" else off**2, name == "rmse"

    def mean(c: np.ndarray) -> float:
        value = float((c * v) @ loss / (c @ v))
        return -(np.sqrt(value) if root else value)

    return mean


def _of_ranks(name: str, score: np.ndarray, positive: np.ndarray, v: np.ndarray) -> ScoreOfCounts:
    """Areas under curves: rows are sorted once, and ties are taken together."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)  # of each distinct score
    truth, v = positive[order].astype(np.float64), v[order]

    def cumulative(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w = c[order] * v
        return np.concatenate([[0.0], np.cumsum(w * truth)[last]]), np.concatenate(
            [[0.0], np.cumsum(w * (1 - truth))[last]]
        )

    def roc_auc(c: np.ndarray) -> float:
        tp, fp = cumulative(c)
        if tp[-1] == 0 or fp[-1] == 0:
            return np.nan
        return float(np.sum(np.diff(fp) * (tp[1:] + tp[:-1]) / 2) / (tp[-1] * fp[-1]))

    def average_precision(c: np.ndarray) -> float:
        tp, fp = cumulative(c)
        if tp[-1] == 0:
            return np.nan
        said = tp[1:] + fp[1:]
        return float(np.sum(np.diff(tp) / tp[-1] * np.divide(tp[1:], said, out=np.zeros_like(said), where=said > 0)))

    return roc_auc if name == "roc_auc" else average_precision


def accelerated_interval(
    score: ScoreOfCounts, n: int, level: float, seed: int, seconds: float = 1.0
) -> tuple[float, float, float]:
    """The score of all rows, and its interval from rows drawn with replacement; fewer draws where they take long."""
    whole = score(np.ones(n))
    if n < 3:
        return whole, np.nan, np.nan
    rng, began, draws = stream(seed, "resample"), time.perf_counter(), []
    for b in range(_MOST_DRAWS):
        draws.append(score(np.bincount(rng.integers(0, n, n), minlength=n)))
        if b + 1 >= _LEAST_DRAWS and time.perf_counter() - began > seconds:
            break
    values = np.array(draws)
    values = values[np.isfinite(values)]
    if len(values) < 50:
        return whole, np.nan, np.nan
    if np.ptp(values) == 0:
        return whole, whole, whole
    groups = np.arange(n) % min(n, 60)
    left_out = np.array([score((groups != g).astype(np.int64)) for g in range(int(groups.max()) + 1)])
    left_out = left_out[np.isfinite(left_out)]
    d = left_out.mean() - left_out if len(left_out) else np.zeros(1)
    spread = float((d**2).sum())
    a = float((d**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0
    z0 = float(ndtri(np.clip((np.sum(values < whole) + 0.5 * np.sum(values == whole)) / len(values), 0.01, 0.99)))
    reach = float(stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(n / (n - 1)))
    ends = [z0 + (z0 + z) / max(1 - a * (z0 + z), 0.05) for z in (-reach, reach)]
    low, high = (float(np.quantile(values, ndtr(end))) for end in ends)
    return whole, low, high
