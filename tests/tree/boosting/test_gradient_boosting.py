"""The boosted classifier and regressor: parity with scikit-learn, engines, weights, stages, constraints, files."""

import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import epicycle as ep
from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.exceptions import DataError, DataTypeError, ParameterError


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[rng.random(X.shape) < 0.05] = np.nan
    Z = np.nan_to_num(X)
    return X, Z[:, 0] * Z[:, 1] + np.sin(2 * Z[:, 2]) + 0.1 * rng.normal(size=2000)


@pytest.fixture(scope="module")
def classes(regression):
    X, y = regression
    return X, np.digitize(y, [-0.7, 0.7])


# ------------------------------------------------------------------------------------------- parity


def fitted(peer, X, y):
    """A model of scikit-learn, on one thread: its teams wait for each other on a busy machine."""
    with threadpool_limits(1, user_api="openmp"):
        return peer.fit(X, y)


def test_equals_scikit_learn_where_bins_leave_no_choice():
    """Few distinct numbers: both cut between all of them, and then the trees are the same."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 40, size=(3000, 5)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nansum(X, axis=1) + 10 * np.sin(np.nan_to_num(X[:, 0])) + rng.normal(size=3000)
    theirs = fitted(HistGradientBoostingRegressor(max_iter=30, early_stopping=False, l2_regularization=2.0), X, y)
    mine = GradientBoostingRegressor(n_estimators=30, l2_regularization=2.0).fit(X, y)
    assert_allclose(mine.predict(X), theirs.predict(X), rtol=1e-5)
    label = y > np.median(y)
    theirs = fitted(HistGradientBoostingClassifier(max_iter=10, early_stopping=False), X, label)
    mine = GradientBoostingClassifier(n_estimators=10).fit(X, label)
    assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_held_out_quality_of_classes():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(9)
    Z = rng.uniform(size=(6000, 8))
    score = 10 * np.sin(np.pi * Z[:, 0] * Z[:, 1]) + 20 * (Z[:, 2] - 0.5) ** 2 + 10 * Z[:, 3] + 5 * Z[:, 4]
    label = np.digitize(score + 2 * rng.normal(size=6000), [11.0, 16.0])
    for data, target, limit in ((X, y, 1.15), (Z, label, 1.01)):  # of 569 rows a few decide
        mine, theirs = 0.0, 0.0
        for fold in range(3):
            held = np.arange(len(target)) % 3 == fold
            model = GradientBoostingClassifier(n_estimators=40).fit(data[~held], target[~held])
            # The curvature of more than two classes is K / (K - 1) times theirs: steps are so much shorter.
            rate = 0.1 * 2 / 3 if target.max() == 2 else 0.1
            peer = HistGradientBoostingClassifier(max_iter=40, learning_rate=rate, early_stopping=False)
            fitted(peer, data[~held], target[~held])
            mine += log_loss(target[held], model.predict_proba(data[held]))
            theirs += log_loss(target[held], peer.predict_proba(data[held]))
        assert mine <= limit * theirs


def test_held_out_quality_of_numbers():
    X, y = load_diabetes(return_X_y=True)
    mine, theirs = 0.0, 0.0
    for fold in range(5):
        held = np.arange(len(y)) % 5 == fold
        model = GradientBoostingRegressor(n_estimators=40).fit(X[~held], y[~held])
        peer = fitted(HistGradientBoostingRegressor(max_iter=40, early_stopping=False), X[~held], y[~held])
        mine += np.sum((model.predict(X[held]) - y[held]) ** 2)
        theirs += np.sum((peer.predict(X[held]) - y[held]) ** 2)
    assert mine <= 1.02 * theirs


# ------------------------------------------------------------------------------------------- the same model


@pytest.mark.parametrize("options", [{}, {"subsample": 0.6, "max_features": 0.5}, {"n_iter_no_change": 3}])
def test_the_same_bits_for_any_number_of_threads(options):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60_000, 5)).astype(np.float32)
    y = np.digitize(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=60_000), [-0.5, 0.5])
    models = [
        GradientBoostingClassifier(n_estimators=3, n_jobs=k, random_state=0, **options).fit(X, y) for k in (1, 2, 7)
    ]
    for model in models[1:]:
        for name, array in models[0].trees_.items():
            assert_array_equal(model.trees_[name], array)
        assert_array_equal(model.decision_function(X), models[0].decision_function(X))
        assert_array_equal(model.history_.objective, models[0].history_.objective)


def test_containers_give_the_same_model(regression, tmp_path):
    X, y = regression
    X = np.nan_to_num(X)
    expected = GradientBoostingRegressor(n_estimators=10).fit(X, y).predict(X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for other in (frame, np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X), frame.to_numpy().tolist()):
        model = GradientBoostingRegressor(n_estimators=10).fit(other, y)
        assert_array_equal(model.predict(other), expected)
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    scan = ep.scan(tmp_path / "rows.parquet", target="y", batch_rows=300)
    model = GradientBoostingRegressor(n_estimators=10).fit(scan)
    assert_array_equal(model.predict(scan), expected)
    assert_array_equal(model.predict(frame), expected)
    assert model.feature_names_in_.tolist() == list("abcdef")


def test_out_of_core_with_a_sample_equals_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("epicycle.tree._binning.SAMPLE_ROWS", 500)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3))
    y = (X[:, 0] > X[:, 1]).astype(float)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    options = {"n_estimators": 5, "random_state": 4, "n_iter_no_change": 5, "validation_fraction": 0.2}
    scanned = GradientBoostingClassifier(**options).fit(ep.scan(tmp_path / "rows.npy", target=3, batch_rows=700))
    in_memory = GradientBoostingClassifier(**options).fit(X, y)
    for name, array in in_memory.trees_.items():
        assert_array_equal(scanned.trees_[name], array)
    assert_array_equal(scanned.history_.validation, in_memory.history_.validation)


@pytest.mark.parametrize("kind", ["parquet", "csv", "npy", "feather"])
def test_missing_values_in_files(regression, tmp_path, kind):
    X, y = regression
    assert np.isnan(X).any()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    whole = np.arange(len(y)) % 7
    frame["g"] = pd.array(np.where(whole == 3, None, whole), dtype="Int64")
    frame["h"] = pd.array(np.where(whole == 5, None, whole > 2), dtype="boolean")
    in_memory = frame.drop(columns="y").astype(float)
    path = tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, frame.astype(float)[[*"abcdefgh", "y"]].to_numpy())
    elif kind == "csv":
        frame.assign(h=frame["h"].astype("Int64")).to_csv(path, index=False)
    else:
        getattr(frame, f"to_{kind}")(path)
    scan = ep.scan(path, target=8 if kind == "npy" else "y", batch_rows=300)
    expected = GradientBoostingRegressor(n_estimators=5).fit(in_memory, y)
    model = GradientBoostingRegressor(n_estimators=5).fit(scan)
    for name, array in expected.trees_.items():
        assert_array_equal(model.trees_[name], array)
    assert_array_equal(model.predict(scan), expected.predict(in_memory))
    validated = model.set_params(n_iter_no_change=3).fit(
        in_memory.to_numpy() if kind == "npy" else in_memory, y, X_val=scan
    )
    assert_allclose(validated.history_.validation, validated.history_.objective)
    frame.loc[3, "y"] = np.nan
    frame.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="NaN"):
        GradientBoostingRegressor().fit(ep.scan(tmp_path / "bad.parquet", target="y"))


def test_single_precision_gives_nearly_the_same(regression):
    X, y = regression
    X = X.astype(np.float32)
    double = GradientBoostingRegressor(n_estimators=10).fit(X.astype(np.float64), y)
    single = GradientBoostingRegressor(n_estimators=10).fit(X, y)
    assert_array_equal(single.predict(X), double.predict(X.astype(np.float64)))


def test_predictions_for_dask_are_lazy(classes):
    da = pytest.importorskip("dask.array")
    X, y = classes
    model = GradientBoostingClassifier(n_estimators=5).fit(X, y)
    D = da.from_array(X, chunks=(700, -1))
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(D)
        assert isinstance(lazy, da.Array)
        assert_array_equal(lazy.compute(), getattr(model, method)(X))


def test_save_and_load_with_everything_on(classes, tmp_path):
    X, y = classes
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(g=pd.Categorical(np.where(X[:, 0] > 0, "up", "down")))
    model = GradientBoostingClassifier(
        n_estimators=8, n_iter_no_change=3, subsample=0.8, random_state=0, class_weight="balanced"
    ).fit(frame, np.array(["low", "mid", "top"])[y])
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    with pytest.raises(DataTypeError, match="learnt categories"):
        loaded.predict(X)


def test_a_damaged_model_cannot_make_the_kernel_leave_its_arrays(regression):
    X, y = regression
    model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    for row, word in ((0, 2**32 - 1), (0, 0), (5, 2**55)):
        trees = {name: array.copy() for name, array in model.trees_.items()}
        trees["nodes"][row, 1] = word
        broken = GradientBoostingRegressor(n_estimators=3).fit(X, y)
        broken.trees_ = trees
        with pytest.raises(ValueError, match="well-formed"):
            broken.predict(X)


# ------------------------------------------------------------------------------------------- weights


def test_whole_weights_repeat_rows_and_zero_removes_them(regression):
    X, y = regression
    w = np.random.default_rng(5).integers(0, 4, len(y))
    options = {"n_estimators": 15, "min_samples_leaf": 1, "min_child_weight": 20.0}
    weighted = GradientBoostingRegressor(**options).fit(X, y, sample_weight=w)
    repeated = GradientBoostingRegressor(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-5, atol=1e-5)
    some = w > 0
    zero = GradientBoostingRegressor(n_estimators=15).fit(X, y, sample_weight=some.astype(float))
    without = GradientBoostingRegressor(n_estimators=15).fit(X[some], y[some], sample_weight=np.ones(some.sum()))
    assert_array_equal(zero.predict(X), without.predict(X))


def test_class_weights_are_weights(classes):
    X, y = classes
    X = np.round(2 * X)  # cuts follow the weights of rows, not those of classes: here there is no choice
    factors = {0: 1.0, 1: 3.0, 2: 0.5}
    by_class = GradientBoostingClassifier(n_estimators=5, class_weight=factors).fit(X, y)
    by_row = GradientBoostingClassifier(n_estimators=5).fit(X, y, sample_weight=np.array([1.0, 3.0, 0.5])[y])
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


# ------------------------------------------------------------------------------------------- rounds


def test_stages_end_at_the_prediction(classes, regression):
    X, y = classes
    model = GradientBoostingClassifier(n_estimators=6).fit(X, y)
    for stages, final in (
        ("staged_predict", "predict"),
        ("staged_predict_proba", "predict_proba"),
        ("staged_decision_function", "decision_function"),
    ):
        every = list(getattr(model, stages)(X))
        assert len(every) == 6
        if final == "predict":
            assert_array_equal(every[-1], model.predict(X))
        else:
            assert_allclose(every[-1], getattr(model, final)(X), rtol=1e-12)
    losses = [log_loss(y, p) for p in model.staged_predict_proba(X)]
    assert_allclose(losses, model.history_.objective, rtol=1e-9)
    X, y = regression
    model = GradientBoostingRegressor(n_estimators=6).fit(X, y)
    stages = list(model.staged_predict(X))
    assert_allclose([np.mean((y - s) ** 2) / 2 for s in stages], model.history_.objective, rtol=1e-9)


def test_a_warm_start_goes_on_where_the_fit_ended(classes):
    X, y = classes
    model = GradientBoostingClassifier(n_estimators=4, warm_start=True).fit(X, y)
    model.set_params(n_estimators=9).fit(X, y)
    whole = GradientBoostingClassifier(n_estimators=9).fit(X, y)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-10)
    assert_allclose(model.history_.objective, whole.history_.objective, rtol=1e-10)
    assert model.n_iter_ == model.n_estimators_ == 9
    with pytest.raises(DataError, match="classes of the earlier fit"):
        model.fit(X, y + 1)
    assert model.n_estimators_ == 9


@pytest.mark.parametrize("tol", [1e-7, 1e-2])
def test_early_stopping_looks_at_the_worst_of_the_rounds_before(classes, tol):
    X, y = classes
    rng = np.random.default_rng(6)
    held = rng.random(len(y)) < 0.3
    model = GradientBoostingClassifier(n_estimators=400, learning_rate=0.5, n_iter_no_change=5, tol=tol)
    model.fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
    losses = [log_loss(y[held], p) for p in model.staged_predict_proba(X[held])]
    assert_allclose(model.history_.validation, losses, rtol=1e-9)
    stale = [losses[i] + tol >= max(losses[i - 5 : i]) for i in range(5, len(losses))]
    assert stale.index(True) + 6 == len(losses) == model.n_estimators_ < 400
    validated = GradientBoostingClassifier(n_estimators=7).fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
    assert validated.n_estimators_ == 7
    plain = GradientBoostingClassifier(n_estimators=7).fit(X[~held], y[~held])
    assert_array_equal(validated.predict_proba(X), plain.predict_proba(X))


def test_early_stopping_keeps_the_best_round(classes):
    X, y = classes
    held = np.random.default_rng(6).random(len(y)) < 0.3
    model = GradientBoostingClassifier(
        n_estimators=400, learning_rate=0.5, n_iter_no_change=5, keep_best=True, tol=1e-7
    )
    model.fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
    validation = model.history_.validation
    assert len(validation) < 400
    assert model.n_estimators_ == np.argmin(validation) + 1
    assert len(validation) - model.n_estimators_ == 5
    assert log_loss(y[held], model.predict_proba(X[held])) == pytest.approx(validation.min(), rel=1e-9)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_held_out_rows_are_those_of_train_test_split(classes, kind, hashed, monkeypatch, tmp_path):
    X, codes = classes
    X = np.nan_to_num(X)
    y, cls = (codes, GradientBoostingClassifier) if kind == "classes" else (X[:, 0] + codes, GradientBoostingRegressor)
    options = {"n_estimators": 8, "n_iter_no_change": 3, "random_state": 5, "validation_fraction": 0.25}
    if hashed:  # more rows than scikit-learn's draw is for
        monkeypatch.setattr("epicycle.tree.boosting._held_out.SPLIT_ROWS", 100)
    model = cls(**options).fit(X, y)
    by_class = {"stratify": y} if kind == "classes" else {}
    train, test = map(np.sort, train_test_split(np.arange(len(y)), test_size=0.25, random_state=5, **by_class))
    expected = cls(**options).fit(X[train], y[train], X_val=X[test], y_val=y[test])
    same = np.array_equal(model.predict(X), expected.predict(X)) and model.n_estimators_ == expected.n_estimators_
    assert same != hashed
    assert model.trees_["count"][0] == len(train)
    # From files and partitions the same rows are held out.
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(170, -1)), da.from_array(y, chunks=170)
    for data in ([ep.scan(tmp_path / "rows.npy", target=X.shape[1], batch_rows=300)], lazy):
        other = cls(**options).fit(*data)
        for name, array in model.trees_.items():
            assert_array_equal(other.trees_[name], array)


def test_rows_kept_apart_are_not_learnt_from(regression):
    X, y = regression
    model = GradientBoostingRegressor(n_estimators=10, n_iter_no_change=10, validation_fraction=0.25, random_state=1)
    model.fit(X, y)
    assert model.trees_["count"][0] == 1500
    again = GradientBoostingRegressor(**model.get_params()).fit(X, y)
    assert_array_equal(again.predict(X), model.predict(X))
    assert not np.array_equal(model.set_params(random_state=2).fit(X, y).predict(X), again.predict(X))


def test_samples_follow_the_seed(regression):
    X, y = regression
    options = {"n_estimators": 10, "subsample": 0.5, "max_features": 0.5}
    a, b, c = (GradientBoostingRegressor(**options, random_state=s).fit(X, y) for s in (0, 0, 1))
    assert_array_equal(a.predict(X), b.predict(X))
    assert not np.array_equal(a.predict(X), c.predict(X))
    roots = a.trees_["roots"][:-1]
    assert 900 < a.trees_["count"][roots].mean() < 1100
    assert a.score(X, y) > 0.25


def test_validation_data_that_does_not_fit(classes):
    X, y = classes
    with pytest.raises(DataError, match="X_val is provided, but y_val was not"):
        GradientBoostingClassifier().fit(X, y, X_val=X)
    with pytest.raises(DataError, match=r"class [789] is not among"):
        GradientBoostingClassifier().fit(X, y, X_val=X, y_val=y + 7)
    with pytest.raises(DataError, match="X has 5 features"):
        GradientBoostingClassifier().fit(X, y, X_val=X[:, :5], y_val=y)
    with pytest.raises(ParameterError, match="leaves none of 5 rows"):
        GradientBoostingRegressor(n_iter_no_change=2, validation_fraction=0.9).fit(X[:5], y[:5])


# ------------------------------------------------------------------------------------------- constraints


@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_constraints_hold_everywhere(sign):
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, size=(3000, 3))
    y = sign * np.sin(4 * X[:, 0]) + sign * X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=3000)
    free = GradientBoostingRegressor(n_estimators=40).fit(X, y)
    model = GradientBoostingRegressor(n_estimators=40, monotonic_cst=[sign, 0, 0]).fit(X, y)
    grid = np.linspace(-2, 2, 200)
    worst = {name: 0.0 for name in ("free", "bound")}
    for probe in rng.uniform(-2, 2, size=(60, 3)):
        line = np.column_stack([grid, np.full(200, probe[1]), np.full(200, probe[2])])
        worst["free"] = max(worst["free"], -(sign * np.diff(free.predict(line))).min())
        worst["bound"] = max(worst["bound"], -(sign * np.diff(model.predict(line))).min())
    assert worst["bound"] <= 1e-12
    assert worst["free"] > 0.1
    assert model.score(X, y) > 0.7


def test_constraints_by_name_and_their_errors():
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    y = -frame["a"] + frame["b"]
    by_name = GradientBoostingRegressor(n_estimators=5, monotonic_cst={"a": -1}).fit(frame, y)
    by_number = GradientBoostingRegressor(n_estimators=5, monotonic_cst=[-1, 0]).fit(frame, y)
    assert_array_equal(by_name.predict(frame), by_number.predict(frame))
    for wrong, message in (
        ([1], "shape"),
        ([2, 0], "expected -1, 0 or 1"),
        ({"c": 1}, "unexpected feature names: .'c'."),
        ({"a": "+"}, r"monotonic_cst\['a'\] must be either -1, 0 or 1"),
        ({5: 1}, "a number from 0 to 1"),
    ):
        with pytest.raises(ParameterError, match=message):
            GradientBoostingRegressor(monotonic_cst=wrong).fit(frame, y)
    with pytest.raises(ParameterError, match="cannot be kept"):
        GradientBoostingRegressor(loss="absolute_error", monotonic_cst=[1, 0]).fit(frame, y)
    with pytest.raises(DataError, match="3 classes"):
        GradientBoostingClassifier(monotonic_cst=[1, 0]).fit(frame, np.arange(500) % 3)


def paths(model):
    """The sets of features on the ways from root to leaf."""
    nodes, roots = model.trees_["nodes"][:, 1], model.trees_["roots"]
    for root in roots[:-1]:
        stack = [(0, frozenset())]
        while stack:
            i, above = stack.pop()
            meta = int(nodes[root + i])
            if meta >> 57 & 1:
                yield above
                continue
            below = above | {meta >> 32 & 0xFFFFFF}
            stack += [(meta & 0xFFFFFFFF, below), ((meta & 0xFFFFFFFF) + 1, below)]


def test_features_that_may_not_interact_never_meet(regression):
    X, y = regression
    groups = [[0, 1], [1, 2], [3]]
    model = GradientBoostingRegressor(n_estimators=20, interaction_cst=groups).fit(X, y)
    allowed = [set(g) for g in groups] + [{4, 5}]
    met = set(paths(model))
    assert all(any(features <= group for group in allowed) for features in met)
    assert frozenset({0, 1}) in met
    free = set(paths(GradientBoostingRegressor(n_estimators=20).fit(X, y)))
    assert any(not any(features <= group for group in allowed) for features in free)


# ------------------------------------------------------------------------------------------- odds and ends


def test_importances_find_what_matters(regression):
    X, y = regression
    model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    assert set(np.argsort(model.feature_importances_)[-3:]) == {0, 1, 2}
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.importance("split").sum() == pytest.approx(1.0)
    inner = model.trees_["gain"] > 0
    assert inner.sum() == len(model.trees_["gain"]) - 20 * 31
    with pytest.raises(ParameterError, match="kind='weight'"):
        model.importance("weight")


def test_data_with_nothing_to_learn():
    X = np.column_stack([np.ones(100), np.full(100, np.nan)])
    for y in (np.zeros(100), np.arange(100.0)):
        model = GradientBoostingRegressor().fit(X, y)
        assert_allclose(model.predict(X), y.mean())
        assert model.n_estimators_ == 100
        assert model.history_.leaves.max() == 1
        assert model.converged_
    one = GradientBoostingRegressor().fit([[1.0]], [3.0])
    assert_allclose(one.predict([[7.0]]), [3.0])
    constant = GradientBoostingRegressor(min_samples_leaf=1).fit(np.arange(50.0)[:, None], np.full(50, 0.1))
    assert (constant.apply([[3.0]]) == 0).all()  # every tree is a single leaf
    assert_allclose(constant.predict([[3.0]]), [0.1], rtol=1e-15)


def test_a_perfect_fit_ends():
    X = np.arange(40.0)[:, None]
    model = GradientBoostingRegressor(min_samples_leaf=1, learning_rate=1.0, max_leaf_nodes=None).fit(X, X[:, 0] ** 2)
    assert_allclose(model.predict(X), X[:, 0] ** 2, rtol=1e-6)
    gained = model.history_.leaves > 1
    assert gained.any()
    assert not gained.all()
    assert (np.diff(model.history_.objective[gained]) < 0).all()
    assert (np.diff(model.history_.objective[~gained]) == 0).all()
    assert len(model.estimators_) == len(list(model.staged_predict(X[:2]))) == 100


def test_limits_of_trees(regression):
    X, y = regression
    depth = GradientBoostingRegressor(n_estimators=3, max_depth=2, max_leaf_nodes=None).fit(X, y)
    assert np.diff(depth.trees_["roots"]).max() <= 7
    leaves = GradientBoostingRegressor(n_estimators=3, max_leaf_nodes=5).fit(X, y)
    assert (np.diff(leaves.trees_["roots"]) == 9).all()
    gain = GradientBoostingRegressor(n_estimators=3, min_split_gain=50.0).fit(X, y)
    split = gain.trees_["gain"][gain.trees_["gain"] > 0]
    assert len(split)
    assert split.min() > 50.0


@pytest.mark.serial
def test_an_interrupt_ends_a_long_fit():
    code = """
import numpy as np, epicycle as ep
rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 20)); y = X[:, 0] * X[:, 1]
model = ep.GradientBoostingRegressor(n_estimators=100_000, max_leaf_nodes=200)
print("ready", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", vars(model).get("trees_"), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.readline() == "interrupted None\n"
        assert time.monotonic() - began < 2.0
