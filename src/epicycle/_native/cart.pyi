"""Kernels: decision trees and forests."""

import numpy as np

Array = np.ndarray

class FeatureTable:
    def __init__(
        self,
        *,
        codes: Array,
        coded_feature: Array,
        n_codes: Array,
        low: Array,
        high: Array,
        centre: Array,
        categorical: Array,
        lists: Array,
        list_start: Array,
        sorted_feature: Array,
        values: Array | None,
        value_rows: Array | None,
        value_start: Array | None,
        n_features: int,
    ) -> None: ...

class GrowRules:
    def __init__(
        self,
        *,
        criterion: int,
        l2: float,
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
    ) -> None: ...

def grow(
    table: FeatureTable,
    rules: GrowRules,
    weight: Array,
    y: Array | None,
    labels: Array | None,
    n_classes: int,
    n_outputs: int,
    order: Array,
    unit_weights: bool,
    seed: int,
    threads: int,
) -> tuple[Array, ...]: ...
def forest_sums(
    X: Array, nodes: Array, values: Array, roots: Array, levels: Array, out: Array, threads: int
) -> None: ...
def forest_leaves(X: Array, nodes: Array, roots: Array, levels: Array, out: Array, threads: int) -> None: ...
def sort_columns(X: Array, columns: Array, out: Array, distinct: Array, missing: Array, threads: int) -> None: ...
def sort_sparse_columns(
    data: Array, rows: Array, start: Array, n_rows: int, out: Array, distinct: Array, threads: int
) -> None: ...
def leaves_of_codes(codes: Array, rows: Array, column: Array, left: Array, sides: Array, out: Array) -> None: ...
