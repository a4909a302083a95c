"""The front-door criterion.

M intercepts all causal paths from X to Y; no back-door path from X to M is open; X blocks all back-door paths from M to
Y. The second condition holds node by node. The third only becomes harder when a node leaves M, so a node that breaks it
is in no smaller front-door set, and taking such nodes out leaves the largest candidate (Jeong, Tian and Bareinboim).
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING

from epicycle.causal.graph._separators import in_order
from epicycle.core._checks import count

if TYPE_CHECKING:
    from epicycle.causal.graph._causal_graph import CausalGraph

Set = frozenset[str]
#: With more candidates than this not all minimal sets are looked for, but one.
MOST_CANDIDATES = 16


def front_door(graph: CausalGraph, x: Set, y: Set, limit: int) -> list[Set]:
    """Minimal front-door sets, the smallest first."""
    count("limit", limit, low=1)
    candidates = largest_candidate(graph, x, y)
    if not intercepts(graph, x, y, candidates):
        return []
    nodes = [v for v in graph.nodes if v in candidates]
    if len(nodes) > MOST_CANDIDATES:
        warnings.warn(f"{len(nodes)} nodes are candidates: only one minimal set was looked for", stacklevel=4)
        return [shrunk(graph, x, y, candidates)]
    found: list[Set] = []
    for size in range(len(nodes) + 1):
        for chosen in combinations(nodes, size):
            here = frozenset(chosen)
            if any(smaller <= here for smaller in found):
                continue
            if intercepts(graph, x, y, here) and shielded(graph, x, y, here) == here:
                found.append(here)
                if len(found) == limit:
                    return found
    return in_order(graph, found)


def largest_candidate(graph: CausalGraph, x: Set, y: Set) -> Set:
    """All observed nodes that can be in a front-door set."""
    reached = graph.mutilated(out_of=x).d_connected(x)
    chosen = frozenset(graph.observed) - x - y - reached
    for _ in graph.nodes:
        smaller = shielded(graph, x, y, chosen)
        if smaller == chosen:
            break
        chosen = smaller
    return chosen


def shielded(graph: CausalGraph, x: Set, y: Set, chosen: Set) -> Set:
    """Those of the nodes whose back-door paths to y are blocked by x."""
    return chosen - graph.mutilated(out_of=chosen).d_connected(y, x)


def intercepts(graph: CausalGraph, x: Set, y: Set, chosen: Set) -> bool:
    """Whether every causal path from x to y meets one of the nodes."""
    return not graph.mutilated(into=chosen).descendants(x) & y


def shrunk(graph: CausalGraph, x: Set, y: Set, chosen: Set) -> Set:
    """A smaller front-door set, as long as a node can go."""
    for v in [v for v in graph.nodes if v in chosen]:
        less = chosen - {v}
        if intercepts(graph, x, y, less) and shielded(graph, x, y, less) == less:
            chosen = less
    return chosen
