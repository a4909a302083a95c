"""Boosting by Newton steps: a round adds the tree that lowers the second-order expansion of the loss most.

With g_i = L'(y_i, s_i) and h_i = L''(y_i, s_i) at the current scores, a tree h minimises

    sum_i w_i (g_i h(x_i) + h_i h(x_i)^2 / 2) + l2/2 sum_leaves v^2,

which is weighted least squares of the working response -g_i / h_i: iteratively reweighted least squares, with a tree
for the linear predictor. A leaf has the value v = -G / (H + l2), and learning_rate times it is added to the scores.

Of first order, a tree is fitted to the negative gradient -g_i by least squares, and its leaves then take the best
constant for the loss itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.engine import n_threads
from epicycle.randomness import stream
from epicycle.tree.binning import Bins
from epicycle.tree.ensemble import GrownTree
from epicycle.tree.leaf_values import optimal_values, quantile_values
from epicycle.tree.losses import Loss, UserLoss

__all__ = ["Boosting", "Growth", "Round"]

#: A step that does not lower the training loss is halved so often at most; then there is nothing left to gain.
HALVINGS = 8


@dataclass(frozen=True)
class Growth:
    """How a tree is grown."""

    n_bins: np.ndarray
    categorical: np.ndarray
    max_leaf_nodes: int
    max_depth: int
    min_samples_leaf: int
    min_child_weight: float
    l2: float
    min_gain: float
    smoothing: float
    monotone: np.ndarray | None = None
    groups: np.ndarray | None = None


@dataclass
class Round:
    """What one round added: a tree for each output and the values of its nodes, the training loss after it, the factor
    of the step, and whether anything was gained."""

    trees: list[tuple[GrownTree, np.ndarray]] = field(default_factory=list)
    loss: float = np.nan
    step: float = 1.0
    gained: bool = False


class Boosting:
    """The state of a fit: binned rows, scores, gradients, and the work space of the kernels.

    Parameters
    ----------
    bins : Bins
    loss : Loss or UserLoss
    score : ndarray of shape (K, n)
        Scores to start from; owned and changed.
    growth : Growth
    learning_rate, subsample, max_features : float
    order : {1, 2}
        Derivatives of the loss that trees are grown from.
    seed : int
        Rows and features of round r are drawn from the streams (seed, "rows", r) and (seed, "features", r).
    n_jobs : int, optional
    """

    def __init__(
        self,
        bins: Bins,
        loss: Loss | UserLoss,
        score: np.ndarray,
        growth: Growth,
        *,
        learning_rate: float,
        subsample: float,
        max_features: float,
        order: int,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.bins, self.loss, self.score, self.growth = bins, loss, score, growth
        self.learning_rate, self.subsample, self.max_features, self.seed = learning_rate, subsample, max_features, seed
        # Squared error has curvature one: the orders are the same.
        self.first_order = order == 1 and getattr(loss, "name", None) != "squared" and loss.leaf_quantile is None
        self.longest_step = np.inf if self.first_order else loss.longest_step(learning_rate)
        n, p = bins.rows.shape
        self.row_threads = n_threads(20.0 * n * len(score), n_jobs)
        self.threads = n_threads(float(n) * p, n_jobs)
        self.gh = np.empty((len(score), n, 2), np.float32)
        self.order, self.scratch = np.empty(n, np.uint32), np.empty(n, np.uint32)
        self.packed = np.empty(n, np.int64)
        # A column with one bin and nothing missing cannot be split.
        several = (growth.n_bins > 1) | (bins.columns == 255).any(axis=1)
        self.usable = np.flatnonzero(several).astype(np.int32)
        self.now = self._evaluate()

    def _evaluate(self) -> Any:
        return self.loss.evaluate(self.bins.y, self.bins.weight, self.score, self.gh, self.row_threads)

    @property
    def mean_loss(self) -> float:
        """The training loss, per unit of weight."""
        return self.now.loss / self.bins.total_weight

    @property
    def samples(self) -> bool:
        """Whether rounds see a part of the rows or features only."""
        return self.subsample < 1 or self.max_features < 1

    def round(self, number: int) -> Round:
        """Grow one tree for each output and add them to the scores."""
        rows, features = self._draw_rows(number), self._draw_features(number)
        grown = []
        for k in range(len(self.score)):
            tree, order = self._grow(k, rows, features)
            grown.append((k, tree, order, self._values(tree, order, k)))
        done = Round([(tree, value) for _, tree, _, value in grown], self.mean_loss)
        if all(tree.is_stump for tree, _ in done.trees):
            return done
        before = self.now.loss
        self._move(grown, 1.0, sampled=rows is not None)
        done.gained = self.samples or self.now.loss < before
        while not done.gained and done.step > 2.0**-HALVINGS:
            done.step /= 2
            self._move(grown, -done.step, sampled=False)  # from twice the step to the step
            done.gained = self.now.loss < before
        if not done.gained:
            self._move(grown, -done.step, sampled=False)
            return done
        done.trees = [(tree, done.step * value) for tree, value in done.trees]
        done.loss = self.mean_loss
        return done

    def _move(self, grown: list[Any], factor: float, *, sampled: bool) -> None:
        for k, tree, order, value in grown:
            if not tree.is_stump:
                self._add(k, tree, order, factor * value, sampled=sampled)
        self.now = self._evaluate()

    # ---------------------------------------------------------------------------------------- one tree

    def _draw_rows(self, number: int) -> np.ndarray | None:
        if self.subsample == 1:
            return None
        rows = np.flatnonzero(stream(self.seed, "rows", number).random(self.bins.n_rows) < self.subsample)
        return rows.astype(np.uint32) if len(rows) else np.zeros(1, np.uint32)

    def _draw_features(self, number: int) -> np.ndarray:
        if self.max_features == 1 or not len(self.usable):
            return self.usable
        size = max(1, round(self.max_features * len(self.usable)))
        chosen: np.ndarray = stream(self.seed, "features", number).choice(self.usable, size, replace=False)
        return np.sort(chosen)

    def _grow(self, k: int, rows: np.ndarray | None, features: np.ndarray) -> tuple[GrownTree, np.ndarray]:
        """A tree for output k, and the rows in the order of its leaves."""
        g = self.growth
        m = self.bins.n_rows if rows is None else len(rows)
        order = (
            self.order[:m] if len(self.score) == 1 else np.empty(m, np.uint32)
        )  # every output's is needed at the end
        if rows is not None:
            order[:] = rows
        gh, curvature = self.gh[k], self.now.curvature[k]
        if self.first_order:
            weight = self.bins.weight
            gh, curvature = gh.copy(), self.bins.total_weight
            gh[:, 1] = 1.0 if weight is None else weight
        arrays = _native.grow_tree(
            self.bins.rows, self.bins.columns, gh, self.now.abs_gradient[k], curvature,
            features, g.n_bins, g.categorical, g.monotone, g.groups, rows is None, order, self.scratch[:m], self.packed,
            g.max_leaf_nodes, g.max_depth, g.min_samples_leaf, g.min_child_weight, g.l2, g.min_gain, g.smoothing,
            self.threads,
        )  # fmt: skip
        return GrownTree(*arrays), order

    def _values(self, tree: GrownTree, order: np.ndarray, k: int) -> np.ndarray:
        """What is added to the scores: learning rate times value, or times the best constant without curvature."""
        if tree.is_stump:
            return np.zeros(1)
        value, tau = tree.value, self.loss.leaf_quantile
        if tau is not None:
            value = quantile_values(tree, order, self.bins.y - self.score[k], self.bins.weight, tau)
        elif self.first_order:
            value = optimal_values(
                tree, order, self.loss, self.bins.y, self.bins.weight, self.score, k, self.growth.l2, self.row_threads
            )
            # The scores of all classes move at once, each as if it were alone (Friedman, 2001).
            value *= 1.0 if len(self.score) == 1 else (len(self.score) - 1) / len(self.score)
        return np.clip(self.learning_rate * value, -self.longest_step, self.longest_step)

    def _add(self, k: int, tree: GrownTree, order: np.ndarray, value: np.ndarray, *, sampled: bool) -> None:
        score = self.score[k]
        if sampled:  # the others have to find their leaves
            sides = tree.sides.reshape(-1, 4)
            _native.predict_bins(self.bins.rows, tree.feature, tree.left, sides, value, score, self.row_threads)
        else:
            leaves = tree.leaves
            _native.add_to_leaves(order, tree.begin[leaves], tree.end[leaves], value[leaves], score, self.row_threads)
