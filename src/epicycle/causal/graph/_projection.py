"""Latent projection: nodes that are not observed are taken out one after the other.

What lies before a hidden node points to what lies behind it, and what lies behind it has a common cause.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

Edges = list[tuple[str, str]]


def project(graph: Diagram, keep: frozenset[str]) -> tuple[list[str], Edges, Edges]:
    """Nodes, directed and bidirected edges among `keep`."""
    parents = {v: set(graph.parents(v)) for v in graph.nodes}
    children = {v: set(graph.children(v)) for v in graph.nodes}
    spouses = {v: set(graph.spouses(v)) for v in graph.nodes}
    for hidden in (v for v in graph.nodes if v not in keep):
        before, after, beside = parents.pop(hidden), children.pop(hidden), spouses.pop(hidden)
        for group, table in ((before, children), (after, parents), (beside, spouses)):
            for v in group:
                table[v].discard(hidden)
        for c in after:
            parents[c] |= before
            for s in beside - {c}:  # beside -> hidden -> c with an unseen cause of both
                spouses[s].add(c)
                spouses[c].add(s)
        for p in before:
            children[p] |= after
        for a, b in combinations(after, 2):
            spouses[a].add(b)
            spouses[b].add(a)
    nodes = [v for v in graph.nodes if v in keep]
    place = {v: i for i, v in enumerate(nodes)}
    directed = [(a, b) for a in nodes for b in sorted(children[a], key=place.__getitem__)]
    bidirected = [(a, b) for a in nodes for b in sorted(spouses[a], key=place.__getitem__) if place[a] < place[b]]
    return nodes, directed, bidirected
