"""Kernels: generalised linear models."""

import numpy as np

Array = np.ndarray

def evaluate(
    X: Array,
    codes: Array,
    first: Array,
    levels: Array,
    skip: Array,
    y: Array,
    weight: Array | None,
    offset: Array | None,
    shift: Array,
    coef: Array,
    intercept: float,
    metric: Array | None,
    kind: int,
    a: float,
    b: float,
    expected: bool,
    hessian: bool,
) -> tuple[float, float, float, float, Array, Array]: ...
def accumulate(
    X: Array,
    codes: Array,
    first: Array,
    levels: Array,
    skip: Array,
    shift: Array,
    r: Array,
    h: Array | None,
    metric: Array | None,
) -> tuple[float, float, float, float, Array, Array]: ...
def csr_evaluate(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    weight: Array | None,
    offset: Array | None,
    coef: Array,
    intercept: float,
    metric: Array | None,
    kind: int,
    a: float,
    b: float,
    expected: bool,
    hessian: bool,
) -> tuple[float, float, float, float, Array, Array]: ...
def csr_accumulate(
    data: Array, indices: Array, indptr: Array, n_columns: int, r: Array, h: Array | None, metric: Array | None
) -> tuple[float, float, float, float, Array, Array]: ...
