"""A fitted tree as plain arrays, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.data import Batch
from epicycle.engine import n_threads

__all__ = ["Tree", "leaves_of_batch", "level_sets", "sums_of_batch", "words"]

_LEAF, _MISSING_LEFT, _CATEGORICAL = 2, 1, 4


def words(
    feature: np.ndarray, threshold: np.ndarray, left: np.ndarray, kind: np.ndarray, first_level: int = 0
) -> np.ndarray:
    """Nodes as the kernel walks them, two words each; `left` is 0 in a leaf, sets of levels count from
    `first_level`."""
    leaf, categorical = left == 0, (kind & _CATEGORICAL) > 0
    packed = np.empty((len(left), 2), np.uint64)
    packed[:, 0] = np.where(leaf, np.inf, threshold).view(np.uint64)
    packed[categorical, 0] = first_level + np.arange(np.count_nonzero(categorical), dtype=np.uint64)
    to = np.where(leaf, np.arange(len(left)), left).astype(np.uint64)
    flags = np.where(leaf, _LEAF | _MISSING_LEFT, kind).astype(np.uint64)
    packed[:, 1] = to | (feature.astype(np.uint64) << np.uint64(32)) | (flags << np.uint64(56))
    return packed


def level_sets(levels: np.ndarray) -> list[np.ndarray]:
    """The codes of levels that go left, for each set of four words."""
    bits = np.unpackbits(np.ascontiguousarray(levels).view(np.uint8).reshape(-1, 32), axis=1, bitorder="little")
    return [np.flatnonzero(row[:255]) for row in bits]


@dataclass(frozen=True)
class Tree:
    """A binary tree of n nodes, the root first; the right child of a node follows its left one.

    Attributes
    ----------
    nodes : uint64 ndarray of shape (n, 2)
        What the kernel walks: threshold, and left child, feature and flags.
    levels : uint64 ndarray of shape (c, 4)
        Sets of levels that go left, one for each split of categories.
    value : ndarray of shape (n, K)
        The prediction of every node: means, medians, or shares of classes.
    impurity, weighted_n_node_samples : ndarray of shape (n,)
    n_node_samples : int ndarray of shape (n,)
    """

    nodes: np.ndarray
    levels: np.ndarray
    value: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @property
    def is_leaf(self) -> np.ndarray:
        return (self.nodes[:, 1] >> np.uint64(57)) & np.uint64(1) == 1

    @property
    def is_categorical(self) -> np.ndarray:
        return (self.nodes[:, 1] >> np.uint64(58)) & np.uint64(1) == 1

    @property
    def missing_go_to_left(self) -> np.ndarray:
        """Whether missing values go left; False in leaves."""
        return ((self.nodes[:, 1] >> np.uint64(56)) & np.uint64(1) == 1) & ~self.is_leaf

    @property
    def children_left(self) -> np.ndarray:
        """Number of the left child, -1 in leaves."""
        return np.where(self.is_leaf, -1, (self.nodes[:, 1] & np.uint64(0xFFFFFFFF)).astype(np.int64))

    @property
    def children_right(self) -> np.ndarray:
        """Number of the right child, -1 in leaves."""
        left = self.children_left
        return np.where(left < 0, -1, left + 1)

    @property
    def feature(self) -> np.ndarray:
        """Feature that is asked for, -2 in leaves."""
        feature = ((self.nodes[:, 1] >> np.uint64(32)) & np.uint64(0xFFFFFF)).astype(np.int64)
        return np.where(self.is_leaf, -2, feature)

    @property
    def threshold(self) -> np.ndarray:
        """Numbers up to this go left; -2 in leaves, NaN where categories are divided."""
        numbers = np.ascontiguousarray(self.nodes[:, 0]).view(np.float64)
        return np.where(self.is_leaf, -2.0, np.where(self.is_categorical, np.nan, numbers))

    def left_levels(self, node: int) -> np.ndarray:
        """Codes of the levels that go left in a node that divides categories."""
        return level_sets(self.levels[[int(self.nodes[node, 0])]])[0]

    @property
    def n_leaves(self) -> int:
        return int(np.count_nonzero(self.is_leaf))

    @property
    def depth(self) -> np.ndarray:
        """Depth of every node; 0 for the root."""
        left, depth = self.children_left, np.zeros(len(self.nodes), np.int64)
        front = np.zeros(1, np.int64)
        while len(front := front[left[front] > 0]):
            children = np.concatenate([left[front], left[front] + 1])
            depth[children] = np.tile(depth[front] + 1, 2)
            front = children
        return depth

    @property
    def max_depth(self) -> int:
        return int(self.depth.max())

    @property
    def parent(self) -> np.ndarray:
        """Parent of every node, -1 for the root."""
        left, parent = self.children_left, np.full(len(self.nodes), -1, np.int64)
        inner = np.flatnonzero(left > 0)
        parent[left[inner]] = parent[left[inner] + 1] = inner
        return parent

    def importances(self, n_features: int) -> np.ndarray:
        """By how much the splits of every feature lowered the weighted impurity, per unit of weight."""
        left = self.children_left
        inner = np.flatnonzero(left > 0)
        cost = self.impurity * self.weighted_n_node_samples
        fall = cost[inner] - cost[left[inner]] - cost[left[inner] + 1]
        total = np.bincount(self.feature[inner], weights=fall, minlength=n_features)
        return total / self.weighted_n_node_samples[0]

    def take(self, keep: np.ndarray, become_leaf: np.ndarray) -> Tree:
        """The tree of the nodes `keep` (a mask; both children of a node or none), some of which become leaves."""
        new = np.cumsum(keep) - 1
        left = np.where(become_leaf | self.is_leaf, 0, self.children_left)
        moved = np.where(left > 0, new[left], 0)[keep]
        categorical = self.is_categorical & (left > 0)
        kind = np.where(self.missing_go_to_left, _MISSING_LEFT, 0) | np.where(categorical, _CATEGORICAL, 0)
        threshold = np.ascontiguousarray(self.nodes[:, 0]).view(np.float64)
        sets = self.levels[self.nodes[keep & categorical, 0].astype(np.int64)]
        feature = np.maximum(self.feature, 0) * (left > 0)
        return Tree(
            words(feature[keep], threshold[keep], moved, kind[keep]), sets, self.value[keep], self.impurity[keep],
            self.n_node_samples[keep], self.weighted_n_node_samples[keep],
        )  # fmt: skip

    def decision_paths(self, leaves: np.ndarray) -> sp.csr_array:
        """For every leaf in the list the nodes on the way to it, as an indicator matrix."""
        parent = self.parent
        steps, at = [], leaves.astype(np.int64)
        rows = np.arange(len(leaves))
        while len(rows):
            steps.append((rows, at))
            at = parent[at]
            rows, at = rows[at >= 0], at[at >= 0]
        row = np.concatenate([s[0] for s in steps]) if steps else np.empty(0, np.int64)
        col = np.concatenate([s[1] for s in steps]) if steps else np.empty(0, np.int64)
        paths = sp.csr_array((np.ones(len(row), np.int64), (row, col)), shape=(len(leaves), len(self.nodes)))
        paths.sort_indices()
        return paths


# ------------------------------------------------------------------------------------------------ rows


def _pieces(X: np.ndarray | sp.csr_array) -> list[tuple[slice, np.ndarray]]:
    """Dense rows as they are, sparse ones in small dense pieces."""
    if not sp.issparse(X):
        return [(slice(0, X.shape[0]), X)]
    step = max(1, (1 << 18) // max(X.shape[1], 1))
    return [(slice(i, i + step), X[i : i + step].toarray()) for i in range(0, X.shape[0], step)]


def sums_of_batch(
    batch: Batch, nodes: np.ndarray, values: np.ndarray, roots: np.ndarray, levels: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """The sum of the leaf values (m, K) of all trees for every row, (n, K)."""
    out = np.zeros((batch.X.shape[0], values.shape[1]))
    for rows, X in _pieces(batch.X):
        threads = n_threads(20.0 * len(X) * (len(roots) - 1), n_jobs)
        _native.cart.forest_sums(X, nodes, values, roots, levels, out[rows], threads)
    return out


def leaves_of_batch(
    batch: Batch, nodes: np.ndarray, roots: np.ndarray, levels: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """The leaf of every row in every tree, (n, n_trees)."""
    out = np.empty((batch.X.shape[0], len(roots) - 1), np.int32)
    for rows, X in _pieces(batch.X):
        threads = n_threads(20.0 * len(X) * (len(roots) - 1), n_jobs)
        _native.cart.forest_leaves(X, nodes, roots, levels, out[rows], threads)
    return out
