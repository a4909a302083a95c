"""One classifier a class: against scikit-learn, for several labels, with any classifier."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import epicycle as ep
from epicycle import LogisticRegression, OneVsRest
from epicycle.exceptions import ConvergenceWarning, DataError, DataTypeError, ParameterError


def problem(n_classes=3, n=150, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    scores = X @ rng.normal(size=(p, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1), rng.uniform(0.3, 2, size=n)


def labels_of(seed=0, n_labels=4):
    X, _, _ = problem(seed=seed)
    rng = np.random.default_rng(seed + 1)
    return X, (X @ rng.normal(size=(X.shape[1], n_labels)) + rng.logistic(size=(len(X), n_labels)) > 0).astype(int)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("base", [None, GaussianNB(), DecisionTreeClassifier(random_state=0)])
def test_agrees_with_scikit_learn(n_classes, base):
    X, y, _ = problem(n_classes)
    names = np.array(list("edcba"))[y]
    model = OneVsRest(base).fit(X, names)
    other = OneVsRestClassifier(LogisticRegression() if base is None else base).fit(X, names)
    assert_array_equal(model.classes_, other.classes_)
    assert len(model.estimators_) == len(other.estimators_)
    assert_array_equal(model.predict(X), other.predict(X))
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-12)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, names) == other.score(X, names)
    if base is None:
        assert_allclose(model.decision_function(X), other.decision_function(X))
    else:
        assert not hasattr(model, "decision_function")


def test_parts_are_two_class_fits():
    X, y, weight = problem()
    model = OneVsRest(LogisticRegression(C=2.0)).fit(X, y, weight)
    for k, part in enumerate(model.estimators_):
        alone = LogisticRegression(C=2.0).fit(X, (y == k).astype(int), weight)
        assert_array_equal(part.coef_, alone.coef_)
        assert model.history_.objective[k] == alone.history_.objective[-1]
        assert model.history_.certificate[k] == alone.certificate_.value
    assert model.certificate_.value == max(part.certificate_.value for part in model.estimators_)
    assert model.certificate_.holds
    assert model.n_iter_ == model.history_.n_iter == 3


def test_several_labels():
    X, Y = labels_of()
    model = OneVsRest().fit(X, Y)
    other = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    assert model.multilabel_
    assert_array_equal(model.predict(X), other.predict(X))
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-12)
    assert_allclose(model.decision_function(X), other.decision_function(X))
    for form in (sp.csr_array(Y), Y.astype(bool), Y.astype(float), pd.DataFrame(Y), Y.tolist()):
        assert_array_equal(OneVsRest().fit(X, form).predict(X), model.predict(X))


def test_constant_labels():
    X, Y = labels_of()
    Y[:, 1], Y[:, 3] = 0, 1
    model = OneVsRest().fit(X, Y)
    assert_array_equal(model.constant_, [np.nan, 0, np.nan, 1])
    assert model.estimators_[1] is None
    predicted = model.predict(X)
    assert not predicted[:, 1].any()
    assert predicted[:, 3].all()
    assert_array_equal(model.predict_proba(X)[:, [1, 3]], np.tile([0.0, 1.0], (len(X), 1)))
    assert model.certificate_.holds


def test_forms_threads_and_files(tmp_path):
    X, y, weight = problem(4)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = OneVsRest(n_jobs=1).fit(frame, y, weight)
    assert list(model.feature_names_in_) == list("abcde")
    assert list(model.estimators_[0].feature_names_in_) == list("abcde")
    one, two = (OneVsRest(n_jobs=k).fit(X, y, weight) for k in (1, 2))
    assert_array_equal(two.predict_proba(X), one.predict_proba(X))
    assert_allclose(two.predict_proba(X), model.predict_proba(frame), rtol=1e-12)
    assert_allclose(OneVsRest().fit(sp.csr_array(X), y, weight).predict_proba(X), two.predict_proba(X), atol=1e-6)
    two.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert_array_equal(loaded.predict_proba(X), two.predict_proba(X))
    assert loaded.certificate_ == two.certificate_
    assert loaded.estimators_[2].certificate_.holds
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    scan = ep.scan(tmp_path / "t.parquet", target="y")
    with pytest.raises(DataError, match="has to be in memory"):
        OneVsRest(ep.KNeighborsClassifier()).fit(scan)
    plain, files = OneVsRest().fit(frame, y), OneVsRest().fit(scan)
    assert_allclose(files.decision_function(frame), plain.decision_function(frame), atol=1e-8)
    assert_array_equal(files.predict(scan), plain.predict(frame))
    assert files.certificate_.holds


def test_every_part_keeps_out_of_the_way_of_the_others():
    X, y, _ = problem()
    base = LogisticRegression(C=3.0)
    model = OneVsRest(base).fit(X, y)
    assert not hasattr(base, "coef_")
    assert model.get_params()["estimator__C"] == 3.0
    assert model.set_params(estimator__C=0.1).fit(X, y).estimators_[0].C == 0.1


def test_what_fell_short_is_said_once():
    X, y, _ = problem()
    for _ in range(20):  # threads that change the filters of the process would lose some
        with pytest.warns(ConvergenceWarning, match="class 0, 1, 2") as caught:
            model = OneVsRest(LogisticRegression(solver="gd", max_iter=2), n_jobs=4).fit(X, y)
        assert len(caught) == 1
    assert not model.converged_
    assert not model.certificate_.holds


def test_classifiers_without_a_certificate():
    X, y, _ = problem()
    model = OneVsRest(LinearSVC()).fit(X, y)
    assert model.certificate_.kind == "none"
    assert model.converged_
    assert not hasattr(model, "predict_proba")
    assert_array_equal(model.predict(X), OneVsRestClassifier(LinearSVC()).fit(X, y).predict(X))


def test_partial_fit():
    X, y, _ = problem(4)
    X = StandardScaler().fit_transform(X)
    model, other = OneVsRest(SGDClassifier(random_state=0)), OneVsRestClassifier(SGDClassifier(random_state=0))
    for start in range(0, 150, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], y[rows], classes=range(4))
        other.partial_fit(X[rows], y[rows], classes=range(4))
    assert_array_equal(model.predict(X), other.predict(X))
    assert_allclose(model.decision_function(X), other.decision_function(X))
    before = copy.deepcopy(model.estimators_[0].coef_)
    with pytest.raises(DataError, match="label 9"):
        model.partial_fit(X[:2], np.array([9, 0]))
    assert_array_equal(model.estimators_[0].coef_, before)
    assert not hasattr(OneVsRest(), "partial_fit")


def test_bad_input():
    X, y, weight = problem()
    with pytest.raises(ParameterError, match="sample_weight: KNeighborsClassifier takes none"):
        OneVsRest(KNeighborsClassifier()).fit(X, y, weight)
    with pytest.raises(DataError, match="zeros and ones"):
        OneVsRest().fit(X, np.column_stack([y, y]))
    with pytest.raises(DataTypeError, match="zeros and ones"):
        OneVsRest().fit(X, np.full((len(X), 2), "a"))
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        OneVsRest().fit(X, np.eye(3))
    with pytest.raises(ParameterError, match="estimator="):
        OneVsRest(3).fit(X, y)
