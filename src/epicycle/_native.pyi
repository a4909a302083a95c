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
def quantile_cuts(x: Array, weight: Array | None, max_bins: int) -> Array: ...
def bin_rows(X: Array, cuts: Array, out: Array, threads: int) -> None: ...
def transpose_bytes(rows: Array, out: Array, threads: int) -> None: ...
def loss_rows(
    kind: int, parameter: float, y: Array, weight: Array | None, score: Array, gh: Array, threads: int
) -> Array: ...
def grow_tree(
    rows: Array,
    columns: Array,
    gh: Array,
    sum_abs_g: float,
    sum_h: float,
    features: Array,
    n_bins: Array,
    categorical: Array,
    monotone: Array | None,
    groups: Array | None,
    all_rows: bool,
    order: Array,
    scratch: Array,
    packed: Array,
    max_leaves: int,
    max_depth: int,
    min_samples: int,
    min_child_weight: float,
    l2: float,
    min_gain: float,
    smoothing: float,
    threads: int,
) -> tuple[Array, ...]: ...
def add_to_leaves(order: Array, begin: Array, end: Array, values: Array, score: Array, threads: int) -> None: ...
def predict_bins(
    rows: Array, feature: Array, left: Array, sides: Array, values: Array, out: Array, threads: int
) -> None: ...
def shap_values(
    X: Array, nodes: Array, values: Array, roots: Array, levels: Array, count: Array, out: Array, threads: int
) -> None: ...
def best_stump(
    entries: Array,
    begin: Array,
    zeros: Array,
    missing: Array,
    weight: Array,
    code: Array | None,
    n_classes: int,
    confidence: bool,
    threads: int,
) -> tuple[int, int, bool, bool]: ...
def best_binned_stump(
    entries: Array,
    begin: Array,
    missing: Array,
    rows: Array,
    bin_end: Array,
    n_bins: Array,
    weight: Array,
    confidence: bool,
    packed: Array,
    threads: int,
) -> tuple[int, int, bool, bool]: ...
def predict_trees(
    X: Array,
    nodes: Array,
    values: Array,
    roots: Array,
    levels: Array,
    first: int,
    last: int,
    out: Array,
    threads: int,
) -> None: ...
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
