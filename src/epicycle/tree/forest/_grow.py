"""Growth of a forest: features and targets of the training rows, one tree after the other, and out-of-bag values.

Tree t draws its rows from the stream (seed, "rows", t) and its features from (seed, "tree", t), and the results are
gathered in the order of t: the forest has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data
from epicycle.tree._binning import bin_data, bin_edges
from epicycle.tree._classes import class_shares
from epicycle.tree._nodes import leaves_of_batch
from epicycle.tree.cart._grow import FeatureTable, Grown, Rules, Target, binned_table, exact_table, grow
from epicycle.tree.cart._tree import Tree, prune
from epicycle.tree.forest._sampling import RowSamples, row_keys

# Bytes of a stored number of a sparse matrix with its sorted list: below this density one byte a cell is the larger.
_BYTES_PER_STORED_NUMBER = 24.0


@dataclass(frozen=True)
class Rows:
    """Training rows: features, targets, weights, and the keys that order them for sampling.

    `batch` holds the original rows where they are in memory.
    """

    table: FeatureTable
    y: np.ndarray
    weight: np.ndarray
    weighted: bool
    keys: np.ndarray
    batch: Batch | None


def read_rows(data: Data, levels: dict[int, int], *, max_bins: int | None, seed: int, n_jobs: int | None) -> Rows:
    """The rows as bins, in one pass over the data; as sorted columns, for exact splits, where `max_bins` is None."""
    keys: list[np.ndarray] = []

    def on_batch(rows: Batch) -> None:
        keys.append(row_keys(rows.X, np.asarray(rows.y, np.float64)))

    batch = None
    if isinstance(data, ArrayData):
        X: Any = data.X
        batch = data.rows(0, data.n_rows)
        cells = data.n_rows * float(data.n_features)
        if max_bins is None or (data.sparse and X.nnz * _BYTES_PER_STORED_NUMBER < cells):
            on_batch(batch)
            weight = np.ones(data.n_rows) if data.weight is None else data.weight
            table = exact_table(X, levels, n_jobs)
            return Rows(table, np.asarray(data.y), weight, data.has_weight, keys[0], batch)
    assert max_bins is not None
    edges = bin_edges(data, levels, max_bins=max_bins, seed=seed, n_jobs=n_jobs)
    codes, y, weight = bin_data(data, edges, n_jobs, on_batch=on_batch)
    return Rows(binned_table(codes, edges, levels), y, weight, data.has_weight, np.concatenate(keys), batch)


@dataclass(frozen=True)
class Problem:
    """The training rows of a forest and the rules of its trees.

    `weight` are the weights of the rows beside the draws; with `balance` the classes of the sample of a tree get the
    same total weight. `unit_weights` says that every tree sees all rows once, with weight one.
    """

    rows: Rows
    target: Target
    weight: np.ndarray
    samples: RowSamples
    rules: Rules
    seed: int
    min_weight_fraction_leaf: float
    ccp_alpha: float
    oob: bool
    keep_leaves: bool
    balance: bool
    unit_weights: bool


@dataclass(frozen=True)
class ForestTree:
    """A tree of a forest; where asked for, its out-of-bag rows with their values, and the rows of its leaves."""

    tree: Tree
    oob_rows: np.ndarray | None = None
    oob_values: np.ndarray | None = None
    leaf_rows: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None


def grow_tree(problem: Problem, t: int, threads: int) -> ForestTree:
    """Tree t of the forest."""
    counts = problem.samples.counts(problem.seed, t)
    weight = problem.weight if counts is None else counts * problem.weight
    if problem.balance:
        weight = _balanced(weight, problem.target)
    # The minimum weight of a leaf refers to the weight of the sample of this tree.
    rules = problem.rules
    if problem.min_weight_fraction_leaf:
        rules = replace(rules, min_weight=problem.min_weight_fraction_leaf * float(weight.sum()))
    seed = int(stream(problem.seed, "tree", t).integers(2**63))
    table = problem.rows.table.fresh()
    grown = grow(table, problem.target, weight, rules, seed=seed, threads=threads, unit_weights=problem.unit_weights)
    tree = prune(grown.tree, problem.ccp_alpha) if problem.ccp_alpha > 0 else grown.tree
    oob_rows = values = None
    if problem.oob and counts is not None:
        oob_rows = np.flatnonzero((counts == 0) & (problem.weight > 0))
        values = _oob_values(problem, grown, tree, oob_rows)
    return ForestTree(tree, oob_rows, values, _leaf_rows(grown, weight) if problem.keep_leaves else None)


def _balanced(mass: np.ndarray, target: Target) -> np.ndarray:
    """Weights that give every class of a sample the same total: w_i = mass_i * total / (n_classes * class total)."""
    label = np.asarray(target.labels if target.y is None else target.y[:, 0]).astype(np.intp)
    totals = np.bincount(label, weights=mass, minlength=target.n_classes)
    present = totals > 0
    factors = np.where(present, mass.sum() / (np.count_nonzero(present) * np.where(present, totals, 1.0)), 0.0)
    return mass * factors[label]


def _leaf_rows(grown: Grown, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows leaf by leaf, their shares of the weight of their leaf, number of rows by node)."""
    leaves = np.flatnonzero(grown.left == 0)
    sizes = np.zeros(len(grown.left), np.int64)
    sizes[leaves] = grown.end[leaves] - grown.begin[leaves]
    rows = np.concatenate([grown.order[grown.begin[i] : grown.end[i]] for i in leaves])
    mass = weight[rows]
    which = np.repeat(np.arange(len(sizes)), sizes)
    return rows, mass / np.bincount(which, weights=mass, minlength=len(sizes))[which], sizes


# ------------------------------------------------------------------------------------------------ out of bag


def _oob_values(problem: Problem, grown: Grown, tree: Tree, rows: np.ndarray) -> np.ndarray:
    table, batch = problem.rows.table, problem.rows.batch
    if table.all_coded and tree is grown.tree:  # codes are at hand, and quicker to walk by than numbers
        leaf = np.empty(len(rows), np.int32)
        _native.cart.leaves_of_codes(table.codes, rows.astype(np.uint32), grown.columns, grown.left, grown.sides, leaf)
    elif batch is not None:
        nodes, _, roots, levels = tree.arrays
        leaf = leaves_of_batch(Batch(batch.X[rows]), nodes, roots, levels, 1)[:, 0]
    else:
        raise ParameterError("oob_score=True with ccp_alpha > 0 needs the rows in memory")
    value = tree.values[leaf]
    return value[:, 1:] if problem.target.n_classes == 2 else value


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


def permutation_rises(
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
