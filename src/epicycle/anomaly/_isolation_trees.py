"""Isolation trees as arrays, their path lengths, and the loop that grows them.

The path of a row ends in a leaf of depth e with n rows of the sample; its length is h = e + c(n), where c(n) is the
mean depth of an unsuccessful search in a binary search tree of n keys,

    c(n) = 2 (log(n - 1) + gamma) - 2 (n - 1) / n,      c(2) = 1,   c(1) = 0.

Lengths are rounded to multiples of 2^-32, so that their sums over trees are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.anomaly._row_samples import IsolationSamples
from epicycle.core._memory import require_memory
from epicycle.core._random import stream
from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.tree._nodes import leaf_nodes, left_children, pack_nodes

TreeArrays = dict[str, np.ndarray]
NO_LEVELS = np.empty((0, 4), np.uint64)
_UNIT = 2.0**-32  # of path lengths
_WORK_PER_CELL = 20.0  # operations for a value of a sample and a level of its tree


def average_path_length(n: np.ndarray | float) -> np.ndarray:
    """c(n), as a multiple of 2^-32."""
    n = np.asarray(n, dtype=np.float64)
    many = np.maximum(n, 3.0)
    lengths = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.asarray(np.round(np.where(n > 2, lengths, np.where(n > 1, 1.0, 0.0)) / _UNIT) * _UNIT)


@dataclass(frozen=True)
class GrowthPlan:
    """The settings that all trees of a forest have in common."""

    X: Any
    samples: IsolationSamples
    n_columns: int  # that a tree sees
    max_depth: int
    seed: int

    def columns(self, tree: int) -> np.ndarray:
        """The columns that a tree sees, ascending."""
        p = int(self.X.shape[1])
        if self.n_columns == p:
            return np.arange(p)
        return np.sort(stream(self.seed, "columns", tree).choice(p, self.n_columns, replace=False))

    def table(self, tree: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows of the sample as float64, the columns that they hold)."""
        rows, columns = self.samples.draw(self.seed, tree), self.columns(tree)
        part = self.X[rows]
        if sp.issparse(part):  # what is zero in all rows divides none
            columns = np.intersect1d(columns, np.unique(part.indices))
            require_memory(8.0 * len(rows) * len(columns), "a sample of sparse rows", "take a smaller max_samples")
            part = part[:, columns].toarray()
        elif len(columns) < part.shape[1]:
            part = part[:, columns]
        return np.ascontiguousarray(part, dtype=np.float64), columns

    def grow(self, tree: int) -> TreeArrays:
        """One tree: `nodes` (m, 2), `length` and `count` (m,), the path length at every node and its rows."""
        table, columns = self.table(tree)
        words = stream(self.seed, "splits", tree).integers(0, 2**64, 4, dtype=np.uint64)
        column, threshold, left, missing, count = _native.anomaly.grow_isolation_tree(table, self.max_depth, words)
        feature = columns[column] if len(columns) else np.zeros(len(column), np.int64)
        nodes = pack_nodes(np.where(left > 0, feature, 0), threshold, left, missing)
        depth = np.zeros(len(left))
        for i in np.flatnonzero(left):  # parents stand before their children
            depth[left[i] : left[i] + 2] = depth[i] + 1
        return {"nodes": nodes, "length": depth + average_path_length(count), "count": count}


def no_trees() -> TreeArrays:
    """A forest without trees."""
    return {
        "nodes": np.empty((0, 2), np.uint64),
        "length": np.empty(0),
        "count": np.empty(0, np.int64),
        "roots": np.zeros(1, np.int64),
    }


def joined(forest: TreeArrays, trees: list[TreeArrays]) -> TreeArrays:
    """The forest with more trees."""
    sizes = [len(tree["nodes"]) for tree in trees]
    found = {name: np.concatenate([forest[name], *(t[name] for t in trees)]) for name in ("nodes", "length", "count")}
    found["roots"] = np.concatenate([forest["roots"], forest["roots"][-1] + np.cumsum(sizes, dtype=np.int64)])
    return found


def number_of_trees(forest: TreeArrays) -> int:
    return len(forest["roots"]) - 1


def expected_lengths(forest: TreeArrays) -> np.ndarray:
    """The mean path length of the rows of the sample at and below every node."""
    leaf = leaf_nodes(forest["nodes"])
    begin = np.repeat(forest["roots"][:-1], np.diff(forest["roots"]))
    left = left_children(forest["nodes"]) + begin
    right = np.where(leaf, left, left + 1)
    count = forest["count"].astype(np.float64)
    share = count[left] / np.where(leaf, 1.0, count)
    mean = forest["length"].copy()
    while True:  # a level further up each time: as many rounds as the deepest tree has levels
        new = np.where(leaf, mean, share * mean[left] + (1 - share) * mean[right])
        if np.array_equal(new, mean):
            return mean
        mean = new


class ForestGrowth:
    """A forest while it grows: the trees it goes on with and those grown since."""

    def __init__(self, plan: GrowthPlan, known: TreeArrays) -> None:
        self.plan, self.known = plan, known
        self.grown: list[TreeArrays] = []
        self.stopped, self.objective = False, float("nan")

    def forest(self, size: int | None = None) -> TreeArrays:
        """All trees, or the first `size` of them."""
        return joined(self.known, self.grown[: None if size is None else size - number_of_trees(self.known)])

    def state(self) -> dict[str, Any]:
        """State from which an interrupted fit goes on."""
        return {"trees": self.forest(), "seed": self.plan.seed}

    def run(self, monitor: Callable[..., bool], n_estimators: int, n_jobs: int | None) -> None:
        """Grow trees until there are `n_estimators`, or until the monitor asks to stop."""
        first = number_of_trees(self.known)
        # Trees are drawn lazily: after a stop no further one is started.
        numbers = itertools.takewhile(lambda _: not self.stopped, iter(range(first, n_estimators)))
        cells = float(self.plan.samples.size) * max(self.plan.max_depth, 1) * (n_estimators - first)
        in_order(
            numbers, self.plan.grow, lambda tree: self._add(tree, monitor), n_threads(_WORK_PER_CELL * cells, n_jobs)
        )

    def _add(self, tree: TreeArrays, monitor: Callable[..., bool]) -> None:
        if self.stopped:
            return
        self.grown.append(tree)
        done = number_of_trees(self.known) + len(self.grown)
        leaf = leaf_nodes(tree["nodes"])
        weight = tree["count"][leaf] / tree["count"][0]
        self.objective = float(weight @ tree["length"][leaf])
        leaves, where = float(np.count_nonzero(leaf)), np.array([float(done)])
        self.stopped = bool(monitor(done, where, objective=self.objective, state=self.state, leaves=leaves))
