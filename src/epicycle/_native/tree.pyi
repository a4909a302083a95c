"""Kernels: boosted trees over binned features, stumps."""

import numpy as np

Array = np.ndarray

class BinnedTable:
    def __init__(
        self,
        *,
        rows: Array,
        columns: Array | None,
        places: Array | None,
        n_codes: Array | None,
        features: Array,
        n_bins: Array,
    ) -> None: ...

class SplitRules:
    def __init__(
        self,
        *,
        categorical: Array,
        monotone: Array | None,
        min_samples: int,
        min_child_weight: float,
        l2: float,
        min_gain: float,
        smoothing: float,
    ) -> None: ...

class GrowRules:
    def __init__(self, *, split: SplitRules, groups: Array | None, max_leaves: int, max_depth: int) -> None: ...

def grow(
    table: BinnedTable,
    rules: GrowRules,
    gh: Array,
    sum_abs_g: float,
    sum_h: float,
    all_rows: bool,
    order: Array,
    scratch: Array,
    packed: Array,
    threads: int,
) -> tuple[Array, ...]: ...
def best_split(
    hist: Array,
    count: Array | None,
    total: int,
    n_rows: int,
    range: tuple[float, float],
    allowed: Array | None,
    measure: Array,
    features: Array,
    n_bins: Array,
    rules: SplitRules,
) -> tuple[int, int, int, Array, float, int, float]: ...
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
def predict(
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
def quantise_rows(gh: Array, order: Array, measure: Array, packed: Array) -> tuple[int, int, int]: ...
def divide_rows(rows: Array, feature: int, sides: Array, order: Array) -> int: ...
def node_histogram(
    rows: Array, packed: Array, order: Array, features: Array, n_bins: Array, hist: Array, count: Array | None
) -> None: ...
def sum_ranges(gh: Array, order: Array, begin: Array, end: Array, measure: Array) -> Array: ...
def sums_of_ranges(sums: Array, measure: Array) -> Array: ...
def plan_bundles(rows: Array, n_bins: Array, eligible: Array, threads: int) -> tuple[Array, Array, Array, Array]: ...
def bundle_rows(rows: Array, places: Array, n_codes: Array, n_bins: Array, out: Array, threads: int) -> None: ...
def grow_causal(
    bins: Array,
    y: Array,
    t: Array,
    weight: Array,
    min_leaf: int,
    max_features: int,
    max_samples: float,
    balance: float,
    groups: int,
    per_group: int,
    seed: int,
    threads: int,
) -> tuple[Array, Array, Array]: ...
def predict_causal(
    first: Array,
    splits: Array,
    moments: Array,
    per_group: int,
    min_leaf: int,
    bins: Array,
    effect: Array,
    variance: Array,
    degrees: Array,
    threads: int,
) -> None: ...
