"""Out-of-bag values: the predictions of every row by the trees that did not see it, and importances by permutation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.core._random import stream
from epicycle.data import Batch
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order
from epicycle.tree._classes import class_shares
from epicycle.tree._nodes import leaves_of_batch
from epicycle.tree.cart._grow import WORK_PER_CELL, Target
from epicycle.tree.cart._tree import Tree
from epicycle.tree.forest._arrays import ForestArrays, n_trees, tree_of
from epicycle.tree.forest._grow import ForestTree, Problem, leaves_of_rows
from epicycle.tree.forest._sampling import RowSamples


class OutOfBag:
    """Sums (n, K) of the values of the trees that did not see a row, and the counts (n,) of these trees."""

    def __init__(self, total: np.ndarray, count: np.ndarray) -> None:
        self.sum, self.count = total, count

    def add(self, tree: ForestTree) -> None:
        """Add a tree."""
        if tree.oob_rows is not None:
            self.sum[tree.oob_rows] += tree.oob_values
            self.count[tree.oob_rows] += 1

    @property
    def seen(self) -> np.ndarray:
        """Mask of the rows that at least one tree did not see."""
        return self.count > 0

    @property
    def mean(self) -> np.ndarray:
        """Mean values (n, K); NaN for rows that all trees saw."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.sum / self.count[:, None])

    def loss(self, y: np.ndarray, target: Target) -> float:
        """Share of wrong classes, or the mean squared error of numbers, of the rows with a prediction."""
        seen = self.seen
        values, y = self.sum[seen] / self.count[seen, None], y[seen]
        if not len(y):
            return np.nan
        if target.outputs is not None:
            columns = np.split(values, np.cumsum(target.outputs)[:-1], axis=1)
            chosen = np.stack([shares.argmax(axis=1) for shares in columns], axis=1)
            return float(np.mean((chosen != y).any(axis=1)))
        if target.n_classes:
            return float(np.mean(class_shares(values, target.n_classes).argmax(axis=1) != y))
        return float(np.mean((values - y.reshape(len(y), -1)) ** 2))


def start_oob(problem: Problem, known: ForestArrays, earlier: Mapping[str, Any]) -> OutOfBag:
    """The out-of-bag values of the trees that a fit goes on with; where they were not kept, from their samples."""
    n, K = problem.rows.table.n_rows, known["value"].shape[1]
    if n_trees(known) and earlier.get("_n_rows_", n) != n:
        raise ParameterError("oob_score=True: the trees that warm_start goes on with were grown on other rows")
    if "_oob_sum_" in earlier:
        return OutOfBag(earlier["_oob_sum_"].copy(), earlier["_oob_count_"].copy())
    oob, batch = OutOfBag(np.zeros((n, K)), np.zeros(n, np.int64)), problem.rows.batch
    for t in range(n_trees(known)):
        counts = problem.samples.counts(problem.seed, t)
        if batch is None or counts is None:
            raise ParameterError("oob_score=True: the trees that warm_start goes on with were grown without it")
        tree, rows = tree_of(known, t, two_classes=False), np.flatnonzero((counts == 0) & (problem.weight > 0))
        oob.add(ForestTree(tree, rows, tree.values[leaves_of_rows(tree, batch, rows)]))
    return oob


def permutation_rises(
    forest: ForestArrays,
    samples: RowSamples,
    forest_seed: int,
    X: np.ndarray,
    y: np.ndarray,
    row_losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    n_repeats: int,
    seed: int,
    n_jobs: int | None,
) -> np.ndarray:
    """Rise of the mean loss of trees on their out-of-bag rows when a feature is permuted, (n_trees, n_features)."""
    rises: list[np.ndarray] = []

    def work(t: int) -> np.ndarray:
        rows = np.flatnonzero(samples.counts(forest_seed, t) == 0)
        return _rises_of_tree(tree_of(forest, t, two_classes=False), X[rows], y[rows], row_losses, n_repeats, seed, t)

    T = n_trees(forest)
    in_order(range(T), work, rises.append, n_threads(WORK_PER_CELL * X.size * T, n_jobs))
    table = np.array(rises)
    return np.asarray(table[~np.isnan(table).any(axis=1)])


def _rises_of_tree(
    tree: Tree,
    X: np.ndarray,
    y: np.ndarray,
    row_losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    n_repeats: int,
    seed: int,
    t: int,
) -> np.ndarray:
    """Rise of the mean loss of tree t on its out-of-bag rows X when each feature is permuted; NaN without rows."""
    rise = np.zeros(X.shape[1])
    if not len(X):
        return np.full(len(rise), np.nan)
    nodes, _, roots, levels = tree.arrays
    X = np.array(X)

    def loss() -> float:
        leaf = leaves_of_batch(Batch(X), nodes, roots, levels, 1)[:, 0]
        return float(row_losses(tree.values[leaf], y).mean())

    base, random, used = loss(), stream(seed, "shuffle", t), tree.feature
    for j in np.unique(used[used >= 0]):  # features without a split change nothing
        column = X[:, j].copy()
        for _ in range(n_repeats):
            X[:, j] = random.permutation(column)
            rise[j] += (loss() - base) / n_repeats
        X[:, j] = column
    return rise
