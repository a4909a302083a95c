"""Kernels: logistic regression, lasso, least angles, Huber and quantile regression."""

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Rows = Array | sp.csr_array | sp.csr_matrix
Columns = Array | sp.csc_array | sp.csc_matrix
Sparse = sp.csc_array | sp.csc_matrix

class Penalty:
    def __init__(self, l1: Array, l2: Array, positive: bool = False) -> None: ...

class Budget:
    def __init__(self, *, rounds: int, target: float, work: float) -> None: ...

class QuantileProgramme:
    def __init__(
        self,
        *,
        shift: Array,
        inv_scale: Array,
        y: Array,
        upper: Array,
        lower: Array,
        penalty: Array,
        g: Array,
        g2: Array,
    ) -> None: ...

def logistic_gradient(
    X: Rows, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, float]: ...
def logistic_hessian(
    X: Rows, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float
) -> tuple[float, Array, Array]: ...
def multinomial_curvature(X: sp.csr_array | sp.csr_matrix, weight: Array | None, P: Array) -> Array: ...
def logistic_descend(
    X: Columns,
    columns: Array,
    y: Array,
    v: Array,
    penalty: Penalty,
    intercept: bool,
    centre: Array,
    w: Array,
    z: Array,
    budget: Budget,
) -> tuple[int, float, float]: ...
def lasso_columns(
    X: Columns,
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
    X: Columns, u: Array, mean: Array, columns: Array | None, first: int, last: int, out: Array, threads: int
) -> None: ...
def lasso_residual(X: Columns, mean: Array, columns: Array, coef: Array, r: Array) -> None: ...
def lasso_descend(
    X: Array,
    weight: Array | None,
    columns: Array,
    mean: Array,
    square: Array,
    penalty: Penalty,
    w: Array,
    u: Array,
    budget: Budget,
) -> tuple[int, float, bool]: ...
def csc_lasso_descend(
    X: Sparse,
    weight: Array | None,
    columns: Array,
    mean: Array,
    square: Array,
    penalty: Penalty,
    w: Array,
    r: Array,
    budget: Budget,
) -> tuple[int, float, bool]: ...
def gram_lasso_descend(
    G: Array,
    slots: Array,
    square: Array,
    xy: Array,
    yy: float,
    penalty: Penalty,
    w: Array,
    q: Array,
    budget: Budget,
    until_settled: bool,
) -> tuple[int, float, bool]: ...
def multi_task_descend(
    G: Array, penalty: Penalty, W: Array, Q: Array, square: float, budget: Budget
) -> tuple[int, float, float]: ...
def lasso_dual_point(
    c: Array, slack: Array, w: Array, penalty: Penalty, alive: Array, rr: float
) -> tuple[float, float, float]: ...
def lasso_screen(
    c: Array,
    slack: Array,
    w: Array,
    norm: Array,
    penalty: Penalty,
    scale: float,
    radius: float,
    alive: Array,
    score: Array,
) -> int: ...
def quantile_pivots(
    X: Rows, programme: QuantileProgramme, basis: Array, inverse: Array, max_pivots: int
) -> tuple[int, int, Array, Array, Array]: ...
def huber_sums(
    X: Rows, y: Array, weight: Array | None, shift: Array, coef: Array, intercept: float, limit: float
) -> tuple[Array, Array, float, float, float, float, float]: ...
def multinomial_gradient(
    X: Array, y: Array, weight: Array | None, shift: Array, params: Array, curvature: bool
) -> tuple[float, Array, Array]: ...
def gram_lasso_move(G: Array, slots: Array, step: Array, q: Array) -> None: ...
def lasso_gather(X: Array, weight: Array | None, mean: Array, columns: Array, out: Array) -> None: ...
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
def shifted_product(X: Array, shift: Array, coef: Array, intercept: float) -> Array: ...
def shifted_sums(X: Array, shift: Array, r: Array) -> Array: ...
