"""Kernels: stochastic gradients, one row at a time."""

import numpy as np

Array = np.ndarray

def learn(
    X: Array,
    rule: Array,
    y: Array,
    positive: Array | None,
    order: Array | None,
    fraction: Array | None,
    v: Array,
    b: Array,
    number: Array,
    a: Array | None,
    base: Array | None,
    b_sum: Array | None,
    q: Array | None,
    dual: Array | None,
    scores: Array | None,
    mistakes: Array,
    one: bool,
) -> float: ...
def csr_learn(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    rule: Array,
    y: Array,
    positive: Array | None,
    order: Array | None,
    fraction: Array | None,
    v: Array,
    b: Array,
    number: Array,
    a: Array | None,
    base: Array | None,
    b_sum: Array | None,
    q: Array | None,
    dual: Array | None,
    scores: Array | None,
    mistakes: Array,
    one: bool,
) -> float: ...
def margin_pass(X: Array, sign: Array, square: Array, intercept: bool, a: Array, w: Array) -> None: ...
def csr_margin_pass(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    sign: Array,
    square: Array,
    intercept: bool,
    a: Array,
    w: Array,
) -> None: ...
