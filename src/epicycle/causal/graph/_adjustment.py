"""Adjustment sets, which identify an effect.

Z may hold no descendant of a node, other than X, on a causal path from X to Y that meets X only at its start, and has
to d-separate X from Y once the first edges of these paths are taken out (Shpitser, VanderWeele and Robins; van der
Zander, Liskiewicz and Textor).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from epicycle.causal.graph._separators import minimal_separators
from epicycle.core._checks import count
from epicycle.core._exceptions import ParameterError

if TYPE_CHECKING:
    from epicycle.causal.graph._causal_graph import CausalGraph

Set = frozenset[str]
#: With more nodes than this all subsets cannot be listed.
MOST_NODES_OF_ALL_SUBSETS = 20


def causal_nodes(graph: CausalGraph, x: Set, y: Set) -> Set:
    """Nodes outside of x on causal paths from x to y that meet x only at their start."""
    behind = graph.mutilated(into=x).descendants(x) - x
    return behind & graph.mutilated(out_of=x).ancestors(y)


def proper_back_door_graph(graph: CausalGraph, x: Set, causal: Set) -> CausalGraph:
    """The diagram without the first edges of the causal paths."""
    directed = [(a, b) for a, b in graph.directed if not (a in x and b in causal)]
    return graph.from_parts(graph.nodes, directed, graph.bidirected, graph.latent)


def adjustment_sets(graph: CausalGraph, x: Set, y: Set, limit: int, *, minimal: bool) -> list[Set]:
    """All adjustment sets, or the minimal ones, the smallest first."""
    causal = causal_nodes(graph, x, y)
    allowed = frozenset(graph.observed) - graph.descendants(causal) - x - y
    cut = proper_back_door_graph(graph, x, causal)
    found = minimal_separators(cut, x, y, frozenset(), allowed, limit)
    if minimal or not found:
        return found
    return list(_separating_subsets(cut, x, y, allowed, count("limit", limit, low=1)))


def _separating_subsets(cut: CausalGraph, x: Set, y: Set, allowed: Set, limit: int) -> Iterator[Set]:
    if len(allowed) > MOST_NODES_OF_ALL_SUBSETS:
        raise ParameterError(
            f"kind='all': {len(allowed)} nodes may be adjusted for, so there can be 2^{len(allowed)} sets; "
            "expected kind='minimal' or 'optimal' for such diagrams"
        )
    nodes = [v for v in cut.nodes if v in allowed]
    for size in range(len(nodes) + 1):
        for chosen in combinations(nodes, size):
            if cut.d_separated(x, y, chosen):
                yield frozenset(chosen)
                limit -= 1
                if limit == 0:
                    return


def optimal_set(graph: CausalGraph, x: Set, y: Set) -> list[Set]:
    """The set with the least asymptotic variance (Henckel, Perkovic and Maathuis, 2022), in a list; or none."""
    causal = causal_nodes(graph, x, y)
    if not adjustment_sets(graph, x, y, 1 << 30, minimal=True):
        return []
    if hidden := [v for v in graph.nodes if v in causal and graph.spouses(v)]:
        raise ParameterError(
            f"kind='optimal': {hidden[0]!r} on a causal path has causes that are not observed, so that no set need be "
            "the best in every model; expected kind='minimal' or 'all'"
        )
    best = frozenset(p for v in causal for p in graph.parents(v)) - causal - x
    if best & graph.latent:
        raise ParameterError(
            f"kind='optimal': the best set has {sorted(best & graph.latent)[0]!r}, which is latent; expected "
            "kind='minimal' or 'all'"
        )
    return [best]


def back_door(graph: CausalGraph, x: Set, y: Set, limit: int) -> list[Set]:
    """Minimal sets without descendants of x that block every path into x."""
    allowed = frozenset(graph.observed) - graph.descendants(x) - y
    return minimal_separators(graph.mutilated(out_of=x), x, y, frozenset(), allowed, limit)
