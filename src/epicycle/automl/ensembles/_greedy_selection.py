"""Weights of an ensemble by greedy selection with replacement (Caruana, Niculescu-Mizil, Crew, Ksikes 2004).

With out-of-fold predictions P_m of the members, weights are counts c_m / sum c: beginning with the best member, the
member is added again and again that makes the score of the mean the best, until none improves it. What the weights are
worth is measured on folds that had no part in them: each fold is scored with the weights that the others give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epicycle.automl._metrics import Metric
from epicycle.core._random import stream
from epicycle.stats._intervals import standard_error

#: Rows of a fold at most by which members are compared: the selection then takes seconds at most.
_MOST_ROWS = 4_000
#: Selections at most: weights are then multiples of a twelfth or more.
MOST_STEPS = 12
#: Members at most, and the least weight of one: each has to be fitted to all rows, stored and asked.
_MOST_MEMBERS, _LEAST_WEIGHT = 4, 0.08
#: Shares below this count as this in the log loss, as in that of the search.
_LEAST_SHARE = float(np.finfo(np.float64).eps)

Responses = Mapping[str, np.ndarray]


def _log_loss(p: np.ndarray, codes: np.ndarray) -> float:
    shares = p[np.arange(len(codes)), codes] / p.sum(axis=1)
    return float(np.log(np.clip(shares, _LEAST_SHARE, 1.0)).mean())


def _r2(predicted: np.ndarray, y: np.ndarray) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    return 1 - float(((y - predicted) ** 2).sum()) / total if total > 0 else float("nan")


#: Scores, larger is better, of probabilities and numbers of classes, or of two arrays of numbers.
_DIRECT: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "log_loss": _log_loss,
    "accuracy": lambda p, codes: float((p.argmax(axis=1) == codes).mean()),
    "r2": _r2,
    "rmse": lambda predicted, y: -float(np.sqrt(((y - predicted) ** 2).mean())),
    "mse": lambda predicted, y: -float(((y - predicted) ** 2).mean()),
    "mae": lambda predicted, y: -float(np.abs(y - predicted).mean()),
}


@dataclass(frozen=True)
class Fold:
    """Targets of the test rows of a fold, and the predictions of each member."""

    y: np.ndarray
    weight: np.ndarray | None
    members: Sequence[np.ndarray]

    def score(self, predicted: np.ndarray, metric: Metric) -> float:
        """The score of predictions; of the most usual metrics by a few array operations, a hundred times as fast."""
        direct = _DIRECT.get(metric.name)
        if direct is not None and self.weight is None:
            y = self.y if metric.classes is None else np.searchsorted(metric.classes, self.y)
            return direct(predicted, y)
        return metric.score(responses_of_mean(predicted, metric), self.y, self.weight)

    def of(self, rows: np.ndarray) -> Fold:
        """The same for some of its rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Fold(self.y[rows], weight, [member[rows] for member in self.members])


@dataclass(frozen=True)
class Selection:
    """Weights of the members, and by fold the score with the weights that the other folds give."""

    weights: np.ndarray
    scores: np.ndarray

    def gain_over(self, single: np.ndarray) -> tuple[float, float]:
        """The mean gain over the scores of a single member on the same folds, and its standard error."""
        gain = self.scores - single
        return float(gain.mean()), float(standard_error(gain))


def responses_of_mean(predicted: np.ndarray, metric: Metric) -> Responses:
    """Predictions of a mean: probabilities and the most probable class, or numbers."""
    if metric.classes is None:
        return {"predict": predicted}
    return {"predict": metric.classes[predicted.argmax(axis=1)], "predict_proba": predicted}


def greedy_selection(folds: Sequence[Fold], metric: Metric, seed: int = 0) -> Selection:
    """Select weights on all folds, and score each fold with the weights of the others."""
    some = [_part(fold, seed) for fold in folds]
    weights = _selected(some, metric)
    scores = []
    for j, fold in enumerate(folds):
        of_others = _selected([other for i, other in enumerate(some) if i != j], metric)
        scores.append(_score(fold, of_others, metric))
    return Selection(weights, np.array(scores))


def weighted_mean(members: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """The mean of the predictions of members by their weights."""
    total: np.ndarray = sum(w * member for w, member in zip(weights, members, strict=True) if w > 0)
    return total


def _part(fold: Fold, seed: int) -> Fold:
    if len(fold.y) <= _MOST_ROWS:
        return fold
    return fold.of(stream(seed, "selection").choice(len(fold.y), _MOST_ROWS, replace=False))


def _score(fold: Fold, weights: np.ndarray, metric: Metric) -> float:
    return fold.score(weighted_mean(fold.members, weights), metric)


def _merit(folds: Sequence[Fold], sums: Sequence[np.ndarray], n: int, m: int, metric: Metric) -> tuple[float, float]:
    """Mean score over the folds when member m is added to the sums of n, and the second criterion between equals."""
    scores, ties = [], []
    for fold, total in zip(folds, sums, strict=True):
        predicted = (total + fold.members[m]) / (n + 1)
        scores.append(fold.score(predicted, metric))
        ties.append(_tie(predicted, fold.y, metric))
    mean = float(np.mean(scores))
    return (round(mean, 12), float(np.mean(ties))) if np.isfinite(mean) else (-np.inf, -np.inf)


def _tie(predicted: np.ndarray, y: np.ndarray, metric: Metric) -> float:
    """The second criterion, larger is better: log loss of classes, squared error of numbers, as in the search."""
    if metric.classes is None:
        return -float(((y - predicted) ** 2).mean())
    return _log_loss(predicted, np.searchsorted(metric.classes, y))


def _selected(folds: Sequence[Fold], metric: Metric) -> np.ndarray:
    """Weights of the members that the selection leaves, few and none of them tiny."""
    size = len(folds[0].members)
    counts = np.zeros(size)
    sums = [np.zeros_like(fold.members[0], dtype=np.float64) for fold in folds]
    best = (-np.inf, -np.inf)
    for step in range(MOST_STEPS):
        # Once enough members are in, only they may be added again.
        open_to = range(size) if np.count_nonzero(counts) < _MOST_MEMBERS else np.flatnonzero(counts)
        merits = {int(m): _merit(folds, sums, step, int(m), metric) for m in open_to}
        chosen = max(merits, key=lambda m: merits[m])
        if merits[chosen] <= best:
            break
        best = merits[chosen]
        counts[chosen] += 1
        for total, fold in zip(sums, folds, strict=True):
            total += fold.members[chosen]
    if not counts.any():
        counts[0] = 1
    weights = counts / counts.sum()
    weights[weights < _LEAST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())
