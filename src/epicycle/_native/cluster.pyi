"""Kernels: the nearest of many centres for every row."""

from typing import Any

import numpy as np

Array = np.ndarray

def assign(
    X: Any,
    origin: Array,
    centers: Array,
    label: Array,
    upper: Array,
    lower: Array,
    per_group: int,
    shift: Array | None,
    threads: int,
) -> int: ...
def closest_distances(X: Any, origin: Array, candidates: Array, closest: Array | None, threads: int) -> Array: ...
def move_rows(X: Any, origin: Array, weight: Array | None, before: Array, after: Array, sums: Array) -> None: ...
