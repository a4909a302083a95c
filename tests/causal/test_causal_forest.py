"""The causal forest: its walk and variances in NumPy, truth on simulated studies, honesty, reproducibility."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import epicycle as ep
from epicycle import TreatmentEffect, _native
from epicycle.exceptions import DataError, ParameterError


def simulated(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    t = (rng.random(n) < 0.5 + 0.2 * X[:, 1]).astype(int)
    return X, X[:, 1] + t * effects(X) + 0.5 * rng.normal(size=n), t


def effects(X):
    return np.where(X[:, 0] > 0, 2.0, 0.0)


@pytest.fixture(scope="module")
def forest():
    return TreatmentEffect("cate", "causal_forest", n_estimators=200).fit(*simulated()[:2], treatment=simulated()[2])


def test_effects_and_intervals_of_rows(forest):
    X = np.random.default_rng(5).uniform(-0.9, 0.9, size=(400, 4))
    X = X[np.abs(X[:, 0]) > 0.15]
    assert np.sqrt(np.mean((forest.predict(X) - effects(X)) ** 2)) < 0.25
    low, high = forest.predict_interval(X)
    assert np.mean((low <= effects(X)) & (effects(X) <= high)) > 0.8
    assert np.median(high - low) < 1.0
    assert_allclose((low + high) / 2, forest.predict(X))
    assert abs(forest.effect_ - 1) < 3 * forest.standard_error_


def test_walk_and_variance_in_numpy(forest):
    """Effects are ratios of sums over trees; variances follow from the means of pairs of trees."""
    grown, X = forest._effects_, np.random.default_rng(1).uniform(-1, 1, size=(20, 4))
    bins = np.column_stack([np.searchsorted(edges, x) for edges, x in zip(grown.edges, X.T, strict=True)])
    A = np.empty((20, 200))
    B = np.empty((20, 200))
    for k in range(200):
        start = grown.first[k]
        for i in range(20):
            node = 0
            while grown.splits[start + node, 0] >= 0:
                feature, cut, left = grown.splits[start + node]
                node = left + int(bins[i, feature] > cut)
            A[i, k], B[i, k] = grown.moments[start + node]
    tau = A.sum(1) / B.sum(1)
    assert_allclose(forest.predict(X), tau, rtol=1e-12)
    psi = (A - tau[:, None] * B).reshape(20, 100, 2)
    between = np.mean(psi.mean(2) ** 2, axis=1)
    noise = np.mean(psi**2, axis=(1, 2)) - between
    estimate, error = between - noise, np.maximum(between, noise) * np.sqrt(2 / 100)
    ratio = estimate / error
    expected = (estimate + error * norm.pdf(ratio) / norm.cdf(ratio)) / B.mean(1) ** 2
    assert_allclose(grown.standard_errors(X) ** 2, expected, rtol=1e-8)


def test_trees_split_where_the_effect_changes(forest):
    roots = forest._effects_.splits[forest._effects_.first[:-1]]
    assert np.mean(roots[:, 0] == 0) > 0.9
    cuts = forest._effects_.edges[0][roots[roots[:, 0] == 0, 1]]
    assert abs(np.median(cuts)) < 0.05


def test_one_leaf_is_the_slope_of_the_residuals():
    rng = np.random.default_rng(0)
    t, y = rng.normal(size=400), rng.normal(size=400)
    w = rng.integers(1, 4, 400).astype(float)
    bins = rng.integers(0, 5, size=(400, 2)).astype(np.uint8)
    first, splits, moments = _native.tree.grow_causal(bins, y, t, w, 200, 2, 0.5, 0.05, 3000, 2, 1, 1)
    assert (splits[:, 0] == -1).all()
    assert len(first) == 6001
    assert_allclose(moments.mean(0), [np.average(t * y, weights=w), np.average(t * t, weights=w)], atol=0.02)


def test_same_bits_for_any_number_of_threads_and_units(forest, tmp_path):
    X, y, t = simulated()
    chosen = {"n_estimators": 200}
    for n_jobs in (1, 2):
        again = TreatmentEffect("cate", "causal_forest", n_jobs=n_jobs, **chosen).fit(X, y, treatment=t)
        assert np.array_equal(again.predict(X), forest.predict(X))
    other = TreatmentEffect("cate", "causal_forest", random_state=1, **chosen).fit(X, y, treatment=t)
    assert not np.array_equal(other.predict(X), forest.predict(X))
    scaled = TreatmentEffect("cate", "causal_forest", **chosen).fit(X, 1e12 * y, treatment=t)
    assert_allclose(scaled.predict(X), 1e12 * forest.predict(X), rtol=1e-2, atol=2e10)
    forest.save(tmp_path / "forest.epi")
    loaded = ep.load(tmp_path / "forest.epi")
    assert np.array_equal(loaded.predict_interval(X)[0], forest.predict_interval(X)[0])


def test_errors(forest):
    X, y, t = simulated(60)
    with pytest.raises(DataError, match="a causal forest needs"):
        TreatmentEffect("cate", "causal_forest", min_samples_leaf=10).fit(X, y, treatment=t)
    learner = TreatmentEffect("cate", "t_learner").fit(X, y, treatment=t)
    with pytest.raises(ParameterError, match="no intervals of the effects of rows"):
        learner.predict_interval(X)
    bins = np.zeros((60, 4), dtype=np.uint8)
    with pytest.raises(ValueError, match="grow_causal: expected"):
        _native.tree.grow_causal(bins, y[:5], y, y, 5, 4, 0.4, 0.05, 2, 2, 0, 1)
    with pytest.raises(ValueError, match="bins below 128"):
        _native.tree.grow_causal(bins + 200, y, y, y, 5, 4, 0.4, 0.05, 2, 2, 0, 1)
    loop = np.array([[0, 1, 0], [-1, 0, 0], [-1, 0, 0]], dtype=np.int32)
    with pytest.raises(ValueError, match="predict_causal: expected"):
        _native.tree.predict_causal(np.array([0, 3]), loop, np.ones((3, 2)), 1, bins, np.zeros(60), np.zeros(60), 1)


@pytest.mark.slow
def test_row_intervals_cover_and_their_width_is_right():
    """Over studies the estimate at a point varies as its standard error says."""
    at = np.array([[0.5, 0.0, 0.0, 0.0], [-0.5, 0.3, 0.2, 0.0]])
    found, errors = [], []
    for seed in range(50):
        X, y, t = simulated(800, seed)
        model = TreatmentEffect("cate", "causal_forest", n_estimators=600, n_folds=2).fit(X, y, treatment=t)
        found.append(model.predict(at))
        errors.append(model._effects_.standard_errors(at))
    assert_allclose(np.mean(found, axis=0), effects(at), atol=0.15)
    assert_allclose(np.mean(errors, axis=0), np.std(found, axis=0), rtol=0.4)
    covered = np.abs(np.array(found) - effects(at)) < 1.96 * np.array(errors)
    assert covered.mean() > 0.88
