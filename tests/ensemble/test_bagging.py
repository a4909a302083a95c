"""Bagging against brute force: members refitted to the rows they drew, averages and out-of-bag errors by hand."""

import contextlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingClassifier as SklearnBagging
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier as SklearnNeighbors

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError

X, Y = load_diabetes(return_X_y=True)
IRIS, LABELS = load_iris(return_X_y=True)


def test_members_are_fits_to_the_rows_and_features_they_drew():
    model = ep.BaggingRegressor(ep.Ridge(), 6, max_samples=0.7, max_features=0.5, random_state=3).fit(X, Y)
    total = np.zeros(len(X))
    for member, rows, features in zip(
        model.estimators_, model.estimators_samples_, model.estimators_features_, strict=True
    ):
        assert len(rows) == int(0.7 * len(X))
        assert len(np.unique(features)) == 5
        again = clone(member).fit(X[rows][:, features], Y[rows])
        np.testing.assert_allclose(member.coef_, again.coef_, rtol=1e-8)
        total += again.predict(X[:, features])
    np.testing.assert_allclose(model.predict(X), total / 6, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_replacement_every_row_is_drawn_once_at_most(weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    model = ep.BaggingRegressor(ep.Ridge(), 5, max_samples=100, bootstrap=False, random_state=0)
    with pytest.warns(UserWarning, match="bootstrap=True") if weighted else contextlib.nullcontext():
        model.fit(X, Y, sample_weight=weight)
    samples = model.estimators_samples_
    for member, rows in zip(model.estimators_, samples, strict=True):
        assert len(np.unique(rows)) == len(rows) == 100
        np.testing.assert_allclose(member.coef_, clone(member).fit(X[rows], Y[rows]).coef_, rtol=1e-8)
    assert len({tuple(rows) for rows in samples}) == 5


def test_out_of_bag_predictions_by_hand():
    model = ep.BaggingRegressor(n_estimators=25, oob_score=True, random_state=0).fit(X, Y)
    answers = np.full((25, len(X)), np.nan)
    for m, rows in enumerate(model.estimators_samples_):
        out = np.setdiff1d(np.arange(len(X)), rows)
        answers[m, out] = model.estimators_[m].predict(X[out])
    average = np.nanmean(answers, axis=0)
    np.testing.assert_allclose(model.oob_prediction_, average)
    parts = model.oob_decomposition_
    assert parts["error"] == pytest.approx(np.mean((average - Y) ** 2))
    assert parts["members"] == pytest.approx(np.mean(np.nanmean((answers - Y) ** 2, axis=0)))
    assert parts["ambiguity"] == pytest.approx(np.mean(np.nanvar(answers, axis=0)))
    assert parts["members"] - parts["ambiguity"] == pytest.approx(parts["squared"], rel=1e-10)
    assert model.certificate_.kind == "none"
    assert model.certificate_.value == parts["error"]
    assert f"{parts['error']:.4g}" in model.certificate_.meaning


def test_out_of_bag_error_of_a_classifier_and_its_interval():
    model = ep.BaggingClassifier(n_estimators=40, oob_score=True, random_state=1).fit(IRIS, LABELS)
    wrong = np.argmax(model.oob_decision_function_, axis=1) != LABELS
    parts = model.oob_decomposition_
    assert model.oob_score_ == pytest.approx(1 - wrong.mean())
    from scipy.stats import binomtest

    interval = binomtest(int(wrong.sum()), len(LABELS)).proportion_ci(method="exact")
    assert (parts["low"], parts["high"]) == pytest.approx((interval.low, interval.high))
    theirs = SklearnBagging(n_estimators=40, oob_score=True, random_state=1).fit(IRIS, LABELS)
    assert model.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.04)


def test_threads_change_no_bit():
    fits = [
        ep.BaggingClassifier(n_jobs=jobs, oob_score=True, random_state=0).fit(IRIS, LABELS) for jobs in (None, 2, 4)
    ]
    for other in fits[1:]:
        assert np.array_equal(fits[0].predict_proba(IRIS), other.predict_proba(IRIS))
        assert np.array_equal(fits[0].oob_decision_function_, other.oob_decision_function_)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_a_weight_is_a_repetition_and_the_order_of_rows_is_nothing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 30))
    A, b = rng.normal(size=(n, 3)), rng.normal(size=n)
    weight = rng.integers(0, 4, n)
    weight[:2] = 1
    make = ep.BaggingRegressor(ep.Ridge(), 3, random_state=int(seed))
    weighted = clone(make).fit(A, b, sample_weight=weight)
    order = rng.permutation(int(weight.sum()))
    repeated = clone(make).fit(np.repeat(A, weight, axis=0)[order], np.repeat(b, weight)[order])
    np.testing.assert_allclose(weighted.predict(A), repeated.predict(A), rtol=1e-8, atol=1e-10)


def test_samples_of_a_single_class_are_drawn_again():
    A = np.arange(12.0)[:, None]
    b = (np.arange(12) == 0).astype(int)  # a third of the samples miss the first row
    model = ep.BaggingClassifier(ep.LogisticRegression(), 20, random_state=0).fit(A, b)
    assert all(0 in rows for rows in model.estimators_samples_)


def test_members_of_other_libraries_without_weights_or_probabilities():
    class Votes(GaussianNB):
        predict_proba = predict_log_proba = property()

        def fit(self, X, y):
            return super().fit(X, y)

    for member in (SklearnNeighbors(), Votes()):
        model = ep.BaggingClassifier(member, 5, random_state=0).fit(IRIS, LABELS)
        np.testing.assert_allclose(model.predict_proba(IRIS).sum(axis=1), 1)
        assert model.score(IRIS, LABELS) > 0.9
        assert model.certificate_.holds


def test_tables_and_sparse_rows():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    model = ep.BaggingRegressor(random_state=0).fit(frame, Y)
    assert list(model.feature_names_in_) == list(frame)
    assert np.array_equal(model.predict(frame), ep.BaggingRegressor(random_state=0).fit(X, Y).predict(X))
    sparse = sp.csr_array(np.where(np.abs(X) > 0.05, X, 0))
    dense = ep.BaggingRegressor(ep.Ridge(), random_state=0).fit(sparse.toarray(), Y).predict(sparse.toarray())
    assert np.allclose(ep.BaggingRegressor(ep.Ridge(), random_state=0).fit(sparse, Y).predict(sparse), dense)
    frame["kind"] = pd.Categorical(np.where(np.median(Y) < Y, "high", "low"))
    model = ep.BaggingRegressor(ep.GradientBoostingRegressor(n_estimators=5), 3, random_state=0).fit(frame, Y)
    assert model.score(frame, Y) > 0.3
    assert "kind" in set(model.feature_names_in_[model.estimators_[0].feature_importances_.argsort()[-1:]])


def test_warm_start_adds_members():
    grown = ep.BaggingRegressor(n_estimators=4, warm_start=True, random_state=5).fit(X, Y)
    grown.set_params(n_estimators=9).fit(X, Y)
    whole = ep.BaggingRegressor(n_estimators=9, random_state=5).fit(X, Y)
    assert np.array_equal(grown.predict(X), whole.predict(X))
    assert all(np.array_equal(a, b) for a, b in zip(grown.estimators_samples_, whole.estimators_samples_, strict=True))
    with pytest.warns(UserWarning, match="does not fit new"):
        grown.fit(X, Y)
    with pytest.raises(ParameterError, match="n_estimators=3 must be larger"):
        grown.set_params(n_estimators=3).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"oob_score": True, "bootstrap": False}, "oob_score"),
        ({"oob_score": True, "warm_start": True}, "oob_score"),
        ({"max_samples": 1000, "bootstrap": False}, "max_samples=1000 must be <= n_samples=442"),
        ({"max_features": 11}, "max_features must be <= n_features, got 11 of 10"),
        ({"max_samples": 1.5}, "max_samples=1.5"),
        ({"n_estimators": 0}, "n_estimators=0"),
    ],
)
def test_what_cannot_be_sampled_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        ep.BaggingRegressor(**options).fit(X, Y)


def test_bad_data_is_refused_by_name():
    with pytest.raises(DataError, match="sample_weight: Negative"):
        ep.BaggingRegressor().fit(X, Y, sample_weight=-np.ones(len(Y)))
    with pytest.raises(DataError, match="inconsistent"):
        ep.BaggingRegressor().fit(X, Y[:-1])
    with pytest.raises(DataError, match="y is None"):
        ep.BaggingClassifier().fit(X)
    with pytest.raises(ParameterTypeError, match="estimator="):
        ep.BaggingRegressor("ridge").fit(X, Y)


def test_members_that_do_not_converge_are_reported_once():
    with pytest.warns(ep.exceptions.ConvergenceWarning, match="members") as caught:
        model = ep.BaggingClassifier(ep.LogisticRegression(solver="gd", max_iter=2), 4, random_state=0).fit(
            IRIS, LABELS
        )
    assert len([w for w in caught if issubclass(w.category, ep.exceptions.ConvergenceWarning)]) == 1
    assert not model.converged_
    assert not model.certificate_.holds
