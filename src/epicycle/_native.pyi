"""Compiled kernels: pure functions of arrays. X is float32 or float64 in any memory order, indices 32- or 64-bit."""

import numpy as np

Array = np.ndarray

def max_threads() -> int: ...
def instruction_set() -> str: ...
def all_finite(X: Array) -> bool: ...
def moments(X: Array, Y: Array, weight: Array | None, shift: Array) -> Array: ...
def logistic_gradient(
    X: Array, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, float]: ...
def logistic_hessian(
    X: Array, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, Array]: ...
def multinomial_gradient(
    X: Array, y: Array, weight: Array | None, shift: Array, params: Array, curvature: bool
) -> tuple[float, Array, Array]: ...
def csr_moments(
    data: Array, indices: Array, indptr: Array, n_columns: int, Y: Array, weight: Array | None, shift: Array
) -> Array: ...
def csr_logistic_gradient(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    weight: Array | None,
    coef: Array,
    intercept: float,
) -> tuple[float, Array, float]: ...
def csr_logistic_hessian(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    weight: Array | None,
    coef: Array,
    intercept: float,
) -> tuple[float, Array, Array]: ...
