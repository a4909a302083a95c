"""Growth of one exact or binned tree: the table of features, the target, the rules, and the call of the kernel.

A column of at most 255 distinct numbers, or of categories, becomes codes; code c stands for the numbers from
``low[c]`` to ``high[c]``, so that nothing is lost where each code stands for one number. Random thresholds are drawn
between the numbers ``centre[c]``. Other columns are sorted once, and a tree partitions the sorted lists as it grows.
Sparse columns list their nonzero entries. Binned features are codes throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._random import seed_of, stream
from epicycle.engine import n_threads
from epicycle.tree._binning import MISSING, bin_matrix, padded_edges
from epicycle.tree._nodes import CATEGORICAL, pack_nodes
from epicycle.tree._parameters import min_rows, monotone_signs, n_candidate_features, plain_criterion
from epicycle.tree.cart._tree import Tree

# An entry of a sorted list is a row number in 29 bits, with flags above; bit 31 marks the first row of a new number.
_NEW_NUMBER, _ROW = np.uint32(1 << 31), np.uint32((1 << 29) - 1)
_MAX_ROWS = 1 << 29
# Operations for a row and a feature, from measurements: decides on the number of threads.
WORK_PER_CELL = 30.0
# |mean| / standard deviation of the target from which on squared errors lose digits (about four) by cancellation.
_FAR_MEAN = 100


@dataclass(frozen=True)
class FeatureTable:
    """Features as the kernel reads them. A tree partitions the lists in place: every tree takes :meth:`fresh` ones."""

    n_rows: int
    n_features: int
    codes: np.ndarray
    coded_feature: np.ndarray
    n_codes: np.ndarray
    low: np.ndarray
    high: np.ndarray
    centre: np.ndarray
    categorical: np.ndarray
    lists: np.ndarray
    list_start: np.ndarray
    sorted_feature: np.ndarray
    values: Any = None
    value_rows: np.ndarray | None = None
    value_start: np.ndarray | None = None

    def fresh(self) -> FeatureTable:
        """A table whose lists may be overwritten."""
        return replace(self, lists=self.lists.copy()) if len(self.lists) else self

    @property
    def all_coded(self) -> bool:
        return len(self.sorted_feature) == 0


def _coded_parts(
    codes: np.ndarray,
    features: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    centre: np.ndarray,
    n_codes: np.ndarray,
    levels: dict[int, int],
) -> dict[str, np.ndarray]:
    return {
        "codes": codes,
        "coded_feature": features.astype(np.int32),
        "n_codes": n_codes.astype(np.int32),
        "low": low,
        "high": high,
        "centre": centre,
        "categorical": np.isin(features, list(levels)).astype(np.uint8),
    }


def binned_table(
    codes: np.ndarray, edges: list[np.ndarray], levels: dict[int, int], centre: np.ndarray | None = None
) -> FeatureTable:
    """Binned features: a code stands for the numbers between two edges; random thresholds need `centre` (p, 256)."""
    n, p = codes.shape
    n_codes = np.array([len(e) + 1 for e in edges])
    low, high = np.zeros((p, 256)), np.zeros((p, 256))
    for j, e in enumerate(edges):
        if len(e):
            high[j, : len(e)], high[j, len(e)] = e, e[-1]
            low[j, 1 : len(e) + 1], low[j, 0] = e, e[0]
    return FeatureTable(
        n,
        p,
        **_coded_parts(codes, np.arange(p), low, high, low if centre is None else centre, n_codes, levels),
        lists=np.empty(0, np.uint32),
        list_start=np.zeros(1, np.int64),
        sorted_feature=np.empty(0, np.int32),
    )


def exact_table(X: Any, levels: dict[int, int], n_jobs: int | None) -> FeatureTable:
    """Features in which all distinct numbers are kept apart."""
    n, p = X.shape
    if n >= _MAX_ROWS:
        raise DataError(f"X has {n} rows; expected fewer than {_MAX_ROWS}")
    if sp.issparse(X):
        return _sparse_table(X, n_jobs)
    threads = n_threads(WORK_PER_CELL * n * p, n_jobs)
    numeric = np.array([j for j in range(p) if j not in levels], np.int32)
    # A list entry of four bytes and a code of one for each cell, and the buffers of the sort.
    require_memory(5.0 * n * p + 32.0 * n, "the sorted columns of X", "fit a forest, whose bins need one byte a cell")
    lists = np.empty((len(numeric), n), np.uint32)
    distinct, missing = np.empty(len(numeric), np.int64), np.empty(len(numeric), np.int64)
    _native.cart.sort_columns(X, numeric, lists, distinct, missing, threads)
    # Columns of few distinct numbers are searched by histograms of codes, which is faster than sorted lists and exact.
    few = distinct <= MISSING
    edges: list[np.ndarray] = [np.empty(0)] * p
    table = np.zeros((p, 256))
    for i in np.flatnonzero(few):
        j = numeric[i]
        first = lists[i][: n - missing[i]]
        values = X[(first[(first & _NEW_NUMBER) > 0] & _ROW), j].astype(np.float64)
        edges[j], table[j, : len(values)] = _midpoints(values), values
    for j, size in levels.items():
        edges[j] = np.arange(size - 1) + 0.5
        table[j, :size] = np.arange(size)
    coded = np.sort(np.concatenate([numeric[few], np.array(list(levels), np.int32)])).astype(np.int32)
    part = X if len(coded) == p else X[:, coded]
    codes = np.empty((n, 0), np.uint8)
    if len(coded):
        codes = bin_matrix(part, padded_edges([edges[j] for j in coded]), threads)
    n_codes = np.array([len(edges[j]) + 1 for j in coded], np.int32)
    low = np.ascontiguousarray(table[coded])
    if few.any():
        lists = np.ascontiguousarray(lists[~few])
    return FeatureTable(
        n,
        p,
        **_coded_parts(codes, coded, low, low, low, n_codes, levels),
        lists=lists.reshape(-1),
        list_start=np.arange(len(lists) + 1, dtype=np.int64) * n,
        sorted_feature=numeric[~few],
        values=X,
    )


def _sparse_table(X: Any, n_jobs: int | None) -> FeatureTable:
    n, p = X.shape
    require_memory(3.0 * X.nnz * (X.dtype.itemsize + 4), "the columns of X", "fit to fewer rows")
    columns = X.tocsc()
    columns.sort_indices()
    # Stored zeros would be listed twice: as entries, and among the implicit zeros.
    if (columns.data == 0).any():
        columns.eliminate_zeros()
    rows, start = columns.indices.astype(np.int32, copy=False), columns.indptr.astype(np.int64, copy=False)
    lists, distinct = np.empty(len(rows), np.uint32), np.empty(p, np.int64)
    _native.cart.sort_sparse_columns(
        columns.data, rows, start, n, lists, distinct, n_threads(WORK_PER_CELL * X.nnz, n_jobs)
    )
    no_codes = np.empty(0, np.int32)
    empty = np.empty((0, 256))
    return FeatureTable(
        n,
        p,
        **_coded_parts(np.empty((n, 0), np.uint8), no_codes, empty, empty, empty, no_codes, {}),
        lists=lists,
        list_start=start,
        sorted_feature=np.arange(p, dtype=np.int32),
        values=columns.data,
        value_rows=rows,
        value_start=start,
    )


def _midpoints(values: np.ndarray) -> np.ndarray:
    """Thresholds between ascending `values`: half-way, or the lower one where rounding leaves no number between."""
    a, b = values[:-1], values[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        half = a + (b - a) / 2
    return np.where(np.isfinite(half) & (a <= half) & (half < b), half, a)


# ------------------------------------------------------------------------------------------------ target and rules

#: Criteria by their number in the kernel.
CRITERIA = {
    "squared_error": 0,
    "absolute_error": 1,
    "poisson": 2,
    "gini": 3,
    "entropy": 4,
    "log_loss": 4,
}


@dataclass(frozen=True)
class Target:
    """Numbers y (n, K) less an offset (K,), or labels (n,) of more than two classes.

    Several label columns are numbers, with a column of zeros and ones for every class. `outputs` then holds the number
    of classes of each.
    """

    y: np.ndarray | None
    labels: np.ndarray | None
    n_classes: int
    offset: np.ndarray
    outputs: np.ndarray | None = None

    @property
    def classes_of_outputs(self) -> np.ndarray:
        """Number of classes of every output, 1 for numbers."""
        if self.outputs is not None:
            return self.outputs
        return np.ones(len(self.offset), np.int64) if self.n_classes == 0 else np.array([self.n_classes], np.int64)

    def values(self, raw: np.ndarray) -> np.ndarray:
        """Values of nodes from those of the kernel: the offset added, all classes listed."""
        if self.n_classes == 0:
            return np.asarray(raw + self.offset)
        if self.n_classes == 1:
            return np.ones((len(raw), 1))
        return np.column_stack([1.0 - raw[:, 0], raw[:, 0]]) if self.n_classes == 2 else raw


def number_target(y: np.ndarray, weight: np.ndarray, criterion: str, l2: float) -> Target:
    """Numbers to predict; a mean far from zero is subtracted first, since squares lose digits there."""
    Y = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    offset = np.zeros(Y.shape[1])
    # Sums of w y^2 must be finite, and the squares of sums of w y, from which gains are made.
    with np.errstate(over="ignore"):
        peak = np.maximum(np.abs(Y).max(initial=0.0), 1.0)
        total = np.sum(weight) * peak
        largest = total * (np.maximum(peak, total) if criterion == "squared_error" else 1.0)
    if not np.isfinite(4 * largest):
        raise DataError(
            f"y, sample_weight: targets up to {np.abs(Y).max():.1e} with weights up to {weight.max():.1e} overflow "
            "when their squares are added up; divide them by a constant"
        )
    if criterion == "squared_error" and l2 == 0:
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
        offset = np.where(np.abs(mean) > _FAR_MEAN * spread, mean, 0.0)
    return Target(Y - offset if offset.any() else Y, None, 0, offset)


def class_target(codes: np.ndarray, n_classes: int) -> Target:
    """Classes by their codes; two classes are the numbers 0 and 1."""
    if n_classes <= 2:
        return Target(np.ascontiguousarray(codes, np.float64).reshape(-1, 1), None, n_classes, np.zeros(1))
    return Target(None, np.ascontiguousarray(codes, np.int32), n_classes, np.zeros(n_classes))


def label_columns_target(codes: np.ndarray, n_classes: list[int]) -> Target:
    """Several label columns, (n, n_outputs), by their codes."""
    columns = [codes[:, [k]] == np.arange(size) for k, size in enumerate(n_classes)]
    y = np.ascontiguousarray(np.hstack(columns), np.float64)
    return Target(y, None, 0, np.zeros(y.shape[1]), np.array(n_classes, np.int64))


@dataclass(frozen=True)
class Rules:
    """Rules of growth, with the names of the kernel; 0 sets no limit to depth and leaves.

    `min_weight` is a share of the weight of the rows of the tree.
    """

    criterion: str
    l2: float = 0.0
    leaf_cost: float = 0.0
    max_depth: int = 0
    max_leaves: int = 0
    min_split: int = 2
    min_leaf: int = 1
    min_weight: float = 0.0
    min_gain: float = 0.0
    max_features: int = 1
    random: bool = False
    monotone: np.ndarray | None = None


@dataclass(frozen=True)
class Grown:
    """A tree, and `order`, the rows in the order of its leaves: node i has order[begin[i]:end[i]].

    `columns` and `sides` are the splits in terms of columns and codes of the table.
    """

    tree: Tree
    left: np.ndarray
    columns: np.ndarray
    sides: np.ndarray
    order: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def tree_seed(random_state: Any) -> int:
    """The seed of the features and thresholds of a tree, by its `random_state`."""
    return int(stream(seed_of(random_state), "tree", 0).integers(2**63))


def growth_rules(
    parameters: Any, weight: np.ndarray, p: int, categories: Mapping[int, Any], *, random_splits: bool, l2: float = 0.0
) -> Rules:
    """Rules by the parameters of a decision tree or forest, for rows of these weights and p features."""
    n = int(np.count_nonzero(weight))
    categorical = np.zeros(p, np.uint8)
    categorical[list(categories)] = 1
    names = getattr(parameters, "feature_names_in_", None)
    return Rules(
        plain_criterion(parameters.criterion),
        l2=l2,
        leaf_cost=float(parameters.leaf_cost),
        max_depth=parameters.max_depth or 0,
        max_leaves=parameters.max_leaf_nodes or 0,
        min_split=min_rows(parameters.min_samples_split, n, 2),
        min_leaf=min_rows(parameters.min_samples_leaf, n, 1),
        min_weight=float(parameters.min_weight_fraction_leaf),
        min_gain=float(parameters.min_impurity_decrease),
        max_features=n_candidate_features(parameters.max_features, p),
        random=random_splits,
        monotone=monotone_signs(parameters.monotonic_cst, p, names, categorical, type(parameters).__name__),
    )


def grow(
    table: FeatureTable,
    target: Target,
    weight: np.ndarray,
    rules: Rules,
    *,
    seed: int,
    threads: int,
    unit_weights: bool = False,
) -> Grown:
    """One tree on the rows of positive weight; the lists of the table are overwritten."""
    # Rows without weight take no part: they count for no minimum of rows either.
    order = np.flatnonzero(weight > 0).astype(np.uint32)
    arguments = {name: value for name, value in vars(table).items() if name != "n_rows"}
    features = _native.cart.FeatureTable(**arguments)
    in_numbers = {"criterion": CRITERIA[rules.criterion], "min_weight": rules.min_weight * float(weight.sum())}
    limits = _native.cart.GrowRules(**{**vars(rules), **in_numbers})
    n_classes = target.classes_of_outputs
    response = (target.y, target.labels, target.n_classes, len(n_classes))
    arrays: Any = _native.cart.grow(features, limits, weight, *response, order, unit_weights, seed, threads)
    feature, threshold, left, kind, sides, columns, cost, mass, begin, end, raw = arrays
    sides = sides.reshape(-1, 4)
    values = target.values(raw.reshape(len(left), -1))
    # The criterion sums over outputs; impurity is their mean, as in scikit-learn.
    tree = Tree(
        nodes=pack_nodes(feature, threshold, left, kind),
        levels=sides[(kind & CATEGORICAL) > 0],
        values=values,
        impurity=cost / (mass * len(n_classes)),
        n_node_samples=end - begin,
        weighted_n_node_samples=mass,
        n_features=table.n_features,
        n_classes=n_classes,
    )
    return Grown(tree, left, columns, sides, order, begin, end)
