"""Kernels: factors of matrices."""

from typing import Any

import numpy as np

Array = np.ndarray

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
