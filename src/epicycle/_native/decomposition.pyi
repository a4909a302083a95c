"""Kernels: factors of matrices; contrast functions of independent components; products with sparse rows."""

from typing import Any

import numpy as np

Array = np.ndarray

def contrast(
    Y: Array, weight: Array | None, kind: int, parameter: float, want_values: bool, slope_rows: Array | None
) -> tuple[Array, Array]: ...
def scatter_product(
    X: Any, weight: Array | None, shift: Array, V: Array, out: Array, sums: Array, threads: int
) -> None: ...
def descend_products(
    C: Array, G: Array, l1: float, order: Array, sweeps: int, share: float, weight: Array | None, W: Array
) -> tuple[float, float]: ...
def descend_sparse(
    X: Any, F: Array, G: Array, l1: float, order: Array, sweeps: int, share: float, weight: Array | None, W: Array
) -> tuple[float, float]: ...
def products_at(X: Any, W: Array, F: Array) -> Array: ...
def lasso_codes(
    G: Array, C: Array, squares: Array, alpha: float, positive: bool, sweeps: int, tol: float, W: Array
) -> Array: ...
def greedy_codes(G: Array, C: Array, count: int, by_angle: bool) -> Array: ...
