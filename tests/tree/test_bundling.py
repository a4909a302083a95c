"""Features that share a byte: the same trees, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor, _native
from epicycle.tree import _binning as binning


def table(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, indicators of 5 and of 12 levels, and an indicator that meets the others now and then."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 20))
    X[:, :2] = rng.standard_normal((n, 2))
    first, second = rng.integers(0, 5, n), rng.integers(0, 12, n)
    X[np.arange(n), 2 + first] = rng.integers(1, 4, n)  # some have three bins beside their usual one
    X[np.arange(n), 7 + second] = -1.0
    X[:, 19] = rng.random(n) < 0.05
    y = X[:, 0] + (first == 2) * X[:, 1] + np.sin(second) + 2 * X[:, 19] + 0.3 * rng.standard_normal(n)
    return X, y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_samples_leaf": 40},
        {"subsample": 0.5, "max_features": 0.4, "random_state": 3},
        {"categorical_features": [3, 4, 8], "max_depth": 3},
        {"monotonic_cst": [1, 0, 0, 1] + [0] * 16, "interaction_cst": [[0, 1, 2, 3], list(range(4, 20))]},
    ],
    ids=["plain", "counted", "sampled", "levels", "constrained"],
)
def test_trees_are_those_of_single_columns(monkeypatch, options):
    X, y = table(0)
    model = GradientBoostingRegressor(n_estimators=12, max_leaf_nodes=12, **options)
    seen = []
    original = binning.bundle_features
    monkeypatch.setattr(binning, "bundle_features", lambda *a: seen.append(original(*a)) or seen[-1])
    shared = model.fit(X, y).predict(X)
    assert seen[0][1] is not None
    assert seen[0][0].shape[1] <= 6
    monkeypatch.setattr(binning, "bundle_features", lambda rows, *rest: (rows, None))
    assert_array_equal(model.fit(X, y).predict(X), shared)


def test_classes_weights_and_missing_values(monkeypatch):
    X, y = table(1)
    X[::7, 3] = np.nan  # keeps a column for itself
    weight = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    labels = np.digitize(y, [-0.5, 0.5])
    model = GradientBoostingClassifier(n_estimators=6, max_leaf_nodes=8)
    shared = model.fit(X, labels, sample_weight=weight).predict_proba(X)
    monkeypatch.setattr(binning, "bundle_features", lambda rows, *rest: (rows, None))
    assert_array_equal(model.fit(X, labels, sample_weight=weight).predict_proba(X), shared)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12))
def test_nothing_is_lost(seed, n, p):
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(1, 6, p).astype(np.int32)
    rows = (rng.integers(0, 6, (n, p)) % n_bins * (rng.random((n, p)) < 0.15)).astype(np.uint8)
    missing = rng.random(p) < 0.1
    rows[: n // 2, missing] = 255
    *places, n_codes = _native.tree.plan_bundles(rows, n_bins, (~missing).astype(np.uint8), 2)
    stored = np.empty((n, len(n_codes)), np.uint8)
    _native.tree.bundle_rows(rows, np.stack(places), n_codes, n_bins, stored, 2)
    column, first, usual = places
    for j in range(p):
        code = stored[:, column[j]].astype(int)
        if first[j] == 0:
            assert_array_equal(code, rows[:, j])
            continue
        others = [b for b in range(n_bins[j]) if b != usual[j]]
        back = np.full(n, usual[j])
        for k, b in enumerate(others):
            back[code == first[j] + k] = b
        assert_array_equal(back, rows[:, j])


def test_features_that_meet_outside_the_sample_part():
    n = 40_000
    rows = np.zeros((n, 3), np.uint8)
    rows[0::4, 0] = rows[1::4, 1] = rows[2::4, 2] = 1
    rows[n - 1] = [1, 0, 1]  # one row of many
    column, first, _, n_codes = _native.tree.plan_bundles(rows, np.full(3, 2, np.int32), np.ones(3, np.uint8), 1)
    assert_array_equal(n_codes, [3, 2])
    assert column[0] == column[1] != column[2]
    assert first[2] == 0


def test_sides_in_codes():
    bundles = binning.Bundles(np.array([[0, 0], [1, 3], [1, 0]], np.int32), np.array([4]), np.array([3, 2], np.int32))
    column, sides = bundles.in_codes(np.array([0, 1]), np.array([[0b011, 0, 0, 0], [0b10, 0, 0, 0]], np.uint64))
    bits = np.unpackbits(sides.view(np.uint8), axis=1, bitorder="little")[:, :4]
    assert_array_equal(column, [0, 0])
    assert_array_equal(bits, [[1, 1, 0, 1], [0, 0, 0, 1]])


def test_kernels_refuse_what_does_not_fit():
    rows, n_bins = np.zeros((5, 2), np.uint8), np.full(2, 3, np.int32)
    with pytest.raises(ValueError, match="plan_bundles"):
        _native.tree.plan_bundles(rows, n_bins[:1], np.ones(2, np.uint8), 1)
    good = np.array([[0, 0], [1, 3], [0, 0]], np.int32)
    for places, codes in ((good + 1, [5]), (good, [4]), (good, [300]), (good[:2], [5])):
        with pytest.raises(ValueError, match="bundle_rows"):
            _native.tree.bundle_rows(rows, places, np.array(codes, np.int32), n_bins, np.empty((5, 1), np.uint8), 1)
