"""Where the search begins: leading components, neighbourhoods, and the relaxation.

Leading components find clusters that differ in their means. Clusters of any other shape hold together by their
neighbours: in the graph that links every row to its few nearest (in the feature space, with distances in units of that
to the last of them, Zelnik-Manor and Perona 2004) they are groups that the slowest random walks hardly leave.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse.linalg

from epicycle.cluster.max_margin._separability import Separability
from epicycle.core._random import stream

__all__ = ["Starts"]

#: Rows of the graph, which is a matrix of all pairs; of more rows some are drawn, and the others follow the nearest.
GRAPH_ROWS = 800
#: Neighbours that a row is linked to, in one graph after the other.
NEIGHBOURS = (10, 5, 7, 15)
#: Times that the centres of groups are moved.
LLOYD = 30


class Starts:
    """Scores of shape (n, k) for every start, and whether to begin with a strong penalty."""

    def __init__(
        self, problem: Separability, factor: np.ndarray, vertices: np.ndarray, relaxed: np.ndarray | None, seed: int
    ) -> None:
        self.problem, self.factor, self.vertices, self.relaxed, self.seed = problem, factor, vertices, relaxed, seed

    def scores(self, start: int) -> tuple[np.ndarray, bool]:
        """Of start number `start`. The relaxation first, then components and neighbourhoods in turn."""
        rng = stream(self.seed, "start", start)
        if self.relaxed is not None:
            if start == 0:
                U, s, _ = np.linalg.svd(self.relaxed, full_matrices=False)
                return self._by_vertices(U * s), False
            start -= 1
        n, k = len(self.problem.weight), len(self.vertices)
        if self.problem.U.shape[1] == 0:  # all rows are alike
            return rng.standard_normal((n, k)), False
        if start % 2 == 1:
            number = start // 2
            Z = self._movements(NEIGHBOURS[number % len(NEIGHBOURS)])[:, : k + number // len(NEIGHBOURS) % 4]
            Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(float).tiny)
            seeds = _far_apart(Z, k) if number < len(NEIGHBOURS) else rng.choice(len(Z), k, replace=False)
            return _spread(Z, seeds)[self._nearest], False
        strength = np.sqrt(self.problem.shrinkage / self.problem.shrinkage[0])
        mix = np.eye(len(strength), k - 1) if start == 0 else rng.standard_normal((len(strength), k - 1))
        return self._by_vertices((self.problem.U / self.problem.root[:, None]) @ (strength[:, None] * mix)), True

    def _by_vertices(self, scores: np.ndarray) -> np.ndarray:
        columns = min(scores.shape[1], self.vertices.shape[1])
        return scores[:, :columns] @ self.vertices[:, :columns].T

    @cached_property
    def _drawn(self) -> np.ndarray:
        """The rows of the graph: all, or so many of them."""
        n = len(self.factor)
        if n <= GRAPH_ROWS:
            return np.arange(n)
        return np.sort(stream(self.seed, "graph").choice(n, GRAPH_ROWS, replace=False))

    @cached_property
    def _nearest(self) -> np.ndarray:
        """The row of the graph that every row is nearest to."""
        if len(self._drawn) == len(self.factor):
            return self._drawn
        G, D = self.factor, self.factor[self._drawn]
        square = np.einsum("ij,ij->i", D, D)
        blocks = range(0, len(G), 4 * GRAPH_ROWS)
        return np.concatenate([(2 * G[i : i + 4 * GRAPH_ROWS] @ D.T - square).argmax(axis=1) for i in blocks])

    @cached_property
    def _distances(self) -> np.ndarray:
        """Squared distances of the feature space."""
        G = self.factor[self._drawn]
        square = np.einsum("ij,ij->i", G, G)
        return np.maximum(square[:, None] + square - 2 * G @ G.T, 0.0)

    def _movements(self, neighbours: int) -> np.ndarray:
        """The slowest movements over the graph, one in each column: nearly constant on groups of near rows."""
        distance = self._distances
        n = len(distance)
        last = min(neighbours, n - 1)
        near = np.partition(distance, last, axis=1)[:, last]
        linked = distance <= near[:, None]
        unit = np.sqrt(np.maximum(near, 1e-12 * max(float(near.max()), np.finfo(float).tiny)))
        W = np.where(linked | linked.T, np.exp(-distance / np.outer(unit, unit)), 0.0)
        np.fill_diagonal(W, 0.0)
        weight = self.problem.weight[self._drawn]
        W *= np.outer(weight, weight)
        degree = np.sqrt(np.maximum(W.sum(axis=1), np.finfo(float).tiny))
        W /= np.outer(degree, degree)
        columns = len(self.vertices) + 3
        if n > 4 * columns:
            values, vectors = scipy.sparse.linalg.eigsh(W, k=columns, which="LA", v0=np.cos(np.arange(n)), tol=1e-6)
        else:
            values, vectors = np.linalg.eigh(W)
        return np.asarray(vectors[:, np.argsort(values)[::-1][:columns]])


def _far_apart(Z: np.ndarray, k: int) -> np.ndarray:
    """One row after the other, each the least like those before."""
    chosen = [int((Z @ Z.sum(axis=0)).argmin())]
    for _ in range(k - 1):
        chosen.append(int((Z @ Z[chosen].T).max(axis=1).argmin()))
    return np.array(chosen)


def _spread(Z: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Likeness to the centre of each group, which begins with one row and takes in those nearest to it."""
    centres = Z[seeds]
    labels = np.full(len(Z), -1)
    for _ in range(LLOYD):
        scores = 2 * Z @ centres.T - np.einsum("ij,ij->i", centres, centres)
        new = scores.argmax(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        for c in range(len(centres)):
            if (labels == c).any():
                centres[c] = Z[labels == c].mean(axis=0)
    return np.asarray(scores)
