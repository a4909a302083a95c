"""Categories of many levels: smoothed means of the target, and no row learns from its own."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from real_tables import DATA, needs

import epicycle as ep
from epicycle.automl.tables._level_means import LevelMeans, _means


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
    assert run.test.score < 0.88  # the means alone: 1.04; means of users and films added up: 0.87
