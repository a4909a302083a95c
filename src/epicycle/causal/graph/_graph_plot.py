"""The picture of a diagram: nodes in layers, bidirected edges dashed, open paths in colour."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from epicycle.causal.graph._path import open_paths
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, paper, styled

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

Set = frozenset[str]
#: Bends that are tried for an edge, as a share of its length: the first that keeps clear of other nodes is taken.
STRAIGHT = (0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5)
BENT = (-0.3, 0.3, -0.45, 0.45, -0.6, 0.6)
#: How far an edge stays away from the middle of other nodes, across and along.
CLEAR = np.array([0.62, 0.3])
#: Room around the outer nodes.
MARGIN = np.array([0.9, 0.7])
#: More open paths than this are not looked for.
MOST_PATHS = 200


@styled
def draw(graph: Diagram, x: Set, y: Set, given: Set, ax: Axes | None) -> Axes:
    """Draw a diagram with the open paths from x to y, causal ones in green and the others in vermilion."""
    place = {v: np.array(p) for v, p in positions(graph).items()}
    corners = np.array(list(place.values())) if place else np.zeros((1, 2))
    low, high = corners.min(axis=0) - MARGIN, corners.max(axis=0) + MARGIN
    if ax is None:
        size = np.clip((high - low) * 1.05, (3.2, 2.0), (12, 8))
        ax = axes_of(None, (float(size[0]), float(size[1])))
    colour = path_colours(graph, x, y, given)
    boxes = {v: draw_node(ax, graph, v, p, x, y, given) for v, p in place.items()}
    for edges, arrow in ((graph.directed, "->"), (graph.bidirected, "<->")):
        for edge in edges:
            bend = bend_of(place, edge, BENT if arrow == "<->" else STRAIGHT)
            line = colour.get((*edge, arrow), ink(ax, 0.75))
            draw_edge(ax, boxes, place, edge, arrow, bend, line, (*edge, arrow) in colour)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_axis_off()
    return ax


def path_colours(graph: Diagram, x: Set, y: Set, given: Set) -> dict[tuple[str, str, str], str]:
    """Colours of the edges on open paths."""
    if not (x and y):
        return {}
    colour: dict[tuple[str, str, str], str] = {}
    for path in sorted(open_paths(graph, x, y, given, MOST_PATHS), key=lambda p: p.causal):
        for a, arrow, b in zip(path.nodes, path.arrows, path.nodes[1:], strict=False):
            # Bidirected edges are stored one way round.
            for edge in ((b, a, "->") if arrow == "<-" else (a, b, arrow), (b, a, arrow)):
                colour[edge] = COLOURS["green" if path.causal else "vermilion"]
    return {edge: c for edge, c in colour.items() if edge[2] != "<-"}


def draw_node(ax: Axes, graph: Diagram, v: str, p: np.ndarray, x: Set, y: Set, given: Set) -> Any:
    """The name of a node in a box; returns the box, at which edges end."""
    line = ink(ax, 0.75)
    box: dict[str, Any] = {"boxstyle": "round,pad=0.4", "facecolor": paper(ax), "edgecolor": line, "linewidth": 1.2}
    if v in x or v in y:
        box |= {"edgecolor": COLOURS["blue"], "linewidth": 2.2}
    if v in given:
        box |= {"facecolor": COLOURS["sky"], "boxstyle": "square,pad=0.4"}
    if v in graph.latent:
        box |= {"linestyle": "--"}
    text = ax.text(*p, v, ha="center", va="center", bbox=box, zorder=2)
    if v in given:
        text.set_color("#1A1A1A")
    return text.get_bbox_patch()


def draw_edge(
    ax: Axes,
    boxes: dict[str, Any],
    place: dict[str, np.ndarray],
    edge: tuple[str, str],
    arrow: str,
    bend: float,
    colour: str,
    on_path: bool,
) -> None:
    """An arrow from the border of one box to that of another."""
    a, b = edge
    style = {"arrowstyle": "-|>" if arrow == "->" else "<|-|>", "linestyle": "-" if arrow == "->" else "--"}
    look = {**style, "color": colour, "linewidth": 2.0 if on_path else 1.2, "mutation_scale": 13}
    ends = {"patchA": boxes[a], "patchB": boxes[b], "shrinkA": 1, "shrinkB": 1}
    props = {**look, **ends, "connectionstyle": f"arc3,rad={bend}"}
    ax.annotate("", xy=place[b], xytext=place[a], arrowprops=props, zorder=3)


def bend_of(place: dict[str, np.ndarray], edge: tuple[str, str], choices: tuple[float, ...]) -> float:
    """The first bend with which an edge keeps clear of the other nodes, or the one that comes closest to it."""
    a, b = (place[v] for v in edge)
    others = np.array([p for v, p in place.items() if v not in edge]).reshape(-1, 2)
    if len(others) == 0:
        return choices[0]
    t = np.linspace(0, 1, 41)[:, None]
    room = []
    for bend in choices:
        middle = (a + b) / 2 + bend * np.array([b[1] - a[1], a[0] - b[0]])
        curve = (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
        room.append(float((np.abs(curve[:, None] - others) / CLEAR).max(axis=2).min()))
        if room[-1] >= 1:
            return bend
    return choices[int(np.argmax(room))]


# Places of the nodes of a diagram: layers from causes to effects, few crossings (Sugiyama, Tagawa and Toda, 1981).

if TYPE_CHECKING:
    from epicycle.causal.graph._diagram import Diagram

#: Sweeps over the layers; the number of crossings hardly falls after a few.
SWEEPS = 12
WIDTH, HEIGHT = 1.9, 1.0


def layers_of(graph: Diagram) -> dict[str, int]:
    """Longest path from a source; sources then move towards their effects."""
    layer: dict[str, int] = {}
    for v in graph.topological_order:
        layer[v] = 1 + max((layer[p] for p in graph.parents(v)), default=-1)
    for v in reversed(graph.topological_order):
        if graph.children(v):
            latest = min(layer[c] for c in graph.children(v)) - 1
            if not graph.parents(v):
                layer[v] = latest
    first = min(layer.values(), default=0)
    return {v: k - first for v, k in layer.items()}


def positions(graph: Diagram) -> dict[str, tuple[float, float]]:
    """Coordinates of each node, causes on the left."""
    layer = layers_of(graph)
    columns: list[list[object]] = [[] for _ in range(1 + max(layer.values(), default=0))]
    before: dict[object, list[object]] = {}
    after: dict[object, list[object]] = {}
    for v in graph.topological_order:
        columns[layer[v]].append(v)
    for a, b in graph.directed:  # an edge over several layers keeps a place free in those between
        chain: list[object] = [a, *((a, b, k) for k in range(layer[a] + 1, layer[b])), b]
        for k, point in enumerate(chain[1:-1], layer[a] + 1):
            columns[k].append(point)
        for tail, head in pairwise(chain):
            before.setdefault(head, []).append(tail)
            after.setdefault(tail, []).append(head)
    best = [list(column) for column in columns]
    fewest = crossings(best, after)
    for sweep in range(SWEEPS):
        forwards = sweep % 2 == 0
        for column in columns if forwards else reversed(columns):
            place = {v: i - len(c) / 2 for c in columns for i, v in enumerate(c)}
            around = before if forwards else after
            column.sort(key=lambda v: np.mean([place[u] for u in around.get(v, [])] or [place[v]]))
        found = crossings(columns, after)
        if found < fewest:
            best, fewest = [list(column) for column in columns], found
    spots = {v: (k * WIDTH, -HEIGHT * (i - (len(c) - 1) / 2)) for k, c in enumerate(best) for i, v in enumerate(c)}
    return {v: spots[v] for v in graph.nodes}


def crossings(columns: list[list[object]], after: dict[object, list[object]]) -> int:
    """Pairs of edges between neighbouring layers that cross."""
    total = 0
    for left, right in pairwise(columns):
        place = {v: i for i, v in enumerate(right)}
        ends = [(i, place[u]) for i, v in enumerate(left) for u in after.get(v, []) if u in place]
        pairs = np.asarray(ends).reshape(-1, 2)
        sign = np.sign(pairs[:, None, 0] - pairs[None, :, 0]) * np.sign(pairs[:, None, 1] - pairs[None, :, 1])
        total += int((sign < 0).sum()) // 2
    return total
