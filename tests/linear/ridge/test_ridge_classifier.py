"""Ridge classifiers: ridge regression on columns of signs, and scikit-learn's answers."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peer
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import LeaveOneOut

import epicycle as ep
from epicycle import Ridge, RidgeClassifier, RidgeClassifierCV
from epicycle.exceptions import ParameterError

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
ALPHAS = [1e-3, 0.1, 10.0, 1e4]
at_an_edge = pytest.mark.filterwarnings("ignore:.*of alphas:epicycle.exceptions.EpicycleWarning")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize(("X", "y"), [IRIS, CANCER], ids=["three classes", "two classes"])
def test_the_same_as_scikit_learn(X, y, class_weight, weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    ours = RidgeClassifier(alpha=2.0, class_weight=class_weight).fit(X, y, weight)
    # scikit-learn balances without the sample weights; a factor for every class is the same in both
    if weighted and class_weight == "balanced":
        totals = np.bincount(y, weights=weight)
        class_weight = dict(enumerate(totals.sum() / len(totals) / totals))
    theirs = peer.RidgeClassifier(alpha=2.0, class_weight=class_weight, solver="svd").fit(X, y, weight)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-10)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.holds


def test_labels_of_any_kind_and_a_table_of_labels():
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])
    assert_array_equal(RidgeClassifier().fit(X, names[y]).predict(X), names[RidgeClassifier().fit(X, y).predict(X)])
    table = np.column_stack([y == 0, y > 0, X[:, 0] > 5.5]).astype(int)
    ours, theirs = RidgeClassifier().fit(X, table), peer.RidgeClassifier().fit(X, table)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-10)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(RidgeClassifier().fit(X, sp.csr_array(table)).predict(X), ours.predict(X))
    balanced = RidgeClassifier(class_weight="balanced").fit(X, table)
    factor = np.prod([len(y) / (2 * np.bincount(column))[column] for column in table.T], axis=0)
    assert_allclose(balanced.coef_, RidgeClassifier().fit(X, table, factor).coef_, rtol=1e-10)
    with pytest.raises(ParameterError, match=r"class_weight=.*is for one label a row"):
        RidgeClassifier(class_weight={0: 2.0}).fit(X, table)


@pytest.mark.parametrize("number", [2, 3])
def test_memory_files_dask_and_sparse_rows_agree(tmp_path, client, number):
    X, y = IRIS
    keep = y < number
    X, y = X[keep], y[keep]
    model = RidgeClassifier(alpha=0.5).fit(X, y)
    pd.DataFrame({**{f"x{j}": X[:, j] for j in range(4)}, "y": y}).to_parquet(tmp_path / "iris.parquet")
    others = {
        "files": RidgeClassifier(alpha=0.5).fit(ep.scan(tmp_path / "iris.parquet", target="y")),
        "dask": RidgeClassifier(alpha=0.5).fit(da.from_array(X, (40, 4)), da.from_array(y, 40)),
        "sparse": RidgeClassifier(alpha=0.5).fit(sp.csr_array(X), y),
    }
    for name, other in others.items():
        assert_allclose(other.coef_, model.coef_, rtol=1e-9, atol=1e-12, err_msg=name)
        rows = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]) if name == "files" else X
        assert_array_equal(other.predict(rows), model.predict(X))
    assert_array_equal(model.predict(da.from_array(X, (40, 4))).compute(), model.predict(X))
    with pytest.raises(ParameterError, match="class_weight='balanced': is for X in memory"):
        RidgeClassifier(class_weight="balanced").fit(ep.scan(tmp_path / "iris.parquet", target="y"))


def test_float32_and_frames():
    X, y = IRIS
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"))
    model = RidgeClassifier().fit(frame, y)
    assert model.coef_.dtype == np.float32
    assert list(model.feature_names_in_) == list("abcd")


@at_an_edge
@pytest.mark.parametrize("X", [IRIS[0], IRIS[0][:, :2]], ids=["four", "two"])
def test_leave_one_out_is_that_of_refits(X):
    y = IRIS[1]
    X, y = X[::5], y[::5]
    model = RidgeClassifierCV(ALPHAS, store_cv_results=True, scoring="accuracy").fit(X, y)
    for a, alpha in enumerate(ALPHAS):
        for train, test in LeaveOneOut().split(X):
            refit = RidgeClassifier(alpha).fit(X[train], y[train])
            assert_allclose(model.cv_results_[test, :, a], refit.decision_function(X[test]), atol=1e-9)
    assert_allclose(model.scores_, [np.mean(model.cv_results_[:, :, a].argmax(axis=1) == y) for a in range(4)])


@at_an_edge
@pytest.mark.parametrize("cv", [None, 5])
def test_the_choice_is_scikit_learns(cv):
    X, y = CANCER
    ours = RidgeClassifierCV(ALPHAS, cv=cv, class_weight={1: 2.0}).fit(X, y)
    theirs = peer.RidgeClassifierCV(ALPHAS, cv=cv, class_weight={1: 2.0}).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-8)
    assert ours.certificate_.holds


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_whole_weights_are_repetitions(seed, classes, intercept):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % classes
    weight = rng.integers(1, 4, size=20)
    model = RidgeClassifier(alpha=0.3, fit_intercept=intercept)
    coef = model.fit(X, y, weight).coef_
    again = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).coef_
    assert_allclose(coef, again, rtol=1e-8, atol=1e-10)
    order = rng.permutation(20)
    assert_allclose(model.fit(X[order], y[order], weight[order]).coef_, coef, rtol=1e-8, atol=1e-10)


def test_two_classes_are_ridge_regression_on_signs():
    X, y = CANCER
    ridge, model = Ridge(3.0).fit(X, 2.0 * y - 1), RidgeClassifier(3.0).fit(X, y)
    assert_allclose(model.coef_, ridge.coef_, rtol=1e-12)
    assert_allclose(model.decision_function(X), ridge.predict(X), rtol=1e-10)


def test_one_class_is_always_predicted():
    model = RidgeClassifier().fit(IRIS[0], np.full(150, "a"))
    assert set(model.predict(IRIS[0])) == {"a"}
