"""Growing one tree: what it learns from, its rules, and the call of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import _native
from epicycle.tree.cart._feature_table import FeatureTable
from epicycle.tree.cart._tree import Tree, words

__all__ = ["CRITERIA", "Grown", "Rules", "Target", "class_target", "grow", "number_target"]

#: Numbers of the criteria in the kernel.
CRITERIA = {
    "squared_error": 0,
    "absolute_error": 1,
    "poisson": 2,
    "gini": 3,
    "entropy": 4,
    "log_loss": 4,
}


@dataclass(frozen=True)
class Target:
    """Numbers y (n, K) less an offset (K,), or labels (n,) of more than two classes."""

    y: np.ndarray | None
    labels: np.ndarray | None
    n_classes: int
    offset: np.ndarray

    def values(self, raw: np.ndarray) -> np.ndarray:
        """Values of nodes from what the kernel gives: the offset added, all classes listed."""
        if self.n_classes == 0:
            return raw + self.offset
        if self.n_classes == 1:
            return np.ones((len(raw), 1))
        return np.column_stack([1.0 - raw[:, 0], raw[:, 0]]) if self.n_classes == 2 else raw


def number_target(y: np.ndarray, weight: np.ndarray, criterion: str, l2: float) -> Target:
    """Numbers to predict. Squares lose digits where the mean is far off: it is then taken away first."""
    Y = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    offset = np.zeros(Y.shape[1])
    if criterion == "squared_error" and l2 == 0:
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
        offset = np.where(np.abs(mean) > 100 * spread, mean, 0.0)
    return Target(Y - offset if offset.any() else Y, None, 0, offset)


def class_target(codes: np.ndarray, n_classes: int) -> Target:
    """Classes by their codes; two classes are the numbers 0 and 1."""
    if n_classes <= 2:
        return Target(np.ascontiguousarray(codes, np.float64).reshape(-1, 1), None, n_classes, np.zeros(1))
    return Target(None, np.ascontiguousarray(codes, np.int32), n_classes, np.zeros(n_classes))


@dataclass(frozen=True)
class Rules:
    """How a tree is grown; 0 means no limit to depth and leaves."""

    criterion: str
    l2: float = 0.0
    leaf_cost: float = 0.0
    max_depth: int = 0
    max_leaf_nodes: int = 0
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int = 1
    random_splits: bool = False
    monotone: np.ndarray | None = None


@dataclass(frozen=True)
class Grown:
    """A tree, the rows in the order of its leaves, and what of them belongs to each node; `columns` and `sides` lead
    rows of codes."""

    tree: Tree
    left: np.ndarray
    columns: np.ndarray
    sides: np.ndarray
    order: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def grow(
    table: FeatureTable, target: Target, weight: np.ndarray, rules: Rules, *, seed: int, threads: int,
    unit_weights: bool = False,
) -> Grown:  # fmt: skip
    """One tree on the rows of positive weight. The lists of the table are used up."""
    order = np.flatnonzero(weight > 0).astype(np.uint32)
    arrays: Any = _native.cart.grow(
        table.codes, table.coded_feature, table.n_codes, table.low, table.high, table.categorical, table.lists,
        table.list_start, table.sorted_feature, table.values, table.value_rows, table.value_start, table.n_features,
        weight, target.y, target.labels, target.n_classes, order, CRITERIA[rules.criterion], rules.l2, unit_weights,
        rules.max_depth, rules.max_leaf_nodes, rules.min_samples_split, rules.min_samples_leaf, rules.min_weight_leaf,
        rules.min_impurity_decrease, rules.leaf_cost, rules.max_features, rules.random_splits, rules.monotone, seed,
        threads,
    )  # fmt: skip
    feature, threshold, left, kind, sides, columns, cost, mass, begin, end, raw = arrays
    sides = sides.reshape(-1, 4)
    values = target.values(raw.reshape(len(left), -1))
    outputs = values.shape[1] if target.n_classes == 0 else 1
    tree = Tree(
        words(feature, threshold, left, kind), sides[(kind & 4) > 0], values, cost / (mass * outputs), end - begin, mass
    )
    return Grown(tree, left, columns, sides, order, begin, end)
