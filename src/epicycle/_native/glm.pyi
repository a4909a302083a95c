"""Kernels: generalised linear models."""

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Rows = Array | sp.csr_array | sp.csr_matrix
Categories = tuple[Array, Array, Array, Array]

class Family:
    def __init__(self, *, kind: int, a: float, b: float, expected: bool) -> None: ...

def evaluate(
    X: Rows,
    categories: Categories | None,
    y: Array,
    weight: Array | None,
    offset: Array | None,
    shift: Array,
    coef: Array,
    intercept: float,
    metric: Array | None,
    family: Family,
    hessian: bool,
) -> tuple[float, float, float, float, Array, Array]: ...
def accumulate(
    X: Rows, categories: Categories | None, shift: Array, r: Array, h: Array | None, metric: Array | None
) -> tuple[float, float, float, float, Array, Array]: ...
