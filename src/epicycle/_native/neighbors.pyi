"""Kernels: exact nearest neighbours by brute force."""

import numpy as np

Array = np.ndarray

def dense_update(
    G: Array,
    c: Array | None,
    first: int,
    A: Array,
    B: Array,
    metric: int,
    power: float,
    base: Array,
    slack: Array,
    scale: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> None: ...
def dense_settle(
    A: Array,
    B: Array,
    metric: int,
    power: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> tuple[Array, Array]: ...
def exact_distances(A: Array, B: Array, metric: int, power: float, row: Array) -> Array: ...
def csr_update(
    G: Array,
    c: Array | None,
    first: int,
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
    base: Array,
    slack: Array,
    scale: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> None: ...
def csr_settle(
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> tuple[Array, Array]: ...
def csr_distances(
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
) -> Array: ...
def given_update(
    G: Array, first: int, rows: int, k: int, score: Array, row: Array, count: Array, limit: Array
) -> None: ...
def given_settle(rows: int, k: int, score: Array, row: Array, count: Array, limit: Array) -> tuple[Array, Array]: ...
