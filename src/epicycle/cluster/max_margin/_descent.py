"""The objective of maximum margin clustering, and the descent to a clustering that no single move improves.

The objective is the separability of clusters,  J(T) = min_{f, b}  |f|^2 / 2 + C sum_i v_i |t_i - f(x_i) - b|^2.  Row i
of T is the vertex t_i of a regular simplex that stands for its cluster: -1 and 1 for two clusters, of which
|t - f|^2 = (1 - t f)^2 is the squared distance of the margin from one. With K = G G', the rows weighted and centred,
V^1/2 (G - mean) = U diag(s) Q' and D = s^2 / (s^2 + 1 / (2 C)),

    J(T) = tr(T'A T),      A = C V^1/2 (Pi - U D U') V^1/2,

where Pi takes away the weighted mean. Every clustering is a point  N = T T'  with unit diagonal.

Alternation fits the machine to the labels and then gives every row the cluster that its score is nearest to, as far as
the balance allows; J falls with every step. From a rough start it begins with a strong penalty, which weakens step by
step to that of C: at once, the machine would reproduce any labels. Then single rows move while that lowers J.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle.linalg._spectra import singular_vectors

_INITIAL_STRENGTH = 1e3  # of the penalty from a rough start, relative to that of C
_SHAKES = (3.0, 10.0, 30.0)  # strengths to which it is raised again: whole groups of rows can move then
_MAX_ALTERNATIONS = 100  # for each strength
_ROUNDING = 1e-12  # a fall of J that is rounding, relative to it
_NULL = 1e-13  # singular values below this share of the largest are zero but for rounding


def simplex(k: int) -> np.ndarray:
    """The k vertices of a regular simplex around zero, of length one: shape (k, k - 1). For two: 1 and -1."""
    if k == 1:
        return np.zeros((1, 0))
    H = scipy.linalg.helmert(k).T
    return np.asarray(H * np.sqrt(k / (k - 1)))


class Separability:
    """The matrix A, never formed but for the relaxation.

    Parameters
    ----------
    G : ndarray of shape (n, r)
        A factor of the kernel matrix.
    weight : ndarray of shape (n,)
    C : float
    """

    def __init__(self, G: np.ndarray, weight: np.ndarray, C: float) -> None:
        self.weight, self.root, self.total = weight, np.sqrt(weight), float(weight.sum())
        self.mean = weight @ G / self.total
        self.U, self.s, self.Q = singular_vectors(self.root[:, None] * (G - self.mean))
        kept = self.s > _NULL * max(float(self.s.max(initial=0.0)), np.finfo(float).tiny)
        self.U, self.s, self.Q = np.ascontiguousarray(self.U[:, kept]), self.s[kept], self.Q[kept]
        self.C = C
        self._like = np.einsum("ij,jk,ik->i", G, (weight[:, None] * G).T @ G, G, optimize=True)

    def likeness(self, labels: np.ndarray, k: int) -> np.ndarray:
        """The mean of k(x, x')^2 over rows x of every cluster and all rows x', up to a factor."""
        loads = np.bincount(labels, weights=self.weight, minlength=k)
        sums = np.bincount(labels, weights=self.weight * self._like, minlength=k)
        return np.asarray(sums / np.maximum(loads, np.finfo(float).tiny))

    @property
    def shrinkage(self) -> np.ndarray:
        """D: how much of a component of the labels the machine reproduces."""
        return np.asarray(1 / (1 + 1 / (2 * self.C) / self.s / self.s))  # s^2 itself may overflow

    def at(self, C: float) -> Separability:
        """The same rows with another C, for free."""
        other = object.__new__(Separability)
        other.__dict__.update(self.__dict__, C=C)
        return other

    def residual(self, T: np.ndarray) -> np.ndarray:
        """T - f - b, of the best f and b."""
        centred = self.root[:, None] * (T - self.weight @ T / self.total)
        left = centred - self.U @ (self.shrinkage[:, None] * (self.U.T @ centred))
        return np.asarray(left / self.root[:, None])

    def product(self, T: np.ndarray) -> np.ndarray:
        """A T."""
        return np.asarray(self.C * self.weight[:, None] * self.residual(T))

    def value(self, T: np.ndarray) -> float:
        return float(np.sum(T * self.product(T)))

    def diagonal(self) -> np.ndarray:
        """Diagonal of A."""
        inside = np.einsum("ij,j,ij->i", self.U, self.shrinkage, self.U)
        return np.asarray(self.C * self.weight * (1 - self.weight / self.total - inside))

    def column(self, i: int) -> np.ndarray:
        """Column i of A."""
        out = -self.root * (self.U @ (self.shrinkage * self.U[i])) * self.root[i]
        out -= self.weight * self.weight[i] / self.total
        out[i] += self.weight[i]
        return np.asarray(self.C * out)

    def matrix(self) -> np.ndarray:
        """A itself."""
        A = -(self.U * self.shrinkage) @ self.U.T - np.outer(self.root, self.root) / self.total
        A[np.diag_indices(len(A))] += 1
        return np.asarray(self.C * A * np.outer(self.root, self.root))

    def machine(self, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(c, b) of f(x) + b = sum_i c_i k(x_i, x) + b."""
        residual = self.residual(T)
        centred = self.root[:, None] * (T - self.weight @ T / self.total)
        B = self.Q.T @ ((self.shrinkage / self.s)[:, None] * (self.U.T @ centred))
        return 2 * self.C * self.weight[:, None] * residual, self.weight @ T / self.total - self.mean @ B


@dataclass(frozen=True)
class Balance:
    """Every one of `k` clusters has at least the weight `least`."""

    k: int
    weight: np.ndarray
    least: float

    @classmethod
    def of(cls, k: int, weight: np.ndarray, share: float) -> Balance:
        """A share of the mean weight of a cluster; less where the rows are too heavy for that."""
        loads = np.zeros(k)
        for w in np.sort(weight)[::-1]:
            loads[loads.argmin()] += w
        return cls(k, weight, min(share * float(weight.sum()) / k, float(loads.min())))

    @property
    def spread(self) -> float:
        """Upper bound on v'N v, for N = T T' of a balanced clustering."""
        W, k = float(self.weight.sum()), self.k
        if k == 1:
            return W**2
        squares = (W - (k - 1) * self.least) ** 2 + (k - 1) * self.least**2
        return (k * squares - W**2) / (k - 1)

    def loads(self, labels: np.ndarray) -> np.ndarray:
        return np.bincount(labels, weights=self.weight, minlength=self.k)

    def assign(self, scores: np.ndarray) -> np.ndarray:
        """The cluster of the largest score for every row; light clusters take the rows that lose least."""
        labels = scores.argmax(axis=1)
        loads = self.loads(labels)
        # Sums of weights carry rounding.
        floor = self.least * (1 - 1e-12)
        for _ in range(4 * self.k):
            light = int(loads.argmin())
            if loads[light] >= floor:
                break
            loss = scores[np.arange(len(labels)), labels] - scores[:, light]
            loss[labels == light] = np.inf
            for i in np.argsort(loss, kind="stable"):
                a = labels[i]
                if loads[light] >= floor or not np.isfinite(loss[i]):
                    break
                if loads[a] - self.weight[i] >= floor or loads[a] - self.weight[i] >= loads[light] + self.weight[i]:
                    labels[i] = light
                    loads[a] -= self.weight[i]
                    loads[light] += self.weight[i]
        return np.asarray(labels)


@dataclass
class Clustered:
    """Labels and their objective."""

    labels: np.ndarray
    value: float
    steps: int
    moves: int


def descend(
    problem: Separability, vertices: np.ndarray, balance: Balance, scores: np.ndarray, *, anneal: bool
) -> Clustered:
    """From scores of shape (n, k) to a clustering, with a penalty that is strong at first or at once that of C.

    In the end it is made stronger again by several factors, and weakened: whole groups of rows can move then.
    """
    # First to a local minimum, then away from it and back: the best of all is kept.
    best = _weaken(problem, vertices, balance, balance.assign(scores), _INITIAL_STRENGTH if anneal else 1.0)
    for strength in _SHAKES:
        other = _weaken(problem, vertices, balance, best.labels, strength)
        better = other.value < best.value * (1 - _ROUNDING)
        winner = other if better else best
        best = Clustered(winner.labels, winner.value, best.steps + other.steps, best.moves + other.moves)
    return best


def _weaken(
    problem: Separability, vertices: np.ndarray, balance: Balance, labels: np.ndarray, strength: float
) -> Clustered:
    """Alternate under a penalty that weakens from `strength` times that of C; then single moves."""
    steps = moves = 0
    for factor in np.geomspace(strength, 1.0, 1 + round(2 * np.log10(strength))):
        labels, used = _alternate(problem.at(problem.C / factor), vertices, balance, labels)
        steps += used
    value = np.inf
    while True:
        labels, moved = _single_moves(problem, vertices, balance, labels)
        moves += moved
        before, value = value, problem.value(vertices[labels])
        if moved == 0 or not value < before:  # by rounding moves and alternation may undo each other
            break
        again, used = _alternate(problem, vertices, balance, labels)
        steps += used
        if np.array_equal(again, labels):
            break
        labels = again
    return Clustered(labels, problem.value(vertices[labels]), steps, moves)


def _alternate(
    problem: Separability, vertices: np.ndarray, balance: Balance, labels: np.ndarray
) -> tuple[np.ndarray, int]:
    T = vertices[labels]
    left = problem.residual(T)
    value = problem.C * float(np.sum(problem.weight[:, None] * T * left))
    for step in range(_MAX_ALTERNATIONS):
        new = balance.assign((T - left) @ vertices.T)
        if np.array_equal(new, labels):
            return labels, step
        T = vertices[new]
        left = problem.residual(T)
        lower = problem.C * float(np.sum(problem.weight[:, None] * T * left))
        if not lower < value - _ROUNDING * value:
            return labels, step
        labels, value = new, lower
    return labels, _MAX_ALTERNATIONS


def best_move(
    product: np.ndarray, diagonal: np.ndarray, vertices: np.ndarray, balance: Balance, labels: np.ndarray
) -> tuple[float, int, int]:
    """(change of J, row, cluster) of the move of one row that lowers J most, among those that the balance allows.

    With d = t_new - t_old, J changes by 2 d'(A T)_i + A_ii |d|^2, where |d|^2 = 2 k / (k - 1).
    """
    k = balance.k
    if k == 1:
        return np.inf, 0, 0
    slopes = product @ vertices.T
    change = 2 * (slopes - slopes[np.arange(len(labels)), labels][:, None]) + (2 * k / (k - 1)) * diagonal[:, None]
    free = balance.loads(labels)[labels] - balance.weight >= balance.least * (1 - 1e-12)
    change[~free] = np.inf
    change[np.arange(len(labels)), labels] = np.inf
    best = int(change.argmin())
    return float(change.flat[best]), best // k, best % k


def _single_moves(
    problem: Separability, vertices: np.ndarray, balance: Balance, labels: np.ndarray
) -> tuple[np.ndarray, int]:
    labels, diagonal = labels.copy(), problem.diagonal()
    product = problem.product(vertices[labels])
    value = float(np.sum(vertices[labels] * product))
    for moved in range(10 * len(labels)):
        change, i, c = best_move(product, diagonal, vertices, balance, labels)
        if not change < -_ROUNDING * abs(value):
            return labels, moved
        product += np.outer(problem.column(i), vertices[c] - vertices[labels[i]])
        labels[i] = c
        value += change
    return labels, 10 * len(labels)
