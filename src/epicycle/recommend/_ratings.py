"""Coded ratings, grouped by user and by item: what the methods of collaborative filtering work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data import ArrayData, Batch, DaskData, Data

Array = np.ndarray


@dataclass(frozen=True)
class Entries:
    """Ratings grouped by one side: those of row u stand at start[u] .. start[u + 1] - 1.

    at : codes of the other side.
    target : what is to be explained.
    curvature : weight of each squared error; None for ones.
    """

    start: Array
    at: Array
    target: Array
    curvature: Array | None

    @property
    def n_rows(self) -> int:
        return len(self.start) - 1


@dataclass(frozen=True)
class Ratings:
    """Ratings in memory: codes of users and items, values, and weights or None."""

    user: Array
    item: Array
    value: Array
    weight: Array | None
    n_users: int
    n_items: int

    @classmethod
    def of(cls, data: Data, n_users: int, n_items: int) -> Ratings:
        """From coded rows in memory or in files; rows of no weight are left out."""
        if isinstance(data, ArrayData):
            rows = data.rows(0, data.n_rows)
            X, value, weight = rows.X, rows.y, rows.weight
        else:
            table = engine.map(_with_targets, data)
            X, value, weight = table[:, :2], table[:, 2].copy(), table[:, 3].copy() if table.shape[1] > 3 else None
        user, item = X[:, 0].astype(np.int32), X[:, 1].astype(np.int32)
        value = np.asarray(value, dtype=np.float64)
        if weight is not None:
            kept = weight > 0
            if not kept.any():
                raise DataError("sample_weight: every weight is zero; expected a positive one")
            if not kept.all():
                user, item, value, weight = user[kept], item[kept], value[kept], weight[kept]
        return cls(user, item, value, weight, n_users, n_items)

    @cached_property
    def _in_order(self) -> bool:
        """Whether the rows are sorted by user and item, and every pair is there once, as in a sparse matrix."""
        after = np.diff(self.user)
        return bool(((after > 0) | ((after == 0) & (self.item[1:] > self.item[:-1]))).all())

    def added_up(self) -> Ratings:
        """One entry for each pair: ratings, times their weights, of the same pair added up."""
        value = self.value if self.weight is None else self.value * self.weight
        if self._in_order:
            return Ratings(self.user, self.item, value, None, self.n_users, self.n_items)
        order, first = self._by_pair()
        total = np.add.reduceat(value[order], first)
        at = order[first]
        return Ratings(self.user[at], self.item[at], total, None, self.n_users, self.n_items)

    def _by_pair(self) -> tuple[Array, Array]:
        """The order of the rows by user and item, and where in it each pair begins."""
        if self._in_order:
            every = np.arange(len(self.user))
            return every, every
        by_item = _native.recommend.grouped(self.item, self.n_items)[1]
        order = by_item[_native.recommend.grouped(self.user[by_item], self.n_users)[1]]
        user, item = self.user[order], self.item[order]
        new = np.flatnonzero((np.diff(user) != 0) | (np.diff(item) != 0)) + 1
        return order, np.concatenate([[0], new])

    def grouped(self, target: Array, curvature: Array | None) -> tuple[Entries, Entries]:
        """The entries by user and by item."""
        start, order = _native.recommend.grouped(self.item, self.n_items)
        weight = None if curvature is None else curvature[order]
        by_item = Entries(start, self.user[order], target[order], weight)
        if self._in_order:
            start = np.concatenate([[0], np.cumsum(np.bincount(self.user, minlength=self.n_users))])
            return Entries(start.astype(np.int64), self.item, target, curvature), by_item
        start, order = _native.recommend.grouped(self.user, self.n_users)
        weight = None if curvature is None else curvature[order]
        return Entries(start, self.item[order], target[order], weight), by_item

    def seen(self) -> tuple[Array, Array]:
        """The sorted items of every user, without repetition: start (n_users + 1,) and items."""
        order, first = self._by_pair()
        at = order[first]
        start = np.concatenate([[0], np.cumsum(np.bincount(self.user[at], minlength=self.n_users))])
        return start.astype(np.int64), self.item[at]

    def totals(self) -> tuple[Array, Array]:
        """Sums of weights of every user and every item."""
        return (
            np.bincount(self.user, self.weight, self.n_users).astype(np.float64),
            np.bincount(self.item, self.weight, self.n_items).astype(np.float64),
        )


def _with_targets(batch: Batch) -> Array:
    columns = [np.asarray(batch.X, dtype=np.float64), batch.y[:, None]]
    return np.hstack(columns if batch.weight is None else [*columns, batch.weight[:, None]])


def on_cluster(data: Data, method: str) -> bool:
    """Whether the rows are partitions of Dask, which alternating least squares alone takes."""
    if not isinstance(data, DaskData):
        return False
    if method not in ("als", "implicit"):
        raise DataTypeError(
            f"X: method={method!r} is fitted in memory; compute() the collection, or use method='als' or 'implicit'"
        )
    return True


def batch_codes(batch: Batch) -> tuple[Array, Array, Any, Any]:
    """Codes, ratings and weights of a batch of coded rows."""
    X = np.asarray(batch.X)
    value = np.asarray(batch.y, dtype=np.float64)
    return X[:, 0].astype(np.int32), X[:, 1].astype(np.int32), value, batch.weight
