"""Forests: quality beside scikit-learn's, out-of-bag figures, importances, quantiles, and the same bits everywhere."""

import pickle
from collections import Counter

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_circles
from sklearn.ensemble import (
    ExtraTreesRegressor as SklearnExtraTrees,
    RandomForestClassifier as SklearnClassifier,
    RandomForestRegressor as SklearnRegressor,
)
from sklearn.metrics import r2_score, roc_auc_score

import epicycle as ep
from epicycle import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    LogisticRegression,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from epicycle.exceptions import DataError, DataTypeError, NotFittedError, ParameterError
from epicycle.tree.forest._sampling import RowSamples, row_keys

# Few trees leave rows that all of them saw.
pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB:epicycle.exceptions.EpicycleWarning")

FORESTS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]


def problem(seed=0, n=1200, p=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.5 * X[:, 3] ** 2 + 0.5 * rng.normal(size=n)


def fit(make, X, y, **options):
    y = (y > np.median(y)).astype(int) if "Classifier" in make.__name__ else y
    return make(**{"n_estimators": 20, "random_state": 0, **options}).fit(X, y)


@pytest.mark.parametrize("make", FORESTS)
def test_the_same_bits_for_any_number_of_threads(make):
    X, y = problem()
    one, three = (fit(make, X, y, n_jobs=n, bootstrap=True, oob_score=True) for n in (1, 3))
    for name, array in one.trees_.items():
        assert array.tobytes() == three.trees_[name].tobytes()
    assert one.oob_score_ == three.oob_score_
    assert_array_equal(one.history_.objective, three.history_.objective)
    assert fit(make, X, y, random_state=1).trees_["nodes"].tobytes() != one.trees_["nodes"].tobytes()


@pytest.mark.parametrize("make", FORESTS)
def test_rows_have_no_order_and_whole_weights_repeat_them(make):
    X, y = problem(1, n=300)
    y = np.round(y)
    order = np.random.default_rng(0).permutation(300)
    assert_allclose(fit(make, X, y).predict(X), fit(make, X[order], y[order]).predict(X), atol=1e-9)
    w = np.random.default_rng(1).integers(0, 4, 300)
    label = (y > np.median(y)).astype(int) if "Classifier" in make.__name__ else y
    weighted = make(n_estimators=20, random_state=0).fit(X, label, sample_weight=w)
    repeated = make(n_estimators=20, random_state=0).fit(np.repeat(X, w, axis=0), np.repeat(label, w))
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)


def test_weights_that_are_not_whole_are_shares():
    X, y = problem(2, n=400)
    w = np.random.default_rng(0).uniform(0.1, 3, 400)
    a = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y, sample_weight=w)
    b = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y, sample_weight=1024 * w)
    assert_allclose(a.predict(X), b.predict(X), atol=1e-9)
    heavy = RandomForestRegressor(n_estimators=5, random_state=0).fit(X, y, sample_weight=np.where(y > 0, 1e6, 0.5))
    assert heavy.predict(X).min() > 0


@pytest.mark.slow
def test_quality_beside_scikit_learn():
    X, y = problem(3, n=4000)
    train, test = slice(0, 2000), slice(2000, None)
    label = (y > np.median(y)).astype(int)
    mine, theirs = [], []
    for seed in range(2):
        options = {"n_estimators": 60, "random_state": seed}
        for out, make in ((mine, RandomForestClassifier), (theirs, SklearnClassifier)):
            p = make(**options).fit(X[train], label[train]).predict_proba(X[test])[:, 1]
            out.append(roc_auc_score(label[test], p))
    assert np.mean(mine) > np.mean(theirs) - 0.004
    options = {"n_estimators": 40, "random_state": 0, "max_features": 0.5}
    a = RandomForestRegressor(**options).fit(X[train], y[train]).score(X[test], y[test])
    b = SklearnRegressor(**options).fit(X[train], y[train]).score(X[test], y[test])
    assert a > b - 0.015
    a = ExtraTreesRegressor(**options).fit(X[train], y[train]).score(X[test], y[test])
    b = SklearnExtraTrees(**options).fit(X[train], y[train]).score(X[test], y[test])
    assert a > b - 0.015


@pytest.mark.slow
def test_leaves_of_five_rows_are_those_of_scikit_learn():
    """Leaves count rows, not their repetitions in the bootstrap: as many leaves, and as good, over ten seeds."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9000, 12))
    label = (X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) - X[:, 3] + 2 * rng.normal(size=9000) > 0).astype(int)
    train, test = slice(0, 5000), slice(5000, None)
    scores, leaves = np.empty((2, 10)), np.empty((2, 10))
    for i, make in enumerate((RandomForestClassifier, SklearnClassifier)):
        for seed in range(10):
            model = make(20, min_samples_leaf=5, random_state=seed).fit(X[train], label[train])
            scores[i, seed] = roc_auc_score(label[test], model.predict_proba(X[test])[:, 1])
            leaves[i, seed] = np.mean([tree.get_n_leaves() for tree in model.estimators_])
            assert min(tree.tree_.n_node_samples.min() for tree in model.estimators_) >= 5
    standard_error = np.sqrt((scores.var(axis=1) / 10).sum())
    assert scores[0].mean() > scores[1].mean() - max(3 * standard_error, 0.003)
    assert abs(leaves[0].mean() / leaves[1].mean() - 1) < 0.03


def test_out_of_bag_error_tracks_the_test_error():
    X, y = problem(4, n=4000)
    train, test = slice(0, 1500), slice(1500, None)
    for leaf in (1, 20, 100):
        model = RandomForestRegressor(n_estimators=80, oob_score=True, min_samples_leaf=leaf, random_state=0)
        model.fit(X[train], y[train])
        error = np.mean((model.predict(X[test]) - y[test]) ** 2)
        assert model.history_.objective[-1] == pytest.approx(error, rel=0.12)
        assert model.oob_score_ == pytest.approx(r2_score(y[train], model.oob_prediction_))
    label = (y > 0.5).astype(int)
    model = RandomForestClassifier(n_estimators=80, oob_score=True, random_state=0).fit(X[train], label[train])
    assert model.oob_score_ == pytest.approx(model.score(X[test], label[test]), abs=0.04)
    assert model.history_.objective[-1] < model.history_.objective[0]
    assert_allclose(model.oob_decision_function_.sum(axis=1), 1.0)


def test_out_of_bag_values_are_those_of_the_trees_that_did_not_see_the_row():
    X, y = problem(5, n=200)
    for bins in (255, None):
        model = fit(RandomForestRegressor, X, y, oob_score=True, max_bins=bins, n_estimators=12)
        values = np.array([tree.predict(X) for tree in model.estimators_])
        assert_allclose(values.mean(axis=0), model.predict(X))
        samples = RowSamples(row_keys(X, y), None, None, bootstrap=True)
        outside = np.array([samples.counts(0, t) == 0 for t in range(12)])
        with np.errstate(invalid="ignore"):
            expected = (values * outside).sum(axis=0) / outside.sum(axis=0)
        assert_allclose(model.oob_prediction_, expected)


def test_samples_are_of_the_size_that_is_asked_for():
    X, y = problem(6, n=500)
    half = fit(RandomForestRegressor, X, y, max_samples=0.5)
    assert (half.trees_["weight"][half.trees_["roots"][:-1]] == 250).all()
    more = fit(RandomForestRegressor, X, y, max_samples=600)
    assert (more.trees_["weight"][more.trees_["roots"][:-1]] == 600).all()
    with pytest.raises(ParameterError, match=r"`max_sample` cannot be set if `bootstrap=False`.*max_samples=100"):
        fit(RandomForestRegressor, X, y, max_samples=100, bootstrap=False)
    with pytest.raises(ParameterError, match="oob_score=True needs rows"):
        fit(ExtraTreesRegressor, X, y, oob_score=True)


def test_importances_find_the_features_that_matter():
    X, y = problem(7, n=1500)
    model = fit(RandomForestRegressor, X, y, n_estimators=30, min_samples_leaf=3)
    impurity = model.feature_importances_
    assert impurity.sum() == pytest.approx(1.0)
    rise, error = model.permutation_importances(X, y)
    for worth in (impurity, rise):
        assert worth[:4].min() > 3 * np.abs(worth[4:]).max()
    assert (np.abs(rise[4:]) < 5 * error[4:] + 0.01).all()
    shuffled = model.permutation_importances(X, y, random_state=1)[0]
    assert_allclose(shuffled[:4], rise[:4], rtol=0.3)
    with pytest.raises(DataError, match="training data"):
        model.permutation_importances(X[:10], y[:10])


def test_proximities():
    X, y = problem(8, n=150)
    model = fit(RandomForestRegressor, X, y, min_samples_leaf=5)
    leaves = model.apply(X)
    expected = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
    assert_allclose(model.proximity(X).toarray(), expected, atol=1e-7)
    assert_allclose(model.proximity(X[:7], X).toarray(), expected[:7], atol=1e-7)
    paths, starts = model.decision_path(X)
    assert paths.shape == (150, starts[-1])
    assert_array_equal(paths[:, starts[0] : starts[1]].toarray().sum(axis=1) >= 1, True)


def test_quantiles_are_those_of_weighted_training_targets():
    X, y = problem(9, n=250)
    model = fit(RandomForestRegressor, X, y, min_samples_leaf=4, keep_leaf_values=True, n_estimators=15)
    new = problem(10, n=6)[0]
    levels = [0.0, 0.1, 0.5, 0.9, 1.0]
    found = model.predict_quantiles(new, levels)
    samples = RowSamples(row_keys(X, y), None, None, bootstrap=True)
    train, rows = model.apply(X), model.apply(new)
    weight = np.zeros((6, 250))
    for t in range(15):
        counts = samples.counts(0, t)
        for i in range(6):
            inside = (train[:, t] == rows[i, t]) * counts
            weight[i] += inside / inside.sum() / 15
    order = np.argsort(y)
    for i in range(6):
        below = np.cumsum(weight[i][order])
        for k, level in enumerate(levels[1:-1], start=1):
            assert found[i, k] == y[order][np.searchsorted(below, level - 1e-9)]
        assert found[i, 0] == y[weight[i] > 0].min()
        assert found[i, -1] == y[weight[i] > 0].max()
    assert (np.diff(found, axis=1) >= 0).all()
    with pytest.raises(NotFittedError, match="keep_leaf_values"):
        fit(RandomForestRegressor, X, y).predict_quantiles(new)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        model.predict_quantiles(new, [1.5])


def test_quantiles_cover_new_rows():
    X, y = problem(11, n=3000)
    model = RandomForestRegressor(n_estimators=60, min_samples_leaf=10, keep_leaf_values=True, random_state=0)
    low, high = model.fit(X[:1500], y[:1500]).predict_quantiles(X[1500:], [0.05, 0.95]).T
    assert np.mean((y[1500:] >= low) & (y[1500:] <= high)) == pytest.approx(0.93, abs=0.05)


@pytest.mark.parametrize("make", FORESTS)
def test_warm_start_goes_on(make):
    X, y = problem(12, n=300)
    label = (y > 0).astype(int) if "Classifier" in make.__name__ else y
    options = {"random_state": 3, "bootstrap": True, "oob_score": True}
    whole = make(n_estimators=12, **options).fit(X, label)
    part = make(n_estimators=5, warm_start=True, **options).fit(X, label)
    part.set_params(n_estimators=12).fit(X, label)
    assert_array_equal(part.predict(X), whole.predict(X))
    assert part.oob_score_ == whole.oob_score_
    assert part.history_.n_iter == part.n_iter_ == 12
    with pytest.raises(ParameterError, match="less than the 12 trees"):
        part.set_params(n_estimators=3).fit(X, label)
    # With nothing to add the fit stays as it is, whatever the data.
    with pytest.warns(UserWarning, match="does not fit new trees"):
        part.set_params(n_estimators=12).fit(X[:50], label[:50] + 5)
    assert_array_equal(part.predict(X), whole.predict(X))
    assert part.oob_score_ == whole.oob_score_
    assert part.history_.n_iter == 12


@pytest.mark.parametrize("make", [ep.DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier])
def test_a_class_without_weight_has_probability_zero(make):
    X, y = problem(2, n=90)
    label = np.digitize(y, [0.0, 1.0])
    weight = (label != 1).astype(float)
    for class_weight in (None, "balanced"):
        model = make(class_weight=class_weight, random_state=0).fit(X, label, weight)
        assert model.classes_.tolist() == [0, 1, 2]
        assert (model.predict_proba(X)[:, 1] == 0).all()
        assert set(model.predict(X)) == {0, 2}


def test_class_weights():
    X, y = problem(17)
    y = 1 - (y > np.quantile(y, 0.9)).astype(int)
    for weight in ("balanced", "balanced_subsample", {0: 7.0}):
        model = RandomForestClassifier(n_estimators=10, class_weight=weight, random_state=0, max_depth=3).fit(X, y)
        plain = RandomForestClassifier(n_estimators=10, random_state=0, max_depth=3).fit(X, y)
        assert model.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean() + 0.1


def test_categories_missing_values_and_monotone_constraints():
    rng = np.random.default_rng(13)
    level = rng.integers(0, 30, 800)
    x = rng.uniform(-1, 1, size=800)
    y = rng.normal(size=30)[level] + x + np.sin(6 * x) + 0.1 * rng.normal(size=800)
    frame = pd.DataFrame({"c": pd.Categorical(level.astype(str)), "x": x})
    frame.loc[::9, "x"] = np.nan
    model = RandomForestRegressor(n_estimators=15, random_state=0, monotonic_cst={"x": 1}).fit(frame, y)
    assert model.score(frame, y) > 0.7
    grid = pd.DataFrame({"c": pd.Categorical(["3"] * 50), "x": np.linspace(-1, 1, 50)})
    assert (np.diff(model.predict(grid)) >= -1e-12).all()
    assert np.isfinite(model.predict(pd.DataFrame({"c": pd.Categorical(["new"]), "x": [np.nan]}))).all()
    with pytest.raises(DataTypeError, match="frame"):
        model.predict(np.zeros((2, 2)))


@pytest.mark.parametrize("density", [0.02, 0.4])
def test_sparse_rows(density):
    rng = np.random.default_rng(14)
    X = rng.normal(size=(400, 40)) * (rng.random((400, 40)) < density)
    y = X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=400)
    options = {"n_estimators": 10, "random_state": 0, "min_samples_leaf": 8}  # below that, splits tie
    dense = RandomForestRegressor(max_bins=None, **options).fit(X, y)
    rows = sp.csr_array(X)
    sparse = RandomForestRegressor(max_bins=None, **options).fit(rows, y)
    assert_allclose(sparse.predict(rows), dense.predict(X), atol=1e-8)
    assert RandomForestRegressor(**options).fit(rows, y).score(rows, y) > 0.05


def test_files_give_the_forest_of_memory(tmp_path):
    X, y = problem(15, n=900)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    scan = ep.scan(tmp_path / "rows.npy", target=8, batch_rows=250)
    options = {"n_estimators": 8, "random_state": 0, "bootstrap": False, "max_features": 0.5, "oob_score": False}
    from_files = RandomForestRegressor(**options).fit(scan)
    assert_allclose(from_files.predict(X), RandomForestRegressor(**options).fit(X, y).predict(X), atol=1e-12)
    assert_allclose(from_files.predict(scan), from_files.predict(X))
    assert RandomForestRegressor(n_estimators=8, oob_score=True, random_state=0).fit(scan).oob_score_ > 0.2
    with pytest.raises(DataTypeError, match="in memory"):
        RandomForestRegressor(max_bins=None).fit(scan)


@pytest.mark.parametrize("make", FORESTS)
def test_data_that_has_little_to_say(make):
    for X, y in ((np.ones((1, 2)), [1]), (np.full((9, 2), np.nan), np.arange(9) % 2), (np.eye(5), np.ones(5))):
        model = make(n_estimators=3).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert model.certificate_.holds


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_other_criteria(criterion):
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(n_estimators=10, criterion=criterion, random_state=0, max_features="sqrt").fit(X, y)
    assert model.score(X, y) > 0.6


def test_several_outputs_and_one_tree_by_itself():
    X, y = problem(16, n=300)
    Y = np.column_stack([y, -y])
    model = RandomForestRegressor(n_estimators=6, random_state=0, oob_score=True).fit(X, Y)
    assert model.predict(X).shape == model.oob_prediction_.shape == (300, 2)
    assert_allclose(model.predict(X)[:, 0], -model.predict(X)[:, 1], atol=1e-9)
    assert model.tree(2).get_n_leaves() == model.history_.leaves[2]
    with pytest.raises(ParameterError, match="t=6; the forest has 6 trees"):
        model.tree(6)


# ------------------------------------------------------------------------------------------------ samples of trees


@pytest.mark.parametrize("make", FORESTS)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_tree_grown_on_the_sample_of_a_tree_is_that_tree(make, bootstrap):
    X, y = problem(3, n=150)
    y = (y > 0).astype(int) if "Classifier" in make.__name__ else np.round(2 * y)
    forest = make(n_estimators=4, max_features=0.5, bootstrap=bootstrap, random_state=1).fit(X, y)
    for t, rows in enumerate(forest.estimators_samples_):
        assert rows.dtype == np.int32
        assert len(rows) == 150
        alone = clone(forest.tree(t)).fit(X[rows], y[rows])
        assert_allclose(alone.tree_.value, forest.tree(t).tree_.value, atol=1e-12)
    copy = pickle.loads(pickle.dumps(forest))
    assert_array_equal(copy.predict(X), forest.predict(X))
    with pytest.raises(AttributeError, match="fit it again"):
        _ = copy.estimators_samples_


@pytest.mark.parametrize("make", FORESTS)
def test_out_of_bag_values_of_a_warm_start_that_kept_none(make):
    X, y = problem(4, n=200)
    whole = fit(make, X, y, bootstrap=True, oob_score=True)
    later = fit(make, X, y, bootstrap=True, n_estimators=8)
    later.set_params(warm_start=True, oob_score=True, n_estimators=20)
    label = (y > np.median(y)).astype(int) if "Classifier" in make.__name__ else y
    later.fit(X, label)
    assert_allclose(later._oob_sum_, whole._oob_sum_, atol=1e-12)
    assert later.oob_score_ == pytest.approx(whole.oob_score_, abs=1e-12)


# ------------------------------------------------------------------------------------------------ random thresholds


@pytest.mark.parametrize("max_bins", [255, None])
def test_random_thresholds_are_uniform_between_the_least_and_the_greatest_number(max_bins):
    """Four values, equally far apart: a root has each of three thresholds with the same probability."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, size=(400, 1)).astype(float), rng.random(400)
    forest = ExtraTreesRegressor(900, max_depth=2, max_bins=max_bins, random_state=0).fit(X, y)
    roots = forest.trees_["roots"][:-1]
    first = forest.trees_["nodes"][roots, 0].copy().view(np.float64)
    counts = Counter(np.floor(first).astype(int).tolist())
    assert counts.keys() == {0, 1, 2}
    assert max(counts.values()) - min(counts.values()) < 90  # standard deviation of a difference: 24.5
    # Three values are left on one side of a root at the first or the last: each of two thresholds is as likely.
    left = [t for t in range(900) if first[t] < 1]
    second = Counter(int(forest.tree(t).tree_.threshold[2]) for t in left)
    assert abs(second[1] - second[2]) < 4 * np.sqrt(len(left))


# ------------------------------------------------------------------------------------------------ Dask


@pytest.mark.parametrize("make", FORESTS)
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_dask_collections_give_the_forest_of_memory(make, where, request):
    if where == "cluster":
        request.getfixturevalue("client")
    X, y = problem(5, n=500)
    X[::9, 1] = np.nan
    y = (y > 0).astype(int) if "Classifier" in make.__name__ else np.column_stack([y, -y])
    weight = np.random.default_rng(0).integers(0, 3, 500).astype(float)
    options = {"n_estimators": 5, "bootstrap": True, "oob_score": True, "random_state": 0}
    chunks = ((200, 1, 150, 149),)
    lazy = [da.from_array(a, chunks=(*chunks, *[-1] * (a.ndim - 1))) for a in (X, y, weight)]
    memory, cluster = make(**options).fit(X, y, weight), make(**options).fit(*lazy)
    for name, array in memory.trees_.items():
        assert array.tobytes() == cluster.trees_[name].tobytes(), name
    assert cluster.oob_score_ == memory.oob_score_
    assert_array_equal(np.asarray(cluster.predict(lazy[0])), memory.predict(X))


def test_dask_cannot_hold_all_numbers():
    X, y = problem(5, n=50)
    with pytest.raises(DataTypeError, match="max_bins=None"):
        RandomForestRegressor(max_bins=None).fit(da.from_array(X), da.from_array(y))


# ------------------------------------------------------------------------------------------------ embedding


def test_embedding_marks_the_leaves_of_random_trees():
    X, y = make_circles(factor=0.5, random_state=0)
    model = RandomTreesEmbedding(n_estimators=30, random_state=0).fit(X)
    Z = model.transform(X)
    names = model.get_feature_names_out()
    assert Z.shape == (100, sum(tree.get_n_leaves() for tree in model.estimators_)) == (100, len(names))
    leaves = model.apply(X)
    for i in (0, 17, 99):
        marked = {f"randomtreesembedding_{t}_{leaves[i, t]}" for t in range(30)}
        assert set(names[Z[[i]].indices]) == marked
    # Inner products are shares of common leaves.
    assert_allclose((Z @ Z.T).toarray() / 30, model.proximity(X).toarray())
    assert_array_equal(RandomTreesEmbedding(30, random_state=0, sparse_output=False).fit_transform(X), Z.toarray())
    assert LogisticRegression().fit(Z, y).score(Z, y) == 1.0
    assert all(tree.get_depth() <= 5 for tree in model.estimators_)
    with pytest.raises(DataError, match="predicts nothing"):
        model.permutation_importances(X, y, out_of_bag=False)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_embedding_does_not_depend_on_the_order_of_rows_and_repeats_weights(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(30, 3)), 1)
    w = rng.integers(0, 3, 30)
    w[0] = 1
    order = rng.permutation(30)
    make = lambda: RandomTreesEmbedding(4, random_state=seed % 100)  # noqa: E731
    weighted = make().fit(X, sample_weight=w)
    for other in (make().fit(X[order], sample_weight=w[order]), make().fit(np.repeat(X, w, axis=0))):
        assert_array_equal(weighted.transform(X).toarray(), other.transform(X).toarray())
