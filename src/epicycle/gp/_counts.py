"""Labels as counts: the likelihood of a softmax (for one column a logistic) model, and its derivatives.

With counts N (n, k) of every class at every row, c = sum_k N_k and probabilities p of the latent values f,

    log p(N | f) = sum N_k f_k - c log sum exp f,    gradient N - c p,    W = c (diag p - p p').

For two classes one latent value is enough: f is the log odds of the second, and W = c p (1 - p). Rows that are alike
add up to one row of counts; posterior and marginal likelihood by Laplace's method are the same to the last term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.gp._observations import distinct_rows
from epicycle.kernels._kernel import Kernel
from epicycle.kernels._machine import rows_of
from epicycle.stats._class_scores import log_probabilities

__all__ = ["Counts", "count_labels"]


@dataclass(frozen=True)
class Counts:
    """Distinct rows and the weight of every class at them.

    rows : what the kernel prepares
    N : (n, 1) for two classes, the weight of the second, or (n, k)
    total : (n,)
    """

    rows: Any
    N: np.ndarray
    total: np.ndarray

    @property
    def n(self) -> int:
        return len(self.N)

    @property
    def n_latent(self) -> int:
        return self.N.shape[1]

    @property
    def scale(self) -> float:
        return max(1.0, 0.5 * float(self.total.sum()))

    def take(self, chosen: np.ndarray, kernel: Kernel) -> Counts:
        return Counts(rows_of(self.rows, kernel, chosen), self.N[chosen], self.total[chosen])

    def log_likelihood(self, f: np.ndarray) -> float:
        log_p = log_probabilities(f)
        if f.shape[1] == 1:
            return float(self.N[:, 0] @ log_p[:, 1] + (self.total - self.N[:, 0]) @ log_p[:, 0])
        return float(np.vdot(self.N, log_p))

    def probabilities(self, f: np.ndarray) -> np.ndarray:
        """(n, 1), of the second class, or (n, k)."""
        log_p = log_probabilities(f)
        return np.exp(log_p[:, 1:] if f.shape[1] == 1 else log_p)

    def gradient(self, p: np.ndarray) -> np.ndarray:
        return self.N - self.total[:, None] * p

    def curvature(self, p: np.ndarray) -> np.ndarray:
        """W of every row, (n, k, k)."""
        if p.shape[1] == 1:
            return (self.total * p[:, 0] * (1 - p[:, 0]))[:, None, None]
        W = -p[:, :, None] * p[:, None, :]
        index = np.arange(p.shape[1])
        W[:, index, index] += p
        return self.total[:, None, None] * W

    def third(self, p: np.ndarray, V: np.ndarray) -> np.ndarray:
        """-1/2 d / df of tr(V W) for given covariances V (n, k, k) of every row: (n, k)."""
        if p.shape[1] == 1:
            q = p[:, 0]
            return (-0.5 * V[:, 0, 0] * self.total * q * (1 - q) * (1 - 2 * q))[:, None]
        v = np.einsum("ikk->ik", V) - 2 * np.einsum("ikl,il->ik", V, p)
        return -0.5 * self.total[:, None] * p * (v - np.einsum("ik,ik->i", p, v)[:, None])


def count_labels(rows: Any, codes: np.ndarray, weight: np.ndarray, n_classes: int, kernel: Kernel) -> Counts:
    """Counts of labels 0 .. n_classes - 1; equal rows become one, but for a precomputed kernel."""
    each = np.zeros((len(codes), n_classes))
    each[np.arange(len(codes)), codes] = weight
    if kernel.takes != "precomputed":
        first, group = distinct_rows(rows, np.zeros(len(codes)))
        rows = rows_of(rows, kernel, first)
        each = np.column_stack([np.bincount(group, weights=column) for column in each.T])
    return Counts(rows, each[:, 1:] if n_classes == 2 else each, each.sum(axis=1))
