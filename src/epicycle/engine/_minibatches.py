"""A few rows at a time, in an order that depends on the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Iterator

from epicycle import engine
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data, ScanData


def can_draw_rows(data: Data) -> bool:
    """Whether the rows pass through this process: arrays and files do, the partitions of a cluster do not."""
    return isinstance(data, ArrayData | ScanData)


def count_statistic(batch: Batch) -> tuple[int]:
    return (batch.n_rows,)


def count_rows(data: Data) -> int:
    """The number of rows, by a pass where nothing else tells."""
    if data.n_rows is not None:
        return data.n_rows
    (n,) = engine.sum(count_statistic, data)
    return int(n)


def minibatches(data: Data, batch_size: int, epoch: int, seed: int) -> Iterator[tuple[Batch, float]]:
    """(rows, number of all rows / number of these): in memory at random, from files shuffled within each batch."""
    rng = stream(seed, epoch)
    total = count_rows(data)
    parts = [data.rows(0, total)] if isinstance(data, ArrayData) else data.batches()
    for part in parts:
        # Files are read in their order; shuffling within a batch is what a single sequential read allows.
        order = rng.permutation(part.n_rows)
        for start in range(0, part.n_rows, batch_size):
            rows = order[start : start + batch_size]
            weight = None if part.weight is None else part.weight[rows]
            yield Batch(part.X[rows], None if part.y is None else part.y[rows], weight, part.start), total / len(rows)
