"""Folds of cross-fitting that depend on what the rows are, not on where they stand.

Rows of an arm go to the folds in turn, in the order of pseudo-random numbers that follow from the rank of
the outcome, the treatment and, where this does not tell rows apart, the covariates. Equal rows follow each other and so
go to different folds; a row of weight 2 is cut into two halves. So weights are the same as repetition, and neither
the order of the rows nor the unit of the outcome changes an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from epicycle.causal.effects._study import Study
from epicycle.core._exceptions import DataError, ParameterError

_EMPTY = 1e-9  # a share of a row that rounding left
_FOLDS = 1000  # that few rows of large weights may have


@dataclass(frozen=True)
class Folds:
    """A study cut into folds.

    study : its rows, those of weight above one in several pieces.
    number : the fold of each.
    source : the row of the original study that each is a piece of; None where no row is cut.
    """

    study: Study
    number: np.ndarray
    source: np.ndarray | None

    def back(self, values: np.ndarray, n_rows: int) -> np.ndarray:
        """Values of the pieces as weighted means over each row."""
        if self.source is None:
            return values
        w = self.study.w
        return np.bincount(self.source, w * values, n_rows) / np.bincount(self.source, w, n_rows)


def content_folds(study: Study, n_folds: int, seed: int) -> Folds:
    """Cut a study into folds, fewer than asked for where an arm has fewer rows."""
    keys = content_keys(study, seed)
    arms = study.t if study.binary else np.zeros_like(study.t)
    sizes = [float(study.w[arms == arm].sum()) for arm in np.unique(arms)]
    k = int(min(n_folds, *sizes))
    if k < 2:
        raise DataError("treatment: an arm has n_samples=1 rows; cross-fitting needs two or more in each")
    most = max(_FOLDS, study.n_rows)
    if k > most:  # the sum of large weights allows any number
        raise ParameterError(f"n_folds={n_folds}: each fold is a fit; expected at most {most} for {study.n_rows} rows")
    number = np.zeros(study.n_rows, dtype=np.int64)
    cut = []
    for arm in np.unique(arms):
        rows = np.flatnonzero(arms == arm)
        shares = _shares(keys[rows], study.w[rows], k)
        lost = ~(shares > _EMPTY * study.w[rows][:, None]).any(axis=1)  # below the rounding of the other weights
        shares[lost, 0] = study.w[rows][lost]
        number[rows] = shares.argmax(axis=1)
        place, fold = np.nonzero(shares > _EMPTY * study.w[rows][:, None])
        cut.append((rows[place], fold, shares[place, fold]))
    source, folds, weight = (np.concatenate(parts) for parts in zip(*cut, strict=True))
    if len(source) == study.n_rows:
        return Folds(study, number, None)
    order = np.lexsort((folds, source))
    source, folds, weight = source[order], folds[order], weight[order]
    pieces = replace(study, X=study.X[source], t=study.t[source], y=study.y[source], w=weight, weighted=True)
    return Folds(pieces, folds, source)


def _shares(keys: np.ndarray, w: np.ndarray, k: int) -> np.ndarray:
    """(n, k) shares of the rows' weights in the folds.

    Rows of equal keys lie side by side on a line, row i on [a_i, b_i); the unit cells of the line go to the folds in
    turn, beginning with one that depends on the weight of all keys before.
    """
    _, which = np.unique(keys, return_inverse=True)
    mass = np.bincount(which, weights=w)
    first = np.floor(np.cumsum(mass) - mass + _EMPTY)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(w[order])
    starts_of_keys = np.concatenate([[0.0], np.cumsum(mass)[:-1]])
    b = np.empty_like(w)
    b[order] = ends - starts_of_keys[which[order]]
    a = b - w
    cell = (np.arange(k)[None, :] - first[which][:, None]) % k
    return np.asarray(_measure(b, cell, k) - _measure(a, cell, k))


def _measure(u: np.ndarray, cell: np.ndarray, k: int) -> np.ndarray:
    """Length of [0, u) in unit cells whose number is `cell` modulo k."""
    u = np.maximum(np.where(np.abs(u - np.rint(u)) < 1e-7, np.rint(u), u), 0.0)[:, None]  # sums of whole weights
    rounds = np.floor(u / k)
    return np.asarray(rounds + np.clip(u - rounds * k - cell, 0.0, 1.0))


def content_keys(study: Study, seed: int) -> np.ndarray:
    """A pseudo-random number of each row, the same for equal rows."""
    _, rank = np.unique(study.y, return_inverse=True)
    _, level = np.unique(study.t, return_inverse=True)
    keys = _mixed(_mixed(rank.astype(np.uint64), seed) ^ level.astype(np.uint64), seed + 1)
    n_different = len(np.unique(keys))
    if n_different == study.n_rows:
        return keys
    full = _mixed(keys ^ _row_hashes(study, seed), seed + 2)
    return full if len(np.unique(full)) > n_different else keys


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
