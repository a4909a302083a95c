"""Markov equivalence of diagrams without latent nodes.

Two such diagrams imply the same independences iff they join the same nodes and have the same colliders a -> c <- b with
a and b not joined (Verma and Pearl). Edges that all members of the class share are those of the colliders and what
Meek's rules make of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from epicycle.core._exceptions import ParameterError

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

Edge = tuple[str, str]


@dataclass(frozen=True)
class MarkovEquivalence:
    """A class of diagrams with the same independences, as a completed partially directed graph.

    Parameters
    ----------
    nodes : tuple of str
        The nodes of each member.
    directed : tuple of pairs
        Edges that point the same way in all members.
    undirected : tuple of pairs
        Edges that point one way in some members and the other way in others.
    """

    nodes: tuple[str, ...]
    directed: tuple[Edge, ...]
    undirected: tuple[Edge, ...]

    def __contains__(self, graph: Diagram) -> bool:
        other = equivalence_class(graph)
        return (set(self.nodes), set(self.directed), set(map(frozenset, self.undirected))) == (
            set(other.nodes),
            set(other.directed),
            set(map(frozenset, other.undirected)),
        )

    def __repr__(self) -> str:
        edges = [f"{a} -> {b}" for a, b in self.directed] + [f"{a} -- {b}" for a, b in self.undirected]
        return f"MarkovEquivalence({'; '.join(edges)!r})"


def equivalence_class(graph: Diagram) -> MarkovEquivalence:
    """The class of a diagram without bidirected edges and latent nodes."""
    if graph.bidirected or graph.latent:
        raise ParameterError(
            "markov_equivalence: the diagram has bidirected edges or latent nodes; expected all common causes to be "
            "observed nodes"
        )
    joined: dict[str, set[str]] = {v: {*graph.parents(v), *graph.children(v)} for v in graph.nodes}
    arrows = {
        (p, v) for v in graph.nodes for a, b in combinations(graph.parents(v), 2) if b not in joined[a] for p in (a, b)
    }
    arrows = closed_under_meek(joined, arrows)
    directed = tuple(edge for edge in graph.directed if edge in arrows)
    return MarkovEquivalence(graph.nodes, directed, tuple(edge for edge in graph.directed if edge not in arrows))


def closed_under_meek(joined: dict[str, set[str]], arrows: set[Edge]) -> set[Edge]:
    """Directions that follow from others without a new collider or a cycle; `joined` has the neighbours of nodes."""
    arrows = set(arrows)
    for _ in range(sum(map(len, joined.values())) + 1):  # each round but the last adds an arrow
        new = {
            (a, b)
            for a in joined
            for b in joined[a]
            if (a, b) not in arrows and (b, a) not in arrows and _forced(joined, arrows, a, b)
        }
        if not new:
            break
        arrows |= new
    return arrows


def _forced(joined: dict[str, set[str]], arrows: set[Edge], a: str, b: str) -> bool:
    """Whether a -- b has to point to b (Meek's rules 1 to 3, and 4 for what background knowledge adds)."""
    if any((c, a) in arrows and c not in joined[b] for c in joined[a]):  # c -> a -- b
        return True
    if any((a, c) in arrows and (c, b) in arrows for c in joined[a] & joined[b]):  # a -> c -> b
        return True
    into = [c for c in joined[a] & joined[b] if (c, b) in arrows]
    if any(d not in joined[c] and _open(arrows, a, c) and _open(arrows, a, d) for c, d in combinations(into, 2)):
        return True
    return any(  # a -- d -> c -> b with d not joined to b
        (d, c) in arrows and d in joined[a] and d not in joined[b] and _open(arrows, a, d)
        for c in into
        for d in joined[c]
    )


def _open(arrows: set[Edge], a: str, b: str) -> bool:
    return (a, b) not in arrows and (b, a) not in arrows
