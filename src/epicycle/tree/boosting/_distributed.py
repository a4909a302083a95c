"""Distributed boosting: partitions compute histograms, which are sent and added up; rows stay where they are.

The sums that decide are integers (histograms of quantised gradients, exact sums of leaves). They do not depend on the
partitions, so the trees are those of the same rows in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data._quantiles import quantiles
from epicycle.engine import States
from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting import _partition_nodes as part_nodes, _partitions as parts
from epicycle.tree.boosting._best_first import Plan
from epicycle.tree.boosting._boosting import Boosting, Grown
from epicycle.tree.boosting._held_out import Validation
from epicycle.tree.boosting._leaf_values import newton_values
from epicycle.tree.boosting._losses import BoostingLoss, Evaluation, UserLoss
from epicycle.tree.boosting._row_sampling import ridges, threshold
from epicycle.tree.boosting._sums import exact_total, power_above

# A histogram cell packs quantised sums of gradients (signed) and curvatures in 32 bits each; rounding may add one unit
# a row, for which half of the range has to remain.
MAX_ROWS = 2**30
# Histograms that a partition computes in one pass, in bytes: 64 MiB to send at a time.
BATCH_BYTES = 1 << 26
# Rounds after which scores are recomputed from the bins: the graph of a cluster is a chain of as many tasks at most.
RECOMPUTE_EVERY = 100


class Summary:
    """Sizes and extremes of all partitions, before the first round.

    Attributes
    ----------
    starts : ndarray
        Number of the first row of each partition, among the training rows.
    n_rows : int
    total_weight : float
    missing : ndarray
        Missing values by column.
    weighted : bool
    low, high : float
        Smallest and largest target.
    """

    def __init__(self, rows: States, n_parts: int) -> None:
        found = rows.sum(parts.summary, n_parts)
        if not found:
            raise DataError("sample_weight: no row of positive weight is left to learn from")
        sizes, self.total_weight, self.missing, extremes, weighted = found
        self.weighted = bool(weighted)
        self.starts = np.cumsum(sizes) - sizes
        self.n_rows = int(sizes.sum())
        self.low = float(extremes.smallest[0])
        self.high, self.largest, self.largest_weight = (float(x) for x in extremes.largest)
        if self.n_rows >= MAX_ROWS:
            raise DataError(f"X: {self.n_rows} rows; the histograms of trees are for less than 2**30")


def best_start(rows: States, about: Summary, loss: BoostingLoss) -> np.ndarray:
    """The best constant score, for each output."""
    tau = loss.start_quantile
    if tau is not None:
        total = np.array([about.total_weight]) if about.weighted else None
        return quantiles(lambda *digit: rows.sum(parts.target_digits, *digit)[0], tau, np.array([about.n_rows]), total)
    scale, weight_scale = power_above(about.largest), power_above(about.largest_weight)
    sums = rows.sum(parts.target_sums, scale, weight_scale, loss.n_outputs)
    if loss.n_outputs > 1 and not isinstance(loss, UserLoss):
        return loss.start_of_classes(np.array([exact_total(total, weight_scale) for total in sums]))
    mean = exact_total(sums[0], scale) / exact_total(sums[1], weight_scale)
    if isinstance(loss, UserLoss):
        return loss.newton_start(mean, lambda s: rows.sum(parts.start_slopes, loss, s))
    return loss.start_of_mean(mean)


class KeptScores:
    """Scores and gradients of rows in partitions; they begin at `start`, or at the scores of an earlier fit."""

    def __init__(self, rows: States, loss: BoostingLoss, start: np.ndarray) -> None:
        self.rows, self.loss, self.start = rows, loss, start
        self.moves: list[list[parts.Move]] = []
        self.states = rows.map(parts.begin_scores, loss, start, [])

    def move(self, trees: list[tuple[GrownTree, np.ndarray]]) -> None:
        """Add the trees of one round, given with what their nodes add."""
        moves = [
            parts.Move(k, tree.feature, tree.left, tree.sides.reshape(-1, 4), value)
            for k, (tree, value) in enumerate(trees)
            if not tree.is_stump
        ]
        self.moves.append(moves)
        if len(self.moves) % RECOMPUTE_EVERY == 0:
            every = [move for some in self.moves for move in some]
            self.states = self.rows.map(parts.begin_scores, self.loss, self.start, every)
        else:
            self.states = self.states.map(parts.moved_scores, self.loss, moves, beside=[self.rows])

    def evaluate(self) -> Evaluation:
        """Loss and the sums of gradients."""
        loss, abs_gradient, curvature = self.states.sum(parts.score_sums)
        return Evaluation(float(loss), abs_gradient, curvature)


class DistributedBoosting(Boosting):
    """Boosting of rows in partitions.

    Parameters
    ----------
    rows : States of Part
    about : Summary
    start : ndarray of shape (K,)
        Scores to start from, where the parts have none of an earlier fit.
    *arguments, **options
        Of :class:`Boosting`.
    """

    def __init__(self, rows: States, about: Summary, start: np.ndarray, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rows, self.about, self.total_weight = rows, about, about.total_weight
        self.growth = self.growth.for_weight(self.total_weight)
        if self.growth.min_samples_split > 2 * max(self.growth.min_samples_leaf, 1):
            raise ParameterError(
                f"min_samples_split={self.growth.min_samples_split} is not supported on Dask beyond twice "
                "min_samples_leaf; give min_samples_leaf"
            )
        if self.growth.min_weight_fraction > 0 or self.growth.ccp_alpha > 0:
            raise ParameterError(
                "min_weight_fraction_leaf, ccp_alpha: trees are not pruned on Dask; expected 0, or data in memory"
            )
        # A constant column can still be split into numbers and missing values.
        several = (self.growth.n_bins > 1) | (about.missing > 0)
        self.usable = np.flatnonzero(several).astype(np.int32)
        self.scores = KeptScores(rows, self.loss, start)
        self.now = self.scores.evaluate()

    def _move(self, grown: list[Grown], factor: float) -> None:
        self.scores.move([(one.tree, factor * one.value) for one in grown])
        self.now = self.scores.evaluate()

    # ---------------------------------------------------------------------------------------- trees

    def _grow(self, number: int, features: np.ndarray) -> list[Grown]:
        K, g = self.loss.n_outputs, self.growth
        draw, drawn, sums = self._draw_rows(number)
        measures = np.zeros((K, 6))
        measures[:, 0], measures[:, 1:3] = max(drawn, 1), sums
        beside = [self.scores.states]
        growing = self.rows.map(part_nodes.begin_growing, measures, draw, drawn == 0, beside=beside)
        shape = part_nodes.Shape(features, g.n_bins, g.min_samples_leaf > 1)
        cells = shape.cells
        extremes, hists, counts, sizes = growing.sum(part_nodes.root_histograms, shape, beside=[self.rows])
        measures[:, 3], measures[:, 4:] = extremes.smallest, extremes.largest
        if (measures[:, 3] == measures[:, 4]).all():  # equal curvatures: they count the rows
            shape = shape._replace(counted=False)
        plans = []
        for k in range(K):
            hist, count = _table(hists[k], cells), _table(counts[k], cells) if shape.counted else None
            plans.append(Plan(k, g, features, measures[k], hist, count, int(sizes[k])))
        # 12 bytes a cell: a packed sum of 8 and a count of 4.
        at_once = max(1, BATCH_BYTES // max(1, 12 * len(cells)))
        while wanted := [(plan, node) for plan in plans for node in plan.wanted()][:at_once]:
            steps, lighter = zip(*(plan.divide(node) for plan, node in wanted), strict=True)
            growing = growing.map(part_nodes.divided, list(steps), beside=[self.rows])
            summed = [(step.output, step.left + side) for step, side in zip(steps, lighter, strict=True)]
            sized = [(step.output, step.left + side) for step in steps for side in (0, 1)]
            hists, counts, sizes = growing.sum(part_nodes.histograms, summed, sized, shape, beside=[self.rows])
            for i, (plan, node) in enumerate(wanted):
                hist, count = _table(hists[i], cells), _table(counts[i], cells) if shape.counted else None
                plan.learn(node, lighter[i], hist, count, (int(sizes[2 * i]), int(sizes[2 * i + 1])))
        return self._finished(plans, growing, measures)

    def _draw_rows(self, number: int) -> tuple[part_nodes.Draw, int, np.ndarray]:
        """The draw of rows, their number, and for each output their sums of |gradient| and curvature."""
        sums = np.stack([self.now.abs_gradient, self._total_curvature()], axis=1)
        draw = part_nodes.Draw(self.seed, number, self.subsample, self.about.starts, self.first_order)
        if self.subsample == 1:
            return draw, self.about.n_rows, sums
        beside = [self.scores.states]
        if self.by_gradient:
            draw = replace(draw, ridge=ridges(*sums.T))
            (counts,) = self.rows.sum(part_nodes.size_counts, draw, beside=beside)
            draw = replace(draw, mu=threshold(counts, self.subsample))
        drawn, *of_drawn = self.rows.sum(part_nodes.drawn_sums, draw, beside=beside)
        return draw, int(drawn), of_drawn[0] if of_drawn and drawn else sums

    def _finished(self, plans: list[Plan], growing: States, measures: np.ndarray) -> list[Grown]:
        leaves, steps = [], []
        for plan in plans:
            of_plan, left_over = plan.finish()
            leaves.append(of_plan)
            steps += left_over
        beside = [self.rows, self.scores.states]
        # Sums of leaves are taken once more in exact arithmetic: values do not inherit the rounding of histograms.
        sums = growing.sum(part_nodes.leaf_sums, steps, leaves, measures, self.first_order, beside=beside)
        trees = [plan.tree(sums[2 * k], sums[2 * k + 1]) for k, plan in enumerate(plans)]
        if not self.first_order and self.loss.leaf_quantile is None:
            values = [tree.value for tree in trees]
        else:
            numbers = growing.map(part_nodes.leaf_numbers, steps, leaves, beside=[self.rows])
            values = [self._best_constants(tree, numbers, k) for k, tree in enumerate(trees)]
        return [
            Grown(k, tree, np.zeros(1) if tree.is_stump else self._shrunk(value))
            for k, (tree, value) in enumerate(zip(trees, values, strict=True))
        ]

    def _best_constants(self, tree: GrownTree, numbers: States, k: int) -> np.ndarray:
        """Values of the nodes that minimise the loss itself, by passes over the rows."""
        if tree.is_stump:
            return tree.value
        leaves, beside = tree.leaves, [self.rows, self.scores.states]
        value, tau = np.zeros(len(tree.left)), self.loss.leaf_quantile
        if tau is None:

            def derivatives(v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                G, H, scale = numbers.sum(part_nodes.leaf_slopes, self.loss, k, v, beside=beside)
                return G + self.growth.l2 * v, H + self.growth.l2, scale

            value[leaves] = newton_values(derivatives, len(leaves), bounded=self.loss.bounded_steps)
            return value
        weights = None
        if self.about.weighted or self.by_gradient:
            (weights,) = numbers.sum(part_nodes.leaf_weights, k, len(leaves))
        # A distributed quantile, digit by digit of the sorted bits of the residuals, for all leaves at once.
        value[leaves] = quantiles(
            lambda *digit: numbers.sum(part_nodes.residual_digits, k, *digit, beside=beside)[0],
            tau,
            tree.end[leaves],
            weights,
        )
        return value


class DistributedValidation(Validation):
    """A validation set in partitions."""

    def __init__(self, rows: States, n_parts: int, loss: BoostingLoss) -> None:
        self.rows, self.loss, self.about = rows, loss, Summary(rows, n_parts)

    def begin(self, start: np.ndarray) -> None:
        """Set the scores before the first round; partitions hold the scores of an earlier fit."""
        self.scores = KeptScores(self.rows, self.loss, start)
        self.loss_now = self._mean()

    def _mean(self) -> float:
        return float(self.scores.evaluate().loss / max(self.about.total_weight, np.finfo(float).tiny))

    def add(self, trees: list[tuple[GrownTree, np.ndarray]]) -> float:
        self.scores.move(trees)
        self.loss_now = self._mean()
        return self.loss_now


def _table(values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Values of the cells in use as a histogram (f, 256)."""
    table = np.zeros(cells[-1] + 1 if len(cells) else 0, values.dtype)  # the last cell is that of missing values
    table[cells] = values
    return table.reshape(-1, 256)
