"""The sparse linear support vector machine:  minimise  F(theta) = |theta|_1 + C sum_i v_i xi_i^2,

xi_i = max(0, 1 - y_i (w'x_i + b)), theta = (w, u), b = s u. The loss is smooth, so that proximal Newton applies; for
more than two classes the problems of all classes are one, with a Hessian in blocks.

With slacks xi at any theta and g the gradient of the loss there, a_i = 2 t C v_i xi_i is feasible in the dual,
max over a >= 0 of sum_i a_i - a_i^2 / (4 C v_i) with |sum_i a_i y_i (x_i, s)|_inf <= 1, for t <= 1 / |g|_inf: its value
2 C t sum_i v_i xi_i - C t^2 sum_i v_i xi_i^2 at the best such t is a lower bound on F.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._certificate import Certificate
from epicycle.data import Batch, Data
from epicycle.optim import Objective
from epicycle.svm.linear._problem import MarginProblem, Optimum

Array = np.ndarray
_RIDGE = 1e-6  # of the curvature of all rows: keeps the model bounded along columns of no violating row
_EPOCHS = 300  # of coordinate descent on the quadratic model
_EXACT_STEPS = 20  # after it


def slack_statistic(
    batch: Batch, problem: MarginProblem, theta: Array, columns: tuple[Array, ...] | None
) -> tuple[Array, Array, Array, *tuple[Array, ...]]:
    """Sums for all problems: v xi^2, v xi, their gradients in theta, and Hessians over some columns of each."""
    W, b = problem.split(theta)
    weight = problem.weights(batch)
    v = np.ones(batch.X.shape[0]) if weight is None else weight
    Z = np.asarray(batch.X @ W.T) + b
    squares, slacks, gradients, hessians = [], [], [], []
    for k in range(problem.n_problems):
        y = problem.targets(np.asarray(batch.y), k)
        xi = np.maximum(1.0 - y * Z[:, k], 0.0)
        squares.append(float(v @ (xi * xi)))
        slacks.append(float(v @ xi))
        pull = -2.0 * v * xi * y
        gradients.append(np.append(np.asarray(batch.X.T @ pull), problem.scale * pull.sum()))
        if columns is not None:
            rows = np.flatnonzero(xi > 0)
            hessians.append(_curvature(batch.X[rows], 2.0 * v[rows], problem, columns[k]))
    return np.array(squares), np.array(slacks), np.array(gradients), *hessians


def _curvature(X: Any, v: Array, problem: MarginProblem, columns: Array) -> Array:
    """sum_i v_i x_i x_i' over some coordinates of theta, the last of which is that of the constant s."""
    inside = columns < problem.n_features
    part = X[:, columns[inside]]
    A = np.full((X.shape[0], len(columns)), problem.scale)
    A[:, inside] = part.toarray() if sp.issparse(part) else part
    return np.asarray(A.T @ (v[:, None] * A))


class SquaredSlack(Objective):
    """C sum_i v_i xi_i^2 of all problems, as a function of their parameters one after the other."""

    def __init__(self, data: Data, problem: MarginProblem, n_jobs: int | None) -> None:
        self.data, self.problem, self.n_jobs = data, problem, n_jobs
        self.width = problem.n_features + 1
        self.size = problem.n_problems * self.width
        self.capabilities = frozenset({"hessian"})

    def _sums(self, x: Array, columns: tuple[Array, ...] | None = None) -> Any:
        theta = np.asarray(x, dtype=np.float64).reshape(self.problem.n_problems, self.width)
        return engine.sum(slack_statistic, self.data, self.problem, theta, columns, n_jobs=self.n_jobs)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        squares, _, gradients = self._sums(x)
        return self.problem.C * float(squares.sum()), self.problem.C * gradients.ravel()

    def second_order(self, x: Array) -> tuple[float, Array, Array]:
        everything = np.arange(self.width)
        squares, _, gradients, *hessians = self._sums(x, (everything,) * self.problem.n_problems)
        H = np.zeros((self.size, self.size))
        for k, block in enumerate(hessians):
            at = slice(k * self.width, (k + 1) * self.width)
            H[at, at] = self.problem.C * block
        return self.problem.C * float(squares.sum()), self.problem.C * gradients.ravel(), H

    def hessian_on(self, x: Array, columns: Array) -> Array:
        """The Hessian over some coordinates."""
        owner = columns // self.width
        chosen = tuple(columns[owner == k] % self.width for k in range(self.problem.n_problems))
        hessians = self._sums(x, chosen)[3:]
        H = np.zeros((len(columns), len(columns)))
        for k, block in enumerate(hessians):
            at = np.flatnonzero(owner == k)
            H[np.ix_(at, at)] = self.problem.C * block
        return H

    def optima(self, x: Array) -> list[Optimum]:
        """F of every problem, and the duality gap that it has there."""
        C = self.problem.C
        theta = np.asarray(x, dtype=np.float64).reshape(self.problem.n_problems, self.width)
        squares, slacks, gradients = self._sums(x)
        found = []
        for k in range(self.problem.n_problems):
            square, slack, steepest = float(squares[k]), float(slacks[k]), C * float(np.abs(gradients[k]).max())
            primal = float(np.abs(theta[k]).sum()) + C * square
            t = 0.0 if square == 0 else min(slack / square, 1 / steepest if steepest > 0 else np.inf)
            found.append(Optimum(theta[k], primal, max(primal - (2 * C * t * slack - C * t * t * square), 0.0)))
        return found

    def certify(self, x: Array, tol: float, value: float | None = None, gradient: Array | None = None) -> Certificate:
        return gap_certificate(self.optima(x), tol)


def gap_certificate(optima: list[Optimum], tol: float) -> Certificate:
    """The largest of the relative gaps."""
    gap = max(optimum.relative for optimum in optima)
    meaning = f"the objective is at most {gap:.1e} of its value above its minimum"
    return Certificate("duality gap", gap, tol, meaning + (", for every class" if len(optima) > 1 else ""))


def descend(H: Array, g: Array, x: Array, l1: Array) -> Array:
    """The minimiser z of g'(z - x) + (z - x)'H(z - x) / 2 + sum_j l1_j |z_j|, by coordinate descent."""
    diagonal = np.diagonal(H) + _RIDGE * float(np.diagonal(H).max(initial=0.0)) + np.finfo(np.float64).tiny
    z, slope = x.copy(), g.copy()  # slope = g + H (z - x)
    active = np.arange(len(x))
    for _ in range(_EPOCHS):
        largest = 0.0
        for j in active:
            at = diagonal[j] * z[j] - slope[j]
            new = np.sign(at) * max(abs(at) - l1[j], 0.0) / diagonal[j]
            move = new - z[j]
            if move != 0.0:
                z[j] = new
                slope += move * H[j]
                largest = max(largest, diagonal[j] * move * move)
        scale = float(l1 @ np.abs(z)) + abs(float(g @ (z - x))) + np.finfo(np.float64).tiny
        if largest <= 1e-16 * scale:
            if len(active) == len(x):
                break
            active = np.arange(len(x))
        else:
            active = np.flatnonzero((z != 0) | (np.abs(slope) >= l1))
    return _finished(H, g, x, l1, z)


def _finished(H: Array, g: Array, x: Array, l1: Array, z: Array) -> Array:
    """z at the minimum for its signs; a coordinate that would change its sign stays at zero.

    Coordinate descent is slow where columns are far from independent; these steps are exact, and each lowers the model.
    """
    z = z.copy()
    for _ in range(_EXACT_STEPS):
        S = np.flatnonzero(z)
        slope = g + H @ (z - x)
        move = np.linalg.lstsq(H[np.ix_(S, S)], -(slope[S] + l1[S] * np.sign(z[S])), rcond=None)[0]
        crosses = z[S] * (z[S] + move) <= 0
        if not crosses.any():
            z[S] += move
            return z
        reach = -z[S[crosses]] / move[crosses]
        first = S[crosses][reach == reach.min()]
        z[S] += reach.min() * move
        z[first] = 0.0
    return z
