"""What is done where a partition of the rows is: functions of states, for :class:`epicycle.engine.States`.

A partition has three states, none of which is ever changed: its binned rows (:class:`Part`), which stay as they are;
their scores and gradients (:class:`Scores`), new in every round; and for the trees that grow from these, which rows are
in which node (:class:`Growing`), new in every pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epicycle import _native
from epicycle.data import ArrayData
from epicycle.tree.binning import bin_matrix, row_priorities
from epicycle.tree.boosting import drawn_rows, with_weights
from epicycle.tree.ensemble import Ensemble, n_trees, scores_of_batch
from epicycle.tree.exact import exact_sum
from epicycle.tree.losses import Loss, UserLoss
from epicycle.tree.selection import digit_counts

__all__ = [
    "Draw",
    "Extremes",
    "Growing",
    "Move",
    "Part",
    "Recipe",
    "Scores",
    "Shape",
    "Step",
    "begin_growing",
    "begin_scores",
    "count_drawn",
    "divided",
    "histograms",
    "leaf_numbers",
    "leaf_slopes",
    "leaf_sums",
    "leaf_weights",
    "make_part",
    "moved_scores",
    "residual_digits",
    "root_histograms",
    "score_sums",
    "start_slopes",
    "summary",
    "target_digits",
    "target_sums",
]


# ------------------------------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class Recipe:
    """How rows become a :class:`Part`.

    `table` holds the padded cuts, `factors` those on the weights of classes. Of rows whose priority by `seed` is at
    most `threshold`, where there is one, only those are taken, with ``held=True``, or none. `known` are trees of an
    earlier fit that started at `start`.
    """

    table: np.ndarray
    factors: np.ndarray | None
    weighted: bool
    seed: int = 0
    threshold: int | None = None
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
    """The rows that are learnt from, those of positive weight, or the ones that are kept apart."""
    y = np.asarray(data.y, np.float64)
    weight = np.ones(len(y)) if data.weight is None else data.weight
    if recipe.factors is not None:
        weight = weight * recipe.factors[y.astype(np.intp)]
    apart = np.zeros(len(y), bool)
    if recipe.threshold is not None:
        apart = row_priorities(start, start + len(y), recipe.seed) <= np.uint64(recipe.threshold)
    which = apart if recipe.held else (weight > 0) & ~apart
    if not which.any():
        return None
    every = bool(which.all())
    X = data.X if every else data.X[which]
    y, weight = np.ascontiguousarray(y[which]), np.ascontiguousarray(weight[which])
    score = None
    if recipe.known is not None:
        chosen = ArrayData(X).rows(0, X.shape[0])
        scores = scores_of_batch(chosen, recipe.known, recipe.start, 0, n_trees(recipe.known), 1)
        score = np.ascontiguousarray(scores.T)
    return Part(number, bin_matrix(X, recipe.table, 1), y, weight if recipe.weighted else None, score)


class Extremes:
    """Smallest and largest numbers; they add up by taking the smaller and the larger."""

    def __init__(self, smallest: np.ndarray, largest: np.ndarray) -> None:
        self.smallest, self.largest = smallest, largest

    def __add__(self, other: Extremes) -> Extremes:
        return Extremes(np.minimum(self.smallest, other.smallest), np.maximum(self.largest, other.largest))


def summary(part: Part, n_parts: int) -> tuple[Any, ...]:
    """Rows by partition, total weight, missing values by column, extremes of y, and of |w y| and w; are there weights?"""
    weight = np.ones(1) if part.weight is None else part.weight
    rows = np.zeros(n_parts, np.int64)
    rows[part.number] = len(part.y)
    total = float(len(part.y) if part.weight is None else weight.sum())
    most = np.array([part.y.max(), np.abs(part.y * weight).max(), weight.max()])
    extremes = Extremes(np.array([part.y.min()]), most)
    return rows, total, (part.rows == 255).sum(axis=0), extremes, int(part.weight is not None)


def target_sums(part: Part, scale: float, weight_scale: float, n_classes: int) -> tuple[Any, ...]:
    """Exact sums of w y and of w; for several classes the sums of w of each."""
    weight = np.ones(len(part.y)) if part.weight is None else part.weight
    if n_classes > 1:
        return tuple(exact_sum(weight[part.y == k], weight_scale) for k in range(n_classes))
    return exact_sum(part.y * weight, scale), exact_sum(weight, weight_scale)


def target_digits(part: Part, begin: np.ndarray, shift: int, bits: int) -> tuple[np.ndarray]:
    """Digits of the targets, for a quantile of them."""
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


def begin_scores(part: Part, loss: Loss | UserLoss, start: np.ndarray, moves: list[Move]) -> Scores:
    """The scores after all moves since the fit began."""
    score = np.repeat(start[:, None], len(part.y), axis=1) if part.score is None else part.score.copy()
    return _evaluated(part, loss, score, moves)


def moved_scores(scores: Scores, part: Part, loss: Loss | UserLoss, moves: list[Move]) -> Scores:
    """The scores after some more moves."""
    return _evaluated(part, loss, scores.score.copy(), moves)


def _evaluated(part: Part, loss: Loss | UserLoss, score: np.ndarray, moves: list[Move]) -> Scores:
    for move in moves:
        _native.predict_bins(part.rows, move.feature, move.left, move.sides, move.value, score[move.output], 1)
    gh = np.empty((*score.shape, 2), np.float32)
    now = loss.evaluate(part.y, part.weight, score, gh, 1)
    return Scores(score, gh, now.loss, now.abs_gradient, now.curvature)


def score_sums(scores: Scores) -> tuple[Any, ...]:
    """Total loss, and for each output the sums of |gradient| and of curvature."""
    return scores.loss, scores.abs_gradient, scores.curvature


# ------------------------------------------------------------------------------------------------ nodes


@dataclass(frozen=True)
class Draw:
    """Which rows a round sees: by their number among all that are learnt from, partition i beginning at `starts[i]`."""

    seed: int
    number: int
    subsample: float
    starts: np.ndarray

    def rows(self, part: Part) -> np.ndarray:
        """Numbers within the partition."""
        start = int(self.starts[part.number])
        rows = drawn_rows(self.seed, self.number, self.subsample, start, start + len(part.y))
        return np.arange(len(part.y), dtype=np.uint32) if rows is None else rows


def count_drawn(part: Part, draw: Draw) -> tuple[int]:
    """How many rows a round sees."""
    return (len(draw.rows(part)),)


class Step(NamedTuple):
    """A split to make: the node of a tree, by what, and the number of its left child; the right one is the next."""

    output: int
    node: int
    feature: int
    sides: np.ndarray
    left: int


@dataclass(frozen=True)
class Growing:
    """Of every output the packed gradients, the rows in the order of nodes, and the piece of them of each node.

    Nodes stay when they are divided: the pieces of children make up that of their parent.
    """

    packed: tuple[np.ndarray, ...]
    order: tuple[np.ndarray, ...]
    pieces: tuple[dict[int, tuple[int, int]], ...]
    extremes: Extremes


def begin_growing(
    part: Part, scores: Scores, measures: np.ndarray, draw: Draw, first_order: bool, first_row: bool
) -> Growing:  # fmt: skip
    """All rows of the round in the root of each tree. `measures` (K, 6) says what gradients are measured by; with
    `first_row` nothing was drawn, and the first row stands for it."""
    rows = draw.rows(part)
    if first_row and int(draw.starts[part.number]) == 0:
        rows = np.zeros(1, np.uint32)
    packed = np.empty((len(measures), len(part.y)), np.int64)
    found = np.empty((len(measures), 3))
    for k, measure in enumerate(measures):
        found[k] = _native.quantise_rows(_gradients(part, scores, k, first_order), rows, measure, packed[k])
    pieces = tuple({0: (0, len(rows))} for _ in measures)
    extremes = Extremes(found[:, 0], found[:, 1:])
    return Growing(tuple(packed), (rows,) * len(measures), pieces, extremes)


def _gradients(part: Part, scores: Scores, k: int, first_order: bool) -> np.ndarray:
    return with_weights(scores.gh[k], part.weight) if first_order else scores.gh[k]


def divided(growing: Growing, part: Part, steps: list[Step]) -> Growing:
    """The rows after some more splits."""
    order, pieces = list(growing.order), [dict(piece) for piece in growing.pieces]
    for k in {step.output for step in steps}:
        order[k] = order[k].copy()
    for step in steps:
        begin, end = pieces[step.output][step.node]
        piece = order[step.output][begin:end]
        middle = begin + _native.divide_rows(part.rows, step.feature, step.sides, piece)
        pieces[step.output].update({step.left: (begin, middle), step.left + 1: (middle, end)})
    return replace(growing, order=tuple(order), pieces=tuple(pieces))


class Shape(NamedTuple):
    """What histograms are of: features, the number of bins of all columns, and whether rows are counted beside."""

    features: np.ndarray
    n_bins: np.ndarray
    counted: bool

    @property
    def cells(self) -> np.ndarray:
        """Which of the f * 256 cells can be filled, and travel: the bins of numbers, and that of missing values."""
        cells = [256 * k + np.append(np.arange(self.n_bins[j]), 255) for k, j in enumerate(self.features)]
        return np.concatenate(cells) if cells else np.empty(0, np.intp)


def histograms(
    growing: Growing, part: Part, summed: list[tuple[int, int]], sized: list[tuple[int, int]], shape: Shape
) -> tuple[Any, ...]:
    """Histograms of the nodes `summed` (output, node), their counts of rows, and the rows of the nodes `sized`."""
    cells, n_features = shape.cells, len(shape.features)
    sums = np.zeros((len(summed), len(cells)), np.int64)
    counts = np.zeros((len(summed) if shape.counted else 0, len(cells)), np.uint32)
    hist = np.empty((n_features, 256), np.int64)
    count = np.empty((n_features, 256), np.uint32) if shape.counted else None
    for i, (k, node) in enumerate(summed):
        begin, end = growing.pieces[k][node]
        if begin == end:
            continue
        rows = growing.order[k][begin:end]
        _native.node_histogram(part.rows, growing.packed[k], rows, shape.features, shape.n_bins, hist, count)
        sums[i] = hist.reshape(-1)[cells]
        if count is not None:
            counts[i] = count.reshape(-1)[cells]
    sizes = np.array([growing.pieces[k][node][1] - growing.pieces[k][node][0] for k, node in sized], np.int64)
    return sums, counts, sizes


def root_histograms(growing: Growing, part: Part, shape: Shape) -> tuple[Any, ...]:
    """The same for the roots of all trees, with the extremes of gradients before."""
    roots = [(k, 0) for k in range(len(growing.order))]
    return growing.extremes, *histograms(growing, part, roots, roots, shape)


def leaf_sums(
    growing: Growing,
    part: Part,
    scores: Scores,
    steps: list[Step],
    leaves: list[list[int]],
    measures: np.ndarray,
    first_order: bool,
) -> tuple[Any, ...]:
    """After the last splits: of every output the exact sums of gradients in its leaves, and their rows."""
    growing = divided(growing, part, steps)
    sums = []
    for k, nodes in enumerate(leaves):
        begin, end = np.array([growing.pieces[k][node] for node in nodes], np.int64).T.copy()
        gh = _gradients(part, scores, k, first_order)
        sums += [_native.sum_ranges(gh, growing.order[k], begin, end, measures[k]), end - begin]
    return tuple(sums)


# ------------------------------------------------------------------------------------------------ values of leaves


def leaf_numbers(growing: Growing, part: Part, steps: list[Step], leaves: list[list[int]]) -> np.ndarray:
    """After the last splits: of every output which of its leaves a row is in, (K, n); -1 for rows that were not drawn."""
    growing = divided(growing, part, steps)
    numbers = np.full((len(leaves), len(part.y)), -1, np.int32)
    for k, nodes in enumerate(leaves):
        for i, node in enumerate(nodes):
            begin, end = growing.pieces[k][node]
            numbers[k, growing.order[k][begin:end]] = i
    return numbers


def leaf_slopes(
    numbers: np.ndarray, part: Part, scores: Scores, loss: Loss | UserLoss, k: int, values: np.ndarray
) -> tuple[Any, ...]:  # fmt: skip
    """Sums of gradients, curvatures and |gradients| of the leaves of output k with these values added."""
    rows = np.flatnonzero(numbers[k] >= 0)
    which = numbers[k, rows]
    score = np.ascontiguousarray(scores.score[:, rows])
    score[k] += values[which]
    gh = np.empty((*score.shape, 2), np.float32)
    loss.evaluate(part.y[rows], None if part.weight is None else part.weight[rows], score, gh, 1)
    g, h = gh[k].astype(np.float64).T
    return tuple(np.bincount(which, of_rows, minlength=len(values)) for of_rows in (g, h, np.abs(g)))


def leaf_weights(numbers: np.ndarray, part: Part, k: int, n_leaves: int) -> tuple[np.ndarray]:
    """Total weights of the leaves of output k."""
    rows = np.flatnonzero(numbers[k] >= 0)
    return (np.bincount(numbers[k, rows], part.weight[rows], minlength=n_leaves),)


def residual_digits(
    numbers: np.ndarray, part: Part, scores: Scores, k: int, begin: np.ndarray, shift: int, bits: int
) -> tuple[np.ndarray]:
    """Digits of the residuals by leaf of output k, for their quantiles."""
    rows = np.flatnonzero(numbers[k] >= 0)
    weight = None if part.weight is None else part.weight[rows]
    residual = part.y[rows] - scores.score[k, rows]
    return (digit_counts(residual, numbers[k, rows].astype(np.intp), weight, begin, shift, bits),)
