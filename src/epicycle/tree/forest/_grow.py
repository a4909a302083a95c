"""Growth of a forest: features and targets of the training rows, and one tree after the other.

Tree t draws its rows from the stream (seed, "rows", t) and its features from (seed, "tree", t), and the results are
gathered in the order of t: the forest has the same bits for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import ParameterError
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.tree._binning import bin_centres, bin_data, bin_edges
from epicycle.tree._nodes import leaves_of_batch
from epicycle.tree.cart._grow import FeatureTable, Grown, Rules, Target, binned_table, exact_table, grow, tree_seed
from epicycle.tree.cart._tree import Tree, prune
from epicycle.tree.forest._sampling import RowSamples, row_keys

# Bytes of a stored number of a sparse matrix with its sorted list: below this density one byte a cell is the larger.
_BYTES_PER_STORED_NUMBER = 24.0


@dataclass(frozen=True)
class Rows:
    """Training rows: features, targets, weights, and the keys that order them for sampling.

    `batch` holds the original rows where they are in memory; `on_dask` says that they are a Dask collection.
    """

    table: FeatureTable
    y: np.ndarray
    weight: np.ndarray
    weighted: bool
    keys: np.ndarray
    batch: Batch | None
    on_dask: bool = False


def keys_of_batch(batch: Batch) -> np.ndarray:
    """Sort keys of rows with their targets, where they have any."""
    return row_keys(batch.X, np.zeros((batch.n_rows, 0)) if batch.y is None else np.asarray(batch.y, np.float64))


def read_rows(
    data: Data, levels: dict[int, int], *, max_bins: int | None, random_splits: bool, seed: int, n_jobs: int | None
) -> Rows:
    """The rows as bins, in one pass over the data; as sorted columns, for exact splits, where `max_bins` is None."""
    batch = None
    if isinstance(data, ArrayData):
        X: Any = data.X
        batch = data.rows(0, data.n_rows)
        cells = data.n_rows * float(data.n_features)
        if max_bins is None or (data.sparse and X.nnz * _BYTES_PER_STORED_NUMBER < cells):
            weight = np.ones(data.n_rows) if data.weight is None else data.weight
            table = exact_table(X, levels, n_jobs)
            y = np.zeros(data.n_rows) if data.y is None else np.asarray(data.y)
            return Rows(table, y, weight, data.has_weight, keys_of_batch(batch), batch)
    assert max_bins is not None
    edges = bin_edges(data, levels, max_bins=max_bins, seed=seed, n_jobs=n_jobs)
    centre = bin_centres(data, edges, n_jobs) if random_splits else None
    codes, y, weight, keys = bin_data(data, edges, n_jobs, keys_of_batch)
    table = binned_table(codes, edges, levels, centre)
    return Rows(table, y, weight, data.has_weight, keys, batch, isinstance(data, DaskData))


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


def random_state_of(seed: int, t: int) -> int:
    """`random_state` of tree t: a decision tree with it grows the same way on the same rows."""
    return int(stream(seed, "tree", t).integers(2**31))


def grow_tree(problem: Problem, t: int, threads: int) -> ForestTree:
    """Tree t of the forest."""
    counts = problem.samples.counts(problem.seed, t)
    weight = problem.weight if counts is None else counts * problem.weight
    if problem.balance:
        weight = _balanced(weight, problem.target)
    seed = tree_seed(random_state_of(problem.seed, t))
    table = problem.rows.table.fresh()
    options: dict[str, Any] = {"seed": seed, "threads": threads, "unit_weights": problem.unit_weights}
    grown = grow(table, problem.target, weight, problem.rules, **options)
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
        leaf = leaves_of_rows(tree, batch, rows)
    else:
        raise ParameterError("oob_score=True with ccp_alpha > 0 needs the rows in memory")
    value = tree.values[leaf]
    return value[:, 1:] if problem.target.n_classes == 2 else value


def leaves_of_rows(tree: Tree, batch: Batch, rows: np.ndarray) -> np.ndarray:
    """The leaf of each of these rows."""
    nodes, _, roots, levels = tree.arrays
    return leaves_of_batch(Batch(batch.X[rows]), nodes, roots, levels, 1)[:, 0]
