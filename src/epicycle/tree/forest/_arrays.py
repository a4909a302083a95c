"""All trees of a forest as one set of arrays, and the training targets in their leaves.

`nodes` (m, 2), `value` (m, K), `impurity`, `weight` and `count` (m,) hold the nodes of all trees one after the other,
`roots` (T + 1,) where each begins, `levels` (c, 4) the sets of levels that go left. Of two classes the share of the
second is stored alone.

Quantile regression forests (Meinshausen, 2006): row i of the training data has at x the weight

    w_i(x) = mean over trees of  1(i in the leaf of x) / size of the leaf,

and the distribution of y given x is estimated by sum_i w_i(x) 1(y_i <= y).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from epicycle.tree._nodes import NodeArrays, categorical_nodes, leaf_nodes, left_children, split_features
from epicycle.tree.cart._tree import Tree

# Slack, relative to the number of trees, in comparing a cumulated float32 weight with a quantile level: rounding must
# not step over a row whose sum meets the level exactly.
_LEVEL_SLACK = 1e-6
# Pairs of a row and a training row in its leaves that are held at a time by a quantile: 200 MiB of sparse matrix.
_PAIRS_AT_ONCE = 1 << 24

ForestArrays = dict[str, np.ndarray]


def empty_forest(n_values: int) -> ForestArrays:
    """A forest without trees."""
    return {
        "nodes": np.empty((0, 2), np.uint64),
        "value": np.empty((0, n_values)),
        "impurity": np.empty(0, np.float32),
        "weight": np.empty(0, np.float32),
        "count": np.empty(0, np.int32),
        "roots": np.zeros(1, np.int64),
        "levels": np.empty((0, 4), np.uint64),
    }


def n_trees(forest: ForestArrays) -> int:
    """Number of trees."""
    return len(forest["roots"]) - 1


def node_arrays(forest: ForestArrays) -> NodeArrays:
    """The trees as arguments of the kernels."""
    return forest["nodes"], forest["value"], forest["roots"], forest["levels"]


def join(forest: ForestArrays, trees: list[Tree]) -> ForestArrays:
    """The forest with more trees."""
    parts: dict[str, list[np.ndarray]] = {name: [array] for name, array in forest.items()}
    n_nodes, n_levels = len(forest["nodes"]), len(forest["levels"])
    second = forest["value"].shape[1] == 1
    for tree in trees:
        nodes = tree.nodes
        # Sets of levels are numbered over the whole forest.
        if n_levels and len(tree.levels):
            nodes = nodes.copy()
            nodes[tree.is_categorical, 0] += np.uint64(n_levels)
        n_nodes, n_levels = n_nodes + len(nodes), n_levels + len(tree.levels)
        # Shares of two classes add up to one: half the memory and time in prediction.
        value = tree.values[:, 1:] if second and tree.values.shape[1] == 2 else tree.values
        new = {
            "nodes": nodes,
            "value": value,
            "impurity": _compact(tree.impurity),
            "weight": _compact(tree.weighted_n_node_samples),
            "count": tree.n_node_samples.astype(np.int32),
            "roots": np.array([n_nodes], np.int64),
            "levels": tree.levels,
        }
        for name, array in new.items():
            parts[name].append(array)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _compact(numbers: np.ndarray) -> np.ndarray:
    """As float32, unless that overflows."""
    return numbers.astype(np.float32) if numbers.max() < np.finfo(np.float32).max else numbers


def tree_of(
    forest: ForestArrays, t: int, *, two_classes: bool, n_features: int = 0, n_classes: np.ndarray | None = None
) -> Tree:
    """One tree by itself."""
    rows = slice(int(forest["roots"][t]), int(forest["roots"][t + 1]))
    nodes, value = forest["nodes"][rows].copy(), forest["value"][rows]
    categorical = categorical_nodes(nodes)
    levels = forest["levels"][nodes[categorical, 0].astype(np.int64)]
    nodes[categorical, 0] = np.arange(len(levels), dtype=np.uint64)
    if two_classes:
        value = np.column_stack([1.0 - value, value])
    return Tree(
        nodes,
        levels,
        value,
        forest["impurity"][rows].astype(np.float64),
        forest["count"][rows].astype(np.int64),
        forest["weight"][rows].astype(np.float64),
        n_features,
        np.ones(value.shape[1], np.int64) if n_classes is None else n_classes,
    )


def importances(forest: ForestArrays, n_features: int) -> np.ndarray:
    """Shares of the features in the decrease of impurity, tree by tree, (T, n_features)."""
    T, nodes = n_trees(forest), forest["nodes"]
    tree = np.repeat(np.arange(T), np.diff(forest["roots"]))
    inner = np.flatnonzero(~leaf_nodes(nodes))
    left = left_children(nodes)[inner] + forest["roots"][tree[inner]]
    feature = split_features(nodes)[inner]
    cost = forest["impurity"].astype(np.float64) * forest["weight"]
    # Stored as float32, a decrease may round to a little below zero.
    fall = np.maximum(cost[inner] - cost[left] - cost[left + 1], 0.0)
    total = np.bincount(tree[inner] * n_features + feature, weights=fall, minlength=T * n_features)
    table = total.astype(np.float64).reshape(T, n_features)
    sums = table.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(table, sums, out=np.zeros_like(table), where=sums > 0))


# ------------------------------------------------------------------------------------------------ leaves


class LeafSamples:
    """Training rows of all leaves, by the rank of their target."""

    def __init__(self, y: np.ndarray, earlier: Mapping[str, np.ndarray] | None = None) -> None:
        order = np.argsort(y, kind="stable")
        self.y = np.asarray(y, np.float64)[order]
        self.rank = np.empty(len(y), np.int32)
        self.rank[order] = np.arange(len(y), dtype=np.int32)
        self.ranks = [] if earlier is None else [earlier["rank"]]
        self.shares = [] if earlier is None else [earlier["share"]]
        self.sizes = [] if earlier is None else [earlier["size"]]

    def add(self, rows: np.ndarray, shares: np.ndarray, sizes: np.ndarray) -> None:
        """Add a tree: its rows leaf by leaf, their shares of the weight of the leaf, and the number of rows by node."""
        self.ranks.append(self.rank[rows])
        self.shares.append(shares.astype(np.float32))
        self.sizes.append(sizes.astype(np.int32))

    def state(self) -> dict[str, np.ndarray]:
        """The samples as arrays, as they are stored with the model."""
        return {
            "y": self.y,
            "rank": np.concatenate(self.ranks),
            "share": np.concatenate(self.shares),
            "size": np.concatenate(self.sizes),
        }


def leaf_indicator(leaves: np.ndarray, roots: np.ndarray) -> sp.csr_array:
    """Leaves (n, T), numbered in each tree, as an indicator matrix over the nodes of all trees."""
    n, T = leaves.shape
    indices = (leaves.astype(np.int64) + roots[:-1]).ravel()
    return sp.csr_array((np.ones(n * T, np.float32), indices, np.arange(0, n * T + 1, T)), shape=(n, int(roots[-1])))


def quantiles_of(
    leaves: np.ndarray, roots: np.ndarray, samples: Mapping[str, np.ndarray], levels: np.ndarray
) -> np.ndarray:
    """Quantiles (n, len(levels)) for rows in these leaves: the smallest y at which sum_i w_i 1(y_i <= y) >= level."""
    y, T = samples["y"], leaves.shape[1]
    start = np.concatenate([[0], np.cumsum(samples["size"], dtype=np.int64)])
    content = sp.csr_array((samples["share"], samples["rank"], start), shape=(len(start) - 1, len(y)))
    out = np.empty((len(leaves), len(levels)))
    per_leaf = len(samples["rank"]) / max(1, int(np.count_nonzero(samples["size"])))
    step = max(1, int(_PAIRS_AT_ONCE / (T * (per_leaf + 1))))
    for i in range(0, len(leaves), step):
        weights = sp.csr_array(leaf_indicator(leaves[i : i + step], roots) @ content)
        weights.sort_indices()
        sums = np.cumsum(weights.data, dtype=np.float64)
        before = np.concatenate([[0.0], sums])[weights.indptr[:-1]]
        for k, level in enumerate(levels):
            wanted = before + level * T - _LEVEL_SLACK * T
            at = np.searchsorted(sums, wanted, side="left")
            at = np.clip(at, weights.indptr[:-1], weights.indptr[1:] - 1)
            out[i : i + step, k] = y[weights.indices[at]]
    return out
