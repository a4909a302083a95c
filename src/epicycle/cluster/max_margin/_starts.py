"""Starts of the search for clusters, and lower bounds on the objective of all clusterings.

Leading components find clusters that differ in their means. Clusters of any other shape hold together by their
neighbours: in the graph that links every row to its few nearest (in the feature space, with distances in units of that
to the last of them, Zelnik-Manor and Perona 2004) they are groups that the slowest random walks hardly leave.

The third start is a relaxation, which bounds J from below too. N = T T' is positive semi-definite with a unit diagonal,
and v'N v is bounded by the balance. Without the rest of what N is (its rank, and entries of only two values) this is a
semi-definite programme,

    min <A, N>   over   N >= 0,  diag N = 1,  v'N v <= l ,

whose dual proves a bound for any g >= 0 and d:  sum_i d_i - g l + n min(0, smallest eigenvalue of A + g v v' - diag d).
It is solved by N = R R' with rows of length one, of as many columns as make every local minimum global (Barvinok 1995,
Burer and Monteiro 2003); d is read off R, and the bound from eigenvalues. For many rows the bound with all d_i in
proportion to v_i needs no programme.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from scipy.optimize import minimize

from epicycle.cluster.max_margin._descent import Balance, Separability
from epicycle.core._random import stream

_GRAPH_ROWS = 800  # of a matrix of all pairs; of more rows some are drawn, and the others follow the nearest
_NEIGHBORS = (10, 5, 7, 15)  # that a row is linked to, in one graph after the other
_MAX_LLOYD = 30  # moves of the centres of groups
_PENALTIES_TRIED = 10  # values of g


class Starts:
    """Scores of shape (n, k) for every start, and whether to begin with a strong penalty."""

    def __init__(
        self, problem: Separability, factor: np.ndarray, vertices: np.ndarray, relaxed: np.ndarray | None, seed: int
    ) -> None:
        self.problem, self.factor, self.vertices, self.relaxed, self.seed = problem, factor, vertices, relaxed, seed

    def scores(self, start: int) -> tuple[np.ndarray, bool]:
        """Scores of start number `start`. The relaxation first, then components and neighbourhoods in turn."""
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
            Z = self._movements(_NEIGHBORS[number % len(_NEIGHBORS)])[:, : k + number // len(_NEIGHBORS) % 4]
            Z = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(float).tiny)
            seeds = _far_apart(Z, k) if number < len(_NEIGHBORS) else rng.choice(len(Z), k, replace=False)
            return _spread(Z, seeds)[self._nearest], False
        strength = np.sqrt(self.problem.shrinkage / self.problem.shrinkage[0])
        mix = np.eye(len(strength), k - 1) if start == 0 else rng.standard_normal((len(strength), k - 1))
        return self._by_vertices((self.problem.U / self.problem.root[:, None]) @ (strength[:, None] * mix)), True

    def _by_vertices(self, scores: np.ndarray) -> np.ndarray:
        columns = min(scores.shape[1], self.vertices.shape[1])
        return np.asarray(scores[:, :columns] @ self.vertices[:, :columns].T)

    @cached_property
    def _drawn(self) -> np.ndarray:
        """The rows of the graph: all, or so many of them."""
        n = len(self.factor)
        if n <= _GRAPH_ROWS:
            return np.arange(n)
        return np.sort(stream(self.seed, "graph").choice(n, _GRAPH_ROWS, replace=False))

    @cached_property
    def _nearest(self) -> np.ndarray:
        """The row of the graph that every row is nearest to."""
        if len(self._drawn) == len(self.factor):
            return self._drawn
        G, D = self.factor, self.factor[self._drawn]
        square = np.einsum("ij,ij->i", D, D)
        blocks = range(0, len(G), 4 * _GRAPH_ROWS)
        return np.concatenate([(2 * G[i : i + 4 * _GRAPH_ROWS] @ D.T - square).argmax(axis=1) for i in blocks])

    @cached_property
    def _distances(self) -> np.ndarray:
        """Squared distances of the feature space."""
        G = self.factor[self._drawn]
        square = np.einsum("ij,ij->i", G, G)
        return np.asarray(np.maximum(square[:, None] + square - 2 * G @ G.T, 0.0))

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
        found = None
        if n > 4 * columns:
            with suppress(scipy.sparse.linalg.ArpackError):  # it cannot tell the movements of rows without links apart
                found = scipy.sparse.linalg.eigsh(W, k=columns, which="LA", v0=np.cos(np.arange(n)), tol=1e-6)
        values, vectors = np.linalg.eigh(W) if found is None else found
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
    for _ in range(_MAX_LLOYD):
        scores = 2 * Z @ centres.T - np.einsum("ij,ij->i", centres, centres)
        new = scores.argmax(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
        for c in range(len(centres)):
            if (labels == c).any():
                centres[c] = Z[labels == c].mean(axis=0)
    return np.asarray(scores)


# ------------------------------------------------------------------------------------------- lower bounds


@dataclass(frozen=True)
class Relaxed:
    """A lower bound on J, and the rows R that it came from."""

    bound: float
    R: np.ndarray


def spectral_bound(problem: Separability, balance: Balance) -> float:
    """C (1 - D_1) (W - l / W): the labels have the length W^1/2, and at most l / W of it along the mean."""
    W = problem.total
    rest = 1 - float(problem.shrinkage.max(initial=0.0))
    return max(problem.C * rest * (W - balance.spread / W), 0.0)


def relax(problem: Separability, balance: Balance, rng: np.random.Generator) -> Relaxed:
    """Solve the programme for the best g found."""
    A, v, limit = problem.matrix(), problem.weight, balance.spread
    n = len(A)
    columns = min(n, int(np.ceil(np.sqrt(2 * (n + 1)))) + 1)
    R = rng.standard_normal((n, columns))
    low, high = 0.0, np.inf
    g = problem.C / problem.total
    best = Relaxed(-np.inf, R)
    for _ in range(_PENALTIES_TRIED):
        R = _minimise(A, v, g, R)
        found = _bound(A, v, g, R, limit)
        if found > best.bound:
            best = Relaxed(found, R)
        # The bound is concave in g, with the slope v'N v - l.
        if float(np.sum((v @ R) ** 2)) > limit:
            low, g = g, 4 * g if np.isinf(high) else np.sqrt(max(g, 1e-12 * high) * high)
        else:
            high, g = g, np.sqrt(max(low, 1e-3 * g) * g)
    return best


def _minimise(A: np.ndarray, v: np.ndarray, g: float, start: np.ndarray) -> np.ndarray:
    """R with rows of length one that makes tr(R'(A + g v v')R) least."""
    shape = start.shape
    scale = max(float(np.abs(np.diagonal(A)).max()), 1e-300)

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        Y = x.reshape(shape)
        length = np.linalg.norm(Y, axis=1, keepdims=True)
        R = Y / length
        P = (A @ R + g * np.outer(v, v @ R)) / scale
        inner = np.sum(P * R, axis=1, keepdims=True)
        return float(inner.sum()), (2 * (P - inner * R) / length).ravel()

    found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 400, "ftol": 1e-13})
    Y = found.x.reshape(shape)
    return np.asarray(Y / np.linalg.norm(Y, axis=1, keepdims=True))


def _bound(A: np.ndarray, v: np.ndarray, g: float, R: np.ndarray, limit: float) -> float:
    S = A + g * np.outer(v, v)
    d = np.sum((S @ R) * R, axis=1)
    S[np.diag_indices(len(S))] -= d
    if not np.isfinite(S).all():  # of numbers beyond all squares nothing is known
        return -np.inf
    values = scipy.linalg.eigvalsh(S, check_finite=False)
    rounding = 4 * len(S) * np.finfo(float).eps * float(np.abs(values).max())
    return float(d.sum()) - g * limit + len(S) * min(float(values[0]) - rounding, 0.0)
