"""Shapley values against their definition, on small trees of every kind, and their sum on larger ones."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import epicycle as ep
from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.exceptions import NotFittedError


def known_value(trees, tree, x, known, at=0):
    """The prediction of one tree when only the features `known` are: an average over training rows for the others."""
    root = trees["roots"][tree]
    word, meta = trees["nodes"][root + at]
    if int(meta) >> 57 & 1:
        return trees["values"][root + at]
    left, feature = int(meta) & 0xFFFFFFFF, int(meta) >> 32 & 0xFFFFFF
    if feature in known:
        v = x[feature]
        if np.isnan(v):
            goes = bool(int(meta) >> 56 & 1)
        elif int(meta) >> 58 & 1:
            row = trees["levels"][int(word)]
            goes = bool(int(row[int(v) // 64]) >> (int(v) % 64) & 1)
        else:
            goes = v <= np.uint64(word).view(np.float64)
        return known_value(trees, tree, x, known, left + (not goes))
    counts = trees["count"][root + left : root + left + 2]
    parts = [known_value(trees, tree, x, known, left + side) for side in (0, 1)]
    return float(counts @ parts) / counts.sum()


def by_definition(model, x):
    """Shapley values of the sum of trees: (p, K)."""
    p, K, trees = len(x), len(model._start_), model.trees_
    phi = np.zeros((p, K))
    for tree in range(len(trees["roots"]) - 1):
        v = {
            S: known_value(trees, tree, x, frozenset(S)) for size in range(p + 1) for S in combinations(range(p), size)
        }
        for i in range(p):
            for S in v:
                if i not in S:
                    weight = factorial(len(S)) * factorial(p - len(S) - 1) / factorial(p)
                    phi[i, tree % K] += weight * (v[tuple(sorted((*S, i)))] - v[S])
    return phi


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 5), leaves=st.integers(2, 14), missing=st.booleans())
def test_the_definition(seed, p, leaves, missing):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(120, p)), 1)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.normal(size=120) + np.nan_to_num(X[:, 0] * X[:, -1])
    model = GradientBoostingRegressor(n_estimators=3, max_leaf_nodes=leaves, min_samples_leaf=2, learning_rate=0.5)
    phi = model.fit(X, y).shap_values(X[:4])
    for x, row in zip(X, phi, strict=False):
        np.testing.assert_allclose(row, by_definition(model, x)[:, 0], rtol=1e-10, atol=1e-12)


def test_the_definition_with_categories_and_classes():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {"a": rng.normal(size=300), "b": pd.Categorical(rng.choice(list("uvwxyz"), 300)), "c": rng.normal(size=300)}
    )
    y = (X["a"] + X["b"].isin(["u", "x"]) > 0.5).astype(int) + (X["c"] > 0.8)
    model = GradientBoostingClassifier(n_estimators=4, min_samples_leaf=3).fit(X, y)
    phi = model.shap_values(X)
    assert phi.shape == (300, 3, 3)
    codes = np.column_stack([X["a"], [list(model.categories_[1]).index(v) for v in X["b"]], X["c"]])
    for i in range(3):
        np.testing.assert_allclose(phi[i], by_definition(model, codes[i]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_they_add_up_to_the_score(dtype, subsample):
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(
        n_estimators=60, max_leaf_nodes=40, min_samples_leaf=2, subsample=subsample, random_state=0
    )
    X = X.astype(dtype)
    phi = model.fit(X, y).shap_values(X)
    assert np.abs(phi.sum(axis=1) + model.average_score_ - model.decision_function(X)).max() < 1e-9
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=30).fit(X, y)
    phi = model.shap_values(X)
    assert np.abs(phi.sum(axis=1) + model.average_score_ - model.decision_function(X)).max() < 1e-9


@pytest.mark.slow
def test_deep_trees_stay_exact():
    """A chain of conditions, hundreds deep, on a few features and on many."""
    rng = np.random.default_rng(0)
    for p in (2, 60):
        X = rng.normal(size=(3000, p))
        y = np.exp(3 * X[:, 0]) + X.sum(axis=1)
        model = GradientBoostingRegressor(n_estimators=5, max_leaf_nodes=None, min_samples_leaf=1).fit(X, y)
        phi = model.shap_values(X[:50])
        error = np.abs(phi.sum(axis=1) + model.average_score_ - model.predict(X[:50])).max()
        assert error < 1e-9 * np.abs(y).max()


def test_the_average_score_is_that_of_the_training_rows():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=40).fit(X, y)
    assert model.average_score_ == pytest.approx(model.predict(X).mean(), rel=1e-12)


def test_a_feature_that_no_tree_uses_has_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:, 1] = 0.0
    phi = GradientBoostingRegressor(n_estimators=10).fit(X, X[:, 0]).shap_values(X)
    assert not phi[:, 1].any()
    assert phi[:, 0].any()


def test_every_kind_of_input_gives_the_same(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((2000, 6)) < 0.5, 0.0, rng.normal(size=(2000, 6)))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    expected = model.shap_values(X)
    np.testing.assert_array_equal(model.shap_values(sp.csr_array(X)), expected)
    np.testing.assert_array_equal(model.shap_values(np.asfortranarray(X)), expected)
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(model.shap_values(ep.scan(tmp_path / "X.npy", batch_rows=300)), expected)
    for n_jobs in (1, 2, 4):
        model.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(model.shap_values(X), expected)
    model.save(tmp_path / "m.epi")
    np.testing.assert_array_equal(ep.load(tmp_path / "m.epi").shap_values(X), expected)


def test_before_fit():
    with pytest.raises(NotFittedError):
        GradientBoostingRegressor().shap_values(np.ones((2, 2)))
