"""Ends of edges, and the directions that follow from colliders (Meek's rules), as arrays.

``marks[i, j]`` is the mark at j on the edge of i and j: 0 where there is no edge. i -> j has an arrow at j and a tail
at i; i -- j two tails (of a class of equivalent graphs); a circle means that members of the class differ.
"""

from __future__ import annotations

import numpy as np

NONE, CIRCLE, ARROW, TAIL = 0, 1, 2, 3
Array = np.ndarray


def directed_part(marks: Array) -> Array:
    """Mask of the pairs with i -> j."""
    return np.asarray((marks == ARROW) & (marks.T == TAIL))


def cpdag_marks(directed: Array, undirected: Array) -> Array:
    """Marks of a partially directed graph."""
    marks = np.where(directed, ARROW, np.where(directed.T, TAIL, NONE))
    return np.asarray(np.where(undirected, TAIL, marks).astype(np.int8))


def closed_under_meek(directed: Array, undirected: Array) -> tuple[Array, Array]:
    """Directions that follow from others without a new collider or a cycle (Meek 1995, rules 1 to 3)."""
    D, U = directed.copy(), undirected.copy()
    for _ in range(int(U.sum()) // 2 + 1):  # every round but the last directs an edge
        joined = D | D.T | U
        apart = ~joined
        np.fill_diagonal(apart, False)
        d, u = D.astype(np.int64), U.astype(np.int64)
        forced = U & ((d.T @ apart.astype(np.int64) > 0) | (d @ d > 0))
        if not forced.any():
            forced = _third_rule(D, U, u @ d >= 2, apart)
        if not forced.any():
            break
        forced &= ~(forced.T & np.tri(len(D), dtype=bool))  # both ways: in conflict, the first is taken
        D |= forced
        U &= ~(forced | forced.T)
    return D, U


def _third_rule(D: Array, U: Array, candidates: Array, apart: Array) -> Array:
    """a -- b with a -- c -> b and a -- d -> b, where c and d are not joined."""
    forced = np.zeros_like(U)
    for a, b in np.argwhere(U & candidates):
        between = np.flatnonzero(U[a] & D[:, b])
        forced[a, b] = bool(apart[np.ix_(between, between)].any())
    return forced


def cpdag_of(dag: Array) -> tuple[Array, Array]:
    """Directed and undirected edges that stand for all graphs with the independences of a DAG."""
    joined = dag | dag.T
    collider = np.zeros_like(dag)
    for c in range(len(dag)):
        parents = np.flatnonzero(dag[:, c])
        if len(parents) > 1:
            loose = ~joined[np.ix_(parents, parents)]
            np.fill_diagonal(loose, False)
            collider[parents[loose.any(axis=1)], c] = True
    return closed_under_meek(collider, joined & ~(collider | collider.T))


def topological_order(dag: Array) -> list[int] | None:
    """Nodes with causes first, or None where there is a cycle."""
    waiting = dag.sum(axis=0).astype(np.int64)
    order: list[int] = []
    ready = [int(v) for v in np.flatnonzero(waiting == 0)]
    while ready:
        v = ready.pop(0)
        order.append(v)
        for w in np.flatnonzero(dag[v]):
            waiting[w] -= 1
            if waiting[w] == 0:
                ready.append(int(w))
    return order if len(order) == len(dag) else None


def consistent_extension(directed: Array, undirected: Array) -> Array | None:
    """A DAG with these edges and no further collider (Dor and Tarsi 1992), or None where there is none."""
    D, U = directed.copy(), undirected.copy()
    out = directed.copy()
    left = np.ones(len(D), dtype=bool)
    for _ in range(len(D)):
        joined = D | D.T | U
        for v in np.flatnonzero(left & ~(D & left[None, :]).any(axis=1)):
            near, about = np.flatnonzero(U[v]), np.flatnonzero(joined[v])
            if all(joined[a, [b for b in about if b != a]].all() for a in near):
                break
        else:
            return None
        out[near, v] = True
        left[v] = False
        for A in (D, U):
            A[v] = A[:, v] = False
    return out
