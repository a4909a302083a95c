"""Standard errors over folds, and bootstrap intervals of scores.

Scores of k folds are not independent, because their training rows overlap. The plain standard error describes one
model; for the difference of two models Nadeau and Bengio's variance s^2 (1/k + n_test / n_train) keeps the test at its
level (Machine Learning 52, 2003).

A score is resampled as a function of counts, how often each row was drawn: no row is copied. The interval is Efron's
bias-corrected and accelerated one (BCa, JASA 82, 1987), widened for small samples as Student's t is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

ScoreOfCounts = Callable[[np.ndarray], float]

#: Fewer finite draws than this have no 2.5% quantile to speak of.
MIN_DRAWS = 50


def standard_error(scores: np.ndarray) -> Any:
    """Standard error of the mean over the last axis; NaN where there is one score only."""
    k = scores.shape[-1]
    if k < 2:
        return np.full(scores.shape[:-1], np.nan)[()]
    exponent = np.frexp(np.abs(scores).max(initial=0.0))[1]  # squares of scores may be beyond floating point
    return np.ldexp(np.std(np.ldexp(scores, -exponent), axis=-1, ddof=1) / np.sqrt(k), exponent)


def corrected_error(differences: np.ndarray, ratio: float) -> Any:
    """Standard error of differences over folds that share training rows; `ratio` is that of test to training rows."""
    k = differences.shape[-1]
    if k < 2:
        return np.full(differences.shape[:-1], np.nan)[()]
    return np.std(differences, axis=-1, ddof=1) * np.sqrt(1 / k + ratio)


def t_quantile(k: int) -> float:
    """97.5% quantile of Student's t for k folds: the multiple of its standard error that a difference has to exceed."""
    return float(stdtrit(max(k - 1, 1), 0.975))


def score_of_counts(
    name: str,
    responses: Mapping[str, np.ndarray],
    y: np.ndarray,
    classes: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> ScoreOfCounts | None:
    """The metric `name` as a function of the counts of rows, larger is better; None where it is not known as one."""
    v = np.ones(len(y)) if weight is None else weight
    if name in ("r2", "rmse", "mse", "mae"):
        return _numeric_score(name, np.asarray(responses["predict"], dtype=np.float64), y.astype(np.float64), v)
    if name in ("accuracy", "balanced_accuracy"):
        right = (responses["predict"] == y).astype(np.float64)
        if name == "accuracy":
            return lambda c: float((c * v) @ right / (c @ v))
        return _balanced_accuracy(right, np.searchsorted(np.asarray(classes), y), len(np.asarray(classes)), v)
    if "predict_proba" not in responses or classes is None:
        return None
    p = responses["predict_proba"]
    if name == "log_loss":
        tiny = np.finfo(p.dtype).eps  # as scikit-learn clips
        loss = -np.log(np.clip(p[np.arange(len(y)), np.searchsorted(classes, y)], tiny, 1 - tiny))
        return lambda c: -float((c * v) @ loss / (c @ v))
    if name == "brier":
        squares = ((p - (np.asarray(classes)[None, :] == y[:, None])) ** 2).sum(axis=1)
        square = squares / 2 if len(classes) == 2 else squares  # as scikit-learn has it: the square of one class of two
        return lambda c: -float((c * v) @ square / (c @ v))
    if name in ("roc_auc", "average_precision") and len(classes) == 2:
        return _area_under_curve(name, p[:, 1], y == classes[1], v)
    return None


def _balanced_accuracy(right: np.ndarray, codes: np.ndarray, n_classes: int, v: np.ndarray) -> ScoreOfCounts:
    def balanced(c: np.ndarray) -> float:
        w = c * v
        total = np.bincount(codes, w, n_classes)
        hit = np.bincount(codes, w * right, n_classes)
        return float(np.mean(hit[total > 0] / total[total > 0]))

    return balanced


def _numeric_score(name: str, predicted: np.ndarray, y: np.ndarray, v: np.ndarray) -> ScoreOfCounts:
    residual = y - predicted
    if name == "r2":
        centred = y - y.mean()  # sum w (y - mean_w)^2 = sum w c^2 - (sum w c)^2 / sum w, without cancellation

        def r2(c: np.ndarray) -> float:
            w = c * v
            total = w @ centred**2 - (w @ centred) ** 2 / w.sum()
            return float(1 - (w @ residual**2) / total) if total > 0 else np.nan

        return r2
    loss, root = np.abs(residual) if name == "mae" else residual**2, name == "rmse"

    def mean(c: np.ndarray) -> float:
        value = float((c * v) @ loss / (c @ v))
        return -(np.sqrt(value) if root else value)

    return mean


def _area_under_curve(name: str, score: np.ndarray, positive: np.ndarray, v: np.ndarray) -> ScoreOfCounts:
    """ROC AUC or average precision: rows are sorted once, and ties are taken together."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)  # of each distinct score
    truth, v = positive[order].astype(np.float64), v[order]

    def cumulative(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w = c[order] * v
        true, false = np.cumsum(w * truth)[last], np.cumsum(w * (1 - truth))[last]
        return np.concatenate([[0.0], true]), np.concatenate([[0.0], false])

    def roc_auc(c: np.ndarray) -> float:
        tp, fp = cumulative(c)
        if tp[-1] == 0 or fp[-1] == 0:
            return np.nan
        return float(np.sum(np.diff(fp) * (tp[1:] + tp[:-1]) / 2) / (tp[-1] * fp[-1]))

    def average_precision(c: np.ndarray) -> float:
        tp, fp = cumulative(c)
        if tp[-1] == 0:
            return np.nan
        selected = tp[1:] + fp[1:]
        precision = np.divide(tp[1:], selected, out=np.zeros_like(selected), where=selected > 0)
        return float(np.sum(np.diff(tp) / tp[-1] * precision))

    return roc_auc if name == "roc_auc" else average_precision


def bca_interval(
    score: float,
    draws: np.ndarray,
    score_of_rows: Callable[[np.ndarray], float],
    n: int,
    level: float,
    *,
    n_groups: int = 100,
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a score from its bootstrap draws.

    Parameters
    ----------
    score : float
        Of all n rows.
    draws : ndarray
        Scores of rows drawn with replacement; those that are not finite are left out.
    score_of_rows : callable
        The score of the rows that a mask keeps, for the jackknife, which leaves out one of `n_groups` at a time.
    n : int
    level : float
    n_groups : int, default=100
    """
    draws = draws[np.isfinite(draws)]
    if len(draws) < MIN_DRAWS:
        return np.nan, np.nan
    if np.ptp(draws) == 0:
        return score, score
    groups = np.arange(n) % min(n, n_groups)
    left_out = np.array([score_of_rows(groups != g) for g in range(int(groups.max()) + 1)])
    left_out = left_out[np.isfinite(left_out)]
    d = left_out.mean() - left_out if len(left_out) else np.zeros(1)
    spread = float((d**2).sum())
    acceleration = float((d**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0
    share_below = (np.sum(draws < score) + 0.5 * np.sum(draws == score)) / len(draws)
    z0 = float(ndtri(np.clip(share_below, 0.01, 0.99)))
    reach = float(stdtrit(n - 1, 0.5 + level / 2) * np.sqrt(n / (n - 1)))
    # The denominator is kept positive: with heavy tails the expansion behind BCa would turn the interval around.
    ends = [z0 + (z0 + z) / max(1 - acceleration * (z0 + z), 0.05) for z in (-reach, reach)]
    low, high = (float(np.quantile(draws, ndtr(end))) for end in ends)
    return low, high
