"""Cuts of a tree: by the number of clusters, by height, and where the heights have their longest gap."""

from __future__ import annotations

from heapq import heappush, heappushpop

import numpy as np

from epicycle import _native
from epicycle.core._exceptions import DataError


def by_number(Z: np.ndarray, n: int, k: int) -> np.ndarray:
    """The k clusters that are left before the last k - 1 merges, numbered as in scikit-learn."""
    if k > n:
        raise DataError(
            f"Cannot extract more clusters than samples: {k} clusters were given for a tree with {n} leaves."
        )
    merges = n - k
    if len(Z) < merges:
        raise DataError(f"n_clusters={k}; expected at least {n - len(Z)}, the tree was not built further")
    label = np.full(n + len(Z), -1, dtype=np.int64)
    children = children_of(Z)
    if len(Z) < n - 1:  # the clusters of a tree that was not finished, in the order of their nodes
        heads = _heads(children[:merges], n)
    else:
        nodes = [-(n + len(Z) - 1)]
        for _ in range(k - 1):
            first, second = children[-nodes[0] - n]
            heappush(nodes, -first)
            heappushpop(nodes, -second)
        heads = -np.array(nodes)
    label[heads] = np.arange(k)
    return _labels(children, n, label)


def by_height(Z: np.ndarray, n: int, threshold: float) -> np.ndarray:
    """The largest clusters in which all merges are below the threshold."""
    highest = _native.cluster.highest_below(Z, n)
    count = int((highest >= threshold).sum())
    if len(Z) == n - 1 and (np.diff(highest) >= 0).all():
        return by_number(Z, n, count + 1)
    children = children_of(Z)
    whole = np.concatenate([np.ones(n, dtype=bool), highest < threshold])
    parent = parents_of(children, n)
    inner = parent < len(whole)
    above = np.zeros(len(whole), dtype=bool)
    above[inner] = whole[parent[inner]]
    heads = np.flatnonzero(whole & ~above)
    label = np.full(len(whole), -1, dtype=np.int64)
    label[heads] = np.arange(len(heads))
    return _labels(children, n, label)


def by_persistence(Z: np.ndarray, n: int) -> int:
    """The number of clusters, at least two, that is kept over the longest interval of heights."""
    heights = np.sort(Z[:, 2])
    gaps = np.diff(heights, prepend=0.0)
    if len(Z) == 0 or gaps.max() <= 0:
        return 1
    # Before merge t, counted from 0, there are n - t clusters; of equal gaps the one with fewest clusters.
    return n - (len(gaps) - 1 - int(np.argmax(gaps[::-1])))


def children_of(Z: np.ndarray) -> np.ndarray:
    """The two nodes that every merge joins."""
    return np.ascontiguousarray(Z[:, :2], dtype=np.int64)


def parents_of(children: np.ndarray, n: int) -> np.ndarray:
    """The node above every node; beyond the last where there is none."""
    total = n + len(children)
    parent = np.full(total, total, dtype=np.int64)
    parent[children] = np.arange(n, total)[:, None]
    return parent


def _heads(children: np.ndarray, n: int) -> np.ndarray:
    return np.flatnonzero(parents_of(children, n) == n + len(children))


def labels_before(children: np.ndarray, n: int, t: int) -> np.ndarray:
    """The node that every row belongs to before merge t."""
    heads = _heads(children[:t], n)
    label = np.full(n + t, -1, dtype=np.int64)
    label[heads] = heads
    return _labels(children[:t], n, label)


def _labels(children: np.ndarray, n: int, label: np.ndarray) -> np.ndarray:
    _native.cluster.node_labels(children, n, label)
    return label[:n]
