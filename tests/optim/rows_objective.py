"""A penalised sum over rows, written plainly with NumPy: shares no code with the losses of the package."""

import numpy as np

from epicycle.optim import Metric, Objective


class RowsObjective(Objective):
    """F(x) = mean_i l(X_i x, y_i) + alpha/2 |x|^2 for the logistic ("logistic") or the squared ("squares") loss."""

    def __init__(self, kind, X, y, alpha, *, certified=True):
        self.kind, self.X, self.y, self.alpha = kind, X, y, alpha
        self.size = X.shape[1]
        self.strong_convexity = alpha if certified else 0.0
        self.capabilities = frozenset({"hessian", "hessian_product", "minibatches", "metric"})
        self.evaluations = 0

    def _part(self, X, y, x):
        z = X @ x
        if self.kind == "squares":
            value, slope = 0.5 * np.mean((z - y) ** 2), z - y
        else:
            value, slope = np.mean(np.logaddexp(0, z) - y * z), 0.5 * (1 + np.tanh(z / 2)) - y
        return value + self.alpha / 2 * (x @ x), X.T @ slope / len(y) + self.alpha * x

    def value_and_gradient(self, x):
        self.evaluations += 1
        return self._part(self.X, self.y, x)

    def _hessian(self, x):
        bend = np.ones(len(self.y)) if self.kind == "squares" else 0.25 / np.cosh(self.X @ x / 2) ** 2
        return (self.X.T * bend) @ self.X / len(self.y) + self.alpha * np.eye(self.size)

    def second_order(self, x):
        return (*self.value_and_gradient(x), self._hessian(x))

    def hessian_product(self, x):
        H = self._hessian(x)
        return lambda v: H @ v

    def metric(self):
        bound = 1.0 if self.kind == "squares" else 0.25
        L = np.linalg.cholesky(bound * self.X.T @ self.X / len(self.y) + self.alpha * np.eye(self.size))
        return Metric(
            lambda v: np.linalg.solve(L @ L.T, v), lambda v: np.linalg.solve(L, v), lambda v: np.linalg.solve(L.T, v)
        )

    def minibatches(self, batch_size, epoch, seed):
        order = np.random.default_rng([seed, epoch]).permutation(len(self.y))
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            X, y, share = self.X[rows], self.y[rows], len(rows) / len(order)
            n_batches = -(-len(order) // batch_size)
            # Every row counts the same over an epoch, so a short last batch weighs less.
            weight = share * n_batches
            yield lambda x, X=X, y=y, weight=weight: self._weighted(X, y, x, weight)

    def _weighted(self, X, y, x, weight):
        value, gradient = self._part(X, y, x)
        ridge = self.alpha / 2 * (x @ x), self.alpha * x
        return weight * (value - ridge[0]) + ridge[0], weight * (gradient - ridge[1]) + ridge[1]


def make_problem(kind, seed=0, *, n=200, d=5, alpha=0.05, spread=1.0, certified=True):
    """Gaussian rows, columns of scales 1 to `spread`, and targets from a planted model."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(1, spread, d)
    X = rng.normal(size=(n, d)) * scales
    z = X @ (rng.normal(size=d) / scales)
    y = z + rng.normal(size=n) if kind == "squares" else (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float)
    return RowsObjective(kind, X, y, alpha, certified=certified)
