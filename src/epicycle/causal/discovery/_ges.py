r"""GES: greedy search over classes of equivalent graphs with BIC (Chickering 2002).

Forward, the insertion that raises the score most, until none does; then deletions likewise. The score of a node with
parents P is  -n/2 log(residual variance given P) - penalty/2 |P| log n;  differences of it are all that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice

import numpy as np

from epicycle.causal.discovery._marks import closed_under_meek, consistent_extension, cpdag_marks, cpdag_of

Array = np.ndarray
Move = tuple[float, int, int, tuple[int, ...]]


class GaussianScore:
    """BIC of a node given its parents, remembered."""

    def __init__(self, S: Array, n: int, penalty: float) -> None:
        self.S, self.n, self.penalty = S, n, penalty
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def __call__(self, node: int, parents: frozenset[int]) -> float:
        key = (node, tuple(sorted(parents)))
        if key not in self._known:
            P = list(key[1])
            variance = float(self.S[node, node])
            if P:
                s = self.S[P, node]
                variance -= float(s @ np.linalg.lstsq(self.S[np.ix_(P, P)], s, rcond=None)[0])
            variance = max(variance, 1e-12 * float(self.S[node, node]))
            self._known[key] = -0.5 * (self.n * np.log(variance) + self.penalty * len(P) * np.log(self.n))
        return self._known[key]


#: Sets of neighbours that one step tries, the smallest first; a node of a dozen undirected neighbours has as many.
_MOST_SETS = 4096


def _subsets(items: list[int], most: int) -> Iterator[tuple[int, ...]]:
    return islice(chain.from_iterable(combinations(items, k) for k in range(min(len(items), most) + 1)), _MOST_SETS)


class _Search:
    def __init__(self, p: int, score: GaussianScore, max_size: int) -> None:
        self.p, self.score, self.max_size = p, score, max_size
        self.D, self.U = np.zeros((p, p), dtype=bool), np.zeros((p, p), dtype=bool)

    def parts(self, x: int, y: int) -> tuple[Array, list[int], frozenset[int]]:
        """The nodes to join, the neighbours of y that are joined to x, and the parents of y."""
        joined = self.D | self.D.T | self.U
        near = [int(v) for v in np.flatnonzero(self.U[y] & joined[x])]
        return joined, near, frozenset(int(v) for v in np.flatnonzero(self.D[:, y]))

    def is_clique(self, joined: Array, nodes: frozenset[int]) -> bool:
        return all(joined[a, b] for a, b in combinations(nodes, 2))

    def blocked(self, x: int, y: int, by: frozenset[int]) -> bool:
        """Whether every path from y to x along which edges point forward or nowhere meets the set."""
        seen, queue = {y}, [y]
        while queue:
            v = queue.pop()
            for w in map(int, np.flatnonzero(self.D[v] | self.U[v])):
                if w == x:
                    return False
                if w not in seen and w not in by:
                    seen.add(w)
                    queue.append(w)
        return True

    def insertions(self) -> Iterator[Move]:
        for y in range(self.p):
            for x in range(self.p):
                joined, near, parents = self.parts(x, y)
                if x == y or joined[x, y]:
                    continue
                others = [int(v) for v in np.flatnonzero(self.U[y] & ~joined[x]) if v != x]
                for T in _subsets(others, self.max_size):
                    base = frozenset(near) | frozenset(T)
                    gain = self.score(y, base | parents | {x}) - self.score(y, base | parents)
                    if gain > 1e-9 and self.is_clique(joined, base) and self.blocked(x, y, base):
                        yield gain, x, y, T

    def deletions(self) -> Iterator[Move]:
        for x, y in np.argwhere(self.D | self.U):
            joined, near, parents = self.parts(int(x), int(y))
            for H in _subsets(near, self.max_size):
                kept = frozenset(near) - frozenset(H)
                without = (kept | parents) - {int(x)}
                gain = self.score(int(y), without) - self.score(int(y), without | {int(x)})
                if gain > 1e-9 and self.is_clique(joined, kept):
                    yield gain, int(x), int(y), H

    def insert(self, x: int, y: int, T: tuple[int, ...]) -> None:
        self.D[x, y] = True
        for t in T:
            self.D[t, y], self.U[t, y], self.U[y, t] = True, False, False
        self.complete()

    def delete(self, x: int, y: int, H: tuple[int, ...]) -> None:
        for A in (self.D, self.U):
            A[x, y] = A[y, x] = False
        for h in H:
            self.U[y, h] = self.U[h, y] = False
            self.D[y, h] = True
            if self.U[x, h]:
                self.U[x, h] = self.U[h, x] = False
                self.D[x, h] = True
        self.complete()

    def complete(self) -> None:
        dag = consistent_extension(self.D, self.U)
        if dag is None:  # an operator that is valid always leaves one
            self.D, self.U = closed_under_meek(self.D, self.U)
            return
        self.D, self.U = cpdag_of(dag)


def ges(p: int, score: GaussianScore, max_size: int) -> tuple[Array, list[float], float]:
    """Marks, the score after each step, and the gain of the best step that is left."""
    search = _Search(p, score, max_size)
    value = sum(score(v, frozenset()) for v in range(p))
    values = [value]
    for moves, apply in ((search.insertions, search.insert), (search.deletions, search.delete)):
        for _ in range(p * p):
            best = max(moves(), key=lambda move: move[0], default=None)
            if best is None:
                break
            gain, x, y, nodes = best
            apply(x, y, nodes)
            value += gain
            values.append(value)
    left = max((move[0] for move in search.deletions()), default=0.0)
    return cpdag_marks(search.D, search.U), values, left
