"""Starts of a mixture: shares of the components in the rows, by k-means, from rows drawn, or at random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.cluster.kmeans import KMeans
from epicycle.cluster.kmeans._lloyd import nearest
from epicycle.cluster.kmeans._starts import plus_plus, random_rows
from epicycle.core._exceptions import DataError
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data
from epicycle.engine._row_order import row_hashes
from epicycle.mixture._mixture_model import MixtureModel
from epicycle.stats._class_scatter import dense_rows

#: Rows that a start is made from where they are not in memory.
MOST_ROWS = 50_000
METHODS: tuple[str, ...] = ("kmeans", "k-means++", "random", "random_from_data")


@dataclass
class Look:
    """A first look at the rows: how many have a weight, and missing and infinite entries of each column."""

    n_rows: int
    missing: np.ndarray
    infinite: np.ndarray

    def __add__(self, other: Look) -> Look:
        return Look(self.n_rows + other.n_rows, self.missing + other.missing, self.infinite + other.infinite)

    def refuse(self, names: list[str], *, allow_missing: bool) -> None:
        """Raise for entries that no mixture can use."""
        if self.infinite.any():
            column = names[int(np.argmax(self.infinite))]
            raise DataError(f"X: Input X contains infinity, in column {column!r}; expected finite numbers")
        if self.missing.any() and not allow_missing:
            raise DataError(f"X: Input X contains NaN, in column {names[int(np.argmax(self.missing))]!r}")
        if (self.missing >= self.n_rows).any():
            column = names[int(np.argmax(self.missing))]
            raise DataError(f"X: column {column!r} has no value at all; drop it, nothing can be learnt from it")


def look(batch: Batch) -> tuple[Look]:
    counted = slice(None) if batch.weight is None else batch.weight > 0
    X = batch.X[counted]
    p = batch.X.shape[1]
    if isinstance(X, np.ndarray):
        if np.isfinite(X.sum()):  # no NaN and no infinity, unless they are large: then it is looked at more closely
            return (Look(len(X), np.zeros(p, np.int64), np.zeros(p, np.int64)),)
        return (Look(len(X), np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0)),)
    counts = [np.bincount(X.indices[test(X.data)], minlength=p) for test in (np.isnan, np.isinf)]
    return (Look(X.shape[0], *counts),)


@dataclass
class Rows:
    """Rows that are in memory, with their weights."""

    X: Any
    weight: np.ndarray


def rows_for_starts(data: Data, seed: int, n_jobs: int | None) -> Rows:
    """All rows in memory, or a sample of those that are not; missing entries become means of their columns."""
    if isinstance(data, ArrayData):
        rows = Rows(data.X, np.ones(data.n_rows) if data.weight is None else data.weight)
    else:
        (found,) = engine.sum(_drawn, data, seed, MOST_ROWS, n_jobs=n_jobs)
        # In the memory order of an array: k-means rounds, and breaks ties, in the same way.
        rows = Rows(np.ascontiguousarray(found.X) if isinstance(found.X, np.ndarray) else found.X, found.weight)
    counted = rows.weight > 0
    if not counted.all():
        rows = Rows(rows.X[counted], rows.weight[counted])
    if isinstance(rows.X, np.ndarray) and np.isnan(rows.X).any():
        rows = Rows(_filled(rows.X, rows.weight), rows.weight)
    return rows


def _filled(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    gone = np.isnan(X)
    total = weight @ ~gone
    mean = (weight @ np.where(gone, 0.0, X)) / np.where(total > 0, total, 1.0)
    return np.where(gone, mean, X)


@dataclass
class _Sample:
    """The rows with the smallest keys; which batch a row comes in plays no part."""

    most: int
    keys: np.ndarray
    X: Any
    weight: np.ndarray

    def __add__(self, other: _Sample) -> _Sample:
        keys = np.concatenate([self.keys, other.keys])
        stack = np.concatenate if isinstance(self.X, np.ndarray) else sp.vstack
        X, weight = stack([self.X, other.X]), np.concatenate([self.weight, other.weight])
        return _Sample(self.most, keys, X if isinstance(X, np.ndarray) else sp.csr_array(X), weight).cut()

    def cut(self) -> _Sample:
        if len(self.keys) <= self.most:
            return self
        at = np.argsort(self.keys, kind="stable")[: self.most]
        return _Sample(self.most, self.keys[at], self.X[at], self.weight[at])


def _drawn(batch: Batch, seed: int, most: int) -> tuple[_Sample]:
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return (_Sample(most, _keys(batch.X, seed), batch.X, weight).cut(),)


def _keys(X: Any, seed: int) -> np.ndarray:
    """64 bits for each row that depend on its content and the seed."""
    salt = np.uint64(stream(seed, "rows").integers(2**63)) * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        bits = row_hashes(X.astype(np.float32, copy=False)) * salt
        return np.asarray((bits ^ (bits >> np.uint64(32))) * salt)


def start(model: MixtureModel, rows: Rows, method: str, seed: int, number: int, n_jobs: int | None) -> dict[str, Any]:
    """Parameters of one start."""
    rng = stream(seed, "start", number)
    r = _shares(model, rows, method, rng, n_jobs)
    return model.from_shares(rows.X, r * rows.weight[:, None])


def _shares(model: MixtureModel, rows: Rows, method: str, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
    n, k = rows.X.shape[0], model.k
    if method == "random":
        # Drawn in an order by content: a row that is repeated and one that weighs more are treated alike.
        keys = _keys(rows.X, int(rng.integers(2**62)))
        _, number = np.unique(keys, return_inverse=True)
        drawn = rng.random((int(number.max()) + 1, k))[number]
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
    near = model.start_rows(rows.X)
    if method == "kmeans":
        means = KMeans(min(k, n), n_init=1, random_state=int(rng.integers(2**31)), n_jobs=n_jobs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct rows than components
            label = means.fit(near, sample_weight=rows.weight).labels_
    else:
        draw = plus_plus if method == "k-means++" else random_rows
        label = nearest(near, dense_rows(near[draw(near, rows.weight, min(k, n), rng)]))
    r = np.zeros((n, k))
    r[np.arange(n), label] = 1.0
    return r
