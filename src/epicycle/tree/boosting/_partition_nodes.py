"""Nodes of the growing trees on one partition: the rows in each of them, and their sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epicycle import _native
from epicycle.data._quantiles import digit_counts
from epicycle.tree._binning import MISSING
from epicycle.tree.boosting._boosting import with_weights
from epicycle.tree.boosting._losses import BoostingLoss
from epicycle.tree.boosting._partitions import Extremes, Part, Scores
from epicycle.tree.boosting._row_sampling import Drawn, bucket_counts, draw, row_sizes


@dataclass(frozen=True)
class Draw:
    """The draw of the rows of a round, by their number among all training rows; partition i begins at `starts[i]`.

    Rows are drawn by gradient where there is a `ridge` (K,), with the threshold mu.
    """

    seed: int
    number: int
    subsample: float
    starts: np.ndarray
    first_order: bool
    ridge: np.ndarray | None = None
    mu: float = 0.0

    def rows(self, part: Part, scores: Scores) -> Drawn:
        """The drawn rows, numbered within the partition."""
        start = int(self.starts[part.number])
        sizes = None if self.ridge is None else self.sizes(part, scores)
        stop = start + len(part.y)
        drawn = draw(self.seed, self.number, self.subsample, start, stop, sizes=sizes, mu=self.mu)
        return drawn if drawn.rows is not None else Drawn(np.arange(len(part.y), dtype=np.uint32))

    def sizes(self, part: Part, scores: Scores) -> np.ndarray:
        """The size r of each row: its possible share in the sums of a tree."""
        assert self.ridge is not None
        gh = np.stack([_gradients(part, scores, k, self.first_order) for k in range(len(self.ridge))])
        return row_sizes(gh, self.ridge)


def size_counts(part: Part, scores: Scores, plan: Draw) -> tuple[np.ndarray]:
    """Counts of the rows by the size r."""
    return (bucket_counts(plan.sizes(part, scores)),)


def drawn_sums(part: Part, scores: Scores, plan: Draw) -> tuple[Any, ...]:
    """Number of drawn rows; by gradient also their sums of |gradient| and curvature, (K, 2)."""
    drawn = plan.rows(part, scores)
    assert drawn.rows is not None
    if drawn.factor is None:
        return (len(drawn.rows),)
    sums = [
        np.abs(drawn.times(_gradients(part, scores, k, plan.first_order))[drawn.rows]).sum(axis=0, dtype=np.float64)
        for k in range(len(scores.gh))
    ]
    return len(drawn.rows), np.array(sums)


class Step(NamedTuple):
    """A split of the node of a tree, by the bins of a feature that go left; the right child follows `left`."""

    output: int
    node: int
    feature: int
    sides: np.ndarray
    left: int


@dataclass(frozen=True)
class Growing:
    """For each output the packed gradients, the rows in the order of nodes, and the piece of them of each node.

    Nodes stay when they are split: the pieces of children make up that of their parent.
    """

    drawn: Drawn
    packed: tuple[np.ndarray, ...]
    order: tuple[np.ndarray, ...]
    pieces: tuple[dict[int, tuple[int, int]], ...]
    extremes: Extremes


def begin_growing(part: Part, scores: Scores, measures: np.ndarray, plan: Draw, first_row: bool) -> Growing:
    """All drawn rows in the root of each tree.

    `measures` (K, 6) are the scales of the quantised gradients; with `first_row` no row was drawn, and the first one
    takes the place of the sample.
    """
    drawn = plan.rows(part, scores)
    if first_row and int(plan.starts[part.number]) == 0:
        drawn = Drawn(np.zeros(1, np.uint32))
    rows = drawn.rows
    assert rows is not None
    packed = np.empty((len(measures), len(part.y)), np.int64)
    found = np.empty((len(measures), 3))
    for k, measure in enumerate(measures):
        gh = drawn.times(_gradients(part, scores, k, plan.first_order))
        found[k] = _native.tree.quantise_rows(gh, rows, measure, packed[k])
    pieces = tuple({0: (0, len(rows))} for _ in measures)
    extremes = Extremes(found[:, 0], found[:, 1:])
    return Growing(drawn, tuple(packed), (rows,) * len(measures), pieces, extremes)


def _gradients(part: Part, scores: Scores, k: int, first_order: bool) -> np.ndarray:
    return with_weights(scores.gh[k], part.weight) if first_order else scores.gh[k]


def divided(growing: Growing, part: Part, steps: list[Step]) -> Growing:
    """The rows after more splits."""
    order, pieces = list(growing.order), [dict(piece) for piece in growing.pieces]
    for k in {step.output for step in steps}:
        # States are immutable: a lost partition is recomputed from its predecessors.
        order[k] = order[k].copy()
    for step in steps:
        begin, end = pieces[step.output][step.node]
        piece = order[step.output][begin:end]
        # Rows that go left come first: a node is a range of the order, as in memory.
        middle = begin + _native.tree.divide_rows(part.rows, step.feature, step.sides, piece)
        pieces[step.output].update({step.left: (begin, middle), step.left + 1: (middle, end)})
    return replace(growing, order=tuple(order), pieces=tuple(pieces))


class Shape(NamedTuple):
    """Shape of histograms: features, the number of bins of all columns, and whether rows are counted too."""

    features: np.ndarray
    n_bins: np.ndarray
    counted: bool

    @property
    def cells(self) -> np.ndarray:
        """Cells among the f * 256 that can be filled, and are sent: the bins of numbers, and that of missing values."""
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
        _native.tree.node_histogram(part.rows, growing.packed[k], rows, shape.features, shape.n_bins, hist, count)
        sums[i] = hist.reshape(-1)[cells]
        if count is not None:
            counts[i] = count.reshape(-1)[cells]
    sizes = np.array([growing.pieces[k][node][1] - growing.pieces[k][node][0] for k, node in sized], np.int64)
    return sums, counts, sizes


def root_histograms(growing: Growing, part: Part, shape: Shape) -> tuple[Any, ...]:
    """The extremes of the gradients, and the same as :func:`histograms` for the roots of all trees."""
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
    """For each output, after the last splits, the exact sums of gradients in its leaves and their numbers of rows."""
    growing = divided(growing, part, steps)
    sums = []
    for k, nodes in enumerate(leaves):
        begin, end = np.array([growing.pieces[k][node] for node in nodes], np.int64).T.copy()
        gh = growing.drawn.times(_gradients(part, scores, k, first_order))
        sums += [_native.tree.sum_ranges(gh, growing.order[k], begin, end, measures[k]), end - begin]
    return tuple(sums)


# ------------------------------------------------------------------------------------------------ values of leaves


class LeafNumbers(NamedTuple):
    """For each output the leaf of every row, (K, n), -1 for rows that were not drawn; and the weights of rows."""

    number: np.ndarray
    weight: np.ndarray | None

    def of_output(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(rows in leaves of output k, the numbers of these, their weights)."""
        rows = np.flatnonzero(self.number[k] >= 0)
        return rows, self.number[k, rows], None if self.weight is None else self.weight[rows]


def leaf_numbers(growing: Growing, part: Part, steps: list[Step], leaves: list[list[int]]) -> LeafNumbers:
    """The leaves of the rows after the last splits."""
    growing = divided(growing, part, steps)
    numbers = np.full((len(leaves), len(part.y)), -1, np.int32)
    for k, nodes in enumerate(leaves):
        for i, node in enumerate(nodes):
            begin, end = growing.pieces[k][node]
            numbers[k, growing.order[k][begin:end]] = i
    weight = part.weight
    if growing.drawn.factor is not None:
        weight = growing.drawn.times(np.ones(len(part.y)) if weight is None else weight)
    return LeafNumbers(numbers, weight)


def leaf_slopes(
    numbers: LeafNumbers, part: Part, scores: Scores, loss: BoostingLoss, k: int, values: np.ndarray
) -> tuple[Any, ...]:
    """Sums of gradients, curvatures and |gradients| of the leaves of output k with these values added."""
    rows, which, weight = numbers.of_output(k)
    score = np.ascontiguousarray(scores.score[:, rows])
    score[k] += values[which]
    gh = np.empty((*score.shape, 2), np.float32)
    loss.evaluate(part.y[rows], weight, score, gh, 1)
    g, h = gh[k].astype(np.float64).T
    return tuple(np.bincount(which, of_rows, minlength=len(values)) for of_rows in (g, h, np.abs(g)))


def leaf_weights(numbers: LeafNumbers, k: int, n_leaves: int) -> tuple[np.ndarray]:
    """Total weights of the leaves of output k."""
    _, which, weight = numbers.of_output(k)
    return (np.bincount(which, weight, minlength=n_leaves),)


def residual_digits(
    numbers: LeafNumbers, part: Part, scores: Scores, k: int, begin: np.ndarray, shift: int, bits: int
) -> tuple[np.ndarray]:
    """Counts of the digits of the residuals by leaf of output k, for their quantiles."""
    rows, which, weight = numbers.of_output(k)
    residual = part.y[rows] - scores.score[k, rows]
    return (digit_counts(residual, which.astype(np.intp), weight, begin, shift, bits),)
