"""Samples of rows for the trees of a forest, each from a random stream of its own, so that it can be drawn again.

Rows are put in an order that depends on their content alone, and draws are positions in this order. So a forest does
not depend on the order of the rows, and a row of weight 3 is drawn exactly as three equal rows are.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._memory import require_memory
from epicycle.core._random import stream

_BLOCK = 4096  # rows that are hashed at a time, within the cache
# Multipliers of splitmix64 (Steele, Lea and Flood, 2014).
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# Integer weights are repetitions up to this mean, and beyond that shares: a sample then has no more draws than rows.
_MAX_MEAN_REPETITIONS = 100


def row_keys(X: Any, y: np.ndarray) -> np.ndarray:
    """A number for every row, from its content alone: the sum of a hash of every number that is not zero."""
    n, p = X.shape
    targets, keys = y.reshape(n, -1), np.zeros(n, np.uint64)
    if sp.issparse(X):
        # Sums of hashes per row from one cumulative sum, modulo 2^64.
        hashed = np.concatenate([[np.uint64(0)], np.cumsum(_hashed(X.data, X.indices.astype(np.uint64)))])
        keys += hashed[X.indptr[1:]] - hashed[X.indptr[:-1]]
    for i in range(0, n, _BLOCK):
        key, last = keys[i : i + _BLOCK], p + targets.shape[1]
        for j in range(p if sp.issparse(X) else 0, last):
            column = X[i : i + _BLOCK, j] if j < p else targets[i : i + _BLOCK, j - p]
            key += _hashed(column, np.array([j], np.uint64))  # an array wraps round without a warning
    return keys


def uniform_of_keys(keys: np.ndarray, seed: int) -> np.ndarray:
    """Numbers in [0, 1) that depend on the keys and the seed alone."""
    mixed = _hashed((keys >> np.uint64(11)).astype(np.float64) + 1.0, np.array([seed % 2**32], np.uint64))
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def _hashed(values: np.ndarray, column: np.ndarray) -> np.ndarray:
    """splitmix64 of the bits of each value and its column; 0 for zeros."""
    values = values.astype(np.float64)
    missing = np.isnan(values)
    if missing.any():
        values[missing] = np.nan  # one bit pattern for all of them
    bits = values.view(np.uint64) + (column + np.uint64(1)) * _FACTORS[0]
    bits = (bits ^ (bits >> np.uint64(30))) * _FACTORS[1]
    bits = (bits ^ (bits >> np.uint64(27))) * _FACTORS[2]
    return np.where(values == 0, np.uint64(0), bits ^ (bits >> np.uint64(31)))


class RowSamples:
    """Samples of the rows of positive weight, one for each tree.

    Parameters
    ----------
    keys : uint64 ndarray of shape (n,)
        Sort keys of the rows.
    weight : ndarray of shape (n,), or None
        Repetitions, or shares, with which rows are drawn.
    size : int, float or None
        Draws of one sample, as a number or as a share of all; None means as many as there are rows.
    bootstrap : bool
        Whether rows are drawn with replacement; otherwise there are at least `size` of them.
    """

    def __init__(self, keys: np.ndarray, weight: np.ndarray | None, size: float | None, *, bootstrap: bool) -> None:
        self.n, self.bootstrap = len(keys), bootstrap
        order = np.argsort(keys, kind="stable").astype(np.uint32 if len(keys) < 2**32 else np.uint64)
        self.rows = order if weight is None else order[weight[order] > 0]
        self.ends: np.ndarray | None = None
        self.whole = True
        total: float = len(self.rows)
        if weight is not None and bootstrap:
            mass = weight[self.rows]
            self.ends = np.cumsum(mass)
            repeats = bool((mass == np.floor(mass)).all())
            self.whole = repeats and self.ends[-1] <= _MAX_MEAN_REPETITIONS * len(mass)
            total = float(self.ends[-1]) if self.whole else len(mass)
            # Without repetitions a draw is uniform on (0, total), and falls into the interval of a row with its share.
            self.ends = self.ends if self.whole else self.ends / self.ends[-1] * total
        self.total = int(total)
        self.size = self._size(size)

    def _size(self, asked: float | None) -> int:
        if asked is None:
            return self.total
        if isinstance(asked, numbers.Integral):
            return int(asked)
        return max(1, round(self.total * asked))

    @property
    def takes_all(self) -> bool:
        """Whether every tree sees all rows once."""
        return not self.bootstrap and self.size == self.total

    def counts(self, seed: int, tree: int) -> np.ndarray | None:
        """Number of times each row is in the sample of a tree; None where all are, once."""
        if self.takes_all:
            return None
        random, counts = stream(seed, "rows", tree), np.zeros(self.n)
        if not self.bootstrap:
            counts[self.rows[random.permutation(len(self.rows))[: self.size]]] = 1
            return counts
        require_memory(16.0 * self.size, f"a sample of {self.size:,} rows", "take a smaller max_samples")
        drawn: Any = random.integers(0, self.total, self.size) if self.whole else random.random(self.size) * self.total
        if self.ends is not None:
            drawn = np.minimum(np.searchsorted(self.ends, drawn, side="right"), len(self.rows) - 1)
        counts[self.rows] = np.bincount(drawn, minlength=len(self.rows))
        return counts

    def drawn(self, seed: int, tree: int) -> np.ndarray:
        """Numbers of the rows in the sample of a tree, ascending, each as often as it was drawn."""
        counts = self.counts(seed, tree)
        if counts is None:
            return np.sort(self.rows).astype(np.int32)
        return np.repeat(np.arange(self.n, dtype=np.int32), counts.astype(np.int64))
