"""PC: a skeleton by tests of independence, colliders, and what follows (stable: Colombo and Maathuis 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from epicycle.causal.discovery._independence import Independence
from epicycle.causal.discovery._marks import closed_under_meek, cpdag_marks

Array = np.ndarray
Separators = dict[tuple[int, int], tuple[int, ...]]


@dataclass(frozen=True)
class Skeleton:
    """Adjacent pairs, the sets that separate the others, and edges left after each size of sets."""

    adjacent: Array
    separators: Separators
    edges: list[int]


def skeleton(p: int, test: Independence, max_size: int | None) -> Skeleton:
    """Remove every edge whose ends some set of neighbours separates; neighbours are those at the start of a size."""
    adjacent = ~np.eye(p, dtype=bool)
    separators: Separators = {}
    edges: list[int] = []
    for size in range(p - 1 if max_size is None else min(max_size, p - 2) + 1):
        near = [np.flatnonzero(row) for row in adjacent]
        if size and max((len(row) for row in near), default=0) <= size:
            break
        for i, j in combinations(range(p), 2):
            if not adjacent[i, j]:
                continue
            for a, b in ((i, j), (j, i)):
                candidates = [int(v) for v in near[a] if v != b]
                if len(candidates) < size or (size == 0 and a == j):
                    continue
                found = test.first_separator(i, j, candidates, size)
                if found is not None:
                    separators[i, j] = found
                    adjacent[i, j] = adjacent[j, i] = False
                    break
        edges.append(int(adjacent.sum()) // 2)
    return Skeleton(adjacent, separators, edges)


def unshielded(adjacent: Array) -> list[tuple[int, int, int]]:
    """Triples a - c - b with a < b not adjacent."""
    return [
        (int(a), c, int(b))
        for c in range(len(adjacent))
        for a, b in combinations(np.flatnonzero(adjacent[c]), 2)
        if not adjacent[a, b]
    ]


def pc(p: int, test: Independence, max_size: int | None) -> tuple[Array, Skeleton, int]:
    """Marks, skeleton, and the number of colliders that contradict others."""
    found = skeleton(p, test, max_size)
    arrows = np.zeros((p, p), dtype=bool)
    conflicts = 0
    for a, c, b in unshielded(found.adjacent):
        if c in found.separators.get((a, b), ()):
            continue
        if arrows[c, a] or arrows[c, b]:  # tests of finite samples may disagree: the first collider stays
            conflicts += 1
            continue
        arrows[a, c] = arrows[b, c] = True
    directed, undirected = closed_under_meek(arrows, found.adjacent & ~(arrows | arrows.T))
    return cpdag_marks(directed, undirected), found, conflicts
