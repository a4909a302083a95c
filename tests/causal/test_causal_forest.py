"""The causal forest: its walk and variances in NumPy, truth on simulated studies, honesty, reproducibility."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student, truncnorm

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
    """Effects are ratios of sums over trees; variances follow from the mean squares of groups of trees."""
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
    psi = (A - tau[:, None] * B).reshape(20, 20, 10) / B.mean(1)[:, None, None]
    between, within = psi.mean(2).var(1, ddof=1), psi.var(2, ddof=1).mean(1) / 10
    estimate, error = between - within, np.sqrt(2 * between**2 / 19 + 2 * within**2 / (20 * 9))
    law = truncnorm(-estimate / error, np.inf, loc=estimate, scale=error)  # of V, under a flat prior on V > 0
    V = law.mean()
    variance = V + between / 20
    assert_allclose(grown.standard_errors(X) ** 2, variance, rtol=1e-6)
    rows = 5 * np.mean(psi**2, axis=(1, 2)) / V
    degrees = 2 * variance**2 / (law.var() + 2 * V**2 / rows)
    assert degrees.min() > 2
    low, high = forest.predict_interval(X, level=0.9)
    assert_allclose((high - low) / 2, student.ppf(0.95, degrees) * np.sqrt(variance), rtol=1e-6)


def test_mean_squares_of_groups_give_the_variance_of_the_half_and_its_error():
    """Leaves that hold draws of a known law: the variance is right on average, and t intervals cover as they say."""
    rng = np.random.default_rng(0)
    V, N, groups, n = 1.0, 9.0, 60, 4000
    psi = np.sqrt(V) * rng.normal(size=(n, groups, 1)) + np.sqrt(N) * rng.normal(size=(n, groups, 10))
    sampled = np.sqrt(V) * rng.normal(size=n)  # by the rows: the same for all trees
    splits = np.tile(np.array([-1, 0, 0], dtype=np.int32), (10 * groups, 1))
    first = np.arange(10 * groups + 1)
    out = np.empty((n, 3))
    for i in range(n):
        moments = np.column_stack([psi[i].ravel() + sampled[i], np.ones(10 * groups)])
        found = [np.empty(1) for _ in range(3)]
        _native.tree.predict_causal(first, splits, moments, 10, 1000, np.zeros((1, 1), dtype=np.uint8), *found, 1)
        out[i] = np.concatenate(found)
    effect, variance, degrees = out.T
    assert np.var(effect) == pytest.approx(V + (V + N / 10) / groups, rel=0.1)
    assert np.mean(variance) == pytest.approx(np.var(effect), rel=0.1)
    covered = np.abs(effect) < student.ppf(0.975, degrees) * np.sqrt(variance)
    assert covered.mean() == pytest.approx(0.955, abs=0.015)


@pytest.mark.parametrize("trees", [2, 7, 25])
def test_few_trees_have_wide_intervals_or_none(trees):
    X, y, t = simulated(400)
    model = TreatmentEffect("cate", "causal_forest", n_estimators=trees, n_folds=2).fit(X, y, treatment=t)
    assert np.isfinite(model.predict(X)).all()
    low, high = model.predict_interval(X)
    assert len(model._effects_.first) > trees
    assert np.isnan(high).all() if trees < 4 else np.isfinite(high).mean() > 0.5
    assert not (high < low).any()


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
        _native.tree.predict_causal(np.array([0, 3]), loop, np.ones((3, 2)), 1, 1, bins, *np.zeros((3, 60)), 1)


@pytest.mark.slow
def test_row_intervals_cover_and_their_width_is_right():
    """Over studies the estimate at a point varies as its standard error says."""
    at = np.array([[0.5, 0.0, 0.0, 0.0], [-0.5, 0.3, 0.2, 0.0]])
    found, errors, halves = [], [], []
    for seed in range(50):
        X, y, t = simulated(800, seed)
        model = TreatmentEffect("cate", "causal_forest", n_estimators=600, n_folds=2).fit(X, y, treatment=t)
        found.append(model.predict(at))
        errors.append(model._effects_.standard_errors(at))
        halves.append(model._effects_.half_widths(at, 0.95))
    assert_allclose(np.mean(found, axis=0), effects(at), atol=0.15)
    assert_allclose(np.mean(errors, axis=0), np.std(found, axis=0), rtol=0.4)
    covered = np.abs(np.array(found) - effects(at)) < np.array(halves)
    assert covered.mean() > 0.9
