"""Decision trees against scikit-learn, and what they do with all kinds of data."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier, DecisionTreeRegressor as SklearnRegressor

import epicycle as ep
from epicycle import DecisionTreeClassifier, DecisionTreeRegressor
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.tree.cart._tree import prune

mpl.use("Agg")


def regression(seed=0, n=400, p=5, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + noise * rng.normal(size=n), rng.uniform(0.5, 2, n)


def equal_trees(mine, theirs):
    """The same splits and values, walked side by side; nodes of fewer than 8 rows tie too easily to be compared."""
    pairs = [(0, 0)]
    while pairs:
        i, j = pairs.pop()
        assert mine.n_node_samples[i] == theirs.n_node_samples[j]
        assert_allclose(mine.impurity[i], theirs.impurity[j], atol=1e-9)
        assert_allclose(mine.value[i].ravel(), theirs.value[j].ravel(), atol=1e-9)
        assert (mine.children_left[i] < 0) == (theirs.children_left[j] < 0)
        if mine.children_left[i] < 0 or mine.n_node_samples[i] < 8:
            continue
        assert mine.feature[i] == theirs.feature[j]
        assert_allclose(mine.threshold[i], theirs.threshold[j], rtol=1e-6, atol=1e-7)
        pairs.append((mine.children_left[i], theirs.children_left[j]))
        pairs.append((mine.children_right[i], theirs.children_right[j]))


RULES = [
    {"max_depth": 4, "min_samples_leaf": 8},
    {"max_leaf_nodes": 15},
    {"min_samples_split": 60},
    {"min_weight_fraction_leaf": 0.05},
    {"min_impurity_decrease": 0.01, "min_samples_leaf": 0.02},
]


@pytest.mark.parametrize("rules", RULES, ids=lambda r: next(iter(r)))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "absolute_error"])
def test_the_tree_of_scikit_learn(criterion, weighted, rules):
    X, y, w = regression()
    y = np.exp(y / 2) if criterion == "poisson" else y
    if criterion == "absolute_error" and not weighted:
        w = np.random.default_rng(5).uniform(0.9, 1.1, len(y))  # medians of equal weights tie
    elif not weighted:
        w = None
    mine = DecisionTreeRegressor(criterion=criterion, **rules).fit(X, y, sample_weight=w)
    theirs = SklearnRegressor(criterion=criterion, random_state=0, **rules).fit(X, y, sample_weight=w)
    equal_trees(mine.tree_, theirs.tree_)
    assert_allclose(mine.predict(X), theirs.predict(X), atol=1e-9)
    if criterion != "absolute_error":
        assert_allclose(mine.feature_importances_, theirs.feature_importances_, atol=1e-9)


@pytest.mark.parametrize(
    "rules", [RULES[0], {"max_leaf_nodes": 12, "min_samples_leaf": 12}], ids=lambda r: next(iter(r))
)
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
def test_the_classification_tree_of_scikit_learn(criterion, n_classes, rules):
    X, y, w = regression(1)
    label = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    options = {"criterion": criterion, "class_weight": {0: 2.5}, **rules}
    mine = DecisionTreeClassifier(**options).fit(X, label, sample_weight=w)
    theirs = SklearnClassifier(random_state=0, **options).fit(X, label, sample_weight=w)
    equal_trees(mine.tree_, theirs.tree_)
    assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    assert_array_equal(mine.predict(X), theirs.predict(X))


def test_several_outputs():
    X, y, w = regression(2)
    Y = np.column_stack([y, X[:, 0] ** 2, -y + 3])
    mine = DecisionTreeRegressor(max_depth=4, min_samples_leaf=10).fit(X, Y, sample_weight=w)
    theirs = SklearnRegressor(max_depth=4, min_samples_leaf=10).fit(X, Y, sample_weight=w)
    equal_trees(mine.tree_, theirs.tree_)
    assert mine.predict(X).shape == (400, 3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_monotone_constraints_hold_on_random_probes(criterion, sign):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(800, 3))
    y = np.exp(sign * X[:, 0] + np.sin(5 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=800))
    model = DecisionTreeRegressor(criterion=criterion, monotonic_cst=[sign, 0, 0], min_samples_leaf=5).fit(X, y)
    assert model.get_n_leaves() > 20
    probes = np.repeat(rng.uniform(-1, 1, size=(60, 3)), 80, axis=0)
    probes[:, 0] = np.tile(np.linspace(-1, 1, 80), 60)
    assert (sign * np.diff(model.predict(probes).reshape(60, 80), axis=1) >= -1e-12).all()


def test_monotone_trees_fit_about_as_well_as_scikit_learns():
    """Splits that would leave the bounds are not made here, and cut off there."""
    X, y, _ = regression(4)
    rules = {"monotonic_cst": [1, 0, 0, -1, 0], "max_depth": 5, "min_samples_leaf": 8}
    mine, theirs = DecisionTreeRegressor(**rules).fit(X, y), SklearnRegressor(**rules).fit(X, y)
    assert np.mean((mine.predict(X) - y) ** 2) < 1.05 * np.mean((theirs.predict(X) - y) ** 2)


# ------------------------------------------------------------------- pruning


@pytest.mark.parametrize("kind", ["regression", "gini"])
def test_the_pruning_path_of_scikit_learn(kind):
    X, y, w = regression(5, n=300)
    rules = {"min_samples_leaf": 4}
    if kind == "gini":
        X, y = load_breast_cancer(return_X_y=True)
        X, w = X.astype(np.float32), np.random.default_rng(0).uniform(0.5, 2, len(y))
    make, peer = (
        (DecisionTreeClassifier, SklearnClassifier) if kind == "gini" else (DecisionTreeRegressor, SklearnRegressor)
    )
    mine = make(**rules).cost_complexity_pruning_path(X, y, sample_weight=w)
    theirs = peer(random_state=0, **rules).cost_complexity_pruning_path(X, y, sample_weight=w)
    real = (theirs.ccp_alphas > 1e-12) | (np.arange(len(theirs.ccp_alphas)) == 0)  # it splits pure nodes by rounding
    assert_allclose(mine.ccp_alphas, theirs.ccp_alphas[real], atol=1e-12)
    assert_allclose(mine.impurities, theirs.impurities[real], atol=1e-12)
    for alpha in mine.ccp_alphas[[1, len(mine.ccp_alphas) // 2, -2]] * 1.0001:
        a = make(ccp_alpha=alpha, **rules).fit(X, y, sample_weight=w)
        b = peer(ccp_alpha=alpha, random_state=0, **rules).fit(X, y, sample_weight=w)
        assert a.get_n_leaves() == b.get_n_leaves()
        assert "of all prunings" in a.certificate_.meaning


def all_prunings(left, node=0):
    """Sets of leaves of every pruned subtree."""
    if left[node] < 0:
        return [{node}]
    pairs = [a | b for a in all_prunings(left, left[node]) for b in all_prunings(left, left[node] + 1)]
    return [{node}, *pairs]


@pytest.mark.parametrize("alpha", [0.005, 0.02, 0.05, 0.2])
def test_a_pruned_tree_is_the_best_of_all_prunings(alpha):
    X, y, _ = regression(6, n=60)
    tree = DecisionTreeRegressor(max_leaf_nodes=9).fit(X, y).tree_
    risk = tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    totals = [(sum(risk[list(s)]) + alpha * len(s), len(s)) for s in all_prunings(tree.children_left.tolist())]
    pruned = prune(tree, alpha)
    leaf = pruned.is_leaf
    share = pruned.weighted_n_node_samples / pruned.weighted_n_node_samples[0]
    mine = float((pruned.impurity * share)[leaf].sum() + alpha * leaf.sum())
    assert mine == pytest.approx(min(totals)[0], rel=1e-12)


# ------------------------------------------------------------------- data


def test_missing_values_of_scikit_learn():
    X, y, w = regression(7)
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    mine = DecisionTreeRegressor(max_leaf_nodes=12).fit(X, y, sample_weight=w)
    theirs = SklearnRegressor(max_leaf_nodes=12).fit(X, y, sample_weight=w)
    assert_allclose(mine.predict(X), theirs.predict(X), atol=1e-9)


def test_what_the_fit_never_missed_goes_with_the_majority():
    X = np.r_[np.zeros(30), np.ones(70)][:, None]
    for column in (X, np.repeat(X, 8, axis=0) + 1e-3 * np.random.default_rng(0).random((800, 1))):
        model = DecisionTreeRegressor(max_depth=1).fit(column, column[:, 0].round())
        assert model.predict([[np.nan]])[0] == pytest.approx(1.0)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_sparse_columns_give_the_tree_of_dense_ones(criterion, splitter):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.3)
    X[rng.random(X.shape) < 0.05] = np.nan
    y, w = np.nan_to_num(X[:, 0]) + rng.normal(size=300), rng.uniform(0.5, 2, 300)
    options = {"criterion": criterion, "splitter": splitter, "random_state": 1, "max_leaf_nodes": 25}
    dense = DecisionTreeRegressor(**options).fit(X, y, sample_weight=w)
    sparse = DecisionTreeRegressor(**options).fit(sp.csc_array(X), y, sample_weight=w)
    assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), atol=1e-9)
    assert_allclose(sparse.tree_.threshold, dense.tree_.threshold, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_same_bits_for_any_number_of_threads(n_jobs):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(30_000, 8)), rng.normal(size=30_000)
    X[:, 7] = rng.integers(0, 9, 30_000)
    one = DecisionTreeRegressor(max_depth=6, n_jobs=1).fit(X, y).tree_
    many = DecisionTreeRegressor(max_depth=6, n_jobs=n_jobs).fit(X, y).tree_
    assert one.nodes.tobytes() == many.nodes.tobytes()
    assert one.value.tobytes() == many.value.tobytes()


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), k=st.integers(1, 4))
def test_weights_repeat_rows_and_rows_have_no_order(seed, k):
    rng = np.random.default_rng(seed)
    X, w = rng.integers(0, 12, size=(50, 3)).astype(float), rng.integers(0, 4, 50)
    y = rng.integers(0, k + 1, 50).astype(float)
    if not w.any():
        w[0] = 1
    weighted = DecisionTreeRegressor(max_depth=3).fit(X, y, sample_weight=w.astype(float))
    repeated = DecisionTreeRegressor(max_depth=3).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
    order = rng.permutation(50)
    turned = DecisionTreeRegressor(max_depth=3).fit(X[order], y[order], sample_weight=w[order].astype(float))
    assert_allclose(weighted.predict(X), turned.predict(X), atol=1e-9)


def test_scale_and_offset_of_the_target_move_only_the_values():
    X, y, _ = regression(10)
    plain = DecisionTreeRegressor(min_samples_leaf=8).fit(X, y)
    moved = DecisionTreeRegressor(min_samples_leaf=8).fit(X, 3 * y + 1e9)
    assert_allclose(moved.predict(X) - 1e9, 3 * plain.predict(X), atol=1e-5)
    assert_array_equal(moved.apply(X), plain.apply(X))


def test_numbers_that_differ_in_the_last_bit_are_told_apart():
    x = 1e9 + np.arange(600) * np.spacing(1e9)  # the upper halves of their bits agree
    y = (np.arange(600) >= 123).astype(float)
    model = DecisionTreeRegressor(max_depth=1).fit(x[::-1][:, None], y[::-1])
    assert_array_equal(model.predict(x[:, None]), y)


def test_infinite_values_are_the_largest_and_smallest():
    X = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf])[:, None]
    y = np.array([5.0, 1.0, 2.0, 3.0, -5.0])
    assert_array_equal(DecisionTreeRegressor().fit(X, y).predict(X), y)


def test_categories_by_value_and_unknown_ones():
    rng = np.random.default_rng(11)
    colour = np.array(["blue", "green", "red", "white"])[rng.integers(0, 4, 300)]
    y = np.isin(colour, ["blue", "red"]).astype(int)
    frame = pd.DataFrame({"c": pd.Categorical(colour), "x": rng.normal(size=300)})
    model = DecisionTreeClassifier().fit(frame, y)
    assert model.get_n_leaves() == 2
    turned = pd.DataFrame({"c": pd.Categorical(["red", "white"], categories=["white", "red", "new"]), "x": [0.0, 0.0]})
    assert_array_equal(model.predict(turned), [1, 0])
    assert "c in {" in model.export_text()
    unknown = pd.DataFrame({"c": pd.Categorical(["violet"]), "x": [0.0]})
    assert model.predict(unknown).shape == (1,)
    with pytest.raises(DataError, match="violet"):
        model.set_params(handle_unknown="error").predict(unknown)
    with pytest.raises(DataTypeError, match="learnt categories from a frame"):
        model.predict(np.zeros((2, 2)))


@pytest.mark.parametrize("make", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_data_that_has_little_to_say(make):
    for X, y in (
        (np.ones((1, 2)), [1]),  # one row
        (np.full((9, 2), np.nan), np.arange(9) % 2),  # nothing but missing values
        (np.arange(9.0)[:, None], np.full(9, 3)),  # one target
        (np.ones((9, 3)), np.arange(9) % 2),  # constant columns
    ):
        model = make().fit(X, y)
        assert model.get_n_leaves() == 1
        assert model.get_depth() == 0
        assert np.isfinite(model.predict(X)).all()
        assert_array_equal(model.feature_importances_, np.zeros(X.shape[1]))
        assert model.certificate_.holds


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, [1.0, np.nan], "y"),
        ({}, [1.0, np.inf], "y"),
        ({"criterion": "poisson"}, [-1.0, 2.0], "targets >= 0, got -1"),
        ({"criterion": "poisson"}, [0.0, 0.0], "positive target"),
        ({"criterion": "poisson", "leaf_l2": 1.0}, [1.0, 2.0], "leaf_l2"),
        ({"monotonic_cst": [2]}, [1.0, 2.0], "expected -1, 0 or 1"),
        ({"criterion": "gini"}, [1.0, 2.0], "criterion='gini'"),
        ({"max_depth": 0}, [1.0, 2.0], "max_depth=0"),
    ],
)
def test_bad_input_is_named(options, y, message):
    with pytest.raises((DataError, ParameterError), match=message):
        DecisionTreeRegressor(**options).fit(np.arange(2.0)[:, None], y)


def test_files_are_for_forests(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((5, 3)))
    with pytest.raises(DataTypeError, match="in memory"):
        DecisionTreeRegressor().fit(ep.scan(tmp_path / "rows.npy", target=2))
    with pytest.raises(DataError, match="every weight is zero"):
        DecisionTreeRegressor().fit(np.ones((3, 1)), [1.0, 2.0, 3.0], sample_weight=np.zeros(3))
    with pytest.raises(DataError, match="monotonic_cst: y has 3 classes"):
        DecisionTreeClassifier(monotonic_cst=[1]).fit(np.arange(3.0)[:, None], [0, 1, 2])


# ------------------------------------------------------------------- to look at


def test_paths_leaves_and_text_agree():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    paths, leaves = model.decision_path(X).toarray(), model.apply(X)
    assert (paths[np.arange(150), leaves] == 1).all()
    assert_array_equal(paths.sum(axis=1), model.tree_.depth[leaves] + 1)
    assert_array_equal(paths.sum(axis=0), model.tree_.n_node_samples)
    text = model.export_text(max_depth=1)
    assert "cut off here" in text
    assert text.splitlines()[0] == "petal length (cm) <= 2.45"
    theirs = SklearnClassifier(max_depth=3, random_state=0).fit(X.to_numpy(), y)
    assert_array_equal(theirs.predict(X.to_numpy()), model.predict(X))


def test_a_drawn_tree_shows_every_leaf():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    shown = [t.get_text() for t in model.plot().texts]
    assert sum("rows" in t for t in shown) == model.tree_.node_count
    assert "yes" in shown
    X, y, _ = regression(12)
    ax = DecisionTreeRegressor(max_depth=6).fit(X, y).plot(max_depth=2)
    assert sum("..." in t.get_text() for t in ax.texts) >= 3
    mpl.pyplot.close("all")


def test_a_tree_survives_its_file(tmp_path):
    X, y, _ = regression(13)
    model = DecisionTreeRegressor(max_depth=4, ccp_alpha=0.001).fit(X, y)
    model.save(tmp_path / "tree.epi")
    loaded = ep.load(tmp_path / "tree.epi")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.export_text() == model.export_text()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
@pytest.mark.parametrize("min_impurity_decrease", [0.0, 0.02])
def test_several_label_columns_are_those_of_scikit_learn(criterion, min_impurity_decrease):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    first, second = X[:, 0] + 0.5 * rng.normal(size=300) > 0, np.digitize(X[:, 1] * X[:, 2], [-0.5, 0.5])
    y = np.column_stack([first, second]).astype(int)
    weight = rng.integers(1, 4, 300).astype(float)
    options = {"criterion": criterion, "max_depth": 4, "min_impurity_decrease": min_impurity_decrease}
    mine = DecisionTreeClassifier(**options).fit(X, y, weight)
    theirs = SklearnClassifier(**options, random_state=0).fit(X, y, weight)
    equal_trees(mine.tree_, theirs.tree_)


def test_no_leaf_of_a_poisson_tree_is_zero():
    """Sums of a right side are differences, whose rounding must not pass for a positive mean."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 5))
        y = rng.poisson(np.exp(X[:, 0])) * np.where(rng.random(400) < 0.5, 0.0, 0.1)
        assert (DecisionTreeRegressor(criterion="poisson", min_samples_leaf=3).fit(X, y).predict(X) > 0).all()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("missing", [False, True])
def test_medians_of_monotone_splits_bound_the_nodes_below(sign, missing):
    """The bound below a split is the middle of the values of its children, as they stand in the tree."""
    rng = np.random.default_rng(3)
    X, y = rng.random((400, 2)), rng.random(400)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    model = DecisionTreeRegressor(criterion="absolute_error", monotonic_cst=[sign, 0]).fit(X, y)
    tree, value = model.tree_, model.tree_.value.ravel()
    bounds = {0: (-np.inf, np.inf)}
    for i in range(tree.node_count):  # parents come before their children
        low, high = bounds[i]
        assert low <= value[i] <= high
        left, right = tree.children_left[i], tree.children_right[i]
        if left < 0:
            continue
        bounds[left] = bounds[right] = (low, high)
        if tree.feature[i] == 0:
            assert sign * (value[right] - value[left]) >= 0
            middle = value[left] + (value[right] - value[left]) / 2
            below, above = ((low, middle), (middle, high)) if sign > 0 else ((middle, high), (low, middle))
            bounds[left], bounds[right] = below, above
