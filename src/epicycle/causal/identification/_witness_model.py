"""`WitnessModel`: one of two models that agree on what is observed and differ on an effect; see `Hedge`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epicycle.causal.identification._hedge import Hedge
    from epicycle.causal.identification._link import Link

Array = np.ndarray


@dataclass(frozen=True)
class WitnessModel:
    """One of two models of a hedge; the value of a node is a number made of bits.

    Parameters
    ----------
    hedge : Hedge
        The hedge.
    carriers : dict
        The next node on the way of the parity to the outcome.
    deaf : bool
        Whether the nodes of F' listen to F' alone.
    link : Link or None
        A path to the outcome from a given node at which the parity ends.
    """

    hedge: Hedge
    carriers: dict[str, str]
    deaf: bool
    link: Link | None = None

    def values(self, action: dict[str, int] | None = None) -> dict[str, Array]:
        """Values of all nodes for each outcome of the coins, which are equally likely.

        Parameters
        ----------
        action : dict, optional
            Values to which nodes are set.

        Returns
        -------
        dict of arrays
        """
        hedge, coins, link = self.hedge, self.hedge.coins(), self.link
        further = [] if link is None else link.coins
        n = len(coins) + len(further)
        tosses = (np.arange(2**n) >> np.arange(n)[:, None]) & 1
        own = dict(zip(further, tosses[len(coins) :], strict=True))
        child = hedge.forest()
        out: dict[str, Array] = {}
        for v in hedge.graph.topological_order:
            bits = np.zeros(tosses.shape[1], dtype=np.int64)
            if v in hedge.outer:
                circle = hedge.inner if self.deaf and v in hedge.inner else hedge.outer
                for edge, toss in zip(coins, tosses[: len(coins)], strict=True):
                    if v in edge and set(edge) <= circle:
                        bits ^= toss
                for p in (p for p, c in child.items() if c == v and p in circle):
                    bits ^= out[p] & 1
            carried = np.zeros_like(bits)
            for p in (p for p, c in self.carriers.items() if c == v):
                # A root hands on its parity, and what reached it from other roots.
                carried ^= (out[p] >> 1 & 1) ^ (out[p] & 1 if p in hedge.roots else 0)
            if link is not None and v == link.end:  # its bit hides the parity, of which nobody hears from this node
                if v in self.carriers.values():
                    carried ^= link.bit(v, out, own)
                else:
                    bits ^= link.bit(v, out, own)
            out[v] = bits + 2 * carried + (0 if link is None else link.shown(v, out, own))
            if action and v in action:
                out[v] = np.full(tosses.shape[1], action[v], dtype=np.int64)
        return out

    def distribution(self, nodes: Iterable[str], action: dict[str, int] | None = None) -> dict[tuple[int, ...], float]:
        """Probabilities of the values of some nodes, as observed or under an action.

        Parameters
        ----------
        nodes : iterable of str
            The nodes.
        action : dict, optional
            Values to which nodes are set.

        Returns
        -------
        dict
            From tuples of values to their probabilities.
        """
        values = self.values(action)
        rows = np.column_stack([values[v] for v in nodes])
        found, counts = np.unique(rows, axis=0, return_counts=True)
        return {tuple(map(int, row)): float(n) / len(rows) for row, n in zip(found, counts, strict=True)}
