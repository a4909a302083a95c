"""Zhang's (2008) rules of orientation R1 to R10. Each changes marks in place and says whether it changed any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from epicycle.causal.discovery._marks import ARROW, CIRCLE, NONE, TAIL
from epicycle.causal.discovery._pc import Separators

Array = np.ndarray
#: Nodes of the longest path that a rule follows, and beginnings of paths that it looks at; only dense graphs have more,
#: and a path that is not found leaves a circle, which claims nothing.
_LONGEST, _MOST_STEPS = 12, 20_000


def _near(m: Array, v: int) -> Iterator[int]:
    return (int(w) for w in np.flatnonzero(m[v]))


def _set(m: Array, i: int, j: int, mark: int) -> bool:
    """Put a mark at j on the edge from i in place of a circle."""
    if m[i, j] != CIRCLE:
        return False
    m[i, j] = mark
    return True


def rule_1(m: Array) -> bool:
    """a *-> b o-* c, a and c apart: b -> c."""
    changed = False
    for b in range(len(m)):
        for a in _near(m, b):
            if m[a, b] != ARROW:
                continue
            for c in _near(m, b):
                if c != a and m[a, c] == NONE and m[c, b] == CIRCLE:
                    m[c, b] = TAIL
                    m[b, c] = ARROW
                    changed = True
    return changed


def rule_2(m: Array) -> bool:
    """a -> b *-> c or a *-> b -> c, and a *-o c: a *-> c."""
    changed = False
    for a, c in np.argwhere(m == CIRCLE):
        for b in _near(m, a):
            if m[b, c] == ARROW and m[a, b] == ARROW and (m[b, a] == TAIL or m[c, b] == TAIL):
                changed |= _set(m, a, c, ARROW)
    return changed


def rule_3(m: Array) -> bool:
    """a *-> b <-* c, a *-o d o-* c, a and c apart, d *-o b: d *-> b."""
    changed = False
    for d, b in np.argwhere(m == CIRCLE):
        into = [a for a in _near(m, b) if a != d and m[a, b] == ARROW and m[a, d] == CIRCLE]
        if any(m[a, c] == NONE for i, a in enumerate(into) for c in into[:i]):
            changed |= _set(m, d, b, ARROW)
    return changed


def _discriminating(m: Array, b: int, c: int) -> tuple[int, int] | None:
    """Ends (d, a) of a discriminating path d ... a b c for b: all between d and b are colliders and parents of c."""
    for a in _near(m, b):
        if m[b, a] != ARROW or not (m[a, c] == ARROW and m[c, a] == TAIL):
            continue
        seen = {a, b, c}
        queue = [(a, a)]  # the last node, and the neighbour of b
        while queue:
            v, first = queue.pop(0)
            for w in _near(m, v):
                if w in seen or m[w, v] != ARROW:
                    continue
                if m[w, c] == NONE:
                    return w, first
                if m[v, w] == ARROW and m[w, c] == ARROW and m[c, w] == TAIL:
                    seen.add(w)
                    queue.append((w, first))
    return None


def rule_4(m: Array, separators: Separators) -> bool:
    """A discriminating path d ... a b c with b o-* c: b -> c if b separates d and c, otherwise a <-> b <-> c."""
    changed = False
    for c, b in np.argwhere(m == CIRCLE):
        found = _discriminating(m, int(b), int(c))
        if found is None:
            continue
        d, a = found
        separator = separators.get((min(d, int(c)), max(d, int(c))), ())
        if b in separator:
            m[c, b], m[b, c] = TAIL, ARROW
        else:
            m[a, b] = m[b, a] = m[b, c] = m[c, b] = ARROW
        changed = True
    return changed


def _paths(m: Array, start: int, end: int, step: Callable[[int, int], bool]) -> Iterator[list[int]]:
    """Paths from start to end over edges that `step` allows, in which no node is joined to the one after the next."""
    stack, steps = [[start]], 0
    while stack and steps < _MOST_STEPS:
        path = stack.pop()
        steps += 1
        for w in _near(m, path[-1]):
            if w in path or not step(path[-1], w) or (len(path) > 1 and m[path[-2], w] != NONE):
                continue
            if w == end:
                yield [*path, w]
            elif len(path) < _LONGEST:
                stack.append([*path, w])


def rule_5(m: Array) -> bool:
    """a o-o b and an uncovered circle path a c ... d b with a, d apart and b, c apart: all of it is undirected."""
    changed = False

    def circle(v: int, w: int) -> bool:
        return bool(m[v, w] == CIRCLE and m[w, v] == CIRCLE)

    for a, b in np.argwhere((m == CIRCLE) & (m.T == CIRCLE)):
        if a > b or not circle(a, b):
            continue
        for path in _paths(m, int(a), int(b), circle):
            if len(path) > 3 and m[a, path[-2]] == NONE and m[b, path[1]] == NONE:
                for v, w in pairwise(path):
                    m[v, w] = m[w, v] = TAIL
                m[a, b] = m[b, a] = TAIL
                changed = True
                break
    return changed


def rule_6(m: Array) -> bool:
    """a - b o-* c: b has a tail towards c."""
    changed = False
    for c, b in np.argwhere(m == CIRCLE):
        if any(a != c and m[a, b] == TAIL and m[b, a] == TAIL for a in _near(m, b)):
            changed |= _set(m, c, b, TAIL)
    return changed


def rule_7(m: Array) -> bool:
    """a -o b o-* c, a and c apart: b has a tail towards c."""
    changed = False
    for c, b in np.argwhere(m == CIRCLE):
        if any(a != c and m[b, a] == TAIL and m[a, b] == CIRCLE and m[a, c] == NONE for a in _near(m, b)):
            changed |= _set(m, c, b, TAIL)
    return changed


def rule_8(m: Array) -> bool:
    """a -> b -> c or a -o b -> c, and a o-> c: a -> c."""
    changed = False
    for c, a in np.argwhere(m == CIRCLE):
        if m[a, c] != ARROW:
            continue
        for b in _near(m, a):
            if m[b, a] == TAIL and m[a, b] in (ARROW, CIRCLE) and m[b, c] == ARROW and m[c, b] == TAIL:
                changed |= _set(m, c, a, TAIL)
    return changed


def _could_point(m: Array) -> Callable[[int, int], bool]:
    return lambda v, w: bool(m[v, w] != TAIL and m[w, v] != ARROW)


def rule_9(m: Array) -> bool:
    """a o-> c and an uncovered path a b ... c along which all could point to c, b and c apart: a -> c."""
    changed = False
    for c, a in np.argwhere(m == CIRCLE):
        if m[a, c] != ARROW:
            continue
        for path in _paths(m, int(a), int(c), _could_point(m)):
            if len(path) > 3 and m[path[1], c] == NONE:
                changed |= _set(m, c, a, TAIL)
                break
    return changed


def rule_10(m: Array) -> bool:
    """a o-> c, b -> c <- d, and uncovered paths from a that could point to b and to d, beginning apart: a -> c."""
    changed = False
    for c, a in np.argwhere(m == CIRCLE):
        if m[a, c] != ARROW:
            continue
        into = [b for b in _near(m, int(c)) if b != a and m[b, c] == ARROW and m[c, b] == TAIL]
        firsts = {b: {path[1] for path in _paths(m, int(a), b, _could_point(m))} for b in into}
        if any(
            x != y and m[x, y] == NONE
            for i, b in enumerate(into)
            for d in into[:i]
            for x in firsts[b]
            for y in firsts[d]
        ):
            changed |= _set(m, c, a, TAIL)
    return changed


#: All but the fourth, which needs the separating sets.
RULES = (rule_1, rule_2, rule_3, rule_5, rule_6, rule_7, rule_8, rule_9, rule_10)
