"""The kernels of trees against plain NumPy, and under bad calls."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import _native


def problem(n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 20, size=(n, p)).astype(np.uint8)
    rows[rng.random((n, p)) < 0.1] = 255
    gh = np.column_stack([rng.normal(size=n), rng.uniform(0.1, 1, n)]).astype(np.float32)
    return rows, gh


def arguments(rows, gh, **changed):
    n, p = rows.shape
    return {
        "rows": rows,
        "columns": np.ascontiguousarray(rows.T),
        "gh": gh,
        "sum_abs_g": float(np.abs(gh[:, 0].astype(float)).sum()),
        "sum_h": float(gh[:, 1].astype(float).sum()),
        "features": np.arange(p, dtype=np.int32),
        "n_bins": np.full(p, 20, np.int32),
        "categorical": np.zeros(p, np.uint8),
        "monotone": None,
        "places": None,
        "n_codes": None,
        "groups": None,
        "all_rows": True,
        "order": np.empty(n, np.uint32),
        "scratch": np.empty(n, np.uint32),
        "packed": np.empty(n, np.int64),
        "max_leaves": 8,
        "max_depth": 0,
        "min_samples": 5,
        "min_child_weight": 0.0,
        "l2": 0.0,
        "min_gain": 0.0,
        "smoothing": 0.0,
        "threads": 1,
        **changed,
    }


TABLE = ("rows", "columns", "places", "n_codes", "features", "n_bins")
SPLIT = ("categorical", "monotone", "min_samples", "min_child_weight", "l2", "min_gain", "smoothing")
RULES = ("groups", "max_leaves", "max_depth")
NAMES = ("feature", "bin", "left", "kind", "sides", "gain", "G", "H", "value", "begin", "end")


def grow(**given):
    table = _native.tree.BinnedTable(**{name: given.pop(name) for name in TABLE})
    split = _native.tree.SplitRules(**{name: given.pop(name) for name in SPLIT})
    rules = _native.tree.GrowRules(split=split, **{name: given.pop(name) for name in RULES})
    return dict(zip(NAMES, _native.tree.grow(table=table, rules=rules, **given), strict=True))


def test_columns_may_be_read_from_rows():
    rows, gh = problem()
    for changed in ({}, {"min_samples": 40}):
        tree, other = (grow(**arguments(rows, gh, **changed, **columns)) for columns in ({}, {"columns": None}))
        for name in NAMES:
            assert_array_equal(tree[name], other[name])


@pytest.mark.parametrize("subset", [None, "rows", "features"])
@pytest.mark.parametrize("seed", range(5))
def test_leaves_are_a_stable_partition_with_exact_sums(seed, subset):
    rows, gh = problem(seed=seed)
    asked = arguments(rows, gh)
    here = np.arange(300, dtype=np.uint32)
    if subset == "rows":
        here = np.flatnonzero(np.random.default_rng(seed).random(300) < 0.6).astype(np.uint32)
        asked |= {"all_rows": False, "order": here.copy(), "scratch": np.empty(len(here), np.uint32)}
    if subset == "features":
        asked |= {"features": np.array([1, 3], np.int32)}
    tree = grow(**asked)
    order, leaves = asked["order"], np.flatnonzero(tree["left"] == 0)
    assert_array_equal(np.sort(order), here)
    assert 2 <= len(leaves) <= 8
    sides = np.unpackbits(tree["sides"].reshape(-1, 4).view(np.uint8), axis=1, bitorder="little").astype(bool)
    for i in range(len(tree["left"])):
        mine = order[tree["begin"][i] : tree["end"][i]]
        if tree["left"][i]:
            assert subset != "features" or tree["feature"][i] in (1, 3)
            goes = sides[i, rows[np.sort(mine), tree["feature"][i]]]
            left, right = tree["left"][i], tree["left"][i] + 1
            assert_array_equal(np.sort(order[tree["begin"][left] : tree["end"][left]]), np.sort(mine)[goes])
            assert tree["end"][left] - tree["begin"][left] == goes.sum()
            assert tree["end"][right] - tree["begin"][right] == (~goes).sum()
        else:
            assert_array_equal(mine, np.sort(mine))
            assert len(mine) >= 5
        assert_allclose(tree["G"][i], gh[mine, 0].sum(dtype=float), rtol=1e-12, atol=1e-12)
        assert_allclose(tree["H"][i], gh[mine, 1].sum(dtype=float), rtol=1e-12)
        assert tree["value"][i] == pytest.approx(-tree["G"][i] / tree["H"][i])
    score = np.zeros(300)
    _native.tree.add_to_leaves(order, tree["begin"][leaves], tree["end"][leaves], tree["value"][leaves], score, 2)
    out = np.zeros(300)
    _native.tree.predict_bins(rows, tree["feature"], tree["left"], tree["sides"].reshape(-1, 4), tree["value"], out, 2)
    assert_array_equal(out[here], score[here])


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 250, size=(200_000, 6)).astype(np.uint8)
    gh = np.column_stack([rng.normal(size=200_000) + rows[:, 0] / 100, np.ones(200_000)]).astype(np.float32)
    trees = []
    for threads in (1, 2, 5):
        asked = arguments(rows, gh, threads=threads, n_bins=np.full(6, 250, np.int32), max_leaves=40)
        trees.append((grow(**asked), asked["order"]))
    for tree, order in trees[1:]:
        assert_array_equal(order, trees[0][1])
        for name in NAMES:
            assert_array_equal(tree[name], trees[0][0][name])


BAD = {
    "columns": np.zeros((300, 4), np.uint8),
    "gh": np.zeros((299, 2), np.float32),
    "features": np.array([0, 9], np.int32),
    "features twice": np.array([1, 1], np.int32),
    "n_bins": np.array([20, 20, 256, 20], np.int32),
    "categorical": np.zeros(3, np.uint8),
    "monotone": np.zeros(3, np.int8),
    "groups": np.zeros((1, 3), np.uint8),
    "order": np.empty(301, np.uint32),
    "scratch": np.empty(10, np.uint32),
    "packed": np.empty(10, np.int64),
    "sum_h": float("nan"),
    "sum_abs_g": -1.0,
    "threads": 0,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_calls_of_the_grower(name):
    rows, gh = problem()
    with pytest.raises(ValueError, match=r"tree\.grow|threads"):
        grow(**(arguments(rows, gh) | {name.split()[0]: BAD[name]}))


def test_rows_outside_the_table():
    rows, gh = problem()
    order = np.array([0, 300], np.uint32)
    asked = arguments(rows, gh, all_rows=False, order=order, scratch=np.empty(2, np.uint32))
    with pytest.raises(ValueError, match=r"tree\.grow"):
        grow(**asked)
    with pytest.raises(ValueError, match="add_to_leaves"):
        _native.tree.add_to_leaves(order, np.zeros(1, np.int64), np.full(1, 2), np.ones(1), np.zeros(300), 1)
    with pytest.raises(ValueError, match="add_to_leaves"):
        _native.tree.add_to_leaves(order, np.zeros(1, np.int64), np.full(1, 3), np.ones(1), np.zeros(301), 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_one_by_one_have_the_bits_of_all_at_once(weighted, threads):
    rng = np.random.default_rng(1)
    n, K = 5003, 4
    y, score = rng.integers(0, K, n).astype(float), rng.normal(size=(K, n)) * 30
    weight = rng.uniform(0, 3, n) if weighted else None
    gh, normal = np.empty((K, n, 2), np.float32), np.empty((2, n))
    sums = _native.tree.loss_rows(8, 0.0, y, weight, score, gh, None, 1)
    assert_array_equal(_native.tree.loss_rows(8, 0.0, y, weight, score, None, normal, threads), sums)
    for k in range(K):
        one = np.full((n, 2), np.nan, np.float32)
        _native.tree.class_rows(y, weight, score[k], normal, k, K, one, threads)
        assert_array_equal(one, gh[k])


def test_bad_calls_of_the_others():
    rows, _ = problem()
    X = np.zeros((300, 4))
    with pytest.raises(ValueError, match="quantile_cuts"):
        _native.tree.quantile_cuts(np.array([2.0, 1.0]), None, 10)
    with pytest.raises(ValueError, match="quantile_cuts"):
        _native.tree.quantile_cuts(np.array([1.0, np.nan]), None, 10)
    with pytest.raises(ValueError, match="quantile_cuts"):
        _native.tree.quantile_cuts(np.zeros(3), None, 256)
    with pytest.raises(ValueError, match="bin_rows"):
        _native.tree.bin_rows(X, np.zeros((4, 254)), rows, 1)
    with pytest.raises(ValueError, match="bin_rows"):
        _native.tree.bin_rows(X[:10], np.zeros((4, 255)), rows, 1)
    with pytest.raises(ValueError, match="transpose_bytes"):
        _native.tree.transpose_bytes(rows, rows, 1)
    y, gh = np.zeros(300), np.zeros((1, 300, 2), np.float32)
    for kind, target, K in ((9, y, 1), (-1, y, 1), (8, y, 1), (0, y, 2), (8, y + 2, 2), (8, y - 1, 2), (0, y[:9], 1)):
        with pytest.raises(ValueError, match="loss_rows"):
            _native.tree.loss_rows(kind, 0.0, target, None, np.zeros((K, 300)), np.repeat(gh, K, axis=0), None, 1)
    for normal in (np.zeros((1, 300)), np.zeros((2, 299))):
        with pytest.raises(ValueError, match="loss_rows"):
            _native.tree.loss_rows(8, 0.0, y, None, np.zeros((2, 300)), None, normal, 1)
    for k, K, normal, out in ((2, 2, 300, 300), (0, 1, 300, 300), (0, 2, 299, 300), (0, 2, 300, 299)):
        with pytest.raises(ValueError, match="class_rows"):
            _native.tree.class_rows(y, None, y, np.zeros((2, normal)), k, K, np.zeros((out, 2), np.float32), 1)
    feature, left, sides = np.zeros(3, np.int32), np.array([1, 0, 0], np.int32), np.zeros((3, 4), np.uint64)
    for change in ({"feature": feature + 4}, {"left": left + 2}, {"sides": sides[:2]}, {"values": np.zeros(2)}):
        asked = {"feature": feature, "left": left, "sides": sides, "values": np.zeros(3)} | change
        with pytest.raises(ValueError, match="predict_bins"):
            _native.tree.predict_bins(rows, **asked, out=np.zeros(300), threads=1)


LEAF = np.uint64((2 | 1) << 56)


def stump(threshold, feature=0, missing_left=0):
    nodes = np.empty((3, 2), np.uint64)
    nodes[:, 0] = np.array([threshold, np.inf, np.inf]).view(np.uint64)
    nodes[:, 1] = [1 | feature << 32 | missing_left << 56, LEAF | np.uint64(1), LEAF | np.uint64(2)]
    return nodes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["C", "F", "reversed"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 3000])
def test_a_stump_in_every_layout(dtype, layout, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).astype(dtype)
    X[rng.random((n, 3)) < 0.2] = np.nan
    laid = {"C": X, "F": np.asfortranarray(X), "reversed": X[::-1].copy()[::-1]}[layout]
    none = np.empty((0, 4), np.uint64)
    for missing_left in (0, 1):
        out = np.full((n, 1), 10.0)
        values, roots = np.array([0.0, 1.0, 2.0]), np.array([0, 3])
        _native.tree.predict(laid, stump(0.1, 2, missing_left), values, roots, none, 0, 1, out, 2)
        left = np.where(np.isnan(X[:, 2]), bool(missing_left), X[:, 2] <= 0.1)
        assert_array_equal(out[:, 0], 10 + np.where(left, 1.0, 2.0))


@pytest.mark.parametrize("n", [4, 40])  # few rows check the nodes on their way
def test_trees_that_lead_astray_are_refused(n):
    X, none = np.zeros((n, 3)), np.empty((0, 4), np.uint64)
    values, roots, out = np.zeros(3), np.array([0, 3]), np.zeros((n, 1))
    good = stump(0.0)
    _native.tree.predict(X, good, values, roots, none, 0, 1, out, 1)

    def refused(nodes=good, values=values, roots=roots, first=0, last=1, out=out):
        with pytest.raises(ValueError, match=r"tree\.predict"):
            _native.tree.predict(X, nodes, values, roots, none, first, last, out, 1)

    for word in (0, 2, 2**32 - 1, 1 | 3 << 32, 1 | 4 << 56):  # itself, outside, far outside, no such feature, no levels
        nodes = good.copy()
        nodes[0, 1] = word
        refused(nodes)
    circle = good.copy()
    circle[1, 1] = LEAF  # a leaf that leads to the root
    refused(circle)
    refused(values=np.zeros(2))
    refused(roots=np.array([0, 2]))
    refused(roots=np.array([0, 3, 3]))
    refused(roots=np.array([1, 3]))
    refused(last=2)
    refused(first=1, last=0)
    refused(out=np.zeros((3, 1)))


# ------------------------------------------------------------------------------------------- Shapley values


def one_split(value=(1.0, -1.0)):
    """A tree that asks whether x0 <= 0.5."""
    threshold = np.array([0.5, np.inf, np.inf]).view(np.uint64)
    meta = np.array([1, 1 | 3 << 56, 2 | 3 << 56], np.uint64)
    return {
        "nodes": np.column_stack([threshold, meta]),
        "values": np.array([0.0, *value]),
        "roots": np.array([0, 3]),
        "levels": np.empty((0, 4), np.uint64),
        "count": np.array([4.0, 3.0, 1.0]),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapley_values_of_one_split(dtype):
    X = np.array([[0.0, 9.0], [1.0, 9.0], [np.nan, 9.0]], dtype)
    out = np.zeros((3, 2, 1))
    _native.tree.shap_values(X, **one_split(), out=out, threads=1)
    assert_allclose(out[:, :, 0], [[0.5, 0.0], [-1.5, 0.0], [-1.5, 0.0]])


@pytest.mark.parametrize(
    "changed",
    [
        {"count": np.array([4.0, 3.0])},
        {"count": np.array([4.0, 0.0, 4.0])},
        {"values": np.zeros(2)},
        {"roots": np.array([0, 4])},
        {"roots": np.array([1, 3])},
        {"nodes": np.zeros((3, 2), np.uint64)},
        {"out": np.zeros((2, 1, 1))},
        {"threads": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_shapley_values_refuse_what_does_not_fit(changed):
    asked = {"X": np.zeros((2, 2)), **one_split(), "out": np.zeros((2, 2, 1)), "threads": 1}
    with pytest.raises(ValueError, match="expected"):
        _native.tree.shap_values(**{**asked, **changed})


# ------------------------------------------------------------------------------------------- stumps


def columns(n=50, p=2, seed=0):
    from epicycle.tree.adaboost._stumps import SortedColumns

    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return SortedColumns(X, 1), rng.normal(size=n)


def test_both_searches_find_stumps_of_equal_merit():
    for seed in range(20):
        found, v = columns(seed=seed)
        for confidence in (False, True):
            plain = _native.tree.best_stump(
                found.entries, found.begin, found.zeros, found.missing, v, None, 2, confidence, 1
            )
            binned = _native.tree.best_binned_stump(
                found.entries,
                found.begin,
                found.missing,
                found.rows,
                found.bin_end,
                found.n_bins,
                v,
                confidence,
                np.empty(50, np.int64),
                1,
            )
            assert plain == binned


@pytest.mark.parametrize(
    "changed",
    [
        {"entries": np.full(100, 77, np.uint32)},
        {"begin": np.array([0, 50, 99])},
        {"begin": np.array([0, 101, 100])},
        {"zeros": np.array([51, -1])},
        {"missing": np.array([0, -1])},
        {"missing": np.array([51, 0])},
        {"weight": np.empty(0)},
        {"code": np.full(50, 3, np.int32)},
        {"code": np.zeros(49, np.int32)},
        {"threads": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_search_for_stumps_refuses_what_does_not_fit(changed):
    found, v = columns()
    asked = {
        "entries": found.entries,
        "begin": found.begin,
        "zeros": found.zeros,
        "missing": found.missing,
        "weight": v,
        "code": None,
        "n_classes": 2,
        "confidence": False,
        "threads": 1,
    }
    with pytest.raises(ValueError, match="best_stump: expected"):
        _native.tree.best_stump(**{**asked, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"begin": np.array([0, 49, 100])},
        {"missing": np.array([0, 0])},
        {"rows": np.zeros((49, 2), np.uint8)},
        {"bin_end": np.zeros((2, 256), np.int64)},
        {"n_bins": np.array([256, 1], np.int32)},
        {"weight": np.empty(49)},
        {"packed": np.empty(49, np.int64)},
        {"threads": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_search_by_bins_refuses_what_does_not_fit(changed):
    found, v = columns()
    asked = {
        "entries": found.entries,
        "begin": found.begin,
        "missing": found.missing,
        "rows": found.rows,
        "bin_end": found.bin_end,
        "n_bins": found.n_bins,
        "weight": v,
        "confidence": False,
        "packed": np.empty(50, np.int64),
        "threads": 1,
    }
    with pytest.raises(ValueError, match="best_binned_stump: expected"):
        _native.tree.best_binned_stump(**{**asked, **changed})
