"""From a start to a clustering that no single move improves.

Alternation fits the machine to the labels and then gives every row the cluster that its score is nearest to, as far as
the balance allows; J falls with every step. From a rough start it begins with a strong penalty, which weakens step by
step to that of C: at once, the machine would reproduce any labels. Then single rows move while that lowers J.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.cluster.max_margin._separability import Separability

__all__ = ["Balance", "Clustered", "best_move", "descend"]

#: How much stronger the penalty is at first from a rough start, and later, to shake what was found.
STRONGER, SHAKES = 1e3, (3.0, 10.0, 30.0)
#: Alternations at most for each of them.
ALTERNATIONS = 100
#: A fall of J that is rounding, relative to it.
ROUNDING = 1e-12


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
        """The most that v'N v can be, for N = T T' of a balanced clustering."""
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
        return labels


@dataclass
class Clustered:
    """Labels and what they cost."""

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
    best = _weaken(problem, vertices, balance, balance.assign(scores), STRONGER if anneal else 1.0)
    for strength in SHAKES:
        other = _weaken(problem, vertices, balance, best.labels, strength)
        better = other.value < best.value * (1 - ROUNDING)
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
    while True:
        labels, moved = _single_moves(problem, vertices, balance, labels)
        moves += moved
        if moved == 0:
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
    for step in range(ALTERNATIONS):
        new = balance.assign((T - left) @ vertices.T)
        if np.array_equal(new, labels):
            return labels, step
        T = vertices[new]
        left = problem.residual(T)
        lower = problem.C * float(np.sum(problem.weight[:, None] * T * left))
        if not lower < value - ROUNDING * value:
            return labels, step
        labels, value = new, lower
    return labels, ALTERNATIONS


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
        if not change < -ROUNDING * abs(value):
            return labels, moved
        product += np.outer(problem.column(i), vertices[c] - vertices[labels[i]])
        labels[i] = c
        value += change
    return labels, 10 * len(labels)
