"""The kernels for trees over several parts of the rows: against NumPy, against the tree of one part, and bad calls."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from epicycle import _native

N, P, BINS = 400, 4, 20


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, BINS, size=(N, P)).astype(np.uint8)
    rows[rng.random((N, P)) < 0.1] = 255
    gh = np.column_stack([rng.normal(size=N), rng.uniform(0.1, 1, N)]).astype(np.float32)
    return rows, gh, rng.permutation(N)[:300].astype(np.uint32)


def measure_of(gh, order):
    g, h = gh[order].astype(float).T
    return np.array([len(order), np.abs(g).sum(), h.sum(), 0, 0, 0])


def rules_of(categorical, min_samples, l2=0.0, smoothing=0.0):
    return _native.tree.SplitRules(
        categorical=categorical,
        monotone=None,
        min_samples=min_samples,
        min_child_weight=0.0,
        l2=l2,
        min_gain=0.0,
        smoothing=smoothing,
    )


def quantised(gh, order):
    measure, packed = measure_of(gh, order), np.zeros(len(gh), np.int64)
    measure[3:] = _native.tree.quantise_rows(gh, order, measure, packed)
    return measure, packed


def test_packed_gradients_are_rounded_to_a_unit(problem):
    _, gh, order = problem
    measure, packed = quantised(gh, order)
    g, h = packed >> 32, packed & 0xFFFFFFFF
    unit_g, unit_h = measure[1] / 2**31, measure[2] / 2**32
    assert_allclose(g[order] * unit_g, gh[order, 0], rtol=1e-5, atol=2 * unit_g)
    assert_allclose(h[order] * unit_h, gh[order, 1], rtol=1e-5, atol=2 * unit_h)
    assert_array_equal(measure[3:], [h[order].min(), h[order].max(), np.abs(g[order]).max()])


def test_units_do_not_depend_on_the_order_of_sums(problem):
    _, gh, order = problem
    measure, packed = quantised(gh, order)
    other = np.zeros_like(packed)
    for towards in (0.0, np.inf):
        near = np.concatenate([measure[:1], np.nextafter(measure[1:], towards)])
        _native.tree.quantise_rows(gh, order, near, other)
        assert_array_equal(other, packed)


def test_rows_are_divided_stably(problem):
    rows, _, order = problem
    sides = np.array([0b1011, 0, 0, 1 << 63], np.uint64)
    goes_left = np.isin(rows[:, 2], [0, 1, 3, 255])[order]
    expected = np.concatenate([order[goes_left], order[~goes_left]])
    assert _native.tree.divide_rows(rows, 2, sides, order) == goes_left.sum()
    assert_array_equal(order, expected)


@pytest.mark.parametrize("features", [np.arange(P), [1, 3]])
def test_histograms_count_and_sum(problem, features):
    rows, gh, order = problem
    features, (_, packed) = np.array(features, np.int32), quantised(gh, order)
    hist, count = np.full((len(features), 256), 7, np.int64), np.full((len(features), 256), 7, np.uint32)
    n_bins = np.full(P, BINS, np.int32)
    _native.tree.node_histogram(rows, packed, order, features, n_bins, hist, count)
    used = [*range(BINS), 255]
    for k, j in enumerate(features):
        for b in used:
            here = order[rows[order, j] == b]
            assert hist[k, b] == packed[here].sum()
            assert count[k, b] == len(here)


@pytest.mark.parametrize("min_samples", [1, 30])
def test_the_root_is_split_as_in_one_tree(problem, min_samples):
    rows, gh, _ = problem
    order = np.arange(N, dtype=np.uint32)
    measure, packed = quantised(gh, order)
    features, n_bins, categorical = np.arange(P, dtype=np.int32), np.full(P, BINS, np.int32), np.zeros(P, np.uint8)
    categorical[1] = 1
    hist, count = np.empty((P, 256), np.int64), np.empty((P, 256), np.uint32)
    hist[:] = 0
    _native.tree.node_histogram(rows, packed, order, features, n_bins, hist, count)
    total = int(hist[0, [*range(BINS), 255]].sum())
    rules = rules_of(categorical, min_samples, l2=0.5, smoothing=1.0)
    feature, bin_, kind, sides, gain, left_sum, _ = _native.tree.best_split(
        hist, count, total, N, (-np.inf, np.inf), None, measure, features, n_bins, rules
    )
    table = _native.tree.BinnedTable(
        rows=rows, columns=np.ascontiguousarray(rows.T), places=None, n_codes=None, features=features, n_bins=n_bins
    )
    growth = _native.tree.GrowRules(split=rules, groups=None, max_leaves=2, max_depth=0)
    tree = _native.tree.grow(
        table, growth, gh, measure[1], measure[2], True, order, np.empty_like(order), np.empty(N, np.int64), 1
    )
    assert (feature, bin_, kind, gain) == (tree[0][0], tree[1][0], tree[3][0], tree[5][0])
    assert_array_equal(sides[0], tree[4][:4])
    begin, end = tree[9][1:], tree[10][1:]
    sums = _native.tree.sum_ranges(gh, order, begin, end, measure)
    exact = _native.tree.sums_of_ranges(sums, measure)
    assert_array_equal(exact[:, 0], tree[6][1:])
    assert_array_equal(exact[:, 1], tree[7][1:])
    assert left_sum == packed[order[: end[0]]].sum()


def test_sums_are_exact_and_add_up(problem):
    _, gh, order = problem
    gh[:, 0] *= np.float32(10.0) ** np.random.default_rng(1).integers(-3, 4, N)
    measure, _ = quantised(gh, order)
    one = _native.tree.sum_ranges(gh, order, np.array([0]), np.array([300]), measure)
    shuffled = np.random.default_rng(2).permutation(order)
    many = _native.tree.sum_ranges(gh, shuffled, np.array([0, 7, 100]), np.array([7, 100, 300]), measure)
    total = _native.tree.sums_of_ranges(one, measure)
    assert_array_equal(_native.tree.sums_of_ranges(many.sum(axis=0, keepdims=True), measure), total)
    assert_allclose(total[0], gh[order].astype(np.longdouble).sum(axis=0).astype(float), rtol=1e-13)


def test_bad_calls(problem):
    rows, gh, order = problem
    measure, packed = quantised(gh, order)
    outside = np.array([N], np.uint32)
    features, n_bins = np.arange(P, dtype=np.int32), np.full(P, BINS, np.int32)
    hist, count = np.zeros((P, 256), np.int64), np.zeros((P, 256), np.uint32)
    rules = rules_of(np.zeros(P, np.uint8), 5)
    split = [hist, count, 0, N, (0.0, 0.0), None, measure, features, n_bins, rules]
    calls = [
        (_native.tree.quantise_rows, (gh, outside, measure, packed)),
        (_native.tree.quantise_rows, (gh, order, measure[:5].copy(), packed)),
        (_native.tree.quantise_rows, (gh, order, np.full(6, np.nan), packed)),
        (_native.tree.quantise_rows, (gh, order, measure, packed[1:].copy())),
        (_native.tree.divide_rows, (rows, P, np.zeros(4, np.uint64), order)),
        (_native.tree.divide_rows, (rows, 0, np.zeros(3, np.uint64), order)),
        (_native.tree.divide_rows, (rows, 0, np.zeros(4, np.uint64), outside)),
        (_native.tree.node_histogram, (rows, packed, outside, features, n_bins, hist, None)),
        (_native.tree.node_histogram, (rows, packed, order, features[::-1].copy(), n_bins, hist, None)),
        (_native.tree.node_histogram, (rows, packed, order, features, 0 * n_bins, hist, None)),
        (_native.tree.node_histogram, (rows, packed, order, features, n_bins, hist[1:].copy(), None)),
        (_native.tree.sum_ranges, (gh, order, np.array([0]), np.array([301]), measure)),
        (_native.tree.sum_ranges, (gh, outside, np.array([0]), np.array([1]), measure)),
        (_native.tree.sums_of_ranges, (np.zeros((1, 3), np.int64), measure)),
        (_native.tree.best_split, [*split[:7], features[:0], *split[8:]]),
        (_native.tree.best_split, [hist[1:].copy(), *split[1:]]),
    ]
    for function, arguments in calls:
        with pytest.raises(ValueError, match=function.__name__):
            function(*arguments)


def test_rows_that_curvature_does_not_tell_have_to_be_counted(problem):
    rows, gh, _ = problem
    order = np.arange(N, dtype=np.uint32)
    measure, packed = quantised(gh, order)
    features, n_bins = np.arange(P, dtype=np.int32), np.full(P, BINS, np.int32)
    hist = np.zeros((P, 256), np.int64)
    _native.tree.node_histogram(rows, packed, order, features, n_bins, hist, None)
    total = int(hist[0].sum())
    rules = rules_of(np.zeros(P, np.uint8), 150)
    with pytest.raises(ValueError, match="best_split"):
        _native.tree.best_split(hist, None, total, N, (-np.inf, np.inf), None, measure, features, n_bins, rules)
