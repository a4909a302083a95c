"""Best-first growth of a tree over partitions, in about as many passes as the tree is deep.

In memory a tree grows leaf by leaf, always where the gain is largest, and each split needs the histogram of a child.
Where a histogram costs a pass over a cluster, several nodes are split in one pass: the best-first order is simulated
with the nodes known so far, and every node in it whose children are not known yet is split in the next pass. When none
is left the order is that of memory, and splits beyond it are dropped.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.tree._ensemble import GrownTree
from epicycle.tree._nodes import CATEGORICAL
from epicycle.tree.boosting._growth import Growth
from epicycle.tree.boosting._partition_nodes import Step


@dataclass
class _Split:
    feature: int
    bin: int
    kind: int
    sides: np.ndarray
    gain: float
    left_sum: int
    middle: float


@dataclass
class _Node:
    number: int  # in the order in which nodes became known
    depth: int
    sum: int  # packed
    rows: int
    low: float
    high: float
    groups: np.ndarray | None
    hist: np.ndarray | None = None
    count: np.ndarray | None = None
    split: _Split | None = None
    left: int = 0  # number of the left child, once it was split; the right one has the next
    children: tuple[_Node, _Node] | None = None

    @property
    def best(self) -> _Split:
        """The split of a node that has one."""
        assert self.split is not None
        return self.split


class Plan:
    """The known nodes of one tree.

    Parameters
    ----------
    output : int
    growth : Growth
    features : ndarray of int32
    measure : ndarray of shape (6,)
        Scale and extremes of the quantised gradients; see the kernel.
    hist, count : ndarray of shape (f, 256)
        Of the root; no count where all rows have the same curvature, which then counts them.
    rows : int
    """

    def __init__(
        self,
        output: int,
        growth: Growth,
        features: np.ndarray,
        measure: np.ndarray,
        hist: np.ndarray,
        count: np.ndarray | None,
        rows: int,
    ) -> None:
        self.output, self.growth, self.features, self.measure = output, growth, features, measure
        self.max_leaves = growth.max_leaf_nodes or rows
        groups = None if growth.groups is None else np.ones(len(growth.groups), bool)
        total = int(hist[0].sum()) if len(features) else 0
        self.root = _Node(0, 0, total, rows, -np.inf, np.inf, groups, hist, count)
        self.n_nodes = 1
        if self.max_leaves > 1:
            self._consider(self.root)

    # ---------------------------------------------------------------------------------------- passes

    def wanted(self) -> list[_Node]:
        """Nodes to split in the next pass."""
        return self._simulate()[1]

    def divide(self, node: _Node) -> tuple[Step, int]:
        """The split to make in the partitions, and the child (0 left, 1 right) to sum: the lighter one."""
        left_sum = node.best.left_sum
        right_sum = node.sum - left_sum
        return self._step(node), int((left_sum & 0xFFFFFFFF) > (right_sum & 0xFFFFFFFF))

    def learn(
        self, node: _Node, summed: int, hist: np.ndarray, count: np.ndarray | None, rows: tuple[int, int]
    ) -> None:
        """Take the results of a pass: the histogram of the child `summed`, and the rows of both children.

        The histogram of the other child is that of the node less this one.
        """
        assert node.hist is not None
        # Histogram subtraction: one child is summed, the other one is the difference.
        hists = [hist, node.hist - hist]
        counts = [count, None if count is None or node.count is None else node.count - count]
        if summed == 1:
            hists.reverse()
            counts.reverse()
        node.children = children = self._children(node, rows)
        node.hist = node.count = None
        for child, h, c in zip(children, hists, counts, strict=True):
            child.hist, child.count = h, c
            self._consider(child)

    def finish(self) -> tuple[list[int], list[Step]]:
        """Numbers of the leaves, in the order of the tree's nodes, and the splits that were not made yet."""
        steps = []
        self.nodes = [self.root]
        self.left: dict[int, int] = {}
        for node in self._simulate()[0]:
            if node.children is None:
                steps.append(self._step(node))
                node.children = self._children(node)
            self.left[node.number] = len(self.nodes)
            self.nodes += node.children
        return [node.number for node in self.nodes if node.number not in self.left], steps

    def tree(self, sums: np.ndarray, rows: np.ndarray) -> GrownTree:
        """The tree, from the exact sums (l, 4) and the rows of its leaves."""
        size = len(self.nodes)
        feature, bin_, left = (np.zeros(size, np.int32) for _ in range(3))
        kind, sides = np.zeros(size, np.uint8), np.zeros((size, 4), np.uint64)
        gain, value, count = np.zeros(size), np.zeros(size), np.zeros(size, np.int64)
        total = np.zeros((size, 2))
        leaves = [i for i, node in enumerate(self.nodes) if node.number not in self.left]
        total[leaves] = _native.tree.sums_of_ranges(sums, self.measure)
        count[leaves] = rows
        for i in reversed(range(size)):
            node = self.nodes[i]
            if node.number in self.left:
                split, at = node.best, self.left[node.number]
                feature[i], bin_[i], left[i], kind[i] = split.feature, split.bin, at, split.kind
                sides[i], gain[i] = split.sides, split.gain
                total[i], count[i] = total[at] + total[at + 1], count[at] + count[at + 1]
            G, H = total[i]
            # v = -G / (H + l2), within the bounds of monotone constraints.
            best = -G / (H + self.growth.l2) if H + self.growth.l2 > 0 else 0.0
            value[i] = min(max(best, node.low), node.high)
        G, H = np.ascontiguousarray(total.T)
        return GrownTree(
            feature, bin_, left, kind, sides.reshape(-1), gain, G, H, value, np.zeros(size, np.int64), count
        )

    # ---------------------------------------------------------------------------------------- nodes

    def _simulate(self) -> tuple[list[_Node], list[_Node]]:
        """The nodes that are split, best first among those known, and the ones of them without known children."""
        divided: list[_Node] = []
        missing: list[_Node] = []
        heap = [] if self.root.split is None else [(-self.root.split.gain, 0, self.root)]
        leaves, n_nodes = 1, 1
        while heap and leaves < self.max_leaves:
            node = heapq.heappop(heap)[2]
            divided.append(node)
            leaves += 1
            left, n_nodes = n_nodes, n_nodes + 2
            if leaves == self.max_leaves or node.depth + 1 == self.growth.max_depth:
                continue
            if node.children is None:
                missing.append(node)
                continue
            for i, child in enumerate(node.children):
                if child.split is not None:
                    heapq.heappush(heap, (-child.split.gain, left + i, child))
        return divided, missing

    def _step(self, node: _Node) -> Step:
        node.left, self.n_nodes = self.n_nodes, self.n_nodes + 2
        return Step(self.output, node.number, node.best.feature, node.best.sides, node.left)

    def _children(self, node: _Node, rows: tuple[int, int] = (0, 0)) -> tuple[_Node, _Node]:
        split, monotone, groups = node.best, self.growth.monotone, node.groups
        if groups is not None and self.growth.groups is not None:
            # On a path only features of the groups that contain all features so far remain allowed.
            groups = np.logical_and(groups, self.growth.groups[:, split.feature] > 0)
        sign = 0 if monotone is None or split.kind & CATEGORICAL else int(monotone[split.feature])
        bounds = [[node.low, node.high], [node.low, node.high]]
        if sign:  # all values below a child stay on its side of the middle of the two values
            bounds[int(sign < 0)][1] = bounds[int(sign > 0)][0] = split.middle
        sums = split.left_sum, node.sum - split.left_sum
        left, right = (
            _Node(node.left + i, node.depth + 1, sums[i], rows[i], bounds[i][0], bounds[i][1], groups) for i in (0, 1)
        )
        return left, right

    def _consider(self, node: _Node) -> None:
        """Find the best split of a node; without one its histogram is dropped."""
        g = self.growth
        min_rows = 2 * max(g.min_samples_leaf, 1)
        large = node.rows >= min_rows and (not g.max_depth or node.depth < g.max_depth)
        if node.hist is not None and large and len(self.features):
            allowed = None
            if node.groups is not None and g.groups is not None:
                allowed = g.groups[node.groups][:, self.features].any(axis=0).astype(np.uint8)
            feature, bin_, kind, sides, gain, left_sum, middle = _native.tree.best_split(
                node.hist, node.count, node.sum, node.rows, (node.low, node.high), allowed, self.measure,
                self.features, g.n_bins, g.split_rules(),
            )  # fmt: skip
            if feature >= 0:
                node.split = _Split(feature, bin_, kind, sides[0], gain, left_sum, middle)
                return
        node.hist = node.count = None
