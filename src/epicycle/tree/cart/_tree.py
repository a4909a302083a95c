"""A fitted tree as plain arrays, and its minimal cost-complexity pruning.

Pruning (Breiman, Friedman, Olshen and Stone, 1984, chapter 3): with R(T) the weighted impurity of the leaves of T, the
subtrees that minimise R(T) + alpha |leaves of T| are nested and found for all alpha at once, by removing again and
again the branch with the weakest link: the smallest rise of R for every leaf it saves.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data import Batch
from epicycle.tree._nodes import (
    CATEGORICAL,
    MISSING_LEFT,
    NodeArrays,
    categorical_nodes,
    leaf_nodes,
    leaves_of_batch,
    left_children,
    level_sets,
    missing_left_nodes,
    pack_nodes,
    split_features,
    thresholds,
)


@dataclass(frozen=True)
class Tree:
    """A binary tree of n nodes, the root first; the right child of a node follows its left one.

    Attributes
    ----------
    nodes : uint64 ndarray of shape (n, 2)
        Packed nodes; see :mod:`epicycle.tree._nodes`.
    levels : uint64 ndarray of shape (c, 4)
        Sets of levels that go left, one for each split of categories.
    values : ndarray of shape (n, K)
        The prediction of every node: means, medians, or the shares of the classes of all outputs, side by side.
    impurity, weighted_n_node_samples : ndarray of shape (n,)
    n_node_samples : int ndarray of shape (n,)
    n_features : int
    n_classes : int ndarray of shape (n_outputs,)
        Number of classes of every output, 1 for numbers. None in files that do not say it: :attr:`n_outputs` then
        follows from the values.
    """

    nodes: np.ndarray
    levels: np.ndarray
    values: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    n_features: int = 0
    n_classes: np.ndarray = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.n_classes is None:
            # Shares of classes add up to one in every node.
            K = self.values.shape[1]
            shares = K > 1 and bool(np.allclose(self.values.sum(axis=1), 1.0) and (self.values >= 0).all())
            object.__setattr__(self, "n_classes", np.array([K]) if shares else np.ones(K, np.int64))
        if self.n_features == 0:
            object.__setattr__(self, "n_features", int(self.feature.max(initial=-1)) + 1)

    # Model files hold the values under the name `value`.
    def __epi_state__(self) -> dict[str, object]:
        state = dict(vars(self))
        state["value"] = state.pop("values")
        return state

    def __epi_restore__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        state["values"] = state.pop("value")
        self.__init__(**state)  # type: ignore[misc]

    @property
    def value(self) -> np.ndarray:
        """The predictions in scikit-learn's shape (n, n_outputs, max_n_classes); behind the last class zeros."""
        if self.n_outputs == 1 or self.max_n_classes == 1:
            return self.values.reshape(len(self.values), self.n_outputs, -1)
        out = np.zeros((len(self.values), self.n_outputs, self.max_n_classes))
        for k, (begin, size) in enumerate(zip(np.cumsum(self.n_classes) - self.n_classes, self.n_classes, strict=True)):
            out[:, k, :size] = self.values[:, begin : begin + size]
        return out

    @property
    def n_outputs(self) -> int:
        """Number of columns of the target."""
        return len(self.n_classes)

    @property
    def max_n_classes(self) -> int:
        """Largest number of classes of an output, 1 for numbers."""
        return int(self.n_classes.max())

    @property
    def capacity(self) -> int:
        """Number of nodes that the arrays have room for: that of the nodes."""
        return len(self.nodes)

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @property
    def is_leaf(self) -> np.ndarray:
        return leaf_nodes(self.nodes)

    @property
    def is_categorical(self) -> np.ndarray:
        return categorical_nodes(self.nodes)

    @property
    def missing_go_to_left(self) -> np.ndarray:
        """Whether missing values go left; False in leaves."""
        return np.asarray(missing_left_nodes(self.nodes) & ~self.is_leaf)

    @property
    def children_left(self) -> np.ndarray:
        """Number of the left child, -1 in leaves."""
        return np.where(self.is_leaf, -1, left_children(self.nodes))

    @property
    def children_right(self) -> np.ndarray:
        """Number of the right child, -1 in leaves."""
        left = self.children_left
        return np.where(left < 0, -1, left + 1)

    @property
    def feature(self) -> np.ndarray:
        """Feature of the split, -2 in leaves."""
        return np.where(self.is_leaf, -2, split_features(self.nodes))

    @property
    def threshold(self) -> np.ndarray:
        """Numbers up to this go left; -2 in leaves, NaN in splits of categories."""
        return np.where(self.is_leaf, -2.0, np.where(self.is_categorical, np.nan, thresholds(self.nodes)))

    def left_levels(self, node: int) -> np.ndarray:
        """Codes of the levels that go left in a split of categories."""
        return np.flatnonzero(level_sets(self.levels[[int(self.nodes[node, 0])]])[0, :255])

    @property
    def arrays(self) -> NodeArrays:
        """The tree as arguments of the kernels: nodes, values, roots and levels."""
        return self.nodes, self.values, np.array([0, self.node_count], np.int64), self.levels

    @property
    def risk(self) -> float:
        """R(T), the mean impurity of the leaves, weighted by their rows."""
        mass = self.weighted_n_node_samples
        return float(np.sum((self.impurity * mass)[self.is_leaf]) / mass[0])

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
        """Decrease of the weighted impurity by the splits of every feature, per unit of weight."""
        left = self.children_left
        inner = np.flatnonzero(left > 0)
        cost = self.impurity * self.weighted_n_node_samples
        fall = cost[inner] - cost[left[inner]] - cost[left[inner] + 1]
        total = np.bincount(self.feature[inner], weights=fall, minlength=n_features)
        return np.asarray(total / self.weighted_n_node_samples[0])

    def take(self, keep: np.ndarray, become_leaf: np.ndarray) -> Tree:
        """The subtree of the nodes `keep` (a mask; both children of a node or none), some of which become leaves."""
        new = np.cumsum(keep) - 1
        left = np.where(become_leaf | self.is_leaf, 0, self.children_left)
        # Children keep their order, so the right one still follows the left one.
        moved = np.where(left > 0, new[left], 0)[keep]
        categorical = self.is_categorical & (left > 0)
        kind = np.where(self.missing_go_to_left, MISSING_LEFT, 0) | np.where(categorical, CATEGORICAL, 0)
        threshold = thresholds(self.nodes)
        sets = self.levels[self.nodes[keep & categorical, 0].astype(np.int64)]
        feature = np.maximum(self.feature, 0) * (left > 0)
        return replace(
            self,
            nodes=pack_nodes(feature[keep], threshold[keep], moved, kind[keep]),
            levels=sets,
            values=self.values[keep],
            impurity=self.impurity[keep],
            n_node_samples=self.n_node_samples[keep],
            weighted_n_node_samples=self.weighted_n_node_samples[keep],
        )

    # ------------------------------------------------------------------------------------------- scikit-learn's methods

    def apply(self, X: Any) -> np.ndarray:
        """Return the number of the leaf of every row of a dense or sparse matrix of numbers."""
        if not sp.issparse(X) and not isinstance(X, np.ndarray):
            raise DataTypeError(f"X should be in np.ndarray format, got {type(X)}")
        if X.dtype != np.float32 and X.dtype != np.float64:
            raise DataError(f"X.dtype should be np.float32 or np.float64, got {X.dtype}")
        if X.ndim != 2 or X.shape[1] < self.n_features:
            raise DataError(f"X has shape {X.shape}; expected (n_samples, {self.n_features})")
        nodes, _, roots, levels = self.arrays
        return leaves_of_batch(Batch(X.tocsr() if sp.issparse(X) else X), nodes, roots, levels, 1)[:, 0].astype(np.intp)

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of the leaf of every row: (n,), (n, max_n_classes), or with several outputs as `value`."""
        found = self.value[self.apply(X)]
        found = found[:, 0] if self.n_outputs == 1 else found
        return np.asarray(found[..., 0] if self.max_n_classes == 1 else found)

    def decision_path(self, X: Any) -> sp.csr_array:
        """Return the nodes on the path of every row, as an indicator matrix of shape (n, node_count)."""
        return self.decision_paths(self.apply(X))

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Return the decrease of the impurity by the splits of every feature, as shares that add up to one."""
        total = self.importances(self.n_features)
        return np.asarray(total / total.sum() if normalize and total.any() else total)

    def compute_node_depths(self) -> np.ndarray:
        """Return the number of nodes on the path from the root to every node, both included."""
        return self.depth + 1

    def decision_paths(self, leaves: np.ndarray) -> sp.csr_array:
        """The nodes on the path to every leaf in the list, as an indicator matrix."""
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


# ------------------------------------------------------------------------------------------------ pruning


def weakest_links(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(alphas, risks, nodes): the alpha from which on each branch is pruned, R after that, and the root of the branch.

    The first entry is the whole tree, with alpha 0 and node -1.
    """
    left = tree.children_left.tolist()
    parent = tree.parent.tolist()
    node_risk = (tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]).tolist()
    n = len(left)
    leaves, branch_risk = [1] * n, list(node_risk)
    # Children have larger numbers than their parent: one backward pass sums up the branches.
    for i in range(n - 1, -1, -1):
        if left[i] > 0:
            leaves[i] = leaves[left[i]] + leaves[left[i] + 1]
            branch_risk[i] = branch_risk[left[i]] + branch_risk[left[i] + 1]

    def link(i: int) -> float:  # g(i) = (R(i) - R(branch of i)) / (leaves of the branch - 1)
        return float((node_risk[i] - branch_risk[i]) / (leaves[i] - 1))

    current = [link(i) if left[i] > 0 else np.inf for i in range(n)]
    heap = [(current[i], i) for i in range(n) if left[i] > 0]
    heapq.heapify(heap)
    alphas, risks, pruned = [0.0], [branch_risk[0]], [-1]
    while heap:
        alpha, i = heapq.heappop(heap)
        if alpha != current[i]:
            continue  # pruned with a branch above it, or its link was updated since
        # Links inside the removed branch do not exist any more.
        below = [left[i], left[i] + 1]
        while below:
            j = below.pop()
            if current[j] < np.inf:
                current[j] = np.inf
                below += [left[j], left[j] + 1]
        current[i] = np.inf
        fewer, rise = leaves[i] - 1, node_risk[i] - branch_risk[i]
        leaves[i], branch_risk[i] = 1, node_risk[i]
        j = parent[i]
        # All ancestors have fewer leaves and a larger risk now; stale entries of the heap are skipped when popped.
        while j >= 0:
            leaves[j] -= fewer
            branch_risk[j] += rise
            current[j] = link(j)
            heapq.heappush(heap, (current[j], j))
            j = parent[j]
        alphas.append(alpha)
        risks.append(branch_risk[0])
        pruned.append(i)
    return np.array(alphas), np.array(risks), np.array(pruned)


def prune(tree: Tree, alpha: float) -> Tree:
    """The smallest of the subtrees that minimise R(T) + alpha |leaves of T|."""
    alphas, _, pruned = weakest_links(tree)
    become_leaf = np.zeros(tree.node_count, bool)
    above = np.flatnonzero(alphas > alpha)
    become_leaf[pruned[1 : above[0] if len(above) else None]] = True
    if not become_leaf.any():
        return tree
    left, keep = tree.children_left, np.ones(tree.node_count, bool)
    for i in range(tree.node_count):  # parents come before their children
        if left[i] > 0 and (become_leaf[i] or not keep[i]):
            keep[left[i]] = keep[left[i] + 1] = False
    return tree.take(keep, become_leaf)
