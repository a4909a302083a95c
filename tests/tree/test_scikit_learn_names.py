"""Trees, forests and boosting under scikit-learn's names: the same fields, attributes and meanings."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score

import epicycle as ep
from epicycle.exceptions import DataError, EpicycleWarning, ParameterError

X, Y = load_iris(return_X_y=True)
LABELS = np.column_stack([Y, Y == 1, np.where(X[:, 0] > 5.8, 7, 3)])


def by_path(tree):
    """The nodes from left to right in depth, whatever their numbers."""
    out, todo = [], [0]
    while todo:
        i = todo.pop()
        out.append(i)
        if tree.children_left[i] >= 0:
            todo += [tree.children_right[i], tree.children_left[i]]
    return out


@pytest.mark.parametrize("labels", [Y, LABELS[:, :2], LABELS])
def test_fields_of_a_tree_are_those_of_scikit_learn(labels):
    ours = ep.DecisionTreeClassifier(max_depth=3, min_samples_leaf=4).fit(X, labels)
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=3, min_samples_leaf=4, random_state=0).fit(X, labels)
    a, b = ours.tree_, theirs.tree_
    for name in ("node_count", "max_depth", "n_leaves", "n_features", "n_outputs", "max_n_classes"):
        assert getattr(a, name) == getattr(b, name), name
    assert_array_equal(a.n_classes, b.n_classes)
    i, j = by_path(a), by_path(b)
    for name in ("impurity", "n_node_samples", "weighted_n_node_samples", "value"):
        assert_allclose(getattr(a, name)[i], getattr(b, name)[j], atol=1e-12, err_msg=name)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    mine, other = ours.predict_proba(X), theirs.predict_proba(X)
    for p, q in [(mine, other)] if labels is Y else zip(mine, other, strict=True):
        assert_allclose(p, q, atol=1e-12)
    assert ours.n_outputs_ == theirs.n_outputs_
    assert_array_equal(ours.n_classes_, theirs.n_classes_)


def test_methods_of_a_tree_agree_with_those_of_the_model():
    model = ep.DecisionTreeRegressor(max_depth=3).fit(X, Y)
    tree, rows = model.tree_, X.astype(np.float32)
    assert_array_equal(tree.apply(X), model.apply(X))
    assert_array_equal(tree.apply(sp.csc_array(X)), model.apply(X))
    assert_array_equal(tree.decision_path(X).toarray(), model.decision_path(X).toarray())
    assert_allclose(tree.predict(X), model.predict(X))
    assert_allclose(tree.compute_feature_importances(), model.feature_importances_)
    assert tree.compute_node_depths().max() == tree.max_depth + 1
    assert tree.value.shape == (tree.node_count, 1, 1)
    assert tree.apply(rows).shape == (len(X),)
    with pytest.raises(DataError, match=r"X\.dtype"):
        tree.apply(X.astype(np.int64))


def test_scikit_learn_writes_and_draws_our_trees():
    ours = ep.DecisionTreeClassifier(max_depth=2).fit(X, Y)
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    # Petal length and width separate the first species equally well.
    assert sklearn.tree.export_text(ours).count("class") == sklearn.tree.export_text(theirs).count("class")
    assert sklearn.tree.export_graphviz(ours).count("->") == sklearn.tree.export_graphviz(theirs).count("->")
    assert len(sklearn.tree.plot_tree(ours)) >= 5


def test_friedman_mse_is_squared_error():
    for make in (ep.DecisionTreeRegressor, ep.RandomForestRegressor):
        with pytest.warns(FutureWarning, match="friedman_mse"):
            old = make(criterion="friedman_mse", random_state=0)
        assert_array_equal(old.fit(X, Y).predict(X), make(random_state=0).fit(X, Y).predict(X))


@pytest.mark.parametrize("make", [ep.RandomForestClassifier, ep.ExtraTreesClassifier])
def test_forest_of_several_labels(make):
    model = make(30, random_state=0, bootstrap=True, oob_score=True).fit(X, LABELS[:, 1:])
    assert (model.predict(X) == LABELS[:, 1:]).all(axis=1).mean() > 0.97
    assert model.oob_score_ > 0.85
    assert model.oob_decision_function_.shape == (150, 2, 2)
    assert [p.shape for p in model.predict_proba(X)] == [(150, 2), (150, 2)]
    assert model.n_classes_ == [2, 2]
    mean = np.mean([tree.predict_proba(X)[1] for tree in model], axis=0)
    assert_allclose(model.predict_proba(X)[1], mean, atol=1e-12)
    with pytest.raises(DataError, match="OOB estimates"):
        make(5, bootstrap=True, oob_score=True).fit(X, LABELS)


def test_a_forest_is_a_sequence_of_trees():
    model = ep.RandomForestRegressor(5, random_state=0, max_samples=0.5).fit(X, Y)
    assert len(model) == 5
    assert model[0].get_depth() == model.estimators_[0].get_depth()
    assert [tree.tree_.weighted_n_node_samples[0] for tree in model] == [75] * 5


def test_out_of_bag_score_of_a_function():
    score = lambda y, predicted: f1_score(y, predicted, average="micro")  # noqa: E731
    model = ep.RandomForestClassifier(60, random_state=0, oob_score=score).fit(X, Y)
    other = ep.RandomForestClassifier(60, random_state=0, oob_score=True).fit(X, Y)
    assert model.oob_score_ == pytest.approx(other.oob_score_)
    with pytest.warns(EpicycleWarning, match="OOB"):
        ep.RandomForestClassifier(1, random_state=0, oob_score=True).fit(X, Y)


# ------------------------------------------------------------------------------------------------ boosting


def test_exponential_loss_has_adaboosts_probabilities():
    y = (Y == 1).astype(int)
    model = ep.GradientBoostingClassifier(loss="exponential", n_estimators=20, min_samples_leaf=5).fit(X, y)
    F = model.decision_function(X)
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * F)))
    assert model.history_.objective[-1] == pytest.approx(np.mean(np.exp(-(2 * y - 1) * F)), rel=1e-5)
    assert model.score(X, y) > 0.95
    with pytest.raises(DataError, match="binary classification"):
        ep.GradientBoostingClassifier(loss="exponential").fit(X, Y)


def test_boosting_starts_from_an_estimator():
    data, y = load_diabetes(return_X_y=True)
    model = ep.GradientBoostingRegressor(init=LinearRegression(), n_estimators=10).fit(data, y)
    residual = y - LinearRegression().fit(data, y).predict(data)
    trees = ep.GradientBoostingRegressor(init="zero", n_estimators=10).fit(data, residual)
    assert_allclose(model.predict(data) - model.init_.predict(data), trees.predict(data), atol=1e-4)
    assert_allclose(list(model.staged_predict(data))[-1], model.predict(data))
    zero = ep.GradientBoostingClassifier(init="zero", n_estimators=1, min_samples_leaf=100).fit(X, Y)
    assert_allclose(zero.predict_proba(X), 1 / 3)


def test_trees_and_scores_of_boosting():
    data, y = load_diabetes(return_X_y=True)
    model = ep.GradientBoostingRegressor(n_estimators=8, max_depth=3).fit(data, y)
    trees = model.estimators_
    assert trees.shape == (8, 1)
    total = y.mean() + model.learning_rate * sum(tree.predict(data) for tree in trees[:, 0])
    assert_allclose(model.predict(data), total)
    assert_allclose(model.train_score_[-1], np.mean((y - model.predict(data)) ** 2), rtol=1e-6)
    assert_array_equal(model.apply(data)[:, 3], trees[3, 0].apply(data))
    assert model.n_trees_per_iteration_ == 1
    assert ep.GradientBoostingClassifier(n_estimators=2).fit(X, Y).apply(X).shape == (150, 2, 3)


def test_limits_of_nodes_in_boosting():
    data, y = load_diabetes(return_X_y=True)
    split = ep.GradientBoostingRegressor(n_estimators=3, min_samples_leaf=5, min_samples_split=100).fit(data, y)
    for tree in split.estimators_.flat:
        assert tree.tree_.n_node_samples[~tree.tree_.is_leaf].min() >= 100
    assert (np.diff(split.train_score_) < 0).all()
    theirs = sklearn.tree.DecisionTreeRegressor(min_impurity_decrease=200.0, random_state=0).fit(data, y)
    options = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "max_leaf_nodes": None}
    ours = ep.GradientBoostingRegressor(min_impurity_decrease=200.0, **options).fit(data, y)
    assert_allclose(ours.predict(data), theirs.predict(data), rtol=1e-4)


def test_boosting_of_few_rows_splits_them():
    few = ep.GradientBoostingClassifier(n_estimators=5).fit(X[::8], Y[::8])
    assert few.score(X[::8], Y[::8]) == 1.0


def test_names_of_numbers_of_features():
    for asked, expected in (("sqrt", 2), ("log2", 2), (3, 3), (None, 4), (0.5, 2)):
        assert ep.GradientBoostingRegressor(n_estimators=1, max_features=asked).fit(X, Y).max_features_ == expected
        assert ep.DecisionTreeRegressor(max_features=asked).fit(X, Y).max_features_ == expected
    with pytest.raises(ParameterError, match="min_samples_split"):
        ep.DecisionTreeRegressor(min_samples_split=1).fit(X, Y)


# ------------------------------------------------------------------------------------------------ AdaBoost


def test_adaboost_of_one_class_zeros_and_regressors():
    one = ep.AdaBoostClassifier().fit(X, np.ones(150))
    assert_array_equal(one.predict_proba(X), np.ones((150, 1)))
    zeros = sp.csr_array((6, 3))
    assert_array_equal(ep.AdaBoostClassifier().fit(zeros, [0, 1, 0, 1, 0, 0]).predict(zeros), np.zeros(6))
    with pytest.raises(ParameterError, match="is a regressor"):
        ep.AdaBoostClassifier(ep.DecisionTreeRegressor()).fit(X, Y)


def test_stages_and_members_of_adaboost():
    model = ep.AdaBoostClassifier(n_estimators=8).fit(X, Y)
    assert list(model.staged_score(X, Y))[-1] == model.score(X, Y)
    assert len(model.estimators_) == model.n_estimators_
    assert model.n_classes_ == 3
    members = zip(model.estimator_weights_, model.estimators_, strict=True)
    votes = sum(weight * (tree.predict(X)[:, None] == model.classes_) for weight, tree in members)
    assert_allclose(votes, model.votes(X), atol=1e-12)


# ------------------------------------------------------------------------------------------------ extremes


@pytest.mark.parametrize("weight", [1e140, 1e200, 1e306])
@pytest.mark.parametrize(
    "make", [ep.ExtraTreesClassifier, ep.RandomForestClassifier, ep.DecisionTreeClassifier, ep.AdaBoostClassifier]
)
def test_huge_weights_give_numbers_or_a_reason(make, weight):
    w = weight * np.random.default_rng(0).random(150)
    if w.sum() > 1e150:
        with pytest.raises(DataError, match="sample_weight"):
            make().fit(X, Y, sample_weight=w)
    else:
        model = make().fit(X, Y, sample_weight=w)
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.score(X, Y) > 0.9  # a single leaf is what squares that overflow gave
        assert np.isfinite(model.feature_importances_).all()


@pytest.mark.parametrize("make", [ep.GradientBoostingRegressor, ep.GradientBoostingClassifier])
@pytest.mark.parametrize("weight", [1e200, 1e306, 1e-300, 5e-324])
def test_boosting_refuses_weights_beyond_its_numbers(make, weight):
    with pytest.raises(DataError, match="sample_weight: the weights add up"):
        make(n_estimators=2).fit(X, Y, sample_weight=np.full(150, weight))


@pytest.mark.parametrize("scale", [1e39, 1e100, 1e200])
def test_boosting_refuses_targets_beyond_its_numbers(scale):
    with pytest.raises(DataError, match="gradients of the loss add up"):
        ep.GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0] * scale)


def test_trees_refuse_targets_whose_squares_overflow():
    for make in (ep.DecisionTreeRegressor, ep.RandomForestRegressor):
        assert np.isfinite(make().fit(X, X[:, 0] * 1e100).predict(X)).all()
        with pytest.raises(DataError, match="squares"):
            make().fit(X, X[:, 0] * 1e160)
