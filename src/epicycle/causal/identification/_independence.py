"""Independences that a diagram implies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.core.estimator import in_catalogue


@dataclass(frozen=True)
class Independence:
    """Two nodes are independent given others.

    Parameters
    ----------
    x, y : str
        The two nodes.
    given : tuple of str
        Nodes that are conditioned on.
    """

    x: str
    y: str
    given: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.x} _||_ {self.y}" + (f" | {', '.join(self.given)}" if self.given else "")


@in_catalogue("causal", "H4", certificate="exact")
def implied_independences(graph: CausalGraph) -> list[Independence]:
    """One independence for each pair of observed nodes that can be separated, given the smallest set that does.

    For diagrams without bidirected edges and latent nodes all other independences follow from these.

    Parameters
    ----------
    graph : CausalGraph
        The diagram.

    Returns
    -------
    list of Independence

    Examples
    --------
    >>> from epicycle.causal import CausalGraph, implied_independences
    >>> for fact in implied_independences(CausalGraph("rain -> wet <- sprinkler; wet -> slippery")):
    ...     print(fact)
    rain _||_ sprinkler
    rain _||_ slippery | wet
    sprinkler _||_ slippery | wet
    """
    small = graph.latent_projection() if graph.latent else graph
    found = []
    for x, y in combinations(small.nodes, 2):
        if y in {*small.parents(x), *small.children(x), *small.spouses(x)}:
            continue
        # The parents of the later node separate where no edge is bidirected; the smallest set is found among all.
        if sets := small.minimal_separators(x, y, limit=100_000):
            found.append(Independence(x, y, tuple(v for v in small.nodes if v in sets[0])))
    return found
