"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone, 1984, chapter 3).

With R(T) the weighted impurity of the leaves of T, the pruned tree that minimises R(T) + alpha |leaves of T| is found
for all alpha at once: again and again the branch whose removal raises R least for every leaf it saves is cut.
"""

from __future__ import annotations

import heapq

import numpy as np

from epicycle.tree.cart._tree import Tree

__all__ = ["prune", "weakest_links"]


def weakest_links(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(alphas, risks, nodes): from which alpha on each branch is cut, R after that, and where.

    The first entry is the whole tree, with alpha 0 and node -1.
    """
    left = tree.children_left.tolist()
    parent = tree.parent.tolist()
    node_risk = (tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]).tolist()
    n = len(left)
    leaves, branch_risk = [1] * n, list(node_risk)
    for i in range(n - 1, -1, -1):
        if left[i] > 0:
            leaves[i] = leaves[left[i]] + leaves[left[i] + 1]
            branch_risk[i] = branch_risk[left[i]] + branch_risk[left[i] + 1]

    def link(i: int) -> float:
        return (node_risk[i] - branch_risk[i]) / (leaves[i] - 1)

    current = [link(i) if left[i] > 0 else np.inf for i in range(n)]
    heap = [(current[i], i) for i in range(n) if left[i] > 0]
    heapq.heapify(heap)
    alphas, risks, cut = [0.0], [branch_risk[0]], [-1]
    while heap:
        alpha, i = heapq.heappop(heap)
        if alpha != current[i]:
            continue  # cut with a branch above it, or renewed since
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
        while j >= 0:
            leaves[j] -= fewer
            branch_risk[j] += rise
            current[j] = link(j)
            heapq.heappush(heap, (current[j], j))
            j = parent[j]
        alphas.append(alpha)
        risks.append(branch_risk[0])
        cut.append(i)
    return np.array(alphas), np.array(risks), np.array(cut)


def prune(tree: Tree, alpha: float) -> Tree:
    """The smallest of the subtrees that minimise R(T) + alpha |leaves of T|."""
    alphas, _, cut = weakest_links(tree)
    become_leaf = np.zeros(tree.node_count, bool)
    above = np.flatnonzero(alphas > alpha)
    become_leaf[cut[1 : above[0] if len(above) else None]] = True
    if not become_leaf.any():
        return tree
    left, keep = tree.children_left, np.ones(tree.node_count, bool)
    for i in range(tree.node_count):  # parents come before their children
        if left[i] > 0 and (become_leaf[i] or not keep[i]):
            keep[left[i]] = keep[left[i] + 1] = False
    return tree.take(keep, become_leaf)
