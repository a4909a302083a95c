"""Every tree is the one that an exhaustive search finds."""

import numpy as np
import pytest
from exhaustive import best_split, grow
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor

CASES = {
    "plain": {},
    "weights": {"weighted": True},
    "missing": {"missing": 0.3},
    "weights and missing": {"weighted": True, "missing": 0.2},
    "few rows a leaf": {"min_samples_leaf": 7, "missing": 0.1},
    "little weight a leaf": {"min_child_weight": 4.0, "weighted": True},
    "l2": {"l2_regularization": 3.0},
    "levels": {"categorical": (0, 2)},
    "levels and missing": {"categorical": (1,), "missing": 0.3, "weighted": True},
}


def problem(seed, *, n=40, p=3, levels=6, missing=0.0, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, size=(n, p)).astype(float)
    X[:, 0] += rng.integers(0, 3 * levels, size=n) if p > 0 else 0
    X[rng.random((n, p)) < missing] = np.nan
    y = rng.normal(size=n) + np.nan_to_num(X[:, 1]) / 3
    return X, y, rng.uniform(0.2, 3.0, n) if weighted else None


def ranks(X):
    """The bins of numbers that are all told apart: their ranks; 255 for what is missing."""
    bins = np.full(X.shape, 255)
    for j in range(X.shape[1]):
        there = ~np.isnan(X[:, j])
        bins[there, j] = np.unique(X[there, j], return_inverse=True)[1]
    return bins


@pytest.mark.parametrize("case", CASES)
def test_trees_of_least_squares_are_those_of_exhaustive_search(case):
    options = dict(CASES[case])
    categorical = options.pop("categorical", ())
    shape = {name: options.pop(name) for name in ("missing", "weighted") if name in options}
    for seed in range(25):
        X, y, weight = problem(seed, levels=5 if categorical else 6, **shape)
        if categorical:  # every set of levels is tried: few of them
            X[:, 0] = np.minimum(X[:, 0], 5)
        model = GradientBoostingRegressor(
            n_estimators=1,
            learning_rate=1.0,
            max_leaf_nodes=5,
            categorical_features=list(categorical) or None,
            categorical_smoothing=0.0,
            **{"min_samples_leaf": 1, "min_child_weight": 0.0, **options},
        ).fit(X, y, sample_weight=weight)
        w = np.ones(len(y)) if weight is None else weight
        start = np.average(y, weights=weight)
        value = grow(
            ranks(X),
            w * (start - y),
            w,
            max_leaves=5,
            categorical=categorical,
            l2=model.l2_regularization,
            min_samples=model.min_samples_leaf,
            min_child_weight=model.min_child_weight,
        )
        expected = np.sum(w * (start + value - y) ** 2)
        # Splits may tie; then trees differ, but not what the first split gains, nor (nearly) what they all do.
        gain, _ = best_split(
            ranks(X),
            w * (start - y),
            w,
            np.arange(len(y)),
            categorical=categorical,
            l2=model.l2_regularization,
            min_samples=model.min_samples_leaf,
            min_child_weight=model.min_child_weight,
        )
        assert model.trees_["gain"][0] == pytest.approx(gain, rel=1e-6)
        if weight is not None:  # no ties
            assert np.sum(w * (model.predict(X) - y) ** 2) == pytest.approx(expected, rel=1e-6)
            assert_allclose(model.predict(X), start + value, rtol=1e-5, atol=1e-5)


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.2]), rounds=st.integers(1, 4))
def test_rounds_of_logistic_loss_are_newton_steps_on_exhaustive_trees(seed, missing, rounds):
    X, y, weight = problem(seed, n=60, missing=missing, weighted=True)
    y = (y > np.median(y)).astype(int)
    model = GradientBoostingClassifier(
        n_estimators=rounds, learning_rate=0.3, max_leaf_nodes=4, min_samples_leaf=3, l2_regularization=0.5
    ).fit(X, y, sample_weight=weight)
    p = np.average(y, weights=weight)
    s = np.full(len(y), np.log(p / (1 - p)))
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-s))
        s += 0.3 * grow(ranks(X), weight * (p - y), weight * p * (1 - p), max_leaves=4, min_samples=3, l2=0.5)
    assert_allclose(model.decision_function(X), s, rtol=1e-4, atol=1e-4)


def test_a_leaf_takes_exactly_as_many_rows_as_it_must():
    """The curvature of a row says little about how many rows there are; the count is kept all the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = (rng.random(3000) < 1 / (1 + np.exp(-6 * X[:, 0] - 3 * X[:, 1]))).astype(int)
    for least in (1, 2, 17, 50):
        model = GradientBoostingClassifier(n_estimators=20, min_samples_leaf=least, max_leaf_nodes=40).fit(X, y)
        assert model.trees_["count"].min() >= least
        if least > 1:
            assert model.trees_["count"].min() < 2 * least  # the limit is what stops it


def test_missing_values_learn_their_direction():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1))
    X[::4] = np.nan
    for sign in (1.0, -1.0):
        y = np.where(np.isnan(X[:, 0]), sign, np.where(X[:, 0] > 0, 1.0, -1.0))
        model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, max_leaf_nodes=2).fit(X, y)
        assert_allclose(model.predict([[np.nan], [1.0], [-1.0]]), [sign, 1.0, -1.0], atol=1e-12)


def test_missing_values_that_the_fit_never_saw_go_with_the_majority():
    X = np.r_[np.zeros(300), np.ones(100)][:, None]
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, X[:, 0])
    assert_allclose(model.predict([[np.nan]]), [0.0], atol=1e-12)


def test_infinite_values_are_the_largest_and_smallest():
    X = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf] * 30)[:, None]
    y = np.array([5.0, 1.0, 2.0, 3.0, -5.0] * 30)
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-12)
