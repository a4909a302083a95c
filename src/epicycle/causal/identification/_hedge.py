"""Hedges: why no formula exists, with two models as the proof.

A hedge is a pair of forests F and F' < F over the same roots R, both joined by bidirected edges, where F' holds
nothing that is acted on and R leads to the outcome. Give a fair coin to each edge of a tree of bidirected edges over
F. In the first model each node of F is the parity of its coins and of its parents in F. In the second the nodes of
F' listen to F' alone, also among the coins. In both the roots have even parity and all else is uniform; under an
action in F - F' the parity of the roots is a coin in the first and even in the second. Further bits carry the parity
from R to the outcome.

Where something is given the parity may end in given nodes alone. One of them, which cannot be acted on instead, has an
open path to the outcome that begins with an arrow into it. A bit along that path (colliders have the sum of both sides)
is added to what the node shows: given all, the outcome's end of the path then tells the parity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.identification._exchange import exchanged
from epicycle.causal.identification._link import Link
from epicycle.causal.identification._witness_model import WitnessModel

Set = frozenset[str]
Edge = tuple[str, str]


@dataclass(frozen=True)
class Hedge:
    """Why an effect has no formula.

    Parameters
    ----------
    graph : CausalGraph
        The diagram, without latent nodes.
    outer, inner : frozenset of str
        The nodes of the two forests F and F'.
    roots : frozenset of str
        Their common roots R.
    """

    graph: CausalGraph
    outer: frozenset[str]
    inner: frozenset[str]
    roots: frozenset[str]

    @classmethod
    def of(cls, whole: CausalGraph, part: CausalGraph, inner: Set) -> Hedge:
        """The hedge of a part of the diagram that is one district, and so is what is left of it without the action."""
        roots = frozenset(v for v in inner if not inner & set(part.children(v)))
        return cls(whole, frozenset(part.nodes), inner, roots)

    def __str__(self) -> str:
        def named(nodes: Set) -> str:
            return "{" + ", ".join(v for v in self.graph.nodes if v in nodes) + "}"

        return (
            f"hedge: F = {named(self.outer)} and F' = {named(self.inner)}, both joined by unseen common causes, with "
            f"roots {named(self.roots)}: what is seen cannot tell the effect of {named(self.outer - self.inner)} on "
            "them from that of these causes"
        )

    def forest(self) -> dict[str, str]:
        """The one child in F of each node of F that is no root."""
        children = {}
        for v in self.outer - self.roots:
            inside = [c for c in self.graph.children(v) if c in (self.inner if v in self.inner else self.outer)]
            children[v] = inside[0]
        return children

    def coins(self) -> list[Edge]:
        """Bidirected edges that form a tree over F' and, with more of them, over F."""
        tree: list[Edge] = []
        joined = {next(iter(sorted(self.inner)))}
        for nodes in (self.inner, self.outer):
            edges = [e for e in self.graph.bidirected if set(e) <= nodes]
            for _ in edges:
                new = next((e for e in edges if len(joined & set(e)) == 1), None)
                if new is None:
                    break
                tree.append(new)
                joined |= set(new)
        return tree

    def models(
        self, treatment: Iterable[str], outcome: Iterable[str], given: Iterable[str] = ()
    ) -> tuple[WitnessModel, WitnessModel]:
        """Two models of the diagram that agree on what is observed and differ on the effect.

        Parameters
        ----------
        treatment, outcome, given : iterables of str
            The nodes that are acted on, asked for and conditioned on, as in the call that found the hedge.

        Returns
        -------
        tuple of two WitnessModel
        """
        y = frozenset(outcome)
        x, z = exchanged(self.graph, y, frozenset(treatment), frozenset(given))
        carriers = self.carriers(x, y | z)
        link = None
        ends = {self._end(v, carriers) for v in self.roots}
        if not ends & y:
            link = Link.between(self.graph, min(ends, key=self.graph.nodes.index), y, x, z)
        return WitnessModel(self, carriers, False, link), WitnessModel(self, carriers, True, link)

    @staticmethod
    def _end(v: str, carriers: dict[str, str]) -> str:
        """The node to which the parity of a root is carried."""
        while v in carriers:
            v = carriers[v]
        return v

    def carriers(self, treatment: Set, outcome: Set) -> dict[str, str]:
        """For each node on chosen paths from the roots to the outcome, around the treatment, the next node."""
        cut = self.graph.mutilated(into=treatment)
        after: dict[str, str] = {}
        reached = set(outcome)
        for v in reversed(cut.topological_order):
            if v not in reached:
                onward = [c for c in cut.children(v) if c in reached]
                if onward:
                    after[v] = onward[0]
                    reached.add(v)
        used: dict[str, str] = {}
        for v in self.roots:
            while v in after and v not in used:
                used[v] = after[v]
                v = after[v]
        return used
