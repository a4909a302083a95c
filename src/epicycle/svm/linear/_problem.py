"""The objective of linear support vector machines:

    P(theta) = |theta|^2 / 2 + C sum_i v_i loss(w'x_i + b, y_i),   theta = (w, u),  b = s u.

The intercept is the weight u of a constant feature s (`intercept_scaling`), and penalised like the others, so that
P is strongly convex: for any theta and any feasible dual variables beta with theta(beta) = sum_i beta_i (x_i, s),

    P(theta) - D(beta) = |theta - theta(beta)|^2 / 2 + sum_i (loss_i + its conjugate at -beta_i + beta_i z_i) .

Without an intercept s is 0, and u stays there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import _native
from epicycle.data import Batch


@dataclass(frozen=True)
class MarginProblem:
    """The objective, less the data.

    n_problems : one for two classes or a regression; for K > 2 classes one against the rest each.
    class_weight : factors on the weights of the classes, or None.
    scale : s, 0 without an intercept.
    """

    n_features: int
    n_problems: int
    regression: bool
    squared: bool
    epsilon: float
    C: float
    scale: float
    class_weight: np.ndarray | None = None
    l1: bool = False  # whether the penalty is |theta|_1 in the place of |theta|^2 / 2

    def penalty(self, theta: np.ndarray) -> float:
        """The penalty of the parameters of one problem."""
        return float(np.abs(theta).sum()) if self.l1 else 0.5 * float(theta @ theta)

    def loss(self, width: float = 1.0) -> _native.svm.MarginLoss:
        """The loss of the kernels, its corners rounded over this width."""
        return _native.svm.MarginLoss(
            regression=self.regression, squared=self.squared, epsilon=self.epsilon, width=width
        )

    def split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W, b) of parameters of shape (n, p + 1)."""
        return theta[:, :-1], self.scale * theta[:, -1]

    def weights(self, batch: Batch) -> np.ndarray | None:
        """Weights of the rows, times those of their classes; None for ones."""
        if self.class_weight is None:
            return batch.weight
        by_class = self.class_weight[np.asarray(batch.y).astype(np.intp)]
        return by_class if batch.weight is None else by_class * batch.weight

    def targets(self, y: np.ndarray, k: int) -> np.ndarray:
        """y of problem k: -1 and 1 for codes of classes, the targets themselves for a regression."""
        if self.regression:
            return np.ascontiguousarray(y, dtype=np.float64)
        return signs(y, 1 if self.n_problems == 1 else k)


@dataclass
class Optimum:
    """The end of one problem: P(theta) <= min P + gap."""

    theta: np.ndarray
    primal: float
    gap: float

    @property
    def relative(self) -> float:
        """The gap relative to P; 0 where both are."""
        return self.gap / self.primal if self.primal > 0 else 0.0 if self.gap == 0 else float("inf")


def signs(y: np.ndarray, code: int) -> np.ndarray:
    """1 for rows of the class, -1 for the rest."""
    return np.where(y == code, 1.0, -1.0)


def margin_statistic(
    batch: Batch, problem: MarginProblem, which: tuple[int, ...], theta: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over the rows for the problems `which`, at parameters theta (one row each) and with these widths.

    Gives (loss, smooth loss, slack, violating rows, curved rows), the gradients of the smooth losses in (w, b), in all
    and of the curved rows alone, and their Hessians: without C and without the penalty.
    """
    weight = problem.weights(batch)
    W, b = problem.split(theta)
    totals, gradients, hessians = [], [], []
    for at, k in enumerate(which):
        rest = (problem.targets(np.asarray(batch.y), k), weight, np.ascontiguousarray(W[at]), float(b[at]))
        *sums, g, H = _native.svm.margin_sums(batch.X, *rest, problem.loss(float(width[at])))
        totals.append(sums)
        gradients.append(g)
        hessians.append(H)
    return np.array(totals), np.array(gradients), np.array(hessians)


def loss_statistic(batch: Batch, problem: MarginProblem, k: int, w: np.ndarray, b: float) -> tuple[float]:
    """The sum of the losses of problem k, without C."""
    y = problem.targets(np.asarray(batch.y), k)
    z = np.asarray(batch.X @ w) + b
    v = np.maximum(np.abs(z - y) - problem.epsilon if problem.regression else 1.0 - y * z, 0.0)
    losses = v * v if problem.squared else v
    weight = problem.weights(batch)
    return (float(losses.sum() if weight is None else weight @ losses),)


def line_statistic(
    batch: Batch,
    problem: MarginProblem,
    which: tuple[int, ...],
    theta: np.ndarray,
    move: np.ndarray,
    width: np.ndarray,
    lengths: np.ndarray,
) -> tuple[np.ndarray]:
    """The slopes of the smooth losses at theta + t move along it, for every length t: shape (problems, lengths)."""
    weight = problem.weights(batch)
    (W, b), (V, e) = problem.split(theta), problem.split(move)
    slopes = np.zeros((len(which), len(lengths)))
    for at, k in enumerate(which):
        y = problem.targets(np.asarray(batch.y), k)
        z, q = np.asarray(batch.X @ W[at]) + b[at], np.asarray(batch.X @ V[at]) + e[at]
        counted = q if weight is None else weight * q
        for j, t in enumerate(lengths):
            score = z + t * q
            v = np.abs(score - y) - problem.epsilon if problem.regression else 1.0 - y * score
            sign = np.sign(score - y) if problem.regression else -y
            share = 2 * np.maximum(v, 0.0) if problem.squared else np.clip(v / width[at], 0.0, 1.0)
            slopes[at, j] = float((share * sign) @ counted)
    return (slopes,)
