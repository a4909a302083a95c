"""Instruments (Brito and Pearl, 2002; van der Zander, Textor and Liskiewicz, 2015).

Z is an instrument of X -> Y given W iff Z and X are d-connected given W, Z and Y are d-separated given W once the edges
out of X are taken out, and W holds no descendant of X.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epicycle.causal.graph._separators import minimal_separators

if TYPE_CHECKING:
    from epicycle.causal.graph._causal_graph import CausalGraph

Set = frozenset[str]


class Instrument(NamedTuple):
    """An instrument and the nodes that have to be held fixed for it.

    Parameters
    ----------
    node : str
        The instrument.
    given : frozenset of str
        Nodes to condition on.
    """

    node: str
    given: frozenset[str]


def instruments(graph: CausalGraph, x: Set, y: Set, limit: int) -> list[Instrument]:
    """Nodes with a set given which they touch x, and y only through x."""
    cut = graph.mutilated(out_of=x)
    behind = graph.descendants(x)
    if not y <= behind:
        return []
    free = frozenset(graph.observed) - behind
    found = []
    for node in (v for v in graph.nodes if v in free):
        itself = frozenset({node})
        for given in minimal_separators(cut, itself, y, frozenset(), free - itself, limit):
            if not graph.d_separated(node, x, given):
                found.append(Instrument(node, given))
                break
    return found
