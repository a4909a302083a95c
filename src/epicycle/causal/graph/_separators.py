"""Minimal separators of a diagram, all of them.

X and Y are d-separated by Z with I <= Z <= R iff Z separates them in the moral graph of the ancestors of X, Y and I.
There the minimal ones are enumerated from the side of X (Shen and Liang, 1997): if S is one, C the component of X
without S, and v in S, then the neighbours of the component of Y behind C + v are another; every one is reached so.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

from epicycle.core._checks import count

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

Neighbours = dict[str, set[str]]
#: Names of the two sides after X and Y have been merged; names of nodes do not begin with a zero byte.
LEFT, RIGHT = "\0x", "\0y"


def minimal_separators(
    graph: Diagram, x: frozenset[str], y: frozenset[str], core: frozenset[str], allowed: frozenset[str], limit: int
) -> list[frozenset[str]]:
    """Minimal sets between `core` and `allowed` that d-separate x from y, the smallest first, at most `limit`."""
    count("limit", limit, low=1)
    moral = moral_graph(graph, x | y | core)
    for v in core:
        remove(moral, v)
    merge(moral, x, LEFT)
    merge(moral, y, RIGHT)
    for v in [v for v in moral if v not in allowed and v not in (LEFT, RIGHT)]:
        join(moral, v)
    if RIGHT in moral[LEFT]:
        return []
    found = enumerate_separators(moral, limit)
    if len(found) > limit:
        warnings.warn(f"there are more than limit={limit} minimal separators; only these are returned", stacklevel=4)
    return in_order(graph, [s | core for s in found[:limit]])


def in_order(graph: Diagram, sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """By size, then by the places of their nodes."""
    place = {v: i for i, v in enumerate(graph.nodes)}
    return sorted(sets, key=lambda s: (len(s), sorted(place[v] for v in s)))


def moral_graph(graph: Diagram, nodes: frozenset[str]) -> Neighbours:
    """Ancestors of some nodes, joined where they share an edge or, through colliders alone, a path."""
    keep = graph.ancestors(nodes)
    part = graph.subgraph(keep)
    moral: Neighbours = {v: set() for v in part.nodes}
    # A district with its parents is a clique: each pair has a path between them on which all inner nodes are colliders.
    for district in part.districts():
        clique = district.union(*(part.parents(v) for v in district))
        for a, b in combinations(clique, 2):
            moral[a].add(b)
            moral[b].add(a)
    return moral


def remove(moral: Neighbours, v: str) -> None:
    """Take a node out."""
    for u in moral.pop(v):
        moral[u].discard(v)


def merge(moral: Neighbours, nodes: Iterable[str], name: str) -> None:
    """Make one node of several."""
    around = set().union(*(moral[v] for v in nodes)) - set(nodes)
    for v in nodes:
        remove(moral, v)
    moral[name] = around
    for u in around:
        moral[u].add(name)


def join(moral: Neighbours, v: str) -> None:
    """Remove a node that cannot be conditioned on: its neighbours become neighbours of each other."""
    around = set(moral[v])
    remove(moral, v)
    for u in around:
        moral[u] |= around - {u}


def component(moral: Neighbours, start: set[str], without: set[str] | frozenset[str]) -> set[str]:
    """Nodes that are connected with `start` when `without` is taken out."""
    found, stack = set(start), list(start)
    while stack:
        new = moral[stack.pop()] - found - without
        found |= new
        stack.extend(new)
    return found


def border(moral: Neighbours, inside: set[str]) -> set[str]:
    """Neighbours of a set of nodes."""
    return set().union(*(moral[v] for v in inside)) - inside


def enumerate_separators(moral: Neighbours, limit: int) -> list[frozenset[str]]:
    """Minimal separators of the two sides; stops after limit + 1."""

    def behind(near: set[str]) -> frozenset[str]:
        """The separator closest to `near`, a connected set around the left side."""
        far = component(moral, {RIGHT}, border(moral, near))
        return frozenset(border(moral, far))

    first = behind({LEFT})
    found, queue = [first], deque([first])
    known = {first}
    while queue and len(found) <= limit:
        separator = queue.popleft()
        near = component(moral, {LEFT}, separator)
        for v in sorted(separator):
            if v in moral[RIGHT]:
                continue
            new = behind(near | {v})
            if new not in known:
                known.add(new)
                found.append(new)
                queue.append(new)
    return found
