"""Categories of many levels: smoothed means of the target, and no row learns from its own."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from real_tables import DATA, needs
from sklearn.metrics import r2_score

import epicycle as ep
from epicycle.automl.tables._level_means import LevelMeans, _means
from epicycle.automl.tables._pair_factors import pair_factors
from epicycle.recommend import CollaborativeFiltering


def effects(n=3_000, levels=600, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.integers(levels, size=n)
    effect = rng.normal(scale=spread, size=levels)
    return level, effect, 5 + effect[level] + 0.5 * rng.normal(size=n)


def test_means_are_the_best_linear_predictors():
    """With known variances the posterior mean of a level is (n m / s2 + M / t2) / (n / s2 + 1 / t2)."""
    level, effect, y = effects(n=20_000)
    found = _means(level, y[:, None], np.ones(len(y)), 600)[:, 0]
    n = np.bincount(level, minlength=600)
    m = np.bincount(level, y, minlength=600) / n
    expected = (n * m / 0.25 + y.mean() / effect.var()) / (n / 0.25 + 1 / effect.var())
    assert_allclose(found[:600], expected, atol=0.01)
    assert found[600] == y.mean()
    weighted = _means(level[:3_000], y[:3_000, None], np.arange(3_000) % 3 * 1.0, 600)
    repeated = np.repeat(np.arange(3_000), np.arange(3_000) % 3)
    assert_allclose(weighted, _means(level[repeated], y[repeated, None], np.ones(len(repeated)), 600), rtol=1e-10)


def test_levels_that_mean_nothing_are_no_features():
    """Random levels of few rows: means of the rows themselves would explain a fifth of the noise."""
    rng = np.random.default_rng(1)
    X, y = (
        np.column_stack([rng.integers(1_000, size=4_000).astype(float), rng.normal(size=4_000)]),
        rng.normal(size=4_000),
    )
    model = LevelMeans(ep.RidgeCV(), [0]).fit(X, y)
    assert np.var(model.predict(X)) < 0.02 * np.var(y)


@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes"])
def test_a_table_with_many_levels(kind, tmp_path):
    level, _, y = effects()
    rng = np.random.default_rng(2)
    if kind != "numbers":
        y = np.digitize(y, [5] if kind == "two classes" else [4.5, 5.5]).astype(str)
    table = pa.table({"x": rng.normal(size=len(y)), "shop": [f"s{k:03d}" for k in level], "y": y})
    run = ep.train(table, target="y", time=5, models=["DecisionTree"], seed=0)
    encoder = run.model_.encoder_
    assert list(encoder.wide_levels_) == ["shop"]
    assert len(encoder.wide_levels_["shop"]) > 254
    constant = run.baseline_test
    assert run.test.score > constant + (0.5 if kind == "numbers" else 0.15)
    run.model_.save(tmp_path / "m.epi")
    again = ep.load(tmp_path / "m.epi")
    assert np.array_equal(again.predict(table), run.model_.predict(table))
    new = pa.table({"x": [0.0, 0.0], "shop": ["unheard of", None]})
    assert len(set(again.predict(new).tolist())) == 1
    assert again.certificate_ == run.model_.model_.estimator_.certificate_


def ratings(n=12_000, users=300, films=400, noise=0.3, seed=0):
    """Pairs whose target has effects of both levels and of their products."""
    rng = np.random.default_rng(seed)
    u, i = rng.integers(users, size=n), rng.integers(films, size=n)
    x, z = rng.normal(size=(users, 2)), rng.normal(size=(films, 2))
    y = 3 + 0.5 * rng.normal(size=users)[u] + 0.5 * rng.normal(size=films)[i] + (x[u] * z[i]).sum(axis=1)
    return u, i, y + noise * rng.normal(size=n)


def test_pair_factors_are_the_predictions_of_collaborative_filtering():
    u, i, y = ratings()
    weight = np.ones(len(y))
    found = pair_factors(u, i, y, weight, (300, 400))
    peer = CollaborativeFiltering(n_factors=20, max_iter=30, tol=1e-2, random_state=0, n_jobs=1)
    peer.fit(np.column_stack([u, i]), y)
    assert_allclose(found.predict(u, i), peer.predict(np.column_stack([u, i])), rtol=1e-12)
    new = found.predict(np.array([-1, 0, -1]), np.array([-1, -1, 0]))
    assert new[0] == peer.mean_
    assert_allclose(new[1:], [peer.mean_ + peer.user_bias_[0], peer.mean_ + peer.item_bias_[0]])
    assert pair_factors(u[:500], i[:500], y[:500], weight[:500], (300, 400)) is None
    assert pair_factors(u, i, np.ones(len(y)), weight, (300, 400)) is None


@pytest.mark.parametrize("kind", ["numbers", "two classes"])
def test_pairs_explain_what_means_do_not(kind):
    """The means of the levels leave the products: R2 of at most 0.2. The factors find them, and no row sees its own."""
    u, i, y = ratings()
    X = np.column_stack([u, i]).astype(float)
    train, test = np.arange(9_000), np.arange(9_000, 12_000)
    if kind == "two classes":
        y = (y > 3).astype(int)
        model = LevelMeans(ep.LogisticRegression(), [0, 1]).fit(X[train], y[train])
        assert np.mean(model.predict(X[test]) == y[test]) > 0.75
        return
    model = LevelMeans(ep.GradientBoostingRegressor(n_estimators=60, random_state=0), [0, 1]).fit(X[train], y[train])
    assert r2_score(y[test], model.predict(X[test])) > 0.7
    alone = LevelMeans(ep.GradientBoostingRegressor(n_estimators=60, random_state=0), [0]).fit(X[train], y[train])
    assert alone.pair_ is None
    # The fit is as good on its own rows as on others, up to what boosting adds.
    assert r2_score(y[train], model.predict(X[train])) < r2_score(y[test], model.predict(X[test])) + 0.25


def test_pairs_without_meaning_are_no_features():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(300, size=6_000), rng.integers(300, size=6_000)]).astype(float)
    y = rng.normal(size=6_000)
    model = LevelMeans(ep.RidgeCV(), [0, 1]).fit(X, y)
    assert model.pair_ is not None
    new = rng.normal(size=6_000)
    assert np.mean((new - model.predict(X)) ** 2) < 1.03 * np.var(new)


def test_pairs_are_kept_in_the_file(tmp_path):
    u, i, y = ratings(6_000)
    table = pa.table({"user_id": u, "film_id": i, "y": y})
    kinds = {"user_id": "category", "film_id": "category", "y": "target"}
    model = ep.TableModel(ep.DecisionTreeRegressor(max_leaf_nodes=20), kinds).fit(table)
    assert model.model_.pair_ is not None
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").predict(table), model.predict(table))
    assert np.isfinite(model.predict(pa.table({"user_id": [10_000, None], "film_id": [1, None]}))).all()


@pytest.mark.slow
@needs("movielens_small_ratings.csv.gz")
def test_ratings_of_users_and_films():
    run = ep.train(
        DATA / "movielens_small_ratings.csv.gz",
        target="rating",
        task="regression",
        metric="rmse",
        order=None,
        drop=["timestamp"],
        time=25,
        models=["GradientBoosting"],
    )
    assert {p.name: p.kind for p in run.profile} == {
        "userId": "category",
        "movieId": "category",
        "rating": "target",
        "timestamp": "drop",
    }
    # The mean alone: 1.04; means of users and films added up: 0.87; alternating least squares: 0.85.
    assert run.test.score < 0.85
