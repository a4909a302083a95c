"""Histogram bins: a table of numbers as one byte a cell, with bin edges at quantiles.

Bin b of column j holds the numbers x with edges[b - 1] < x <= edges[b]; bin 255 holds missing values. Quantiles are
those of all rows, or of a random sample of them that depends on the seed and the row numbers alone: the same whether
the rows are in memory or are read from files, and one pass finds it.

Exclusive feature bundling (Ke et al., 2017): features that are never both away from their most frequent bins in a row,
such as the indicators of one category, share a column of bytes. Code 0 of the column says that all are in their most
frequent bin; the other bins of each feature have the further codes. The trees stay the same to the bit: the histogram
of a feature is a piece of that of its column, and its most frequent bin holds what remains of the sum over all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native, engine
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.engine import n_threads
from epicycle.engine._ordered import in_order

MISSING = 255
# Rows of the sample for quantiles: their standard error is then sqrt(1/4 / 200,000) = 0.0011, a quarter of a bin.
SAMPLE_ROWS = 200_000
SAMPLE_CELLS = 1 << 25  # and cells, 256 MiB of float64, where X has many columns
# Columns that are sorted together: the numbers of a row in them lie in one or two cache lines.
_COLUMNS_AT_ONCE = 8
# Stored columns, as a share of the features, from which on bundling does not pay for its indirection.
MAX_BUNDLED_SHARE = 0.8
_CHUNK_ROWS = 1 << 16  # rows that are moved or searched at a time, so that temporaries stay small

#: ``mask(start, stop)`` says of each of the rows start:stop whether it belongs to a set.
RowMask = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Bundles:
    """Places of the features among the stored columns.

    Attributes
    ----------
    places : int32 ndarray of shape (3, p)
        Of every feature its column, its first code there (0 where the column is its own), and its most frequent bin.
    n_codes : int32 ndarray of shape (q,)
    n_bins : int32 ndarray of shape (p,)
    """

    places: np.ndarray
    n_codes: np.ndarray
    n_bins: np.ndarray

    def in_codes(self, feature: np.ndarray, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Splits of nodes in terms of columns and codes; `sides` are the bit sets (m, 4) of bins that go left."""
        column, first, frequent = self.places[:, feature]
        bits = np.unpackbits(sides.view(np.uint8), axis=1, bitorder="little")
        for node in np.flatnonzero(first):
            own = bits[node, : self.n_bins[feature[node]]].copy()
            bits[node] = own[frequent[node]]
            others = np.delete(own, frequent[node])
            bits[node, first[node] : first[node] + len(others)] = others
        return column, np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


@dataclass(frozen=True)
class Bins:
    """Binned rows with their targets and weights.

    Attributes
    ----------
    rows, columns : uint8 ndarray of shape (n, q) and (q, n); columns may be None
        The same bins twice: histograms read rows, partitions read columns. Without columns they read rows too, which
        takes about a tenth longer and half the memory.
    y, weight : float64 ndarray of shape (n,); weight may be None
    some_missing : bool ndarray of shape (p,)
        Whether a feature has missing values.
    bundles : Bundles or None
        Places of the p features among the q columns; None where each has its own.
    """

    rows: np.ndarray
    columns: np.ndarray | None
    y: np.ndarray
    weight: np.ndarray | None
    some_missing: np.ndarray
    bundles: Bundles | None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else self.weight.sum())


def row_priorities(start: int, stop: int, seed: int) -> np.ndarray:
    """One pseudo-random 64-bit number for each row, from the seed and the row number alone (splitmix64)."""
    step, first, second = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    z = (np.arange(start, stop, dtype=np.uint64) + np.uint64(seed % 2**64)) * np.uint64(step) + np.uint64(step)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(first)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(second)
    return z ^ (z >> np.uint64(31))


# ------------------------------------------------------------------------------------------------ edges


def bin_edges(
    data: Data,
    levels: dict[int, int],
    *,
    max_bins: int,
    seed: int,
    n_jobs: int | None = None,
    left_out: RowMask | None = None,
) -> list[np.ndarray]:
    """Ascending bin edges of every column; `levels` is the number of levels of categorical columns, by column.

    Rows of the mask `left_out` do not count.
    """
    size = max(SAMPLE_ROWS // 20, min(SAMPLE_ROWS, SAMPLE_CELLS // data.n_features))
    X, rows, weight = _sample(data, size, seed, left_out)
    columns = X.tocsc() if sp.issparse(X) else X
    edges: list[np.ndarray] = []

    def work(start: int) -> list[np.ndarray]:
        some = range(start, min(start + _COLUMNS_AT_ONCE, data.n_features))
        part = columns
        if rows is not None:  # of a few columns at a time: the sample is never there as a whole
            part = X[:, some.start : some.stop][rows]
        return [
            np.arange(levels[j] - 1) + 0.5  # a bin for each level code
            if j in levels
            else _quantile_edges(_column(part, j if rows is None else j - start), weight, max_bins)
            for j in some
        ]

    threads = n_threads((X.shape[0] if rows is None else len(rows)) * X.shape[1] * 8.0, n_jobs)
    in_order(range(0, data.n_features, _COLUMNS_AT_ONCE), work, edges.extend, threads)
    return edges


def _quantile_edges(x: np.ndarray, weight: np.ndarray | None, max_bins: int) -> np.ndarray:
    if weight is None:
        x = np.sort(x)  # NaN last
        return _native.tree.quantile_cuts(
            x[: len(x) - np.count_nonzero(np.isnan(x))].astype(np.float64), None, max_bins
        )
    order = np.argsort(x, kind="stable")
    order = order[: len(x) - np.count_nonzero(np.isnan(x))]
    return _native.tree.quantile_cuts(x[order].astype(np.float64), weight[order], max_bins)


def _column(X: Any, j: int) -> np.ndarray:
    if not sp.issparse(X):
        return np.ascontiguousarray(X[:, j])
    x = np.zeros(X.shape[0], X.dtype)
    x[X.indices[X.indptr[j] : X.indptr[j + 1]]] = X.data[X.indptr[j] : X.indptr[j + 1]]
    return x


def _sample(
    data: Data, size: int, seed: int, left_out: RowMask | None
) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
    """Draw the rows of positive weight with the smallest priorities, at most `size`, in their order.

    The result is (X, which of its rows these are where not all, their weights).
    """
    if isinstance(data, ArrayData):
        rows = np.arange(data.n_rows) if data.weight is None else np.flatnonzero(data.weight)
        if left_out is not None:
            rows = rows[~left_out(0, data.n_rows)[rows]]
        if len(rows) > size:
            # A random sample without a random generator: the rows whose hashed numbers are smallest.
            rows = np.sort(rows[np.argpartition(row_priorities(0, data.n_rows, seed)[rows], size)[:size]])
        weight = None if data.weight is None else data.weight[rows]
        if len(rows) == data.n_rows or sp.issparse(data.X):
            return (data.X if len(rows) == data.n_rows else data.X[rows]), None, weight
        return data.X, rows, weight
    if isinstance(data, DaskData):
        engine.row_starts(data)  # priorities are those of row numbers
        # Where all rows count the row numbers alone decide which rows are drawn, and no others are sent.
        every = not data.has_weight and left_out is None
        limit = priority_limit(data.n_rows or 0, size, seed) if every else 2**64 - 1
        (best,) = engine.sum(sample_statistic, data, size, seed, limit, left_out)
    else:
        best = None
        for batch in data.batches():
            limit = int(best.priority.max()) if best is not None and best.n_rows >= size else 2**64 - 1
            (new,) = sample_statistic(batch, size, seed, limit, left_out)
            best = new if best is None else best + new
    order = np.argsort(best.number)
    return best.X[order], None, best.weight[order] if data.has_weight else None


@dataclass(frozen=True)
class RowSample:
    """Rows with their priorities, numbers and weights; samples add up to the `size` of smallest priority."""

    size: int
    priority: np.ndarray
    number: np.ndarray
    weight: np.ndarray
    X: Any

    @property
    def n_rows(self) -> int:
        return len(self.priority)

    def __add__(self, other: RowSample) -> RowSample:
        stack = sp.vstack if sp.issparse(self.X) else np.concatenate
        return RowSample(
            self.size,
            np.concatenate([self.priority, other.priority]),
            np.concatenate([self.number, other.number]),
            np.concatenate([self.weight, other.weight]),
            stack([self.X, other.X]),
        ).first()

    def first(self) -> RowSample:
        """At most `size` rows."""
        if self.n_rows <= self.size:
            return self
        keep = np.argpartition(self.priority, self.size)[: self.size]
        X = self.X.tocsr()[keep] if sp.issparse(self.X) else self.X[keep]
        return RowSample(self.size, self.priority[keep], self.number[keep], self.weight[keep], X)


def sample_statistic(
    batch: Batch, size: int, seed: int, limit: int, left_out: RowMask | None = None
) -> tuple[RowSample]:
    """The rows of a batch that have positive weight and no priority above `limit`, less those of the mask."""
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    priority = row_priorities(batch.start, batch.start + batch.n_rows, seed)
    kept = (weight > 0) & (priority <= np.uint64(limit))
    if left_out is not None:
        kept &= ~left_out(batch.start, batch.start + batch.n_rows)
    keep = np.flatnonzero(kept)
    return (RowSample(size, priority[keep], batch.start + keep, weight[keep], batch.X[keep]).first(),)


def priority_limit(n: int, size: int, seed: int) -> int:
    """The priority that just `size` of the rows 0..n-1 do not exceed; priorities are never equal."""
    if size >= n:
        return 2**64 - 1
    # Counts by the leading 16 bits find the bucket of the limit; a second pass sorts this bucket alone.
    shift, step = np.uint64(48), 1 << 20
    counts = np.zeros(1 << 16, np.int64)
    for start in range(0, n, step):
        priority = row_priorities(start, min(start + step, n), seed)
        counts += np.bincount((priority >> shift).astype(np.intp), minlength=1 << 16)
    below = np.cumsum(counts)
    bucket = int(np.searchsorted(below, size))
    inside = []
    for start in range(0, n, step):
        priority = row_priorities(start, min(start + step, n), seed)
        inside.append(priority[(priority >> shift) == np.uint64(bucket)])
    return int(np.sort(np.concatenate(inside))[size - 1 - (below[bucket] - counts[bucket])])


# ------------------------------------------------------------------------------------------------ bins


def padded_edges(edges: list[np.ndarray]) -> np.ndarray:
    """Edges as one array (p, 255), filled up with infinity."""
    table = np.full((len(edges), 255), np.inf)
    for row, of_column in zip(table, edges, strict=True):
        row[: len(of_column)] = of_column
    return table


def bin_matrix(X: Any, table: np.ndarray, threads: int) -> np.ndarray:
    """Bins of rows, (n, p) uint8. A sparse X is never made dense: its zeros share a bin for each column."""
    rows = np.empty(X.shape, np.uint8)
    if not sp.issparse(X):
        _native.tree.bin_rows(X, table, rows, threads)
        return rows
    # Edges below zero count the bins to the left of zero.
    rows[:] = (table < 0).sum(axis=1)  # the bin of zero
    columns = X.tocsc()
    for j in range(X.shape[1]):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        stored = columns.data[part]
        if len(stored):
            bins = np.empty((len(stored), 1), np.uint8)
            _native.tree.bin_rows(stored[:, None], table[j : j + 1], bins, 1)
            rows[columns.indices[part], j] = bins[:, 0]
    return rows


def bin_data(
    data: Data, edges: list[np.ndarray], n_jobs: int | None = None, *more: Callable[[Batch], np.ndarray]
) -> tuple[np.ndarray, ...]:
    """(bins, y, weight) of all rows in one pass, with ones for missing weights, and what the functions `more` give.

    Partitions of a Dask collection are binned where they lie, and their bins come here.
    """
    table = padded_edges(edges)
    if isinstance(data, ArrayData):
        return _binned(data.rows(0, data.n_rows), table, n_jobs, more)
    if isinstance(data, DaskData):
        row = np.empty((1, data.n_features), data.dtype)
        y = np.zeros(1 if data.target_is_vector or not data.n_targets else (1, data.n_targets))
        like = _binned(Batch(sp.csr_array(row * 0) if data.sparse else row, y), table, 1, more)
        return _unpacked(np.asarray(engine.map(_packed, data, table, more)), like)
    pieces = (_binned(batch, table, n_jobs, more) for batch in data.batches())
    if data.n_rows is None:
        return tuple(np.concatenate(part) for part in zip(*pieces, strict=True))
    out: tuple[np.ndarray, ...] = ()
    filled = 0
    for piece in pieces:  # into their place, so that nothing is held twice
        out = out or tuple(np.empty((data.n_rows, *part.shape[1:]), part.dtype) for part in piece)
        stop = filled + len(piece[0])
        for whole, part in zip(out, piece, strict=True):
            whole[filled:stop] = part
        filled = stop
    return out


def _binned(
    batch: Batch, table: np.ndarray, n_jobs: int | None, more: tuple[Callable[[Batch], np.ndarray], ...]
) -> tuple[np.ndarray, ...]:
    threads = n_threads(8.0 * batch.n_rows * len(table), n_jobs)
    weight = np.ones(batch.n_rows) if batch.weight is None else np.asarray(batch.weight, np.float64)
    y = np.zeros(batch.n_rows) if batch.y is None else np.asarray(batch.y, np.float64)
    return (bin_matrix(batch.X, table, threads), y, weight, *(f(batch) for f in more))


def _packed(batch: Batch, table: np.ndarray, more: tuple[Callable[[Batch], np.ndarray], ...]) -> np.ndarray:
    """The arrays of :func:`_binned` as one of bytes: a map over partitions gives one array."""
    n = batch.n_rows
    return np.hstack([np.ascontiguousarray(a).view(np.uint8).reshape(n, -1) for a in _binned(batch, table, 1, more)])


def _unpacked(packed: np.ndarray, like: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    ends = np.cumsum([array.nbytes for array in like])
    parts = np.split(packed, ends[:-1], axis=1)
    return tuple(
        np.ascontiguousarray(part).view(array.dtype).reshape(len(packed), *array.shape[1:])
        for part, array in zip(parts, like, strict=True)
    )


class BinRanges:
    """The least and the greatest number in every bin, (p, 256), of rows of positive weight; ranges add up."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high

    def __add__(self, other: BinRanges) -> BinRanges:
        return BinRanges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _ranges_statistic(batch: Batch, table: np.ndarray) -> tuple[BinRanges]:
    X = batch.X if batch.weight is None else batch.X[batch.weight > 0]
    low, high = np.full((len(table), 256), np.inf), np.full((len(table), 256), -np.inf)
    columns = X.tocsc() if sp.issparse(X) else X
    for j in range(X.shape[1]):
        x = _column(columns, j)
        x = x[~np.isnan(x)]
        code = bin_matrix(x[:, None], table[j : j + 1], 1)[:, 0]
        np.minimum.at(low[j], code, x)
        np.maximum.at(high[j], code, x)
    return (BinRanges(low, high),)


def bin_centres(data: Data, edges: list[np.ndarray], n_jobs: int | None = None) -> np.ndarray:
    """The middle of the numbers of each bin, (p, 256); of a bin without finite ones the middle between its edges."""
    (ranges,) = engine.sum(_ranges_statistic, data, padded_edges(edges), n_jobs=n_jobs)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.asarray(ranges.low / 2 + ranges.high / 2)
    for row, e in zip(centre, edges, strict=True):
        between = np.concatenate([e[:1], e[:-1] / 2 + e[1:] / 2, e[-1:]]) if len(e) else np.zeros(1)
        row[: len(between)] = np.where(np.isfinite(row[: len(between)]), row[: len(between)], between)
    return centre


def take_rows(
    rows: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    which: np.ndarray | None,
    n_bins: np.ndarray,
    threads: int,
    *,
    weighted: bool,
    columns: bool = True,
) -> Bins:
    """The rows `which` (a mask; None for all) as :class:`Bins`, with or without the columns.

    They are moved to the front of `rows`, whose memory they take over.
    """
    if which is not None:
        rows, y, weight = _moved_to_front(rows, which), y[which], weight[which]
    missing = np.zeros(rows.shape[1], bool)
    for i in range(0, len(rows), _CHUNK_ROWS):
        missing |= (rows[i : i + _CHUNK_ROWS] == MISSING).any(axis=0)
    rows, bundles = bundle_features(rows, n_bins, missing, threads)
    transposed = None
    if columns:
        transposed = np.empty(rows.shape[::-1], np.uint8)
        # Partitions of rows read one column: in this layout its bytes are neighbours.
        _native.tree.transpose_bytes(rows, transposed, threads)
    return Bins(rows, transposed, np.ascontiguousarray(y), weight if weighted else None, missing, bundles)


def _moved_to_front(rows: np.ndarray, which: np.ndarray) -> np.ndarray:
    kept = 0
    for i in range(0, len(rows), _CHUNK_ROWS):
        part = rows[i : i + _CHUNK_ROWS][which[i : i + _CHUNK_ROWS]]
        rows[kept : kept + len(part)] = part
        kept += len(part)
    return rows[:kept]


def bundle_features(
    rows: np.ndarray, n_bins: np.ndarray, missing: np.ndarray, threads: int
) -> tuple[np.ndarray, Bundles | None]:
    """Rows of bins (n, p) as bundles (n, q) and the places of the features; unchanged where it does not pay.

    Features with missing values (the mask `missing`) keep a column of their own.
    """
    *places, n_codes = _native.tree.plan_bundles(rows, n_bins, (~missing).astype(np.uint8), threads)
    if len(n_codes) > MAX_BUNDLED_SHARE * len(n_bins):
        return rows, None
    bundles = Bundles(np.stack(places), n_codes, n_bins)
    stored = np.empty((len(rows), len(n_codes)), np.uint8)
    _native.tree.bundle_rows(rows, bundles.places, n_codes, n_bins, stored, threads)
    return stored, bundles
