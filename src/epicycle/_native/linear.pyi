"""Kernels: logistic regression, lasso, least angles, Huber and quantile regression."""

import numpy as np

Array = np.ndarray

def logistic_gradient(
    X: Array, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, float]: ...
def logistic_hessian(
    X: Array, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, Array]: ...
def multinomial_gradient(
    X: Array, y: Array, weight: Array | None, shift: Array, params: Array, curvature: bool
) -> tuple[float, Array, Array]: ...
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
def gram_lasso_descend(
    G: Array,
    slots: Array,
    square: Array,
    xy: Array,
    yy: float,
    l1: Array,
    l2: Array,
    positive: bool,
    w: Array,
    q: Array,
    max_epochs: int,
    target: float,
    max_work: float,
    until_settled: bool,
) -> tuple[int, float, bool]: ...
def gram_lasso_move(G: Array, slots: Array, step: Array, q: Array) -> None: ...
def lasso_dual_point(
    c: Array, slack: Array, w: Array, l1: Array, l2: Array, positive: bool, alive: Array, rr: float
) -> tuple[float, float, float]: ...
def lasso_screen(
    c: Array,
    slack: Array,
    w: Array,
    norm: Array,
    l1: Array,
    l2: Array,
    positive: bool,
    scale: float,
    radius: float,
    alive: Array,
    score: Array,
) -> int: ...
def lasso_columns(
    X: Array,
    weight: Array | None,
    u: Array,
    centre: bool,
    first: int,
    last: int,
    mean: Array,
    square: Array,
    product: Array,
    threads: int,
) -> None: ...
def lasso_correlations(
    X: Array, u: Array, mean: Array, columns: Array | None, first: int, last: int, out: Array, threads: int
) -> None: ...
def lasso_residual(X: Array, mean: Array, columns: Array, coef: Array, r: Array) -> None: ...
def lasso_gather(X: Array, weight: Array | None, mean: Array, columns: Array, out: Array) -> None: ...
def lasso_descend(
    X: Array,
    weight: Array | None,
    columns: Array,
    mean: Array,
    square: Array,
    l1: Array,
    l2: Array,
    positive: bool,
    w: Array,
    u: Array,
    max_epochs: int,
    target: float,
    max_work: float,
) -> tuple[int, float, bool]: ...
def csc_lasso_columns(
    data: Array,
    indices: Array,
    indptr: Array,
    n_rows: int,
    weight: Array | None,
    u: Array,
    centre: bool,
    first: int,
    last: int,
    mean: Array,
    square: Array,
    product: Array,
    threads: int,
) -> None: ...
def csc_lasso_correlations(
    data: Array,
    indices: Array,
    indptr: Array,
    n_rows: int,
    u: Array,
    mean: Array,
    columns: Array | None,
    first: int,
    last: int,
    out: Array,
    threads: int,
) -> None: ...
def csc_lasso_residual(
    data: Array, indices: Array, indptr: Array, n_rows: int, mean: Array, columns: Array, coef: Array, r: Array
) -> None: ...
def csc_lasso_descend(
    data: Array,
    indices: Array,
    indptr: Array,
    n_rows: int,
    weight: Array | None,
    columns: Array,
    mean: Array,
    square: Array,
    l1: Array,
    l2: Array,
    positive: bool,
    w: Array,
    r: Array,
    max_epochs: int,
    target: float,
    max_work: float,
) -> tuple[int, float, bool]: ...
def cholesky_append(L: Array, k: int, products: Array, square: float, least: float) -> float: ...
def cholesky_remove(L: Array, k: int, i: int) -> None: ...
def cholesky_solve(L: Array, x: Array) -> None: ...
def stagewise(
    G: Array,
    row: Array,
    square: Array,
    step: float,
    proportional: bool,
    level: float,
    q: Array,
    w: Array,
    ways: Array,
    moves: Array,
    sizes: Array | None,
) -> tuple[int, int, int, float]: ...
def logistic_residual(z: Array, y: Array, v: Array, u: Array) -> float: ...
def coin_divergence(margin: Array, v: Array, factor: Array) -> float: ...
def logistic_descend(
    X: Array,
    columns: Array,
    y: Array,
    v: Array,
    l1: Array,
    l2: Array,
    intercept: bool,
    centre: Array,
    w: Array,
    z: Array,
    max_steps: int,
    target: float,
    max_work: float,
) -> tuple[int, float, float]: ...
def csc_logistic_descend(
    data: Array,
    indices: Array,
    indptr: Array,
    n_rows: int,
    columns: Array,
    y: Array,
    v: Array,
    l1: Array,
    l2: Array,
    intercept: bool,
    centre: Array,
    w: Array,
    z: Array,
    max_steps: int,
    target: float,
    max_work: float,
) -> tuple[int, float, float]: ...
def csr_multinomial_curvature(
    data: Array, indices: Array, indptr: Array, n_columns: int, weight: Array | None, P: Array
) -> Array: ...
def shifted_product(X: Array, shift: Array, coef: Array, intercept: float) -> Array: ...
def shifted_sums(X: Array, shift: Array, r: Array) -> Array: ...
def quantile_pivots(
    X: Array,
    shift: Array,
    inv_scale: Array,
    y: Array,
    upper: Array,
    lower: Array,
    penalty: Array,
    g: Array,
    g2: Array,
    basis: Array,
    inverse: Array,
    max_pivots: int,
) -> tuple[int, int, Array, Array, Array]: ...
def huber_sums(
    X: Array, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float, limit: float
) -> tuple[Array, Array, float, float, float, float, float]: ...
def csr_quantile_pivots(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    inv_scale: Array,
    y: Array,
    upper: Array,
    lower: Array,
    penalty: Array,
    g: Array,
    g2: Array,
    basis: Array,
    inverse: Array,
    max_pivots: int,
) -> tuple[int, int, Array, Array, Array]: ...
def csr_huber_sums(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    weight: Array | None,
    coef: Array,
    intercept: float,
    limit: float,
) -> tuple[Array, Array, float, float, float, float, float]: ...
