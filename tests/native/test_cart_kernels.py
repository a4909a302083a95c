"""Kernels of decision trees: sorted columns against NumPy, trees of one call, and arrays that do not fit."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from epicycle import _native
from epicycle.tree.cart._grow import Rules, binned_table, class_target, exact_table, grow, number_target

ROW, BELOW, GAP, NEW = (1 << 29) - 1, 1 << 29, 1 << 30, 1 << 31
TABLE = (
    "codes",
    "coded_feature",
    "n_codes",
    "low",
    "high",
    "centre",
    "categorical",
    "lists",
    "list_start",
    "sorted_feature",
    "values",
    "value_rows",
    "value_start",
    "n_features",
)
RULES = (
    "criterion",
    "l2",
    "max_depth",
    "max_leaves",
    "min_split",
    "min_leaf",
    "min_weight",
    "min_gain",
    "leaf_cost",
    "max_features",
    "random",
    "monotone",
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["normal", "ties", "offset", "special", "constant"])
@pytest.mark.parametrize("threads", [1, 3])
def test_sorted_columns(dtype, kind, threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(501, 4)).astype(dtype)
    if kind == "ties":
        X = rng.integers(-3, 3, size=X.shape).astype(dtype)
    elif kind == "offset":
        X = (X.astype(np.float64) * 1e-7 + 1.0).astype(dtype)
    elif kind == "special":
        X[::7], X[1::7], X[2::7], X[3::7], X[4::7] = np.nan, np.inf, -np.inf, 0.0, -0.0
    elif kind == "constant":
        X[:] = 2
    out, distinct, missing = np.empty((4, 501), np.uint32), np.empty(4, np.int64), np.empty(4, np.int64)
    _native.cart.sort_columns(np.asfortranarray(X), np.arange(4, dtype=np.int32), out, distinct, missing, threads)
    for j in range(4):
        x = X[:, j] + 0.0
        order = np.argsort(x, kind="stable")  # NaN last
        assert_array_equal(out[j] & ROW, order)
        there = np.count_nonzero(~np.isnan(x))
        assert missing[j] == 501 - there
        assert distinct[j] == len(np.unique(x[~np.isnan(x)]))
        fresh = np.r_[True, x[order][1:there] != x[order][: there - 1]]
        assert_array_equal((out[j][:there] & NEW) > 0, fresh)
        assert_array_equal((out[j] & GAP) > 0, np.isnan(x[order]))
        assert_array_equal((out[j][:there] & BELOW) > 0, x[order][:there] < 0)


def test_no_rows_and_no_columns():
    empty = np.empty(0, np.int64)
    _native.cart.sort_columns(np.empty((0, 2)), np.empty(0, np.int32), np.empty((0, 0), np.uint32), empty, empty, 1)
    table = exact_table(sp.csr_array((4, 3)), {}, 1)
    grown = grow(
        table,
        number_target(np.arange(4.0), np.ones(4), "squared_error", 0.0),
        np.ones(4),
        Rules("squared_error", max_features=3),
        seed=0,
        threads=1,
    )
    assert grown.tree.node_count == 1


def test_every_kind_of_target_and_table_under_one_roof():
    """Small trees of all kinds, for the sanitizers."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 5))
    X[:, 1] = rng.integers(0, 4, 120)
    X[rng.random(X.shape) < 0.1] = np.nan
    codes, cuts = np.where(np.isnan(X), 255, np.clip(X * 20 + 60, 0, 120)).astype(np.uint8), [np.arange(120) + 0.5] * 5
    tables = [
        exact_table(X, {1: 4}, 1),
        exact_table(sp.csr_array(np.nan_to_num(X)), {}, 2),
        binned_table(codes, cuts, {}),
    ]
    y = rng.gamma(2.0, size=120)
    for table in tables:
        for criterion in ("squared_error", "absolute_error", "poisson", "gini", "entropy"):
            for K in (1, 3):
                target = number_target(np.column_stack([y] * K), np.ones(120), criterion, 0.0)
                if criterion in ("gini", "entropy"):
                    target = class_target(rng.integers(0, K + 1, 120), K + 1)
                for random in (False, True):
                    rules = Rules(criterion, max_features=2, random=random, min_leaf=3, max_leaves=12)
                    weight = rng.integers(0, 3, 120).astype(float)
                    grown = grow(table.fresh(), target, weight, rules, seed=5, threads=2)
                    leaf = grown.left == 0
                    assert (grown.end - grown.begin)[leaf].sum() == np.count_nonzero(weight)
                    assert (grown.end - grown.begin).min() >= 3


@pytest.mark.parametrize(
    "change",
    [
        {"weight": np.ones(3)},
        {"order": np.array([0, 0, 1], np.uint32)},
        {"order": np.array([0, 9], np.uint32)},
        {"coded_feature": np.array([7], np.int32)},
        {"n_codes": np.array([0], np.int32)},
        {"list_start": np.array([0, 5], np.int64)},
        {"labels": np.zeros(4, np.int32)},
        {"criterion": 9},
        {"threads": 0},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change):
    arguments = {
        "codes": np.zeros((4, 1), np.uint8),
        "coded_feature": np.zeros(1, np.int32),
        "n_codes": np.ones(1, np.int32),
        "low": np.zeros((1, 256)),
        "high": np.zeros((1, 256)),
        "centre": np.zeros((1, 256)),
        "categorical": np.zeros(1, np.uint8),
        "lists": np.empty(0, np.uint32),
        "list_start": np.zeros(1, np.int64),
        "sorted_feature": np.empty(0, np.int32),
        "values": None,
        "value_rows": None,
        "value_start": None,
        "n_features": 2,
        "weight": np.ones(4),
        "y": np.zeros((4, 1)),
        "labels": None,
        "n_classes": 0,
        "n_outputs": 1,
        "order": np.arange(4, dtype=np.uint32),
        "criterion": 0,
        "l2": 0.0,
        "unit_weights": True,
        "max_depth": 0,
        "max_leaves": 0,
        "min_split": 2,
        "min_leaf": 1,
        "min_weight": 0.0,
        "min_gain": 0.0,
        "leaf_cost": 0.0,
        "max_features": 2,
        "random": False,
        "monotone": None,
        "seed": 0,
        "threads": 1,
    }

    def grow_from(given):
        table = _native.cart.FeatureTable(**{name: given.pop(name) for name in TABLE})
        rules = _native.cart.GrowRules(**{name: given.pop(name) for name in RULES})
        return _native.cart.grow(table=table, rules=rules, **given)

    assert len(grow_from({**arguments})[0]) == 1
    with pytest.raises(ValueError, match="expected"):
        grow_from({**arguments, **change})


def test_ill_formed_forests_are_refused():
    X, nodes = np.zeros((3, 2)), np.zeros((1, 2), np.uint64)  # an inner node whose children are not there
    roots, levels = np.array([0, 1], np.int64), np.empty((0, 4), np.uint64)
    with pytest.raises(ValueError, match="well-formed"):
        _native.cart.forest_sums(X, nodes, np.zeros((1, 1)), roots, levels, np.zeros((3, 1)), 1)
    with pytest.raises(ValueError, match="well-formed"):
        _native.cart.forest_leaves(X, nodes, roots, levels, np.zeros((3, 1), np.int32), 1)
    with pytest.raises(ValueError, match="well-formed"):
        _native.cart.leaves_of_codes(
            np.zeros((3, 1), np.uint8),
            np.zeros(1, np.uint32),
            np.zeros(1, np.int32),
            np.array([5], np.int32),
            np.zeros((1, 4), np.uint64),
            np.zeros(1, np.int32),
        )
