"""Kernels: support vector machines."""

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Rows = Array | sp.csr_array | sp.csr_matrix

class MarginLoss:
    def __init__(self, *, regression: bool, squared: bool, epsilon: float, width: float = 1.0) -> None: ...

def margin_sums(
    X: Rows, y: Array, bound: Array | None, coef: Array, intercept: float, loss: MarginLoss
) -> tuple[float, float, float, float, float, Array, Array]: ...

class Passes:
    def __init__(self, seed: int, first: int, target: float, report: Array) -> None: ...

def dual_passes(
    X: Rows,
    loss: MarginLoss,
    scale: float,
    table: Array,
    w: Array,
    order: Array,
    number: Array,
    passes: Passes,
) -> int: ...
def crammer_singer_passes(
    X: Rows,
    code: Array,
    bound: Array,
    square: Array,
    scale: float,
    alpha: Array,
    W: Array,
    order: Array,
    number: Array,
    passes: Passes,
) -> int: ...
def dual_weights(X: Rows, table: Array, scale: float) -> Array: ...
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
