"""Columns of categories in Dask collections: levels are counted in one pass, and replaced partition by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epicycle.data._categories import is_dask_frame

__all__ = ["encode_on_dask", "level_counts_on_dask"]

#: Function that counts the levels of one partition.
LevelCounts = Callable[[Any, Sequence[int]], dict[int, tuple[list[Any], np.ndarray]]]


def level_counts_on_dask(X: Any, columns: Sequence[int], count: LevelCounts) -> dict[int, tuple[list[Any], np.ndarray]]:
    """What `count` finds in all partitions."""
    from dask import compute, delayed

    parts = X.to_delayed(optimize_graph=False) if is_dask_frame(X) else list(X.rechunk({1: -1}).to_delayed().ravel())
    counted = delayed(count, pure=False)
    totals: dict[int, Counter[Any]] = {j: Counter() for j in columns}
    for found in compute(*[counted(part, list(columns)) for part in parts]):
        for j, (values, counts) in found.items():
            totals[j].update({value: int(n) for value, n in zip(values, counts.tolist(), strict=True) if n})
    return {j: (list(total), np.array(list(total.values()), np.int64)) for j, total in totals.items()}


def encode_on_dask(X: Any, encode: Callable[[Any], Any]) -> Any:
    """The collection with `encode` applied to its partitions, lazily."""
    if is_dask_frame(X):
        return X.map_partitions(encode, meta=encode(X._meta))
    whole = X.rechunk({1: -1})
    return whole.map_blocks(encode, dtype=np.float64, meta=np.empty((0, 0)))
