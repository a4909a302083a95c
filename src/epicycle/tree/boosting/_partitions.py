"""Work of distributed boosting on one partition of the rows: functions of :class:`epicycle.engine.States`.

A partition has three states, none of which is ever changed in place: its binned rows (:class:`Part`), made once; their
scores and gradients (:class:`Scores`), new in every round; and the nodes of the growing trees that its rows are in
(:class:`epicycle.tree.boosting._partition_nodes.Growing`), new in every pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from epicycle import _native
from epicycle.data import ArrayData
from epicycle.data._quantiles import digit_counts
from epicycle.tree._binning import MISSING, RowMask, bin_matrix
from epicycle.tree._ensemble import Ensemble, n_trees, scores_of_batch
from epicycle.tree.boosting._losses import BoostingLoss, UserLoss
from epicycle.tree.boosting._sums import exact_sum

# ------------------------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class Recipe:
    """Instructions to make a :class:`Part` of rows.

    `table` holds the padded bin edges, `factors` the weights of classes. The rows of the mask `held_out`, where there
    is one, form the validation set: with ``held=True`` these are taken, otherwise the others; without a mask
    ``held=True`` takes all rows, those without weight too. `known` are trees of an earlier fit that started at `start`.
    """

    table: np.ndarray
    factors: np.ndarray | None
    weighted: bool
    held_out: RowMask | None = None
    held: bool = False
    known: Ensemble | None = None
    start: np.ndarray | None = None


@dataclass(frozen=True)
class Part:
    """Binned rows of one partition, their targets and weights, and their scores by trees of an earlier fit."""

    number: int
    rows: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    score: np.ndarray | None


def make_part(data: ArrayData, number: int, start: int, recipe: Recipe) -> Part | None:
    """The training rows of positive weight of a partition, or its part of the validation set."""
    y = np.asarray(data.y, np.float64)
    weight = np.ones(len(y)) if data.weight is None else data.weight
    if recipe.factors is not None:
        weight = weight * recipe.factors[y.astype(np.intp)]
    held_out = np.full(len(y), recipe.held)
    if recipe.held_out is not None:
        held_out = recipe.held_out(start, start + len(y))
    which = held_out if recipe.held else (weight > 0) & ~held_out
    if not which.any():
        return None
    every = bool(which.all())
    X = data.X if every else data.X[which]
    y, weight = np.ascontiguousarray(y[which]), np.ascontiguousarray(weight[which])
    score = None
    if recipe.known is not None and recipe.start is not None:
        chosen = ArrayData(X).rows(0, X.shape[0])
        scores = scores_of_batch(chosen, recipe.known, recipe.start, 0, n_trees(recipe.known), 1)
        score = np.ascontiguousarray(scores.T)
    return Part(number, bin_matrix(X, recipe.table, 1), y, weight if recipe.weighted else None, score)


class Extremes:
    """Smallest and largest numbers; their sum takes the smaller and the larger."""

    def __init__(self, smallest: np.ndarray, largest: np.ndarray) -> None:
        self.smallest, self.largest = smallest, largest

    def __add__(self, other: Extremes) -> Extremes:
        return Extremes(np.minimum(self.smallest, other.smallest), np.maximum(self.largest, other.largest))


def summary(part: Part, n_parts: int) -> tuple[Any, ...]:
    """Rows by partition, total weight, missing values by column, extremes of y, |w y| and w, and whether w is given."""
    weight = np.ones(1) if part.weight is None else part.weight
    rows = np.zeros(n_parts, np.int64)
    rows[part.number] = len(part.y)
    total = float(len(part.y) if part.weight is None else weight.sum())
    largest = np.array([part.y.max(), np.abs(part.y * weight).max(), weight.max()])
    extremes = Extremes(np.array([part.y.min()]), largest)
    return rows, total, (part.rows == MISSING).sum(axis=0), extremes, int(part.weight is not None)


def target_sums(part: Part, scale: float, weight_scale: float, n_classes: int) -> tuple[Any, ...]:
    """Exact sums of w y and of w; for several classes the sums of w of each."""
    weight = np.ones(len(part.y)) if part.weight is None else part.weight
    if n_classes > 1:
        return tuple(exact_sum(weight[part.y == k], weight_scale) for k in range(n_classes))
    return exact_sum(part.y * weight, scale), exact_sum(weight, weight_scale)


def target_digits(part: Part, begin: np.ndarray, shift: int, bits: int) -> tuple[np.ndarray]:
    """Counts of the digits of the targets, for a distributed quantile."""
    group = np.zeros(len(part.y), np.intp)
    return (digit_counts(part.y, group, part.weight, begin, shift, bits),)


def start_slopes(part: Part, loss: UserLoss, s: float) -> tuple[float, float]:
    """Sums of gradient and curvature at one score for all rows."""
    return loss.slopes(part.y, part.weight, s)


# ------------------------------------------------------------------------------------------------ scores


class Move(NamedTuple):
    """A tree for one output and what its nodes add to the scores."""

    output: int
    feature: np.ndarray
    left: np.ndarray
    sides: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Scores:
    """Scores (K, n), gradients and curvatures (K, n, 2), and their sums."""

    score: np.ndarray
    gh: np.ndarray
    loss: float
    abs_gradient: np.ndarray
    curvature: np.ndarray


def begin_scores(part: Part, loss: BoostingLoss, start: np.ndarray, moves: list[Move]) -> Scores:
    """The scores after all moves since the fit began."""
    score = np.repeat(start[:, None], len(part.y), axis=1) if part.score is None else part.score.copy()
    return _evaluated(part, loss, score, moves)


def moved_scores(scores: Scores, part: Part, loss: BoostingLoss, moves: list[Move]) -> Scores:
    """The scores after some more moves."""
    return _evaluated(part, loss, scores.score.copy(), moves)


def _evaluated(part: Part, loss: BoostingLoss, score: np.ndarray, moves: list[Move]) -> Scores:
    for move in moves:
        _native.tree.predict_bins(part.rows, move.feature, move.left, move.sides, move.value, score[move.output], 1)
    gh = np.empty((*score.shape, 2), np.float32)
    now = loss.evaluate(part.y, part.weight, score, gh, 1)
    return Scores(score, gh, now.loss, now.abs_gradient, now.curvature)


def score_sums(scores: Scores) -> tuple[Any, ...]:
    """Total loss, and for each output the sums of |gradient| and of curvature."""
    return scores.loss, scores.abs_gradient, scores.curvature
