"""Many trees as one set of arrays.

`nodes` (m, 2), `value` (m, K), `impurity`, `weight` and `count` (m,) hold the nodes of all trees one after the other,
`roots` (T + 1,) where each begins, `levels` (c, 4) the sets of levels that go left. Two classes keep the share of the
second alone.
"""

from __future__ import annotations

import numpy as np

from epicycle.tree.cart._tree import Tree

__all__ = ["ForestArrays", "empty_forest", "importances", "join", "n_trees", "tree_of"]

ForestArrays = dict[str, np.ndarray]


def empty_forest(n_values: int) -> ForestArrays:
    """No tree."""
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
    return len(forest["roots"]) - 1


def join(forest: ForestArrays, trees: list[Tree]) -> ForestArrays:
    """The forest with more trees."""
    parts: dict[str, list[np.ndarray]] = {name: [array] for name, array in forest.items()}
    n_nodes, n_levels = len(forest["nodes"]), len(forest["levels"])
    second = forest["value"].shape[1] == 1
    for tree in trees:
        nodes = tree.nodes
        if n_levels and len(tree.levels):
            nodes = nodes.copy()
            nodes[tree.is_categorical, 0] += np.uint64(n_levels)
        n_nodes, n_levels = n_nodes + len(nodes), n_levels + len(tree.levels)
        value = tree.value[:, 1:] if second and tree.value.shape[1] == 2 else tree.value
        new = {
            "nodes": nodes,
            "value": value,
            "impurity": tree.impurity.astype(np.float32),
            "weight": tree.weighted_n_node_samples.astype(np.float32),
            "count": tree.n_node_samples.astype(np.int32),
            "roots": np.array([n_nodes], np.int64),
            "levels": tree.levels,
        }
        for name, array in new.items():
            parts[name].append(array)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def tree_of(forest: ForestArrays, t: int, *, two_classes: bool) -> Tree:
    """One tree by itself."""
    rows = slice(int(forest["roots"][t]), int(forest["roots"][t + 1]))
    nodes, value = forest["nodes"][rows].copy(), forest["value"][rows]
    categorical = (nodes[:, 1] >> np.uint64(58)) & np.uint64(1) == 1
    levels = forest["levels"][nodes[categorical, 0].astype(np.int64)]
    nodes[categorical, 0] = np.arange(len(levels), dtype=np.uint64)
    if two_classes:
        value = np.column_stack([1.0 - value, value])
    return Tree(
        nodes, levels, value, forest["impurity"][rows].astype(np.float64), forest["count"][rows].astype(np.int64),
        forest["weight"][rows].astype(np.float64),
    )  # fmt: skip


def importances(forest: ForestArrays, n_features: int) -> np.ndarray:
    """The shares of the features in the decrease of impurity, tree by tree, (T, n_features)."""
    T, meta = n_trees(forest), forest["nodes"][:, 1]
    tree = np.repeat(np.arange(T), np.diff(forest["roots"]))
    inner = np.flatnonzero((meta >> np.uint64(57)) & np.uint64(1) == 0)
    left = (meta[inner] & np.uint64(0xFFFFFFFF)).astype(np.int64) + forest["roots"][tree[inner]]
    feature = ((meta[inner] >> np.uint64(32)) & np.uint64(0xFFFFFF)).astype(np.int64)
    cost = forest["impurity"].astype(np.float64) * forest["weight"]
    fall = np.maximum(cost[inner] - cost[left] - cost[left + 1], 0.0)
    total = np.bincount(tree[inner] * n_features + feature, weights=fall, minlength=T * n_features)
    table = total.astype(np.float64).reshape(T, n_features)
    sums = table.sum(axis=1, keepdims=True)
    return np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
