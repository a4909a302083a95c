"""`Diagram`: nodes, directed and bidirected edges, relatives and surgery; what every causal diagram is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from epicycle._native import graph as kernels
from epicycle.causal.graph import _graph_text as graph_text
from epicycle.core._exceptions import DataError, ParameterError, ParameterTypeError

Nodes = str | Iterable[str]


def listed(argument: str, given: Any) -> list[str]:
    """Names of nodes: one, or several in any iterable."""
    if isinstance(given, str):
        return [given]
    try:
        found = list(given)
    except TypeError:
        raise ParameterTypeError(f"{argument}={given!r:.80}; expected the name of a node or several names") from None
    if wrong := [name for name in found if not isinstance(name, str)]:
        raise ParameterTypeError(f"{argument}: holds {wrong[0]!r:.80}; expected names as strings")
    return found


class Diagram:
    """Nodes with directed and bidirected edges, without directed cycles; `CausalGraph` is its public form."""

    def __init__(self, edges: Any = (), *, nodes: Iterable[str] | None = None, latent: Nodes = ()) -> None:
        parts = graph_text.read(edges)
        every = () if nodes is None else tuple(nodes) if isinstance(nodes, str) else listed("nodes", nodes)
        first = dict.fromkeys(every)
        self._set(tuple(first | parts.nodes), parts.directed, parts.bidirected)
        self.latent = self.names("latent", [*parts.latent, *listed("latent", latent)])

    def _set(self, nodes: tuple[str, ...], directed: Iterable[Any], bidirected: Iterable[Any]) -> None:
        if wrong := [node for node in nodes if not isinstance(node, str)]:
            raise DataError(f"nodes: got {wrong[0]!r:.80}; expected names as strings")
        if not all(nodes):
            raise DataError("nodes: got ''; expected names that are not empty")
        self.nodes = nodes
        self._place = {node: i for i, node in enumerate(nodes)}
        self.directed = tuple(dict.fromkeys((a, b) for a, b in directed))
        rank = self._place
        self.bidirected = tuple(dict.fromkeys((a, b) if rank[a] <= rank[b] else (b, a) for a, b in bidirected))
        if loops := [a for a, b in self.directed + self.bidirected if a == b]:
            raise DataError(f"edges: {loops[0]!r} has an edge to itself")
        self._parents: dict[str, list[str]] = {node: [] for node in nodes}
        self._children: dict[str, list[str]] = {node: [] for node in nodes}
        self._spouses: dict[str, list[str]] = {node: [] for node in nodes}
        for a, b in self.directed:
            self._parents[b].append(a)
            self._children[a].append(b)
        for a, b in self.bidirected:
            self._spouses[a].append(b)
            self._spouses[b].append(a)
        order, cycle = Adjacency(len(nodes), [(rank[a], rank[b]) for a, b in self.directed]).order_or_cycle()
        if cycle:
            shown = " -> ".join(nodes[v] for v in cycle)
            raise DataError(f"edges: a causal diagram has no cycles; got {shown}")
        self.topological_order = tuple(nodes[v] for v in order)

    @classmethod
    def from_parts(
        cls, nodes: Iterable[str], directed: Iterable[Any], bidirected: Iterable[Any], latent: Iterable[str] = ()
    ) -> Self:
        """Diagram of lists of nodes and edges; nodes that are not among `nodes` are an error.

        Parameters
        ----------
        nodes, latent : iterables of str
            All nodes, and those that are not observed.
        directed, bidirected : iterables of pairs
            The edges.

        Returns
        -------
        CausalGraph
        """
        graph = cls.__new__(cls)
        graph._set(tuple(nodes), directed, bidirected)
        graph.latent = frozenset(latent)
        return graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagram) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[frozenset[Any], ...]:
        pairs = frozenset(frozenset(edge) for edge in self.bidirected)
        return frozenset(self.nodes), frozenset(self.directed), pairs, self.latent

    def names(self, argument: str, given: Nodes) -> frozenset[str]:
        """Nodes of an argument, checked.

        Parameters
        ----------
        argument : str
            Its name, for the error.
        given : str or iterable of str
            A node or several.

        Returns
        -------
        frozenset of str
        """
        found = listed(argument, given)
        if unknown := [name for name in found if name not in self._place]:
            known = ", ".join(self.nodes[:12]) + (", ..." if len(self.nodes) > 12 else "")
            raise ParameterError(f"{argument}={given!r:.80}: {unknown[0]!r} is not a node; expected some of {known}")
        return frozenset(found)

    def _sets(self, x: Nodes, y: Nodes, given: Nodes = (), names: str = "x y given") -> list[frozenset[str]]:
        sets = [self.names(name, value) for name, value in zip(names.split(), (x, y, given), strict=False)]
        for i, (a, name) in enumerate(zip(sets, names.split(), strict=True)):
            if not a and name not in ("given", "include"):
                raise ParameterError(f"{name}: expected at least one node")
            for b, other in zip(sets[:i], names.split(), strict=False):
                if a & b:
                    raise ParameterError(f"{name} and {other} share {sorted(a & b)}; expected disjoint sets")
        return sets

    # ------------------------------------------------------------------------------------------------ relations

    @property
    def observed(self) -> tuple[str, ...]:
        """Nodes that are not latent."""
        return tuple(node for node in self.nodes if node not in self.latent)

    def parents(self, node: str) -> tuple[str, ...]:
        """Direct causes of a node."""
        return tuple(self._of_node(self._parents, node))

    def children(self, node: str) -> tuple[str, ...]:
        """Direct effects of a node."""
        return tuple(self._of_node(self._children, node))

    def spouses(self, node: str) -> tuple[str, ...]:
        """Nodes that a bidirected edge joins with this one."""
        return tuple(self._of_node(self._spouses, node))

    def _of_node(self, relatives: dict[str, list[str]], node: str) -> list[str]:
        """Relatives of a single node, checked."""
        try:
            return relatives[node]
        except (KeyError, TypeError):
            if isinstance(node, str):
                self.names("node", node)  # says which nodes there are
            raise ParameterError(f"node={node!r:.80}; expected the name of one node") from None

    def ancestors(self, nodes: Nodes) -> frozenset[str]:
        """The nodes and all their causes."""
        return self._reach(nodes, self._parents)

    def descendants(self, nodes: Nodes) -> frozenset[str]:
        """The nodes and all their effects."""
        return self._reach(nodes, self._children)

    def _reach(self, nodes: Nodes, step: dict[str, list[str]]) -> frozenset[str]:
        stack = list(self.names("nodes", nodes))
        found = set(stack)
        while stack:
            new = [u for u in step[stack.pop()] if u not in found]
            found.update(new)
            stack.extend(new)
        return frozenset(found)

    def districts(self) -> list[frozenset[str]]:
        """Sets of nodes that are joined by bidirected edges (c-components), in topological order."""
        left, out = set(self.nodes), []
        for node in self.topological_order:
            if node in left:
                out.append(self._reach(node, self._spouses))
                left -= out[-1]
        return out

    def subgraph(self, nodes: Nodes) -> Self:
        """The diagram of some nodes and the edges between them."""
        keep = self.names("nodes", nodes)
        directed, bidirected = (
            [(a, b) for a, b in edges if a in keep and b in keep] for edges in (self.directed, self.bidirected)
        )
        return type(self).from_parts((v for v in self.nodes if v in keep), directed, bidirected, self.latent & keep)

    def mutilated(self, *, into: Nodes = (), out_of: Nodes = ()) -> Self:
        """The diagram without the edges into some nodes (an intervention on them) and out of others.

        Parameters
        ----------
        into : str or iterable of str
            Nodes that lose their incoming and bidirected edges.
        out_of : str or iterable of str
            Nodes that lose their outgoing edges.

        Returns
        -------
        CausalGraph
        """
        cut, mute = self.names("into", into), self.names("out_of", out_of)
        directed = [(a, b) for a, b in self.directed if b not in cut and a not in mute]
        bidirected = [(a, b) for a, b in self.bidirected if a not in cut and b not in cut]
        return type(self).from_parts(self.nodes, directed, bidirected, self.latent)

    @cached_property
    def _canonical(self) -> Adjacency:
        """The diagram with a node of its own, after the others, as the source of each bidirected edge."""
        place, n = self._place, len(self.nodes)
        edges = [(place[a], place[b]) for a, b in self.directed]
        edges += [(n + k, place[v]) for k, edge in enumerate(self.bidirected) for v in edge]
        return Adjacency(n + len(self.bidirected), edges)


# Directed acyclic graphs as arrays: lists of parents and children, order, a cycle by name.

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
