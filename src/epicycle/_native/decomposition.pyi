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
def padded_topics(k: int) -> int: ...
def lanes_of_topics(k: int) -> int: ...
def expected_topics(
    lambda_: Array, totals: Array, prior: float, want_bound: bool, b: Array, shift: Array, threads: int
) -> Array: ...
def infer_documents(
    X: Any,
    weight: Array | None,
    b: Array,
    shift: Array,
    alpha: Array,
    tol: float,
    most: int,
    want_bound: bool,
    gamma: Array,
    sums: Array | None,
    logs: Array | None,
    threads: int,
) -> tuple[float, float]: ...

class Tokens:
    def __init__(self, words: Array, segments: Array, bounds: Array, sizes: Array) -> None: ...

def draw_tokens(
    tokens: Tokens,
    masses: Array,
    alpha: Array,
    eta: float,
    seed: int,
    sweep: int,
    z: Array,
    counts: Array,
    totals: Array,
    threads: int,
) -> None: ...
