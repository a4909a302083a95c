"""Passes over Dask partitions: one task for each, where it is, and the partial sums added in a fixed tree.

With an active ``distributed.Client`` the partitions are made batches once and stay on their workers between passes; a
worker that is lost takes nothing with it, since the scheduler keeps the recipe of every partition. Without one, Dask's
local scheduler runs each pass from the collection itself, and holds no more than it has to.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, EngineError
from epicycle.core._threads import single_threaded_blas
from epicycle.data import ArrayData, Batch, DaskData
from epicycle.data._dask_data import encode_partition
from epicycle.engine._fold import Fold, State

# Partial sums that are added at a time, from the left. Fixed, so that the bits do not depend on the cluster; 16 keeps
# the tree flat (256 partitions in two steps) and what one worker gathers small.
_FAN_IN = 16
# Parameters above this travel once to each worker, below with each task: the scheduler keeps a copy of every task.
_INLINE_BYTES = 1 << 16


def sum_partitions(statistic: Callable[..., State], data: DaskData, parameters: tuple[Any, ...]) -> State:
    """The sum over all partitions; the same bits for any number of workers."""
    client = active_client()
    with remembered_interrupts():
        if client is None:
            return _sum_locally(statistic, data, parameters)
        parts = resident_parts(data, client)
        job = packed_job(client, statistic, parameters)
        futures = client.map(_partial, parts, _starts(data), job=job, pure=False, key="epicycle-sum")
        return _total(sum_futures(client, futures))


def sum_futures(client: Any, futures: list[Any]) -> State | None:
    """The sum of what the futures hold, None counting as nothing; added where they are, in a fixed tree."""
    mine = [*futures]
    try:
        while len(futures) > _FAN_IN:
            groups = [futures[i : i + _FAN_IN] for i in range(0, len(futures), _FAN_IN)]
            futures = client.map(_add, groups, pure=False, key="epicycle-add")
            mine += futures
        states = client.gather(futures)
    except BaseException as error:
        client.cancel(mine)  # an interrupt must not leave the cluster working
        _explain(error)
        raise
    return _add(states)


def _sum_locally(statistic: Callable[..., State], data: DaskData, parameters: tuple[Any, ...]) -> State:
    from dask import delayed

    partial, add = delayed(_partial, pure=False), delayed(_add, pure=False)
    job = delayed((statistic, parameters), traverse=False, pure=False)
    states = [partial(part, start, job) for part, start in zip(data.parts, _starts(data), strict=True)]
    while len(states) > 1:
        states = [add(states[i : i + _FAN_IN]) for i in range(0, len(states), _FAN_IN)]
    return _total(_add([states[0].compute()]))


def map_partitions(function: Callable[..., np.ndarray], data: DaskData, parameters: tuple[Any, ...]) -> Any:
    """The results as a dask array with the chunks of the data; nothing is computed here."""
    import dask.array as da
    from dask import delayed

    # Two rows of ones show the type and the shape of a result.
    ones = np.ones((2, data.n_features), data.dtype)
    y = None if not data.n_targets else np.zeros(2 if data.target_is_vector else (2, data.n_targets))
    example = np.asarray(function(Batch(sp.csr_array(ones) if data.sparse else ones, y), *parameters))
    if example.ndim == 0 or len(example) != 2:
        raise EngineError(f"a function returned shape {example.shape} for a batch of 2 rows")
    parts = data.parts if data.resident is None else data.resident[1]
    job = delayed((function, parameters), traverse=False, pure=False)
    rows = delayed(_rows, pure=False)
    sizes = data.sizes if data.sizes is not None else [np.nan] * len(data.parts)
    pieces = [
        da.from_delayed(rows(part, start, job, example[:0]), (size, *example.shape[1:]), dtype=example.dtype)
        for part, start, size in zip(parts, _starts(data), sizes, strict=True)
    ]
    return da.concatenate(pieces, allow_unknown_chunksizes=True)


def active_client() -> Any:
    """The active client of a cluster, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def resident_parts(data: DaskData, client: Any) -> list[Any]:
    """Futures of the partitions as :class:`ArrayData`, made once; they hold the collection's own arrays."""
    from distributed import wait

    if data.resident is None or data.resident[0] is not client:
        if data.parent is not None:
            base = resident_parts(data.parent, client)
            futures = client.map(encode_partition, base, function=data.encoder, pure=False, key="epicycle-encode")
            data.sizes = data.parent.sizes
        else:
            futures = client.compute(data.parts)
            try:
                # The scheduler may take a graph that refers to another in before that one: wait for the first.
                wait(futures)
                described = client.map(_describe, futures, pure=False, key="epicycle-describe")
                sizes, weights = zip(*client.gather(described), strict=True)
            except BaseException as error:
                client.cancel(futures)
                _explain(error)
                raise
            if data.has_weight and not any(weights):
                raise DataError("sample_weight: every weight is zero; at least one must be positive")
            data.sizes = [int(n) for n in sizes]
        data.resident = (client, futures)
    return data.resident[1]


def partitions_in_turn(data: DaskData) -> Iterator[Batch]:
    """All rows in order, brought to this process one partition at a time: for learners to which the order matters."""
    client = active_client()
    parts = data.parts if client is None else resident_parts(data, client)
    for pending, start in zip(parts, row_starts(data), strict=True):
        part = pending.compute() if client is None else client.gather(pending)
        if part.n_rows:
            yield _at(start, part.rows(0, part.n_rows))


def row_starts(data: DaskData) -> list[int]:
    """Index of the first row of each partition; a pass finds out where the sizes are not known."""
    client = active_client()
    if client is not None:
        resident_parts(data, client)
    elif data.sizes is None:
        from dask import compute, delayed

        describe = delayed(_describe, pure=False)
        with remembered_interrupts():
            data.sizes = [int(n) for n, _ in compute(*[describe(part) for part in data.parts])]
    return _starts(data)


def _starts(data: DaskData) -> list[int]:
    """Index of the first row of each partition; zeros where the sizes are not known."""
    return [0] * len(data.parts) if data.sizes is None else [0, *accumulate(data.sizes[:-1])]


def packed_job(client: Any, function: Callable[..., Any], parameters: tuple[Any, ...]) -> Any:
    """Function and parameters, pickled once for all partitions."""
    from distributed.protocol.pickle import dumps

    packed = dumps((function, parameters))
    if len(packed) <= _INLINE_BYTES:
        return packed
    # A task, not scattered data: if the worker that holds it is lost, the scheduler can make it again.
    return client.submit(bytes, packed, pure=False, key=None)


def unpacked_job(job: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if isinstance(job, bytes):
        from distributed.protocol.pickle import loads

        job = loads(job)
    function, parameters = job
    return function, parameters


def _describe(part: ArrayData) -> tuple[int, bool]:
    return part.n_rows, part.weight is not None and bool(part.weight.any())


def _partial(part: ArrayData, start: int, job: Any) -> State | None:
    """The sum over the blocks of one partition, on one thread; None for a partition without rows."""
    if part.n_rows == 0:
        return None
    statistic, parameters = unpacked_job(job)
    fold = Fold()
    with single_threaded_blas():
        for i in range(part.n_blocks):
            fold.add(statistic(_at(start, part.block(i)), *parameters))
    return fold.total


def _at(start: int, batch: Batch) -> Batch:
    return replace(batch, start=start + batch.start) if start else batch


def _add(states: list[State | None]) -> State | None:
    present = [state for state in states if state is not None]
    if not present:
        return None
    fold = Fold()
    for state in present:
        fold.add(state)
    return fold.total


def _rows(part: ArrayData, start: int, job: Any, empty: np.ndarray) -> np.ndarray:
    if part.n_rows == 0:
        return empty
    function, parameters = unpacked_job(job)
    with single_threaded_blas():
        return np.concatenate([function(_at(start, part.block(i)), *parameters) for i in range(part.n_blocks)])


def _total(state: State | None) -> State:
    if state is None:
        raise DataError("X: Found array with 0 sample(s) while a minimum of 1 is required: every partition is empty")
    return state


def _explain(error: BaseException) -> None:
    """Raise an EngineError for what the cluster did; errors of the statistic and interrupts keep their type."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError, FuturesCancelledError
    from distributed.comm import CommClosedError

    if isinstance(error, KilledWorker | CommClosedError | FutureCancelledError | FuturesCancelledError):
        raise EngineError(f"the cluster lost a partition for good: {error}") from error


@contextmanager
def remembered_interrupts() -> Iterator[None]:
    """Raise at the end of the block an interrupt that came inside and that Python dropped.

    An interrupt is raised wherever the main thread happens to be. Inside a finaliser (a ``__del__``, which a cluster's
    futures have) Python prints and ignores it, and the work would go on.
    Only Python's own handler in the main thread is replaced; a program that handles the signal itself is left alone.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came = False

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
