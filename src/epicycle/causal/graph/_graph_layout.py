"""Places of the nodes of a diagram: layers from causes to effects, few crossings (Sugiyama, Tagawa and Toda, 1981)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

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
