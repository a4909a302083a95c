"""Kernels: support vector machines."""

import numpy as np

Array = np.ndarray

def smo(
    K: Array,
    diagonal: Array,
    ridge: Array | None,
    lo: Array,
    hi: Array,
    epsilon: float,
    groups: Array,
    b: Array,
    v: Array,
    tolerance: float,
    limit: int,
) -> tuple[int, float, float]: ...
def coordinate_sweeps(
    K: Array,
    diagonal: Array,
    ridge: Array | None,
    lo: Array,
    hi: Array,
    epsilon: float,
    b: Array,
    v: Array,
    tolerance: float,
    sweeps: int,
) -> tuple[int, float, float]: ...
def add_rows(K: Array, rows: Array, coefficient: Array, start: int, stop: int, out: Array) -> None: ...
def gaussian_single(
    G: Array,
    a_squares: Array,
    b_squares: Array,
    A: Array,
    B: Array,
    K: Array | None = None,
    rows: Array | None = None,
    start: int = 0,
) -> None: ...
def margin_sums(
    X: Array,
    y: Array,
    bound: Array | None,
    coef: Array,
    intercept: float,
    regression: bool,
    squared: bool,
    epsilon: float,
    width: float,
) -> tuple[float, float, float, float, float, Array, Array]: ...
def csr_margin_sums(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    bound: Array | None,
    coef: Array,
    intercept: float,
    regression: bool,
    squared: bool,
    epsilon: float,
    width: float,
) -> tuple[float, float, float, float, float, Array, Array]: ...
def dual_passes(
    X: Array,
    regression: bool,
    squared: bool,
    epsilon: float,
    scale: float,
    table: Array,
    w: Array,
    order: Array,
    number: Array,
    seed: int,
    first: int,
    target: float,
    report: Array,
) -> int: ...
def csr_dual_passes(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    regression: bool,
    squared: bool,
    epsilon: float,
    scale: float,
    table: Array,
    w: Array,
    order: Array,
    number: Array,
    seed: int,
    first: int,
    target: float,
    report: Array,
) -> int: ...
def dual_weights(X: Array, table: Array, scale: float) -> Array: ...
def csr_dual_weights(
    data: Array, indices: Array, indptr: Array, n_columns: int, table: Array, scale: float
) -> Array: ...
