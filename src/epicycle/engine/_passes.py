"""One pass over the rows: `sum` adds a statistic up, `map` keeps a result for each row.

Which engine runs follows from the type of the data. Blocks and the order of addition depend on the data alone, so the
bits of a result do not depend on the number of threads or workers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from epicycle.core._exceptions import EngineError
from epicycle.core._threads import n_threads, single_threaded_blas
from epicycle.data import ArrayData, Batch, DaskData, Data, ScanData
from epicycle.engine import _dask as cluster
from epicycle.engine._fold import Fold, State
from epicycle.engine._ordered import in_order

Statistic = Callable[..., State]
RowFunction = Callable[..., np.ndarray]


def sum(statistic: Statistic, data: Data, *parameters: Any, n_jobs: int | None = None) -> State:
    """The sum of ``statistic(batch, *parameters)`` over all batches, from the left.

    Parameters
    ----------
    statistic : callable
        A module-level function, or a functools.partial of one, that returns a tuple of things that support ``+``.
    data : Data
    *parameters
        Passed on to every call.
    n_jobs : int, optional
        Threads; see :func:`n_threads`.

    Returns
    -------
    tuple
    """
    if isinstance(data, DaskData):
        return cluster.sum_partitions(statistic, data, parameters)
    fold = Fold()
    _run(lambda batch: statistic(batch, *parameters), data, fold.add, n_jobs)
    return fold.total


def map(function: RowFunction, data: Data, *parameters: Any, n_jobs: int | None = None) -> Any:
    """``function(batch, *parameters)`` for every batch, one row of the result for each row of the data.

    Returns
    -------
    ndarray, or a lazy dask array for Dask input
    """
    if isinstance(data, DaskData):
        return cluster.map_partitions(function, data, parameters)
    rows = Rows(data.n_rows)
    _run(lambda batch: (batch.n_rows, np.asarray(function(batch, *parameters))), data, rows.add, n_jobs)
    return rows.result


def _run(work: Callable[[Batch], Any], data: Data, consume: Callable[[Any], None], n_jobs: int | None) -> None:
    with single_threaded_blas():
        if isinstance(data, ArrayData):
            if data.n_blocks == 1 and n_jobs != 0:  # small data: no thread is woken, no iterator made
                consume(work(data.block(0)))
                return
            threads = min(n_threads(float("inf"), n_jobs), data.n_blocks)
            in_order(range(data.n_blocks), lambda i: work(data.block(i)), consume, threads)
        elif isinstance(data, ScanData):
            with closing(data.raw()) as raw:
                in_order(raw, lambda rows: work(data.assemble(rows)), consume, n_threads(float("inf"), n_jobs))
        else:
            raise EngineError(f"no engine for {type(data).__name__}")


class Rows:
    """Collects pieces of rows in order: into one array where the number of rows is known, otherwise in a list."""

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._filled = 0
        self._out: np.ndarray | None = None
        self._pieces: list[np.ndarray] = []

    def add(self, piece: tuple[int, np.ndarray]) -> None:
        """Append the rows of one batch: how many it had, and its result."""
        n, rows = piece
        if rows.ndim == 0 or len(rows) != n:
            raise EngineError(f"a function returned shape {rows.shape} for a batch of {n} rows")
        if self._n_rows is None:
            self._pieces.append(rows)
            return
        if n == self._n_rows:  # one batch: its result is the whole, without a copy
            self._out = rows
            return
        if self._out is None:
            self._out = np.empty((self._n_rows, *rows.shape[1:]), rows.dtype)
        elif rows.dtype != self._out.dtype:
            # A later batch may need a wider type (integers, then a float): nothing is rounded.
            self._out = self._out.astype(np.promote_types(rows.dtype, self._out.dtype))
        self._out[self._filled : self._filled + n] = rows
        self._filled += n

    @property
    def result(self) -> np.ndarray:
        """All rows."""
        if self._pieces:
            return np.concatenate(self._pieces)
        if self._out is None:
            raise EngineError("the data has no rows: there is nothing to map")
        return self._out
