"""Start of Baum-Welch: rough states of rows by k-means, and the moves between them."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.cluster.vq import kmeans2, vq

#: Rows that rough clusters are found from.
_MOST_ROWS = 20_000


def k_means(X: np.ndarray, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(centres, label of every row) of complete rows, in units of the spread of each column."""
    spread = X.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    center = X.mean(axis=0)
    Z = (X - center) / scale
    some = Z if len(Z) <= _MOST_ROWS else Z[np.sort(rng.choice(len(Z), _MOST_ROWS, replace=False))]
    centers = [some[rng.integers(len(some))]]
    closest = np.full(len(some), np.inf)
    for _ in range(1, k):
        closest = np.minimum(closest, ((some - centers[-1]) ** 2).sum(axis=1))
        total = closest.sum()
        # Where every row is at a centre already, a centre of some row's is taken once more.
        drawn = rng.choice(len(some), p=closest / total) if total > 0 else rng.integers(len(some))
        centers.append(some[drawn])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a centre that loses its rows stays where it is
        found, _ = kmeans2(some, np.array(centers), iter=20, minit="matrix")
    return found * scale + center, vq(Z, found)[0].astype(np.int64)


def rough_states(X: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """A state for every row, missing entries taken as the mean of their column."""
    there = ~np.isnan(X)
    mean = np.where(there, X, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return k_means(np.where(there, X, mean), k, rng)[1]


def moves(label: np.ndarray, offsets: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Start and transition probabilities of labelled sequences, every count one larger so that none is zero."""
    first = np.bincount(label[offsets[:-1]], minlength=k) + 1.0
    last = np.zeros(len(label), dtype=bool)
    last[offsets[1:] - 1] = True
    at = np.flatnonzero(~last)
    pairs = np.bincount(label[at] * k + label[np.minimum(at + 1, len(label) - 1)], minlength=k * k)
    transition = pairs.reshape(k, k) + 1.0
    return first / first.sum(), transition / transition.sum(axis=1, keepdims=True)
