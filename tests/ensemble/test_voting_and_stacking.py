"""Voting and stacking against averages and cross-validated predictions by hand, and against scikit-learn's classes."""

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression as SklearnLinear
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import epicycle as ep
from epicycle.exceptions import DataError, NotFittedError, ParameterError, ParameterTypeError

X, Y = load_diabetes(return_X_y=True)
IRIS, LABELS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]


def regressors():
    return [("ridge", ep.Ridge(alpha=0.1)), ("tree", ep.DecisionTreeRegressor(max_depth=3))]


def classifiers():
    return [("logistic", ep.LogisticRegression()), ("bayes", GaussianNB())]


def test_votes_and_averages_by_hand():
    weights = [2.0, 1.0]
    soft = ep.VotingClassifier(classifiers(), voting="soft", weights=weights).fit(IRIS, NAMES)
    shares = [clone(m).fit(IRIS, LABELS).predict_proba(IRIS) for _, m in classifiers()]
    np.testing.assert_allclose(soft.predict_proba(IRIS), (2 * shares[0] + shares[1]) / 3, rtol=1e-9)
    assert np.array_equal(soft.predict(IRIS), soft.classes_[soft.predict_proba(IRIS).argmax(axis=1)])
    assert np.array_equal(soft.transform(IRIS), np.hstack(shares))
    hard = ep.VotingClassifier(classifiers(), weights=weights).fit(IRIS, NAMES)
    assert np.array_equal(hard.predict(IRIS), hard.classes_[shares[0].argmax(axis=1)])  # two votes of three
    mean = ep.VotingRegressor(regressors(), weights=weights).fit(X, Y)
    members = [clone(m).fit(X, Y).predict(X) for _, m in regressors()]
    np.testing.assert_allclose(mean.predict(X), (2 * members[0] + members[1]) / 3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_weights_of_members_have_no_scale_and_members_no_order(seed, scale):
    weights = np.random.default_rng(seed).random(2) + 0.01
    one = ep.VotingRegressor(regressors(), weights=weights).fit(X[:80], Y[:80]).predict(X)
    other = ep.VotingRegressor(regressors()[::-1], weights=scale * weights[::-1]).fit(X[:80], Y[:80]).predict(X)
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_evidence_is_that_of_the_members():
    model = ep.VotingClassifier(classifiers()).fit(IRIS, LABELS)
    assert model.history_.n_iter == model.n_iter_ == 2
    assert model.history_.objective[0] == model.estimators_[0].history_.objective[-1]
    assert np.isnan(model.history_.objective[1])  # naive Bayes keeps none
    assert model.certificate_.kind == "none"  # one member has a certificate, the other has not
    model.set_params(bayes="drop").fit(IRIS, LABELS)
    assert model.certificate_.kind == model.estimators_[0].certificate_.kind
    assert model.certificate_.value == model.estimators_[0].certificate_.value
    slow = ep.LogisticRegression(solver="gd", max_iter=2)
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="1 of 2 members"):
        model.set_params(bayes=slow).fit(IRIS, LABELS)
    assert not model.converged_


@pytest.mark.parametrize("passthrough", [False, True])
def test_the_final_estimator_sees_cross_validated_predictions(passthrough):
    folds = KFold(4, shuffle=True, random_state=0)
    model = ep.StackingRegressor(regressors(), ep.LinearRegression(), cv=folds, passthrough=passthrough).fit(X, Y)
    columns = [cross_val_predict(clone(m), X, Y, cv=folds) for _, m in regressors()]
    table = np.column_stack([*columns, X] if passthrough else columns)
    final = SklearnLinear().fit(table, Y)
    np.testing.assert_allclose(model.final_estimator_.coef_, final.coef_, rtol=1e-6)
    now = np.column_stack([clone(m).fit(X, Y).predict(X) for _, m in regressors()])
    np.testing.assert_allclose(model.transform(X)[:, :2], now)
    np.testing.assert_allclose(model.history_.error, [np.mean((c - Y) ** 2) for c in columns])
    names = model.get_feature_names_out()
    assert list(names[:2]) == ["stackingregressor_ridge", "stackingregressor_tree"]
    assert len(names) == model.transform(X).shape[1]


def test_stacking_has_the_answers_of_scikit_learn():
    A, b = load_breast_cancer(return_X_y=True)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    ours = ep.StackingClassifier(classifiers()).fit(A, b)
    theirs = sklearn.ensemble.StackingClassifier(classifiers(), ep.LogisticRegression()).fit(A, b)
    np.testing.assert_allclose(ours.predict_proba(A), theirs.predict_proba(A), atol=1e-9)
    shares = cross_val_predict(ep.LogisticRegression(), A, b, cv=5)
    assert ours.history_.error[0] == np.mean(shares != b)
    assert ours.certificate_.kind == ours.final_estimator_.certificate_.kind
    assert ours.certificate_.meaning.startswith("the final estimator")


def test_prefit_members_stay_as_they_are():
    members = [(name, clone(m).fit(X[:200], Y[:200])) for name, m in regressors()]
    model = ep.StackingRegressor(members, cv="prefit").fit(X[200:], Y[200:])
    assert [m for _, m in members] == model.estimators_
    with pytest.raises(NotFittedError):
        ep.StackingRegressor(regressors(), cv="prefit").fit(X, Y)


@pytest.mark.parametrize("jobs", [2, 4])
def test_threads_change_no_bit(jobs):
    for make in (
        lambda n: ep.VotingRegressor(regressors(), n_jobs=n),
        lambda n: ep.StackingRegressor(regressors(), n_jobs=n),
    ):
        assert np.array_equal(make(jobs).fit(X, Y).predict(X), make(None).fit(X, Y).predict(X))


@pytest.mark.parametrize("cls", [ep.VotingRegressor, ep.StackingRegressor])
def test_weights_of_rows_reach_every_member(cls):
    weight = np.random.default_rng(0).integers(1, 4, len(Y))
    given = {"final_estimator": ep.Ridge()} if cls is ep.StackingRegressor else {}
    model = cls(regressors(), **given).fit(X, Y, sample_weight=weight)
    for (_, member), fitted in zip(regressors(), model.estimators_, strict=True):
        assert np.array_equal(clone(member).fit(X, Y, sample_weight=weight).predict(X), fitted.predict(X))
    with pytest.raises(ParameterTypeError, match="KNeighborsRegressor does not support sample weights"):
        cls([("near", sklearn.neighbors.KNeighborsRegressor())]).fit(X, Y, sample_weight=weight)


def test_tables_names_and_files(tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    for model in (ep.VotingRegressor(regressors()), ep.StackingRegressor(regressors())):
        model.set_output(transform="pandas").fit(frame, Y)
        assert list(model.feature_names_in_) == list(frame)
        assert list(model.transform(frame)) == list(model.get_feature_names_out())
        model.save(tmp_path / "m.epi")
        again = ep.load(tmp_path / "m.epi")
        assert np.array_equal(again.predict(frame), model.predict(frame))
        assert set(again.named_estimators_) == {"ridge", "tree"}


@pytest.mark.parametrize("cls", [ep.VotingClassifier, ep.VotingRegressor, ep.StackingClassifier, ep.StackingRegressor])
@pytest.mark.parametrize(
    ("estimators", "words"),
    [
        ([], "non-empty list"),
        (["ridge"], "non-empty list"),
        ([("a", "drop")], "All estimators are dropped"),
        ([("a", 3)], "a=3; expected an estimator"),
        ([("a__b", ep.Ridge())], "must not contain __"),
        ([("estimators", ep.Ridge())], "conflict with constructor arguments"),
    ],
)
def test_what_is_no_list_of_members_is_refused(cls, estimators, words):
    with pytest.raises(ParameterError, match=words):
        cls(estimators).fit(IRIS, LABELS)


def test_bad_data_is_refused_by_name():
    with pytest.raises(DataError, match="one label for each row"):
        ep.VotingClassifier(classifiers()).fit(IRIS, np.column_stack([LABELS, LABELS]))
    with pytest.raises(DataError, match="Unknown label type"):
        ep.VotingClassifier(classifiers()).fit(X, Y + 0.5)
    with pytest.raises(DataError, match="y is None"):
        ep.StackingRegressor(regressors()).fit(X)
    with pytest.raises(ParameterError, match="weights"):
        ep.VotingRegressor(regressors(), weights=[1.0]).fit(X, Y)
    with pytest.raises(ParameterError, match="'final_estimator' parameter should be a classifier"):
        ep.StackingClassifier(classifiers(), ep.Ridge()).fit(IRIS, LABELS)
    with pytest.raises(ParameterError, match="enable_metadata_routing=True"):
        ep.VotingRegressor(regressors()).fit(X, Y, colour="red")
