"""Rounds of boosting by Newton steps: each adds a tree that minimises the second-order expansion of the loss.

With g_i = L'(y_i, s_i) and h_i = L''(y_i, s_i) at the current scores, a tree h minimises

    sum_i w_i (g_i h(x_i) + h_i h(x_i)^2 / 2) + l2/2 sum_leaves v^2,

which is weighted least squares of the working response -g_i / h_i: iteratively reweighted least squares, with a tree
for the linear predictor. With G and H the sums of w g and w h in a leaf, its value is v = -G / (H + l2), which lowers
the expansion by G^2 / (2 (H + l2)); a split gains the difference of these terms. learning_rate times v is added to the
scores. The histogram of a node is that of its parent less that of its sibling, so only the lighter child is summed.

First-order boosting fits a tree to the negative gradient -g_i by least squares, and its leaves then take the best
constant for the loss itself (Friedman, 2001).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._random import stream
from epicycle.engine import n_threads
from epicycle.tree._binning import Bins
from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting._growth import Growth, without_splits
from epicycle.tree.boosting._leaf_values import optimal_values, quantile_values
from epicycle.tree.boosting._losses import BoostingLoss, Evaluation, UserLoss
from epicycle.tree.boosting._row_sampling import Drawn, bucket_counts, draw, ridges, row_sizes, threshold

# A step that does not lower the training loss is halved at most so often: a step of 1/256 that does not is rounding.
_MAX_HALVINGS = 8
# Larger learning rates lower the loss no more than this one, of which a step that is taken back leaves less rounding.
_LARGEST_RATE = 2.0**20
#: Range of the sums of weights and of weighted gradients: rows are kept in float32.
LEAST_WEIGHT, LARGEST_SUM = 1e-37, 1e38
# Operations for a row and an output in passes over rows: decides on the number of threads.
_WORK_PER_ROW = 20.0


@dataclass(frozen=True)
class Grown:
    """The tree of one output, what its nodes add to the scores, and in memory the rows in the order of its leaves."""

    output: int
    tree: GrownTree
    value: np.ndarray
    order: np.ndarray | None = None


@dataclass
class Round:
    """One round of boosting.

    It holds a tree for each output with the values of its nodes, the training loss after it, the factor of the step,
    and whether the loss fell.
    """

    trees: list[tuple[GrownTree, np.ndarray]] = field(default_factory=list)
    loss: float = np.nan
    step: float = 1.0
    gained: bool = False
    #: The training loss before the round; the mean losses of the rows that were not drawn, before and after it.
    before: float = np.nan
    left_out: tuple[float, float] | None = None

    def idle(self) -> Round:
        """The round that adds a single leaf of value zero for each output."""
        stumps = [without_splits(tree, np.arange(len(tree.left)) == 0) for tree, _ in self.trees]
        return Round([(tree, np.zeros(1)) for tree in stumps], self.before, 0.0, gained=True, before=self.before)


class Boosting(ABC):
    """The rounds of a fit, with rows in memory or in partitions.

    Parameters
    ----------
    loss : BoostingLoss
    growth : Growth
    learning_rate, subsample, max_features : float
    sampling : {"uniform", "gradient"}
    order : {1, 2}
        Derivatives of the loss that trees are grown from.
    seed : int
        Rows and features of round r are drawn from the streams (seed, "rows", r) and (seed, "features", r).
    """

    now: Evaluation
    total_weight: float
    usable: np.ndarray  # features that can be split: those with several bins, or with one and missing values

    def __init__(
        self,
        loss: BoostingLoss,
        growth: Growth,
        *,
        learning_rate: float,
        subsample: float,
        sampling: str,
        max_features: float,
        order: int,
        seed: int,
    ) -> None:
        self.loss, self.growth = loss, growth
        self.by_gradient = sampling == "gradient" and subsample < 1
        self.asked_rate, self.learning_rate = learning_rate, min(learning_rate, _LARGEST_RATE)
        self.subsample, self.max_features, self.seed = subsample, max_features, seed
        # With curvature one both orders are the same; quantiles are the best constants of leaves in either order.
        self.first_order = order == 1 and not loss.unit_curvature and loss.leaf_quantile is None
        # A Newton step may overshoot where the curvature changes quickly; a best constant cannot.
        self.longest_step = np.inf if self.first_order else loss.longest_step(self.learning_rate)

    @abstractmethod
    def _grow(self, number: int, features: np.ndarray) -> list[Grown]:
        """A tree for each output of round `number`."""

    @abstractmethod
    def _move(self, grown: list[Grown], factor: float) -> None:
        """Add `factor` times the trees to the scores, and set `now`."""

    @property
    def mean_loss(self) -> float:
        """The training loss, per unit of weight."""
        return self.now.loss / self.total_weight

    @property
    def samples(self) -> bool:
        """Whether rounds see only a part of the rows or features."""
        return self.subsample < 1 or self.max_features < 1

    @property
    def has_left_out(self) -> bool:
        """Whether rounds give the loss of the rows that they did not draw."""
        return False

    def check_range(self) -> None:
        """Raise where gradients overflow the 32 bits in which they are kept."""
        largest = float(np.max(self.now.abs_gradient))
        if not largest <= LARGEST_SUM:
            raise DataError(
                f"y, sample_weight: the weighted gradients of the loss add up to {largest:.1e}; boosting keeps them in "
                f"32 bits: expected at most {LARGEST_SUM:g}. Divide y, or the weights, by a constant"
            )

    def round(self, number: int) -> Round:
        """Grow one tree for each output and add them to the scores."""
        grown = self._grow(number, self._draw_features(number))
        done = Round([(one.tree, one.value) for one in grown], self.mean_loss, before=self.mean_loss)
        if all(tree.is_stump for tree, _ in done.trees):
            return done
        before = self.now.loss
        self._move(grown, 1.0)
        # With samples the loss of all rows may rise by chance, and halving would bias the steps.
        done.gained = self.samples or self.now.loss < before
        if self.samples:
            self._check_divergence(number)
        while not done.gained and done.step > 2.0**-_MAX_HALVINGS:
            done.step /= 2
            self._move(grown, -done.step)  # from twice the step to the step
            done.gained = self.now.loss < before
        if not done.gained:
            self._move(grown, -done.step)
            return done
        done.trees = [(tree, done.step * value) for tree, value in done.trees]
        done.loss = self.mean_loss
        return done

    def _check_divergence(self, number: int) -> None:
        """Raise where steps on samples, which are never shortened, have left the range of the derivatives."""
        largest = float(np.max(self.now.abs_gradient))
        if not (np.isfinite(self.now.loss) and largest <= LARGEST_SUM):
            raise ParameterError(
                f"learning_rate={self.asked_rate:g}: the steps on samples of rows or features diverge; after round "
                f"{number + 1} the mean loss is {self.mean_loss:.1e}. Expected a smaller learning_rate, or subsample=1 "
                "and max_features=1.0, with which steps that raise the loss are halved"
            )

    def _draw_features(self, number: int) -> np.ndarray:
        if self.max_features == 1 or not len(self.usable):
            return self.usable
        size = max(1, round(self.max_features * len(self.usable)))
        chosen: np.ndarray = stream(self.seed, "features", number).choice(self.usable, size, replace=False)
        # Ascending: ties between gains do not depend on the order of the draw.
        return np.sort(chosen)

    def _total_curvature(self) -> np.ndarray:
        """For each output the sum of the curvatures that its tree is grown from."""
        return np.full(self.loss.n_outputs, self.total_weight) if self.first_order else self.now.curvature

    def _shrunk(self, value: np.ndarray) -> np.ndarray:
        """Change of the scores for values of leaves: learning rate times value, within the longest safe step."""
        if self.first_order and self.loss.n_outputs > 1:
            # The scores of all classes move at once, each as if it were alone (Friedman, 2001).
            value = value * ((self.loss.n_outputs - 1) / self.loss.n_outputs)
        return np.clip(self.learning_rate * value, -self.longest_step, self.longest_step)


class MemoryBoosting(Boosting):
    """Boosting of rows in memory: their bins, scores and gradients, and the work space of the kernels.

    Parameters
    ----------
    bins : Bins
    score : ndarray of shape (K, n)
        Scores to start from; owned and changed.
    n_jobs : int, optional
    *arguments, **options
        Of :class:`Boosting`.
    """

    which: np.ndarray  # the rows, of those of the fit

    def __init__(self, bins: Bins, score: np.ndarray, n_jobs: int | None, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.bins, self.score, self.total_weight = bins, score, bins.total_weight
        self.growth = self.growth.for_weight(self.total_weight)
        n, p = bins.rows.shape
        if bins.weight is None:  # the share of the weight is one of the rows
            least = int(np.ceil(self.growth.min_weight_fraction * n))
            self.growth = replace(self.growth, min_samples_leaf=max(self.growth.min_samples_leaf, least))
        self.row_threads = n_threads(_WORK_PER_ROW * n * len(score), n_jobs)
        self.threads = n_threads(float(n) * p, n_jobs)
        # Of several classes gradients are computed when a tree is grown from them, unless all are needed at once.
        one_by_one = len(score) > 1 and not self.first_order and not self.by_gradient
        self.normal = np.empty((2, n)) if one_by_one else None
        self.gh = np.empty((1 if one_by_one else len(score), n, 2), np.float32)
        # Work space, allocated once for all rounds.
        self.order, self.scratch = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self.packed = np.empty(n, np.int64)
        self.added = False  # whether the trees of this round are in the scores already
        self.left_out: np.ndarray | None = None  # the rows that this round did not draw
        # A constant column can still be split into numbers and missing values.
        several = (self.growth.n_bins > 1) | bins.some_missing
        self.usable = np.flatnonzero(several).astype(np.int32)
        self._evaluate()

    def round(self, number: int) -> Round:
        """As :meth:`Boosting.round`, with the loss of the rows that were not drawn."""
        if self.loss.delta_quantile is not None:
            self.loss = self.loss.with_delta_of(self.bins.y - self.score[0], self.bins.weight)
            self._evaluate()
            self.check_range()
        self.before = np.nan
        done = super().round(number)
        if self.left_out is not None:
            done.left_out = (self.before, self._mean_left_out())
        return done

    @property
    def has_left_out(self) -> bool:
        return self.subsample < 1 and not self.by_gradient

    def _mean_left_out(self) -> float:
        """The mean loss of the rows that this round did not draw."""
        rows, weight = self.left_out, self.bins.weight
        if rows is None or not len(rows):
            return np.nan
        weight = None if weight is None else weight[rows]
        score = np.ascontiguousarray(self.score[:, rows])
        total = self.loss.evaluate(self.bins.y[rows], weight, score, None, self.row_threads).loss
        return total / (len(rows) if weight is None else max(float(weight.sum()), np.finfo(float).tiny))

    def _evaluate(self) -> None:
        rows = self.bins.y, self.bins.weight
        if self.normal is None or isinstance(self.loss, UserLoss):
            self.now = self.loss.evaluate(*rows, self.score, self.gh, self.row_threads)
        else:
            self.now = self.loss.evaluate(*rows, self.score, None, self.row_threads, self.normal)

    def _derivatives(self, k: int) -> np.ndarray:
        """Gradient and curvature by the score of output k, which no tree of this round has changed yet."""
        if self.normal is None or isinstance(self.loss, UserLoss):
            return np.asarray(self.gh[k])
        gh: np.ndarray = self.gh[0]
        self.loss.evaluate_class(k, self.bins.y, self.bins.weight, self.score[k], self.normal, gh, self.row_threads)
        return gh

    def _grow(self, number: int, features: np.ndarray) -> list[Grown]:
        drawn = self._draw_rows(number)
        self.left_out = None
        if drawn.rows is not None and drawn.factor is None:
            self.left_out = np.setdiff1d(np.arange(self.bins.n_rows), drawn.rows, assume_unique=True)
            self.before = self._mean_left_out()
        # Second-order trees do not depend on the scores of other outputs, and are added as soon as they are grown.
        self.added = len(self.score) > 1 and not self.first_order
        weight = None
        if drawn.factor is not None:
            weight = drawn.times(np.ones(self.bins.n_rows) if self.bins.weight is None else self.bins.weight)
        grown = []
        for k in range(len(self.score)):
            tree, order = self._tree(k, drawn, features)
            one = Grown(k, tree, self._values(tree, order, k, weight), order)
            if self.added:  # saves the order of the rows for every output
                self._add(one, 1.0)
                one = Grown(k, tree, one.value)
            grown.append(one)
        return grown

    def _draw_rows(self, number: int) -> Drawn:
        sizes, mu, n = None, 0.0, self.bins.n_rows
        if self.by_gradient:
            gh = self.gh
            if self.first_order:
                gh = np.stack([with_weights(of_output, self.bins.weight) for of_output in gh])
            sizes = row_sizes(gh, ridges(self.now.abs_gradient, self._total_curvature()))
            mu = threshold(bucket_counts(sizes), self.subsample)
        drawn = draw(self.seed, number, self.subsample, 0, n, sizes=sizes, mu=mu)
        # A tree needs a row: the first one takes the place of an empty sample.
        return Drawn(np.zeros(1, np.uint32)) if drawn.rows is not None and not len(drawn.rows) else drawn

    def _move(self, grown: list[Grown], factor: float) -> None:
        for one in grown if not self.added else ():
            self._add(one, factor)
        self.added = False
        self._evaluate()

    # ---------------------------------------------------------------------------------------- one tree

    def _tree(self, k: int, drawn: Drawn, features: np.ndarray) -> tuple[GrownTree, np.ndarray]:
        """A tree for output k, and the rows in the order of its leaves."""
        g, bins, rows = self.growth, self.bins, drawn.rows
        places, n_codes = (bins.bundles.places, bins.bundles.n_codes) if bins.bundles else (None, None)
        m = self.bins.n_rows if rows is None else len(rows)
        # Trees that are added later need an order of the rows of their own.
        order = self.order[:m] if self.added or len(self.score) == 1 else np.empty(m, np.uint32)
        if rows is not None:
            order[:] = rows
        gh = self._derivatives(k)
        if self.first_order:
            gh = with_weights(gh, self.bins.weight)
        abs_gradient, curvature = self.now.abs_gradient[k], self._total_curvature()[k]
        if drawn.factor is not None:
            gh = drawn.times(gh)
            abs_gradient, curvature = np.abs(gh[rows]).sum(axis=0, dtype=np.float64)
        # The kernel rounds gradient and curvature of a row to multiples of a unit, chosen by these sums so that no sum
        # over rows overflows, and packs them into one 64-bit integer: a histogram cell is filled by one addition, sums
        # are exact, and their bits do not depend on the order of the rows or the number of threads.
        table = _native.tree.BinnedTable(
            rows=bins.rows, columns=bins.columns, places=places, n_codes=n_codes, features=features, n_bins=g.n_bins
        )
        rules = _native.tree.GrowRules(
            split=g.split_rules(), groups=g.groups, max_leaves=g.max_leaf_nodes, max_depth=g.max_depth
        )
        buffers = (order, self.scratch[:m], self.packed)
        arrays = _native.tree.grow(
            table, rules, gh, abs_gradient, curvature, rows is None, *buffers, threads=self.threads
        )
        tree = GrownTree(*arrays)
        weights = None
        if bins.weight is not None and g.min_weight_fraction > 0:
            until = np.concatenate([[0.0], np.cumsum(bins.weight[order])])
            weights = until[tree.end] - until[tree.begin]
        return g.pruned(tree, self.total_weight, weights), order

    def _values(self, tree: GrownTree, order: np.ndarray, k: int, weight: np.ndarray | None) -> np.ndarray:
        """Changes of the scores by the nodes of a tree; `weight` are those of drawn rows, where rows are drawn."""
        if tree.is_stump:
            return np.zeros(1)
        value, tau = tree.value, self.loss.leaf_quantile
        weight = self.bins.weight if weight is None else weight
        if tau is not None:
            # The loss is piecewise linear in v, so its minimum over a leaf is at a quantile of y - s.
            value = quantile_values(tree, order, self.bins.y - self.score[k], weight, tau)
        elif self.first_order:
            value = optimal_values(
                tree, order, self.loss, self.bins.y, weight, self.score, k, self.growth.l2, self.row_threads
            )
        return self._shrunk(value)

    def _add(self, one: Grown, factor: float) -> None:
        tree, value, score = one.tree, factor * one.value, self.score[one.output]
        if tree.is_stump:
            return
        # The kernel leaves the rows in the order of the leaves: each leaf is a range, and no row is looked up.
        if self.subsample < 1 or one.order is None:  # rows outside of the sample have to find their leaves
            feature, sides = tree.feature, tree.sides.reshape(-1, 4)
            if self.bins.bundles is not None:
                feature, sides = self.bins.bundles.in_codes(feature, sides)
            _native.tree.predict_bins(self.bins.rows, feature, tree.left, sides, value, score, self.row_threads)
        else:
            leaves, order = tree.leaves, one.order
            _native.tree.add_to_leaves(
                order, tree.begin[leaves], tree.end[leaves], value[leaves], score, self.row_threads
            )


def with_weights(gh: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Gradients with the weights as curvatures: a least-squares tree."""
    gh = gh.copy()
    gh[:, 1] = 1.0 if weight is None else weight
    return gh
