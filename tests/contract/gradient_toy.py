"""A small estimator written against the contract, with its loop in plain sight: ridge by (stochastic) gradient descent.

minimise F(w) = sum_i s_i (x_i'w - y_i)^2 / (2 sum_i s_i) + alpha/2 ||w||^2, without an intercept. Weights s enter
by sqrt(s/mean(s)) x_i and y_i.
"""

import time
from typing import ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from epicycle.core._certificate import Certificate
from epicycle.core._parameters import Boolean, Choice, Integer, RandomState, Real
from epicycle.core._random import seed_of, stream
from epicycle.core._solution import Solution
from epicycle.core.estimator._catalogue import MethodCard
from epicycle.core.estimator._estimator import Estimator, fitting


class GradientRidge(RegressorMixin, Estimator):
    """Ridge regression by gradient descent, for the tests of the contract."""

    _parameters: ClassVar = {
        "alpha": Real(0),
        "solver": Choice("gradient", "stochastic", "closed form"),
        "step": Real(0, inclusive=(False, True)),
        "tol": Real(0),
        "max_iter": Integer(1),
        "fail_at": Integer(-1),
        "pause": Real(0),
        "keep_extra": Boolean(),
        "random_state": RandomState(),
        "verbose": Integer(0),
    }
    _card = MethodCard("test", ("T1",), ("memory",), "gradient norm")

    def __init__(
        self,
        *,
        alpha=0.1,
        solver="gradient",
        step=0.2,
        tol=1e-10,
        max_iter=2000,
        fail_at=-1,
        pause=0.0,
        keep_extra=False,
        random_state=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.solver = solver
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.fail_at = fail_at
        self.pause = pause
        self.keep_extra = keep_extra
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X, y=None, sample_weight=None):
        """Fit."""
        data = self._fit_data(X, y, sample_weight, target="numeric")
        batches = list(data.batches())
        X = np.concatenate([b.X for b in batches])
        y = np.concatenate([b.y for b in batches])
        if data.has_weight:
            s = np.concatenate([b.weight for b in batches])
            root = np.sqrt(s * len(s) / s.sum())
            X, y = X * root[:, None], y * root
        if self.keep_extra:
            self.extra_ = np.arange(3)
        if self.solver == "closed form":
            H = X.T @ X / len(y) + self.alpha * np.eye(X.shape[1])
            self.coef_ = np.linalg.solve(H, X.T @ y / len(y))
            self.n_iter_ = 1
            return self
        monitor = self._monitor(self.max_iter, lambda w: {"coef_": w})
        solution = self._descend(X, y, monitor, self._resume_state())
        self.coef_ = solution.x
        self._conclude(solution)
        return self

    def _descend(self, X, y, monitor, state):
        n, p = X.shape
        state = state or {"w": np.zeros(p), "iteration": 0, "seed": seed_of(self.random_state)}
        w, first, seed = np.array(state["w"]), int(state["iteration"]), int(state["seed"])
        reason, size = "max_iter", np.inf
        k, F = first, np.nan
        for k in range(first + 1, self.max_iter + 1):
            if k == self.fail_at:
                raise KeyboardInterrupt
            time.sleep(self.pause)
            if self.solver == "stochastic":
                rows = stream(seed, "epoch", k).integers(n, size=20)
                g = X[rows].T @ (X[rows] @ w - y[rows]) / 20 + self.alpha * w
                w = w - self.step / np.sqrt(k) * g
            else:
                w = w - self.step * (X.T @ (X @ w - y) / n + self.alpha * w)
            g = X.T @ (X @ w - y) / n + self.alpha * w
            size = float(np.abs(g).max())
            F = float(np.square(X @ w - y).sum() / (2 * n) + self.alpha / 2 * w @ w)
            state = {"w": w, "iteration": k, "seed": seed}
            stop = monitor(k, w, objective=F, gradient=size, state=lambda state=state: state)
            if not np.isfinite(F):
                reason = "diverged"
            elif size <= self.tol:
                reason = "converged"
            elif stop:
                reason = "stopped"
            else:
                continue
            break
        certificate = Certificate("gradient norm", size, self.tol, f"no partial derivative exceeds {size:.1e}")
        return Solution(w, F, monitor.history(), certificate, k, reason, state=state)

    def _penalty_line(self):
        return f"{self.alpha / 2:g} ||w||^2"

    def predict(self, X):
        """Predict."""
        data = self._predict_data(X)
        return np.concatenate([b.X @ self.coef_ for b in data.batches()])


class RunningMean(Estimator):
    """Column means, exact over any number of `partial_fit` calls."""

    _parameters: ClassVar = {"limit": Integer(1)}
    _card = MethodCard("test", ("T2",), ("memory",), "none")

    def __init__(self, *, limit=10**9):
        self.limit = limit

    @fitting
    def fit(self, X, y=None):
        """Fit."""
        return self._add(X, reset=True)

    @fitting(incremental=True)
    def partial_fit(self, X, y=None):
        """Add rows."""
        return self._add(X, reset=not hasattr(self, "sum_"))

    def _add(self, X, reset):
        data = self._fit_data(X, None, target="none", reset=reset)
        for batch in data.batches():
            self.sum_ = getattr(self, "sum_", 0.0) + batch.X.sum(axis=0)
            self.n_ = getattr(self, "n_", 0) + batch.n_rows
        if self.n_ > self.limit:
            raise OverflowError
        self.mean_ = self.sum_ / self.n_
        return self
