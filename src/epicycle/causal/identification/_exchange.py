"""Conditioning that is the same as acting: rule 2 of the do-calculus, on nodes that are given."""

from __future__ import annotations

from epicycle.causal.graph._causal_graph import CausalGraph

Set = frozenset[str]


def exchangeable(graph: CausalGraph, y: Set, x: Set, z: Set) -> str | None:
    """The first node of z with P(y | do(x), z) = P(y | do(x, node), z less node), or None.

    It is separated from y given the others where the edges out of it are taken away.
    """
    for node in (v for v in graph.topological_order if v in z):
        if graph.mutilated(into=x, out_of=[node]).d_separated(y, node, x | (z - {node})):
            return node
    return None


def exchanged(graph: CausalGraph, y: Set, x: Set, z: Set) -> tuple[Set, Set]:
    """(x, z) after all nodes of z that may be acted on instead have moved over to x."""
    while (node := exchangeable(graph, y, x, z)) is not None:
        x, z = x | {node}, z - {node}
    return x, z
