"""Kernels: the nearest of many centres for every row; clusters of high density; criteria of clusterings."""

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
def dbscan(
    X: Array, metric: int, power: float, radius: float, enough: float, weight: Array | None, threads: int
) -> tuple[Array, Array]: ...
def dbscan_graph(
    distance: Array, column: Array, start: Array, radius: float, enough: float, weight: Array | None
) -> tuple[Array, Array]: ...
def distances_to_clusters(X: Array, weight: Array, start: Array, query: Array, threads: int) -> tuple[Array, Array]: ...
def expected_information(a: Array, a_times: Array, b: Array, b_times: Array, total: float) -> float: ...
def move_rows(X: Any, origin: Array, weight: Array | None, before: Array, after: Array, sums: Array) -> None: ...
def swap_medoids(
    distances: Array, weight: Array | None, medoids: Array, until: int, threads: int
) -> tuple[int, int, float, float]: ...
def build_medoids(distances: Array, weight: Array | None, medoids: Array, threads: int) -> None: ...
