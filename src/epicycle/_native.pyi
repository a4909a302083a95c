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
    kind: int,
    parameter: float,
    y: Array,
    weight: Array | None,
    score: Array,
    gh: Array | None,
    normal: Array | None,
    threads: int,
) -> Array: ...
def class_rows(
    y: Array, weight: Array | None, score: Array, normal: Array, k: int, K: int, gh: Array, threads: int
) -> None: ...
def grow_tree(
    rows: Array,
    columns: Array | None,
    places: Array | None,
    n_codes: Array | None,
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
def online_learn(
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
def csr_online_learn(
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
def row_hashes(X: Array, out: Array) -> None: ...
def csr_row_hashes(data: Array, indices: Array, indptr: Array, n_columns: int, out: Array) -> None: ...
def row_squares(X: Array) -> Array: ...
def csr_row_squares(data: Array, indices: Array, indptr: Array, n_columns: int) -> Array: ...
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
def local_line_radii(x: Array, upto: Array | None, queries: Array, share: float, threads: int) -> Array: ...
def local_line(
    x: Array,
    y: Array,
    c: Array,
    queries: Array,
    h: Array,
    kernel: int,
    degree: int,
    squares: bool,
    threads: int,
) -> tuple[Array, Array, Array, Array, Array]: ...
def local_space_radii(x: Array, prior: Array, queries: Array, share: float, threads: int) -> Array: ...
def local_space(
    x: Array,
    y: Array,
    c: Array,
    queries: Array,
    h: Array,
    kernel: int,
    degree: int,
    squares: bool,
    threads: int,
) -> tuple[Array, Array, Array, Array, Array]: ...
def glm_pass(
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
def glm_add_up(
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
def csr_glm_pass(
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
def csr_glm_add_up(
    data: Array, indices: Array, indptr: Array, n_columns: int, r: Array, h: Array | None, metric: Array | None
) -> tuple[float, float, float, float, Array, Array]: ...
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
def forest_sums(
    X: Array, nodes: Array, values: Array, roots: Array, levels: Array, out: Array, threads: int
) -> None: ...
def forest_leaves(X: Array, nodes: Array, roots: Array, levels: Array, out: Array, threads: int) -> None: ...
def sort_columns(X: Array, columns: Array, out: Array, distinct: Array, missing: Array, threads: int) -> None: ...
def sort_sparse_columns(
    data: Array, rows: Array, start: Array, n_rows: int, out: Array, distinct: Array, threads: int
) -> None: ...
def grow_cart(
    codes: Array,
    coded_feature: Array,
    n_codes: Array,
    low: Array,
    high: Array,
    categorical: Array,
    lists: Array,
    list_start: Array,
    sorted_feature: Array,
    values: Array | None,
    value_rows: Array | None,
    value_start: Array | None,
    n_features: int,
    weight: Array,
    y: Array | None,
    labels: Array | None,
    n_classes: int,
    order: Array,
    criterion: int,
    l2: float,
    unit_weights: bool,
    max_depth: int,
    max_leaves: int,
    min_split: int,
    min_leaf: int,
    min_weight: float,
    min_gain: float,
    leaf_cost: float,
    max_features: int,
    random: bool,
    monotone: Array | None,
    seed: int,
    threads: int,
) -> tuple[Array, ...]: ...
def leaves_of_codes(codes: Array, rows: Array, column: Array, left: Array, sides: Array, out: Array) -> None: ...
def radial_block(
    G: Array, a_squares: Array, b_squares: Array, A: Array | None, B: Array | None, kind: int, parameter: float
) -> None: ...
def columns_block(A: Array, Bt: Array, kind: int, parameter: float) -> Array: ...
def word_counts(letters: Array, offsets: Array, k: int, base: int) -> tuple[Array, Array, Array]: ...
def neighbour_words(words: Array, k: int, base: int, mismatches: int) -> tuple[Array, Array]: ...
def sparse_product(
    a_data: Array, a_indices: Array, a_indptr: Array, b_data: Array, b_rows: Array, b_indptr: Array, out: Array
) -> None: ...
def subsequence_block(
    s: Array, s_offsets: Array, t: Array, t_offsets: Array, order: int, decay: float, slope: bool
) -> Array: ...
def kernel_perceptron_pass(
    K: Array,
    order: Array,
    share: Array | None,
    first: int,
    sign: Array,
    scores: Array,
    counts: Array,
    square: float,
) -> tuple[Array, float]: ...
def kernel_margin_pass(K: Array, sign: Array, scores: Array, a: Array, square: float) -> float: ...
def neighbours_dense(
    G: Array,
    c: Array | None,
    first: int,
    A: Array,
    B: Array,
    metric: int,
    power: float,
    base: Array,
    slack: Array,
    scale: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> None: ...
def neighbours_dense_settle(
    A: Array,
    B: Array,
    metric: int,
    power: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> tuple[Array, Array]: ...
def exact_distances(A: Array, B: Array, metric: int, power: float, row: Array) -> Array: ...
def neighbours_csr(
    G: Array,
    c: Array | None,
    first: int,
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
    base: Array,
    slack: Array,
    scale: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> None: ...
def neighbours_csr_settle(
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
    k: int,
    score: Array,
    row: Array,
    count: Array,
    limit: Array,
) -> tuple[Array, Array]: ...
def csr_distances(
    a_data: Array,
    a_indices: Array,
    a_indptr: Array,
    b_data: Array,
    b_indices: Array,
    b_indptr: Array,
    n_columns: int,
    metric: int,
    power: float,
) -> Array: ...
def neighbours_given(
    G: Array, first: int, rows: int, k: int, score: Array, row: Array, count: Array, limit: Array
) -> None: ...
def neighbours_given_settle(
    rows: int, k: int, score: Array, row: Array, count: Array, limit: Array
) -> tuple[Array, Array]: ...
def quantise_rows(gh: Array, order: Array, measure: Array, packed: Array) -> tuple[int, int, int]: ...
def divide_rows(rows: Array, feature: int, sides: Array, order: Array) -> int: ...
def node_histogram(
    rows: Array, packed: Array, order: Array, features: Array, n_bins: Array, hist: Array, count: Array | None
) -> None: ...
def best_split(
    hist: Array,
    count: Array | None,
    total: int,
    n_rows: int,
    low: float,
    high: float,
    allowed: Array | None,
    measure: Array,
    features: Array,
    n_bins: Array,
    categorical: Array,
    monotone: Array | None,
    min_samples: int,
    min_child_weight: float,
    l2: float,
    min_gain: float,
    smoothing: float,
) -> tuple[int, int, int, Array, float, int, float]: ...
def sum_ranges(gh: Array, order: Array, begin: Array, end: Array, measure: Array) -> Array: ...
def sums_of_ranges(sums: Array, measure: Array) -> Array: ...
def smo(
    K: Array,
    diagonal: Array,
    ridge: Array | None,
    lo: Array,
    hi: Array,
    epsilon: float,
    groups: Array,
    b: Array,
    v: Array,
    tolerance: float,
    limit: int,
) -> tuple[int, float, float]: ...
def coordinate_sweeps(
    K: Array,
    diagonal: Array,
    ridge: Array | None,
    lo: Array,
    hi: Array,
    epsilon: float,
    b: Array,
    v: Array,
    tolerance: float,
    sweeps: int,
) -> tuple[int, float, float]: ...
def add_rows(K: Array, rows: Array, coefficient: Array, start: int, stop: int, out: Array) -> None: ...
def gaussian_single(
    G: Array,
    a_squares: Array,
    b_squares: Array,
    A: Array,
    B: Array,
    K: Array | None = None,
    rows: Array | None = None,
    start: int = 0,
) -> None: ...
def plan_bundles(rows: Array, n_bins: Array, eligible: Array, threads: int) -> tuple[Array, Array, Array, Array]: ...
def bundle_rows(rows: Array, places: Array, n_codes: Array, n_bins: Array, out: Array, threads: int) -> None: ...
def word_table(letters: Array, offsets: Array, k: int, base: int) -> Array: ...
def gapped_words(letters: Array, offsets: Array, order: int, base: int, decay: float, slope: bool) -> Array: ...
def margin_sums(
    X: Array,
    y: Array,
    bound: Array | None,
    coef: Array,
    intercept: float,
    regression: bool,
    squared: bool,
    epsilon: float,
    width: float,
) -> tuple[float, float, float, float, float, Array, Array]: ...
def csr_margin_sums(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    y: Array,
    bound: Array | None,
    coef: Array,
    intercept: float,
    regression: bool,
    squared: bool,
    epsilon: float,
    width: float,
) -> tuple[float, float, float, float, float, Array, Array]: ...
def dual_passes(
    X: Array,
    regression: bool,
    squared: bool,
    epsilon: float,
    scale: float,
    table: Array,
    w: Array,
    order: Array,
    number: Array,
    seed: int,
    first: int,
    target: float,
    report: Array,
) -> int: ...
def csr_dual_passes(
    data: Array,
    indices: Array,
    indptr: Array,
    n_columns: int,
    regression: bool,
    squared: bool,
    epsilon: float,
    scale: float,
    table: Array,
    w: Array,
    order: Array,
    number: Array,
    seed: int,
    first: int,
    target: float,
    report: Array,
) -> int: ...
def dual_weights(X: Array, table: Array, scale: float) -> Array: ...
def csr_dual_weights(
    data: Array, indices: Array, indptr: Array, n_columns: int, table: Array, scale: float
) -> Array: ...
