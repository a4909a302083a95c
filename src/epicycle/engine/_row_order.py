"""The order in which rows are visited: one that depends on their content alone, weights as repetitions, mini-batches.

Learners that visit one row after the other shuffle rows from this order: a fit is then the same for rows that are
stored in another order, and for rows that are repeated instead of weighted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, overload

import numpy as np

from epicycle import _native, engine
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.engine._dask import partitions_in_turn

_MAX_REPEATS = 100  # beyond this weight a row is not visited more often; each visit counts for more
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / phi: spreads the bits of a target over those of a hash


def row_hashes(X: Any) -> np.ndarray:
    """64 bits for each row of an array, a CSR matrix or an array of strings; equal rows have equal ones."""
    out = np.empty(X.shape[0], np.uint64)
    if X.dtype == object:
        texts = (text.encode("utf-8", "surrogatepass") for text in X.tolist())
        out[:] = [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") for text in texts]
    else:
        _native.core.row_hashes(X, out)
    return out


def content_order(X: Any, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """The rows in an order that depends on their content, target and weight alone; equal rows follow each other."""
    with np.errstate(over="ignore"):
        keys = row_hashes(X) + (y + 0.0).view(np.uint64) * _GOLDEN_RATIO  # + 0.0 makes -0.0 the same as 0.0
    return np.argsort(keys) if weight is None else np.lexsort((weight, keys))


@overload
def repeated(weight: np.ndarray | None, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]: ...
@overload
def repeated(
    weight: np.ndarray | None, rows: np.ndarray | None = None
) -> tuple[np.ndarray | None, np.ndarray | None]: ...
def repeated(weight: np.ndarray | None, rows: np.ndarray | None = None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(row of every visit, fraction of a row that each counts for), for the rows in this order.

    A row of weight v is visited v times, and a last time for the fraction that is left. None stands for all rows in
    order, and for a fraction of one everywhere.
    """
    if weight is None:
        return rows, None
    if rows is not None:
        weight = weight[rows]
    times = np.ceil(np.minimum(weight, _MAX_REPEATS)).astype(np.int64)
    visits = np.repeat(np.arange(len(weight)) if rows is None else rows, times)
    each = np.repeat(np.where(weight > _MAX_REPEATS, weight / _MAX_REPEATS, 1.0), times)
    last = np.cumsum(times)[times > 0] - 1
    left = weight - np.floor(weight)
    partly = (left > 0) & (weight < _MAX_REPEATS)
    each[last[partly[times > 0]]] = left[partly]
    return visits, None if bool((each == 1).all()) else each


def batches_in_order(data: Data) -> Iterator[Batch]:
    """All rows in order: an array as one batch, files and the partitions of a cluster piece by piece."""
    if isinstance(data, ArrayData):
        return iter([data.rows(0, data.n_rows)])
    return partitions_in_turn(data) if isinstance(data, DaskData) else data.batches()


def count_statistic(batch: Batch) -> tuple[int]:
    return (batch.n_rows,)


def count_rows(data: Data) -> int:
    """The number of rows, by a pass where nothing else tells."""
    if data.n_rows is not None:
        return data.n_rows
    (n,) = engine.sum(count_statistic, data)
    return int(n)


def minibatches(data: Data, batch_size: int, epoch: int, seed: int) -> Iterator[tuple[Batch, float]]:
    """(rows, number of all rows / number of these): in memory at random, else shuffled within each batch."""
    rng = stream(seed, epoch)
    total = count_rows(data)
    for part in batches_in_order(data):
        # Files and partitions are read in their order; a single sequential read allows to shuffle within a batch.
        order = rng.permutation(part.n_rows)
        for start in range(0, part.n_rows, batch_size):
            rows = order[start : start + batch_size]
            weight = None if part.weight is None else part.weight[rows]
            yield Batch(part.X[rows], None if part.y is None else part.y[rows], weight, part.start), total / len(rows)
