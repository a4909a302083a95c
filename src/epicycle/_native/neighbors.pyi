"""Kernels: exact nearest neighbours by brute force, and kernel densities over a tree."""

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Sparse = sp.csr_array | sp.csr_matrix
Rows = Array | Sparse

class Lists:
    def __init__(self, score: Array, row: Array, count: Array, limit: Array) -> None: ...

class Bounds:
    def __init__(self, base: Array, slack: Array, scale: float) -> None: ...

def update(
    G: Array,
    c: Array | None,
    first: int,
    A: Rows,
    B: Rows,
    metric: int,
    power: float,
    bounds: Bounds,
    k: int,
    lists: Lists,
) -> None: ...
def settle(A: Rows, B: Rows, metric: int, power: float, k: int, lists: Lists) -> tuple[Array, Array]: ...
def update_given(G: Array, first: int, rows: int, k: int, lists: Lists) -> None: ...
def settle_given(rows: int, k: int, lists: Lists) -> tuple[Array, Array]: ...
def exact_distances(A: Array, B: Array, metric: int, power: float, row: Array) -> Array: ...
def csr_distances(A: Sparse, B: Sparse, metric: int, power: float) -> Array: ...

class PointTree:
    def __init__(self, X: Array) -> None: ...

def nearest_rows(points: PointTree, Q: Array, k: int, bound: float, threads: int) -> tuple[Array, Array]: ...

class WeightedTree:
    def __init__(self, X: Array, weight: Array | None) -> None: ...

def log_kernel_means(
    points: WeightedTree,
    Q: Array,
    metric: int,
    power: float,
    kernel: int,
    rate: float,
    log_atol: float,
    rtol: float,
    left_out: float,
    threads: int,
) -> Array: ...
def nearest_by_tree(X: Array, Q: Array, metric: int, power: float, k: int, threads: int) -> Array: ...
