"""The estimator: what it takes, what it predicts and recommends, and what it refuses."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import epicycle as ep
from epicycle.exceptions import ConvergenceError, DataError, NotFittedError
from epicycle.recommend import CollaborativeFiltering

EVERY = ["als", "gradient", "implicit", "bpr", "content"]


def fitted(ratings, method="als", **chosen):
    pairs, value = ratings
    if method in ("implicit", "bpr"):
        value = np.maximum(np.round(value), 0)
    chosen = {"n_factors": 3, "random_state": 0, "max_iter": 400, **chosen}
    features = {"item_features": {i: [np.sin(i), i / 10] for i in range(30)}} if method == "content" else {}
    return CollaborativeFiltering(method, **chosen).fit(pairs, value, **features)


@pytest.mark.parametrize("method", EVERY)
def test_threads_save_and_load_and_clone(ratings, method, tmp_path):
    pairs, _ = ratings
    first = fitted(ratings, method, n_jobs=1, max_iter=50 if method == "bpr" else 400)
    for n_jobs in (2, 4):
        again = clone(first).set_params(n_jobs=n_jobs)
        other = fitted(ratings, **{k: v for k, v in again.get_params().items() if v is not None})
        assert np.array_equal(other.user_factors_, first.user_factors_)
        assert np.array_equal(other.item_factors_, first.item_factors_)
    first.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert np.array_equal(loaded.predict(pairs), first.predict(pairs))
    assert loaded.certificate_ == first.certificate_
    assert loaded.history_ == first.history_
    assert loaded.recommend(3)[0].tolist() == first.recommend(3)[0].tolist()
    assert first.converged_
    assert str(first.certificate_) in first.describe()
    for name in inspect.signature(CollaborativeFiltering).parameters:
        assert re.search(rf"^\s*(\w+, )*{name}(, \w+)* : ", CollaborativeFiltering.__doc__, re.M), name


def test_scikit_learn_takes_it_for_an_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are for tables of features
        check_estimator(CollaborativeFiltering())
    with pytest.raises(NotFittedError, match="CollaborativeFiltering"):
        CollaborativeFiltering().predict([(1, 2)])


def test_tables_of_every_kind_give_the_same_model(ratings, tmp_path):
    pairs, value = ratings
    names = np.array([f"u{u:02d}" for u in range(40)])[pairs[:, 0]]
    reference = fitted(ratings).predict(pairs)
    frame = pd.DataFrame({"when": value, "who": names, "film": pairs[:, 1], "stars": value})
    chosen = {"n_factors": 3, "random_state": 0, "user": "who", "item": "film", "rating": "stars"}
    frame.to_parquet(tmp_path / "r.parquet")
    frame.to_csv(tmp_path / "r.csv", index=False)
    tables = [frame, pl.DataFrame(frame.to_dict("list")), ep.scan(tmp_path / "r.parquet"), ep.scan(tmp_path / "r.csv")]
    for table in tables:
        model = CollaborativeFiltering(**chosen).fit(table)
        assert_allclose(model.predict(table), reference, atol=1e-9)
        assert model.items_.dtype.kind == "i"
        assert model.recommend("u03", 2)[0].tolist() == fitted(ratings).recommend(3, 2)[0].tolist()
    plain = {"n_factors": 3, "random_state": 0}
    lists = [(str(u), int(i)) for u, i in zip(names, pairs[:, 1], strict=True)]
    assert_allclose(CollaborativeFiltering(**plain).fit(lists, value).predict(lists), reference, atol=1e-9)
    triples = np.column_stack([pairs, value])
    assert_allclose(CollaborativeFiltering(**plain).fit(triples).predict(pairs), reference, atol=1e-9)
    matrix = sp.coo_array((value, pairs.T), shape=(40, 30)).tocsc()
    assert_allclose(CollaborativeFiltering(**plain).fit(matrix).predict(pairs), reference, atol=1e-9)
    single = CollaborativeFiltering(**plain).fit(pairs.astype(np.float32), value.astype(np.float32))
    assert_allclose(single.predict(pairs), reference, atol=1e-5)


def test_dask_adds_up_the_normal_equations(ratings, client, monkeypatch):
    import dask.dataframe as dd

    from epicycle.recommend import _alternating

    monkeypatch.setattr(_alternating, "_PASS_BYTES", 6000)  # several passes for one side
    pairs, value = ratings
    weight = np.random.default_rng(0).integers(0, 3, size=900)
    frame = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "rating": value})
    chosen = CollaborativeFiltering(n_factors=3, random_state=0, center="item", max_iter=2)
    with ep.config(on_nonconvergence="ignore"):
        memory = clone(chosen).fit(frame, sample_weight=weight)
        parts = dd.from_pandas(frame, npartitions=2)
        cluster = clone(chosen).fit(parts, sample_weight=dd.from_pandas(pd.Series(weight), npartitions=2))
    assert_allclose(cluster.predict(pairs), memory.predict(pairs), atol=1e-8)
    assert_allclose(cluster.history_.objective, memory.history_.objective, rtol=1e-8)
    assert cluster.certificate_.value == pytest.approx(memory.certificate_.value, rel=1e-6)
    assert cluster.recommend(5)[0].tolist() == memory.recommend(5)[0].tolist()
    assert cluster.n_ratings_ == memory.n_ratings_ == np.count_nonzero(weight)
    with pytest.raises(TypeError, match="fitted in memory"):
        CollaborativeFiltering("bpr").fit(parts)


def test_dask_adds_up_implicit_feedback(ratings, client):
    import dask.dataframe as dd

    pairs, value = ratings
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "plays": value[first] - 2.0})  # dislikes, too
    weight = pd.Series(rng.choice([0.0, 0.5, 1.0, 2.0], size=len(frame)))
    frame.loc[:5, "plays"] = 0.0  # nothing is known of these
    chosen = CollaborativeFiltering("implicit", n_factors=3, random_state=0, max_iter=3)
    parts = dd.from_pandas(frame, npartitions=3)
    with ep.config(on_nonconvergence="ignore"):
        memory = clone(chosen).fit(frame, sample_weight=weight)
        cluster = clone(chosen).fit(parts, sample_weight=dd.from_pandas(weight, npartitions=3))
    assert_allclose(cluster.predict(pairs), memory.predict(pairs), atol=1e-8)
    assert_allclose(cluster.history_.objective, memory.history_.objective, rtol=1e-8)
    assert cluster.certificate_.value == pytest.approx(memory.certificate_.value, rel=1e-6)
    assert cluster.recommend(5)[0].tolist() == memory.recommend(5)[0].tolist()
    with pytest.raises(DataError, match="one row for each"):
        clone(chosen).fit(dd.concat([parts, parts.partitions[[0]]]))


def test_recommendations_are_the_best_unseen_items(ratings):
    pairs, _ = ratings
    model = fitted(ratings, clip=False)
    for user in (0, 11):
        scores = model.predict([(user, i) for i in range(30)])
        seen = set(pairs[pairs[:, 0] == user, 1].tolist())
        order = [i for i in np.argsort(-scores).tolist() if i not in seen]
        items, values = model.recommend(user, 5)
        assert items.tolist() == order[:5]
        assert_allclose(values, scores[order[:5]])
        assert model.recommend(user, 100)[0].tolist() == order
        assert model.recommend(user, 3, exclude_seen=False)[0].tolist() == np.argsort(-scores).tolist()[:3]
    assert [items.tolist() for items, _ in model.recommend_all(n=4)][11] == model.recommend(11, 4)[0].tolist()
    Y = model.item_factors_
    far = np.linalg.norm(Y - Y[4], axis=1)
    items, distances = model.similar_items(4, 3, metric="euclidean")
    assert items.tolist() == np.argsort(far).tolist()[1:4]
    assert_allclose(distances, np.sort(far)[1:4])
    cosine = Y @ Y[4] / np.linalg.norm(Y, axis=1) / np.linalg.norm(Y[4])
    assert model.similar_items(4, 3)[0].tolist() == np.argsort(-cosine).tolist()[1:4]


def test_new_users_get_means_and_new_items_their_features(ratings):
    pairs, value = ratings
    by_item = fitted(ratings, center="item", biases=False, clip=False)
    for i in (0, 9):
        assert by_item.predict([(99, i)])[0] == pytest.approx(value[pairs[:, 1] == i].mean())
    model = fitted(ratings, clip=False)
    assert_allclose(
        model.predict([(99, 4), (99, 99), (4, 99)]),
        model.mean_ + np.array([model.item_bias_[4], 0, model.user_bias_[4]]),
    )
    assert model.recommend(99, 30)[0].tolist() == np.argsort(-model.item_bias_, kind="stable").tolist()
    # Features from which the factors of items follow: an item without ratings then gets the right ones.
    F = np.column_stack([model.item_factors_, model.item_bias_])
    warm = pairs[:, 1] != 7
    cold = CollaborativeFiltering(n_factors=3, random_state=0, clip=False, feature_reg=1e-6)
    cold.fit(pairs[warm], value[warm], item_features={i: F[i] for i in range(30)})
    error = cold.predict(pairs[~warm]) - value[~warm]
    assert np.mean(error**2) < 0.25 * np.var(value[~warm])
    assert 7 in cold.recommend(pairs[~warm][np.argmax(value[~warm]), 0], 10)[0]


def test_predictions_stay_within_the_ratings(ratings):
    pairs, value = ratings
    loose, tight = fitted(ratings, clip=False), fitted(ratings)
    cross = np.array([(u, i) for u in range(40) for i in range(30)])
    assert_allclose(tight.predict(cross), np.clip(loose.predict(cross), value.min(), value.max()))
    assert tight.score(pairs, value) > 0.8
    assert tight.score(pairs, value) == pytest.approx(
        1 - np.sum((value - tight.predict(pairs)) ** 2) / np.sum((value - value.mean()) ** 2)
    )


@pytest.mark.parametrize("method", ["implicit", "bpr"])
def test_ranked_methods_find_what_users_take_next(method):
    rng = np.random.default_rng(1)
    group = np.arange(30) % 3  # users of a group take items of the group
    likes = np.array([(u, i) for u in range(60) for i in np.flatnonzero(group == u % 3)])
    held = rng.random(len(likes)) < 0.2
    model = CollaborativeFiltering(method, n_factors=4, random_state=0, max_iter=100).fit(likes[~held])
    assert model.score(likes[held]) > 0.95
    trace = model.history_.objective
    assert trace[-1] < trace[0]
    assert not {tuple(p) for p in likes[~held].tolist()} & {
        (u, i) for u in range(60) for i in model.recommend(u)[0].tolist()
    }


@pytest.mark.parametrize(
    ("arguments", "y", "X", "message"),
    [
        ({}, None, [(1, 2), (3, 4)], "requires y to be passed"),
        ({}, [1.0, np.nan], [(1, 2), (3, 4)], "NaN"),
        ({}, [1.0], [(1, 2), (3, 4)], "inconsistent|rows|samples"),
        ({}, [1.0, 2.0], [1, 2], "pairs"),
        ({}, [1.0, 2.0], [[1], [2]], "two columns"),
        ({}, [1.0, 2.0], [(1, 2), (None, 4)], "user of row 1 is missing"),
        ({}, [1.0, 2.0], np.array([("a", 2), (3, 4)], dtype=object), "different types|mixes"),
        ({"method": "content"}, [1.0, 2.0], [(1, 2), (3, 4)], "item_features"),
        ({"method": "bpr"}, [0.0, 0.0], [(1, 2), (3, 4)], "no positive rating"),
        ({"solver": "sgd"}, [1.0, 2.0], [(1, 2), (3, 4)], "solver='sgd'"),
        ({"user": "who"}, [1.0, 2.0], pd.DataFrame({"a": [1, 2], "b": [3, 4]}), "user='who'"),
        ({"reg": 0.0}, [1.0, 2.0], [(1, 2), (3, 4)], "reg=0.0"),
        ({"n_factors": 10**9}, [1.0, 2.0], [(1, 2), (3, 4)], "n_factors"),
        ({}, [1.0, 2.0], sp.eye_array(2), "sparse"),
    ],
)
def test_what_is_refused_is_named(arguments, y, X, message):
    with pytest.raises(ValueError, match=message):
        CollaborativeFiltering(**arguments).fit(X, y)


@pytest.mark.parametrize("method", EVERY)
@pytest.mark.parametrize("size", [1e60, 1e-150, 0.0])
def test_extreme_ratings_give_numbers(method, size):
    rng = np.random.default_rng(2)
    pairs, value = rng.integers(5, size=(30, 2)), size * np.ones(30)
    value[::2] *= 2
    features = {"item_features": {i: [float(i)] for i in range(5)}} if method == "content" else {}
    model = CollaborativeFiltering(method, n_factors=3, random_state=0, max_iter=20)
    with ep.config(on_nonconvergence="ignore"):
        if method == "bpr" and size == 0:
            with pytest.raises(ValueError, match="no positive rating"):
                model.fit(pairs, value)
            return
        model.fit(pairs, value, **features)
        with pytest.raises(ValueError, match="y: "):
            clone(model).fit(pairs, value + 1e100, **features)
    assert np.isfinite(model.predict(pairs)).all()
    assert np.isfinite(model.certificate_.value)


def test_a_checkpoint_goes_on_where_a_fit_stopped(ratings, tmp_path):
    pairs, value = ratings
    whole = fitted(ratings)

    class StopAt:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...
        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            return fitted_estimator is not None and fitted_estimator.n_iter_ >= 4

    clone(whole).set_callbacks(StopAt(), ep.Checkpoint(tmp_path / "run.epi")).fit(pairs, value)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi")
    assert resumed.history_.n_iter == 4
    resumed.fit(pairs, value)
    assert np.array_equal(resumed.user_factors_, whole.user_factors_)
    assert resumed.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("options", [{"learning_rate": 5.0}, {"reg": 1e6}])
def test_steps_of_a_ranking_that_are_too_long_are_an_error(options):
    pairs = np.random.default_rng(0).integers(0, 8, (60, 2))
    with pytest.raises(ConvergenceError, match="smaller learning_rate or reg"):
        CollaborativeFiltering("bpr", random_state=0, **options).fit(pairs, np.ones(60))
