"""FCI: what can be said with hidden common causes and selection (Spirtes et al. 2000; Zhang's rules R1 to R10)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from epicycle.causal.discovery._fci_rules import RULES, rule_4
from epicycle.causal.discovery._independence import Independence
from epicycle.causal.discovery._marks import ARROW, CIRCLE, NONE
from epicycle.causal.discovery._pc import Separators, Skeleton, skeleton, unshielded

Array = np.ndarray


def _colliders(adjacent: Array, separators: Separators) -> Array:
    marks = np.where(adjacent, CIRCLE, NONE).astype(np.int8)
    for a, c, b in unshielded(adjacent):
        if c not in separators.get((a, b), ()):
            marks[a, c] = marks[b, c] = ARROW
    return marks


def possible_d_sep(marks: Array, start: int) -> list[int]:
    """Nodes on paths from `start` whose inner nodes are colliders or have joined neighbours."""
    adjacent = marks != NONE
    reached: set[int] = set()
    seen: set[tuple[int, int]] = set()
    queue = [(start, int(v)) for v in np.flatnonzero(adjacent[start])]
    while queue:
        a, b = queue.pop()
        if (a, b) in seen:
            continue
        seen.add((a, b))
        reached.add(b)
        for c in map(int, np.flatnonzero(adjacent[b])):
            collider = marks[a, b] == ARROW and marks[c, b] == ARROW
            if c not in (a, start) and (collider or adjacent[a, c]):
                queue.append((b, c))
    return sorted(reached - {start})


def fci(p: int, test: Independence, max_size: int | None) -> tuple[Array, Skeleton]:
    """Marks of a partial ancestral graph, and the skeleton."""
    found = skeleton(p, test, max_size)
    adjacent, separators = found.adjacent.copy(), dict(found.separators)
    marks = _colliders(adjacent, separators)
    reach = [possible_d_sep(marks, v) for v in range(p)]
    for i, j in combinations(range(p), 2):
        if not adjacent[i, j]:
            continue
        apart = None
        for a, b in ((i, j), (j, i)):
            candidates = [v for v in reach[a] if v != b]
            top = len(candidates) if max_size is None else min(max_size, len(candidates))
            for size in range(1, top + 1):
                apart = test.first_separator(i, j, candidates, size)
                if apart is not None:
                    break
            if apart is not None:
                break
        if apart is not None:
            separators[i, j] = apart
            adjacent[i, j] = adjacent[j, i] = False
    marks = _colliders(adjacent, separators)
    for _ in range(2 * int(adjacent.sum()) + 1):  # every round but the last fixes a mark
        if not (any(rule(marks) for rule in RULES) or rule_4(marks, separators)):
            break
    return marks, Skeleton(adjacent, separators, [*found.edges, int(adjacent.sum()) // 2])
