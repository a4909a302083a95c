r"""Stress majorisation:  minimise  s(X) = sum_(i<j) w_ij (d_ij(X) - t_ij)^2  over places X.

With V = sum_(i<j) w_ij (e_i - e_j)(e_i - e_j)' and Guttman's transform  G(X) = V^+ B(X) X,  B(X) X = sum_j w_ij t_ij
(x_i - x_j) / d_ij,  Cauchy and Schwarz give

    s(X) - s(G(X))  >=  |X - G(X)|_V^2 ,         grad s(X) = 2 V (X - G(X)):

stress never rises, and where it falls by less than eps times sum w d^2 = |X|_V^2, the gradient is below sqrt(eps)
relative to |X|_V. Where only the order of dissimilarities counts, targets t are the distances made monotone in that
order, of a fixed sum of squares; this lowers the stress too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import connected_components

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads

_PAIR = 20.0  # multiply-adds that a pair of rows is worth, for the number of threads


@dataclass(frozen=True)
class Run:
    """Places, sum_(i<j) w (d - t)^2 and sum_(i<j) w d^2, targets, iterations, why it ended, and the gradient."""

    places: np.ndarray
    stress: float
    size: float
    targets: np.ndarray
    n_iter: int
    reason: str
    gradient: float

    @property
    def normalized(self) -> float:
        """Kruskal's first stress."""
        return float(np.sqrt(self.stress / self.size)) if self.size > 0 else 0.0


class Order:
    """Pairs in the order of their dissimilarities, with ties; those of dissimilarity zero are left out."""

    def __init__(self, D: np.ndarray, weight: np.ndarray | None) -> None:
        i, j = np.nonzero(np.triu(D, 1))
        value = D[i, j]
        order = np.argsort(value, kind="stable")
        value = value[order]
        self.first, self.second = i[order].astype(np.int32), j[order].astype(np.int32)
        self.weight = None if weight is None else np.ascontiguousarray(weight[self.first, self.second])
        self.group = np.concatenate([[0], np.flatnonzero(np.diff(value)) + 1, [len(value)]]).astype(np.int64)
        if not len(value):
            self.group = np.zeros(1, dtype=np.int64)
        n = len(D)
        self.norm = n * (n - 1) / 2 if weight is None else float(np.triu(weight, 1).sum())
        squares = self._squares(value)
        self.start = D * np.sqrt(self.norm / squares) if squares > 0 else np.zeros_like(D)

    def _squares(self, value: np.ndarray) -> float:
        return float(np.square(value).sum() if self.weight is None else (self.weight * np.square(value)).sum())

    def targets(self, X: np.ndarray) -> np.ndarray:
        """Distances of X made monotone, with sum w t^2 fixed."""
        T = np.zeros((len(X), len(X)))
        total = _native.manifold.monotone_disparities(X, self.first, self.second, self.weight, self.group, T)
        return T * np.sqrt(self.norm / total) if total > 0 else T


class Majorizer:
    """Guttman's transform for dissimilarities D and weights of pairs, metric or by the order alone."""

    def __init__(self, D: np.ndarray, weight: np.ndarray | None, *, metric: bool, n_jobs: int | None) -> None:
        self.D, self.weight, n = np.ascontiguousarray(D), weight, len(D)
        self.order = None if metric else Order(D, weight)
        self.threads = n_threads(_PAIR * n * n, n_jobs)
        self.V: np.ndarray | None = None
        if weight is not None:
            self.V = np.diag(weight.sum(axis=1)) - weight
            self.factor = scipy.linalg.cho_factor(self.V + np.trace(self.V) / n / n, check_finite=False)

    def step(self, X: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, float, float]:
        """(G(X), s(X), |X|_V^2)."""
        total, stress, size = _native.manifold.guttman(np.ascontiguousarray(X), targets, self.weight, self.threads)
        G = total / len(X) if self.V is None else scipy.linalg.cho_solve(self.factor, total, check_finite=False)
        return G, float(stress.sum()) / 2, float(size.sum()) / 2

    def gradient(self, X: np.ndarray, G: np.ndarray, size: float) -> float:
        """|X - G|_V / |X|_V."""
        R = (X - X.mean(axis=0)) - (G - G.mean(axis=0))
        squares = len(X) * float(np.square(R).sum()) if self.V is None else float((R * (self.V @ R)).sum())
        return float(np.sqrt(max(squares, 0.0) / size)) if size > 0 else 0.0

    def run(
        self, start: np.ndarray, max_iter: int, eps: float, record: Callable[[int, np.ndarray, float], bool]
    ) -> Run:
        """Majorise from here on; `record(iteration, places, stress)` may ask to stop."""
        X = np.array(start, dtype=np.float64)
        targets = self.D if self.order is None else self.order.start
        G, _, _ = self.step(X, targets)
        before, reason = np.inf, "max_iter"
        iteration, stress, size = 0, 0.0, 0.0
        for iteration in range(1, max_iter + 1):
            X = G
            if self.order is not None:
                targets = self.order.targets(X)
            G, stress, size = self.step(X, targets)
            if record(iteration, X, stress):
                reason = "stopped"
                break
            if not size > 0 or (before - stress) / size < eps:
                reason = "converged"
                break
            before = stress
        return Run(X, stress, size, targets, iteration, reason, self.gradient(X, G, size))


def checked_weights(weights: np.ndarray | None, n: int) -> tuple[np.ndarray | None, float]:
    """(weights of pairs, divided by the largest, and it): symmetric, none negative, connecting all rows."""
    if weights is None:
        return None, 1.0
    W = np.array(weights, dtype=np.float64)
    if W.shape != (n, n) or not np.isfinite(W).all() or (W < 0).any():
        raise DataError(f"weights: shape {W.shape}; expected ({n}, {n}) finite numbers >= 0, one for each pair of rows")
    if not np.allclose(W, W.T, rtol=1e-10, atol=0):
        raise DataError("weights: expected a symmetric matrix")
    np.fill_diagonal(W, 0.0)
    largest = float(W.max(initial=0.0))
    W = W / largest if largest > 0 else W
    W = (W + W.T) / 2
    if connected_components(W > 1e-12, directed=False, return_labels=False) > 1:
        raise DataError("weights: pairs of positive weight do not connect all rows, which leaves places undetermined")
    return W, largest
