"""Folds of cross-fitting that depend on what the rows are, not on where they stand.

Every row gets a pseudo-random number from the rank of its outcome, its treatment and, where outcomes are equal, its
covariates; within each arm rows are dealt out in the order of these numbers. So equal rows fall into one fold: a row of
weight 2 is the same as two rows, and neither the order of the rows nor the unit of the outcome changes an estimate.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from epicycle.causal.effects._study import Study
from epicycle.core._exceptions import DataError


def content_folds(study: Study, n_folds: int, seed: int) -> np.ndarray:
    """The number of each row's fold; fewer folds than asked for where an arm has fewer different rows."""
    _, rank = np.unique(study.y, return_inverse=True)
    keys = _mixed(rank.astype(np.uint64), seed) ^ _mixed(study.t.view(np.uint64), seed + 1)
    if len(np.unique(np.stack([rank, study.t]), axis=1).T) < study.n_rows:
        keys = _mixed(keys ^ _row_hashes(study, seed), seed + 2)
    arms = study.t if study.binary else np.zeros_like(study.t)
    dealt = [_dealt(keys[arms == arm], study.w[arms == arm], n_folds) for arm in np.unique(arms)]
    folds = np.empty(study.n_rows, dtype=np.int64)
    for arm, numbers in zip(np.unique(arms), dealt, strict=True):
        folds[arms == arm] = numbers
    if min(len(np.unique(numbers)) for numbers in dealt) < 2:
        raise DataError("treatment: an arm has a single row; cross-fitting needs at least two different rows in each")
    return folds


def _dealt(keys: np.ndarray, w: np.ndarray, n_folds: int) -> np.ndarray:
    """Folds of about equal weight, in the order of the keys."""
    different, which = np.unique(keys, return_inverse=True)
    mass = np.bincount(which, weights=w)
    before = np.cumsum(mass) - mass / 2
    k = min(n_folds, len(different))
    return np.minimum((before / mass.sum() * k).astype(np.int64), k - 1)[which]


def _row_hashes(study: Study, seed: int) -> np.ndarray:
    total = np.zeros(study.n_rows, dtype=np.uint64)
    X = study.X.tocsc() if sp.issparse(study.X) else study.X
    for j in range(X.shape[1]):
        column = X[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j]
        values = np.ascontiguousarray(column, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        total = _mixed(total ^ values.view(np.uint64), seed + 3 + j)
    return total


def _mixed(values: np.ndarray, seed: int) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the value."""
    with np.errstate(over="ignore"):
        z = values + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
