"""`Discovery`: a graph that was found in data, with what had to be assumed for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.causal.discovery._marks import ARROW, CIRCLE, TAIL
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, paper, short, styled

if TYPE_CHECKING:
    from epicycle.causal.graph._causal_graph import CausalGraph

Array = np.ndarray
_LEFT = {CIRCLE: "o", ARROW: "<", TAIL: "-"}
_RIGHT = {CIRCLE: "o", ARROW: ">", TAIL: "-"}


@dataclass(frozen=True)
class Discovery:
    """Graph found in data.

    Attributes
    ----------
    names : tuple of str
        The variables.
    marks : array (p, p) of int
        ``marks[i, j]`` is the mark at j on the edge of i and j: 0 no edge, 1 circle, 2 arrow, 3 tail.
    kind : str
        "CPDAG" (a class of equivalent graphs), "PAG" (the same with hidden causes) or "DAG".
    method : str
        The search.
    assumptions : tuple of str
        What has to be true for the graph to be that of the causes.
    weights : array (p, p) or None
        Coefficients of i in the equation of j, for "notears" and "lingam".
    confidence : array (p, p) or None
        Share of bootstrap samples in which i and j are joined.
    direction_confidence : array (p, p) or None
        Share of bootstrap samples in which i -> j.
    certificate : Certificate
        What the search ended with.
    history : History
        Edges, scores or violations of acyclicity, step by step.
    """

    names: tuple[str, ...]
    marks: Array = field(repr=False)
    kind: str
    method: str
    assumptions: tuple[str, ...] = field(repr=False)
    weights: Array | None = field(repr=False)
    confidence: Array | None = field(repr=False)
    direction_confidence: Array | None = field(repr=False)
    certificate: Certificate = field(repr=False)
    history: History = field(repr=False)

    @property
    def adjacency(self) -> Array:
        """Whether i -> j, for edges whose direction is known."""
        return np.asarray((self.marks == ARROW) & (self.marks.T == TAIL))

    @property
    def edges(self) -> list[str]:
        """Edges as text, such as ``"a -> b"``, ``"a -- b"``, ``"a o-> b"``."""
        return [text for _, _, text in self._edges()]

    def _edges(self) -> list[tuple[int, int, str]]:
        out = []
        for i, j in np.argwhere(np.triu(self.marks != 0)):
            a, b = (j, i) if self.marks[i, j] != ARROW and self.marks[j, i] == ARROW else (i, j)
            arrow = f"{_LEFT[int(self.marks[b, a])]}-{_RIGHT[int(self.marks[a, b])]}"
            arrow = {"-->": "->", "---": "--"}.get(arrow, arrow)
            out.append((int(a), int(b), f"{self.names[a]} {arrow} {self.names[b]}"))
        return out

    def to_graph(self) -> CausalGraph:
        """The graph as a :class:`CausalGraph`, where every edge has a direction or two arrows."""
        from epicycle.causal.graph._causal_graph import CausalGraph

        open_ends = [text for a, b, text in self._edges() if self._undecided(a, b)]
        if open_ends:
            raise DataError(f"to_graph: {open_ends[0]} has no direction; expected a graph in which every edge has one")
        edges: list[Any] = []
        for a, b, _ in self._edges():
            both = self.marks[a, b] == self.marks[b, a] == ARROW
            edges.append((self.names[a], "<->", self.names[b]) if both else (self.names[a], self.names[b]))
        return CausalGraph(edges, nodes=self.names)

    def _undecided(self, a: int, b: int) -> bool:
        ends = (self.marks[a, b], self.marks[b, a])
        return CIRCLE in ends or ends == (TAIL, TAIL)

    def __str__(self) -> str:
        lines = [f"{self.kind} by {self.method}: {len(self.names)} variables, {len(self.edges)} edges"]
        for a, b, text in self._edges():
            sure = "" if self.confidence is None else f"   joined in {100 * self.confidence[a, b]:.0f}% of samples"
            if self.direction_confidence is not None:
                sure += f", -> in {100 * self.direction_confidence[a, b]:.0f}%"
            lines.append(f"  {text}{sure}")
        lines += ["assumptions, without which these are no causes:", *(f"  - {text}" for text in self.assumptions)]
        return "\n".join([*lines, str(self.certificate)])

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the variables on a circle with the edges; the wider an edge, the more samples have it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axis to draw on; by default a new one.
        """
        ax = axes_of(ax, (5.6, 5.0))
        p = len(self.names)
        angle = np.pi / 2 - 2 * np.pi * np.arange(p) / p
        place = np.column_stack([np.cos(angle), np.sin(angle)])
        heads = {ARROW: "-|>", CIRCLE: "-", TAIL: "-"}
        for a, b, _ in self._edges():
            width = 1.6 if self.confidence is None else 0.4 + 2.2 * self.confidence[a, b]
            decided = not self._undecided(a, b)
            both = self.marks[b, a] == ARROW
            style = "<|-|>" if both else heads[int(self.marks[a, b])]
            line = {
                "arrowstyle": style,
                "color": COLOURS["blue"] if decided else COLOURS["orange"],
                "lw": width,
                "shrinkA": 16,
                "shrinkB": 16,
                "mutation_scale": 16,
            }
            ax.annotate("", xy=place[b], xytext=place[a], arrowprops=line)
            for end, mark in ((b, self.marks[a, b]), (a, self.marks[b, a])):
                if mark == CIRCLE:
                    x = place[end] + 0.13 * (place[a + b - end] - place[end])
                    ax.plot(*x, "o", ms=6, mfc=paper(ax), mec=COLOURS["orange"], zorder=3)
        for name, (x, y) in zip(self.names, place, strict=True):
            ax.text(x, y, short(name, 14), ha="center", va="center", color=ink(ax), fontsize=9)
        ax.set(xlim=(-1.3, 1.3), ylim=(-1.25, 1.25), aspect="equal", title=f"{self.kind} by {self.method}")
        ax.axis("off")
        return ax
