"""A bit along an open path from a given node to the outcome, for the models of a hedge."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epicycle.causal.graph._path import Path, open_paths

if TYPE_CHECKING:
    from epicycle.causal.graph._causal_graph import CausalGraph

Array = np.ndarray
Set = frozenset[str]
_FIRST = 2  # lower bits of a value are those of the hedge


@dataclass(frozen=True)
class Link:
    """A path that is open given all of what is given but its first node, which it enters by an arrow.

    Every node of it but the first shows the sum (modulo 2) of the bits that come to it along the path: of parents, of
    coins of bidirected edges, or of a coin of its own where none come. So the bits of both ends and of all colliders
    add up to zero. Those of colliders that are not given are handed on to given nodes.

    Parameters
    ----------
    path : Path
        From the given node to the outcome.
    relays : tuple of tuples of str
        Ways along arrows from colliders that are not given to given nodes.
    """

    path: Path
    relays: tuple[tuple[str, ...], ...]

    @classmethod
    def between(cls, graph: CausalGraph, end: str, y: Set, x: Set, z: Set) -> Link:
        """The shortest one from a node of z, which cannot be acted on instead, to y under an action on x."""
        cut, known = graph.mutilated(into=x, out_of=[end]), x | (z - {end})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are more paths
            path = open_paths(cut, frozenset([end]), y, known, 1)[0]
        colliders = [
            v
            for before, v, after in zip(path.arrows, path.nodes[1:], path.arrows[1:], strict=False)
            if before.endswith(">") and after.startswith("<") and v not in known
        ]
        return cls(path, tuple(_way(cut, v, known) for v in colliders))

    @property
    def end(self) -> str:
        """The given node."""
        return self.path.nodes[0]

    @property
    def coins(self) -> list[int]:
        """Numbers of the coins: of edges in the order of the path, then of nodes."""
        return sorted({s for v in self.path.nodes for s in self._sources(v) if isinstance(s, int)})

    def _sources(self, v: str) -> list[str | int]:
        """Sources of the bit of a node: parents by their names, coins by their numbers."""
        nodes, arrows = self.path.nodes, self.path.arrows
        i = nodes.index(v)
        found: list[str | int] = []
        if i > 0 and arrows[i - 1].endswith(">"):
            found.append(i - 1 if arrows[i - 1] == "<->" else nodes[i - 1])
        if i < len(arrows) and arrows[i].startswith("<"):
            found.append(i if arrows[i] == "<->" else nodes[i + 1])
        return found or [len(arrows) + i]

    def bit(self, v: str, values: Mapping[str, Array], coins: Mapping[int, Array]) -> Array:
        """The bit that comes to a node of the path."""
        bits = [coins[s] if isinstance(s, int) else values[s] >> _FIRST & 1 for s in self._sources(v)]
        return np.asarray(np.bitwise_xor.reduce(bits))

    def shown(self, v: str, values: Mapping[str, Array], coins: Mapping[int, Array]) -> Array | int:
        """Further bits that a node shows beside those of the hedge, as a number to be added to its value."""
        found: Array | int = 0
        if v in self.path.nodes[1:]:
            found = self.bit(v, values, coins) << _FIRST
        for k, way in enumerate(self.relays, 1):
            if v in way[1:]:
                before = way[way.index(v) - 1]
                place = _FIRST if before == way[0] else _FIRST + k
                found = found + ((values[before] >> place & 1) << _FIRST + k)
        return found


def _way(graph: CausalGraph, start: str, ends: Set) -> tuple[str, ...]:
    """The shortest way along arrows from a node to one of the ends."""
    ways: list[tuple[str, ...]] = [(start,)]
    for way in ways:
        if way[-1] in ends:
            break
        ways += [(*way, child) for child in graph.children(way[-1])]
    return way
