"""Trees that grow over many partitions, seen from one of them: which rows are in which node, and their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epicycle import _native
from epicycle.tree.binning import MISSING
from epicycle.tree.boosting import drawn_rows, with_weights
from epicycle.tree.losses import Loss, UserLoss
from epicycle.tree.parts import Extremes, Part, Scores
from epicycle.tree.selection import digit_counts

__all__ = [
    "Draw",
    "Growing",
    "Shape",
    "Step",
    "begin_growing",
    "count_drawn",
    "divided",
    "histograms",
    "leaf_numbers",
    "leaf_slopes",
    "leaf_sums",
    "leaf_weights",
    "residual_digits",
    "root_histograms",
]


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
) -> Growing:
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
        bins = np.arange(256)
        return np.flatnonzero((bins < self.n_bins[self.features][:, None]) | (bins == MISSING))


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
    """After the last splits: of every output the leaf that a row is in, (K, n); -1 for rows that were not drawn."""
    growing = divided(growing, part, steps)
    numbers = np.full((len(leaves), len(part.y)), -1, np.int32)
    for k, nodes in enumerate(leaves):
        for i, node in enumerate(nodes):
            begin, end = growing.pieces[k][node]
            numbers[k, growing.order[k][begin:end]] = i
    return numbers


def leaf_slopes(
    numbers: np.ndarray, part: Part, scores: Scores, loss: Loss | UserLoss, k: int, values: np.ndarray
) -> tuple[Any, ...]:
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
