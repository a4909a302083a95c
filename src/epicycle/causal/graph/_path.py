"""Paths of a diagram that are open given some nodes, the shortest first."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epicycle.core._checks import count

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

#: Beginnings of paths that are looked at; a dense diagram has more than anyone can wait for.
MOST_STEPS = 200_000


@dataclass(frozen=True)
class Path:
    """A path of a causal diagram.

    Parameters
    ----------
    nodes : tuple of str
        Its nodes, from one end to the other.
    arrows : tuple of str
        ``"->"``, ``"<-"`` or ``"<->"`` between each two.
    """

    nodes: tuple[str, ...]
    arrows: tuple[str, ...]

    @property
    def causal(self) -> bool:
        """Whether every arrow points from the first node to the last."""
        return all(arrow == "->" for arrow in self.arrows)

    def __str__(self) -> str:
        return self.nodes[0] + "".join(f" {arrow} {v}" for arrow, v in zip(self.arrows, self.nodes[1:], strict=True))


def open_paths(graph: Diagram, x: frozenset[str], y: frozenset[str], given: frozenset[str], limit: int) -> list[Path]:
    """Open paths with only their ends in x and y, at most `limit`."""
    count("limit", limit, low=1)
    unblocked = graph.ancestors(given)  # where a collider lets through
    found: list[Path] = []
    queue = deque(Path((v,), ()) for v in graph.nodes if v in x)
    steps = 0
    while queue and len(found) < limit and steps < MOST_STEPS:
        path = queue.popleft()
        here = path.nodes[-1]
        for arrow, there in edges_at(graph, here):
            steps += 1
            if there in path.nodes or there in x or not lets_through(path, arrow, given, unblocked):
                continue
            longer = Path((*path.nodes, there), (*path.arrows, arrow))
            if there in y:
                found.append(longer)
            else:
                queue.append(longer)
    if queue and (steps >= MOST_STEPS or len(found) >= limit):
        warnings.warn(f"there may be more open paths than the {len(found[:limit])} returned", stacklevel=4)
    return found[:limit]


def edges_at(graph: Diagram, v: str) -> list[tuple[str, str]]:
    """Arrows and nodes next to v."""
    out = [("->", u) for u in graph.children(v)] + [("<-", u) for u in graph.parents(v)]
    return out + [("<->", u) for u in graph.spouses(v)]


def lets_through(path: Path, arrow: str, given: frozenset[str], unblocked: frozenset[str]) -> bool:
    """Whether the last node of a path is open towards an edge."""
    if not path.arrows:
        return True
    v = path.nodes[-1]
    if path.arrows[-1].endswith(">") and arrow.startswith("<"):  # both heads at v: a collider
        return v in unblocked
    return v not in given
