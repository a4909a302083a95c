"""Directed acyclic graphs as arrays: lists of parents and children, order, a cycle by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from epicycle._native import graph as kernels

Array = np.ndarray


def edge_lists(n: int, tails: Array, heads: Array) -> tuple[Array, Array]:
    """Neighbours by node: those of v are ``index[first[v]:first[v + 1]]``."""
    order = np.argsort(tails, kind="stable")
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=first[1:])
    return first, heads[order].astype(np.int32)


class Adjacency:
    """A directed graph over 0, ..., n - 1, for the kernels."""

    def __init__(self, n: int, edges: Sequence[tuple[int, int]]) -> None:
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        self.n = n
        self.children = edge_lists(n, pairs[:, 0], pairs[:, 1])
        self.parents = edge_lists(n, pairs[:, 1], pairs[:, 0])

    def d_connected(self, x: Iterable[int], target: Iterable[int], given: Iterable[int]) -> tuple[bool, Array]:
        """Whether some target is d-connected to x, and all nodes that were found to be (all, if no target is)."""
        reached = np.zeros(self.n, dtype=np.uint8)
        sources = np.fromiter(x, dtype=np.int32)
        masks = (self.mask(given), self.mask(target))
        return kernels.d_connected(*self.parents, *self.children, sources, *masks, reached), reached

    def reachable(self, x: Iterable[int], *, upwards: bool) -> Array:
        """Mask of the nodes x with their ancestors or descendants."""
        found = np.zeros(self.n, dtype=np.uint8)
        kernels.reachable(*(self.parents if upwards else self.children), np.fromiter(x, dtype=np.int32), found)
        return found

    def mask(self, nodes: Iterable[int]) -> Array:
        """One where a node is among `nodes`."""
        out = np.zeros(self.n, dtype=np.uint8)
        out[np.fromiter(nodes, dtype=np.int64)] = 1
        return out

    def order_or_cycle(self) -> tuple[list[int], list[int]]:
        """Nodes in topological order and an empty list, or what could be ordered and one cycle."""
        first, index = self.children
        waiting = np.diff(self.parents[0]).tolist()
        order = [v for v in range(self.n) if waiting[v] == 0]
        for v in order:  # grows while it is read
            for u in index[first[v] : first[v + 1]].tolist():
                waiting[u] -= 1
                if waiting[u] == 0:
                    order.append(u)
        if len(order) == self.n:
            return order, []
        # Each node that is left has a parent that is left: going up from any of them ends in a circle.
        v = next(v for v in range(self.n) if waiting[v] > 0)
        trail: dict[int, None] = {}
        up_first, up_index = self.parents
        while v not in trail:
            trail[v] = None
            v = next(u for u in up_index[up_first[v] : up_first[v + 1]].tolist() if waiting[u] > 0)
        walked = list(trail)
        return order, [*walked[walked.index(v) :], v][::-1]
