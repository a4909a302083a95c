r"""Beta-divergences between rows and their approximation:

    d(x, y) = (x^b + (b - 1) y^b - b x y^(b - 1)) / (b (b - 1)),

with half the squared distance for b = 2, the limits x log(x / y) - x + y (Kullback and Leibler) for b = 1 and
x / y - log(x / y) - 1 (Itakura and Saito) for b = 0. Where x = 0 there are terms in y alone: for sparse rows their sum
follows from sums of the factors (b = 1, 2), or from the approximation of a few rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle._native import decomposition as native
from epicycle.data import Batch

NAMES = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
_ROWS = 256  # of sparse rows that are approximated at a time where zeros have terms of their own


def beta_of(name: str | float) -> float:
    """The exponent of a divergence by name."""
    return NAMES[name] if isinstance(name, str) else float(name)


@dataclass(frozen=True)
class FactorPenalty:
    """l1 |a|_1 + l2/2 |a|^2 of a factor."""

    l1: float
    l2: float

    def of(self, A: np.ndarray) -> float:
        return self.l1 * float(A.sum()) + self.l2 / 2 * float(np.vdot(A, A))

    @property
    def some(self) -> bool:
        return self.l1 > 0 or self.l2 > 0


def dense(X: Any) -> np.ndarray:
    return np.asarray(X, dtype=np.float64)


def weights(batch: Batch) -> np.ndarray:
    return np.ones(batch.n_rows) if batch.weight is None else batch.weight


def row_of_entries(X: Any) -> np.ndarray:
    """The row of every stored entry."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def divergence_of(
    batch: Batch, W: np.ndarray, Ht: np.ndarray, beta: float, least: float, Y: np.ndarray | None = None
) -> tuple[float]:
    """sum_i v_i d(x_i, w_i H); approximations below `least` count as `least` where x > 0.

    Y, where it is known already, is WH, of sparse rows at the stored entries.
    """
    X, v = batch.X, weights(batch)
    if not sp.issparse(X):
        Y = W @ Ht.T if Y is None else Y
        return (float(v @ entry_terms(dense(X), Y, beta, least).sum(axis=1)),)
    data, row = dense(X.data), row_of_entries(X)
    Y = native.products_at(X, W, Ht) if Y is None else Y
    if beta == 2:
        vW = v[:, None] * W
        square = float(np.vdot(W.T @ vW, Ht.T @ Ht))
        return (0.5 * float(v[row] @ data**2) - float((v[row] * data) @ Y) + 0.5 * square,)
    if beta == 1:
        terms = _relative_entropy(data, Y, least) - Y
        return (float(v[row] @ terms) + float((v @ W) @ Ht.sum(axis=0)),)
    if beta <= 0:  # no entry is zero
        return (float(v[row] @ entry_terms(data, Y, beta, least)),)
    # the stored entries, less what they would be with x = 0, plus that of all entries
    stored = entry_terms(data, Y, beta, least) - Y**beta / beta
    total = float(v[row] @ stored)
    for start in range(0, len(W), _ROWS):
        rows = slice(start, start + _ROWS)
        total += float(v[rows] @ ((W[rows] @ Ht.T) ** beta / beta).sum(axis=1))
    return (total,)


def entry_terms(X: np.ndarray, Y: np.ndarray, beta: float, least: float) -> np.ndarray:
    """d(x, y) for every entry."""
    if beta == 2:
        return np.asarray(0.5 * np.square(X - Y))
    if beta == 1:
        return _relative_entropy(X, Y, least)
    positive = X > 0
    Y = np.where(positive, np.maximum(Y, least), Y)
    if beta == 0:  # no entry is zero
        ratio = np.where(positive, X, 1.0) / np.maximum(Y, least)
        return np.asarray(ratio - np.log(ratio) - 1.0)
    if beta < 0:
        Y = np.maximum(Y, least)
    powers = np.where(positive, Y, 1.0) ** (beta - 1) * X
    own = np.where(positive, X, 0.0 if beta > 0 else 1.0) ** beta
    return np.asarray((own - beta * powers) / (beta * (beta - 1)) + Y**beta / beta)


def _relative_entropy(X: np.ndarray, Y: np.ndarray, least: float) -> np.ndarray:
    positive = X > 0
    ratio = np.where(positive, X, 1.0) / np.where(positive, np.maximum(Y, least), 1.0)
    return np.asarray(np.where(positive, X * np.log(ratio) - X, 0.0) + Y)
