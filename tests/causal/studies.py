"""Simulated studies with known effects, and estimating equations differentiated numerically."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


def simulated(n=400, seed=0, p=3):
    """A study with overlap, confounded, with effects 2 + x0 of the rows, linear in x."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    e = 1 / (1 + np.exp(-(0.6 * X[:, 0] - 0.4 * X[:, 1])))
    t = (rng.random(n) < e).astype(int)
    y = 1 + X[:, 0] + 0.5 * X[:, 1] + t * (2 + X[:, 0]) + rng.normal(size=n)
    return X, y, t, e


class KnownOutcome(RegressorMixin, BaseEstimator):
    """A fixed function of x and of the arm that it meets in `fit`, recognised by its mean outcome."""

    def fit(self, X, y, sample_weight=None):
        self.high_ = np.mean(y) > 1.5
        return self

    def predict(self, X):
        return 0.8 + X[:, 0] + self.high_ * 2.1


class KnownPropensity(ClassifierMixin, BaseEstimator):
    """The propensity of :func:`simulated`."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        e = 1 / (1 + np.exp(-(0.6 * X[:, 0] - 0.4 * X[:, 1])))
        return np.column_stack([1 - e, e])

    def predict(self, X):
        return self.predict_proba(X)[:, 1] > 0.5


def sandwich(equations, theta, scores=None, h=1e-6):
    """Standard errors of the solution of ``mean_i equations(theta)[i] = 0``, by numerical derivatives.

    `scores` stand in for the equations at the solution.
    """
    theta = np.asarray(theta, dtype=float)
    g = equations(theta) if scores is None else scores
    n = len(g)
    J = np.empty((len(theta), len(theta)))
    for j in range(len(theta)):
        d = np.zeros_like(theta)
        d[j] = h
        J[:, j] = (equations(theta + d).mean(0) - equations(theta - d).mean(0)) / (2 * h)
    inverse = np.linalg.inv(J)
    variance = np.diag(inverse @ (g.T @ g / n) @ inverse.T) / n
    return np.sqrt(np.maximum(variance, 0))  # of parameters that are zero in every sample rounding leaves -1e-20
