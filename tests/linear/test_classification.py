"""Labels, probabilities, class weights and separation."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine

import epicycle as ep
from epicycle import LogisticRegression
from epicycle.exceptions import ConvergenceError, DataError, ParameterError, SeparationError, SeparationWarning

LABELS = {
    "strings": np.array(["no", "yes"]),
    "booleans": np.array([False, True]),
    "minus and plus one": np.array([-1, 1]),
    "whole floats": np.array([-2.0, 7.0]),
    "unsigned": np.array([3, 250], dtype=np.uint8),
    "far apart": np.array([-(2**62), 2**62]),
    "large unsigned": np.array([1, 2**63 + 5], dtype=np.uint64),
    "objects": np.array(["left", "right"], dtype=object),
    "three strings": np.array(["x", "yy", "zzz"]),
    "gaps": np.array([2, 40, 10**9]),
    "three floats": np.array([-1.0, 0.0, 4.0]),
    "large and close": np.array([2**63, 2**63 + 1, 2**63 + 4], dtype=np.uint64),
    "three objects": np.array([10, 2, 30], dtype=object),
}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.arange(240) % 3)
    return rng.normal(size=(240, 3)) + np.eye(3)[codes], codes


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("container", [np.asarray, list, pd.Series])
def test_labels_of_any_kind(points, kind, container):
    X, codes = points
    labels = LABELS[kind]
    if len(labels) == 2:
        X, codes = X[codes < 2], codes[codes < 2]
    order = np.argsort(labels)
    rank = np.argsort(order)  # position of each label among the sorted ones
    expected = LogisticRegression().fit(X, rank[codes])
    model = LogisticRegression().fit(X, container(labels[codes]))
    assert_array_equal(model.classes_, labels[order])
    assert_array_equal(model.coef_, expected.coef_)
    predicted = model.predict(X)
    assert_array_equal(predicted, labels[order][expected.predict(X)])
    if kind != "three objects":  # which scikit-learn's metrics do not take
        assert model.score(X, labels[codes]) == expected.score(X, rank[codes])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(points, n_classes):
    X, codes = points
    X, codes = X[codes < n_classes], codes[codes < n_classes]
    model = LogisticRegression(C=2.0).fit(X, codes)
    P, L, scores = model.predict_proba(X), model.predict_log_proba(X), model.decision_function(X)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-14)
    assert_allclose(np.exp(L), P, rtol=1e-12)
    assert_array_equal(model.predict(X), P.argmax(axis=1))
    if n_classes == 2:
        assert_allclose(P[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    else:
        assert_allclose(P, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), rtol=1e-12)
    # at the optimum with an intercept, mean probabilities are class frequencies
    assert_allclose(P.mean(axis=0), np.bincount(codes) / len(codes), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logarithms_do_not_underflow(points, n_classes):
    X, codes = points
    X, codes = X[codes < n_classes], codes[codes < n_classes]
    model = LogisticRegression().fit(X, codes)
    far = 1e6 * X[:20]
    L = model.predict_log_proba(far)
    assert np.isfinite(L).all()
    assert L.min() < -1e4
    scores = model.decision_function(far)
    full = np.column_stack([np.zeros(20), scores]) if n_classes == 2 else scores
    assert_allclose(L, full - full.max(axis=1, keepdims=True), rtol=1e-9, atol=1e-9)
    assert_allclose(model.predict_proba(far).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_are_sample_weights(points, n_classes, weighted):
    X, codes = points
    X, codes = X[codes < n_classes][20:], codes[codes < n_classes][20:]
    names = np.array(["a", "b", "c"])[codes]
    weight = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else np.ones(len(X))
    given = weight if weighted else None
    factors = np.array([0.5, 3.0, 1.0])
    model = LogisticRegression(class_weight={"a": 0.5, "b": 3.0}, tol=1e-12).fit(X, names, given)
    expected = LogisticRegression(tol=1e-12).fit(X, names, weight * factors[codes])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
    totals = np.bincount(codes, weights=weight)
    balanced = LogisticRegression(class_weight="balanced", tol=1e-12).fit(X, names, given)
    expected = LogisticRegression(tol=1e-12).fit(X, names, weight * (weight.sum() / (n_classes * totals))[codes])
    assert_allclose(balanced.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
    assert_allclose(balanced.intercept_, expected.intercept_, rtol=1e-7, atol=1e-9)


# ------------------------------------------------------------------------------------------------ separation


def separable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4)) * [1, 1, 0.01, 100]
    return pd.DataFrame(X, columns=["age", "dose", "noise", "other"]), np.where(X[:, 0] > 0.1, "yes", "no")


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "bfgs", "cg", "gd", "gd-ladder", "sgd", "adam"])
def test_separation_is_called_so(solver):
    X, y = separable()
    model = LogisticRegression(C=np.inf, solver=solver, random_state=0)
    if solver in ("gd", "gd-ladder", "sgd", "adam"):  # which are slow on columns of such units
        X = X / X.std()
    with pytest.warns(SeparationWarning, match=r"y: .*separable[\s\S]*finite C") as caught:
        model.fit(X, y)
    assert any(name in str(caught[0].message) for name in ("age", "noise"))
    assert not model.certificate_.holds
    assert not model.converged_
    assert model.score(X, y) > 0.95
    assert LogisticRegression(C=1.0).fit(X, y).certificate_.holds


def test_separation_names_the_column_that_does_it():
    X, y = separable()
    with pytest.warns(SeparationWarning, match=r"grow for age\b"):
        LogisticRegression(C=np.inf).fit(X / X.std(), y)
    model = LogisticRegression(C=np.inf)
    with ep.config(on_nonconvergence="raise"), pytest.raises(SeparationError, match=r"grow for age\b") as caught:
        model.fit(X / X.std(), y)
    assert isinstance(caught.value, ConvergenceError)
    assert isinstance(caught.value, ValueError)
    assert not hasattr(model, "coef_")


def test_separation_of_several_classes():
    X, y = load_wine(return_X_y=True, as_frame=True)
    with pytest.warns(SeparationWarning, match="separable"):
        LogisticRegression(C=np.inf).fit((X - X.mean()) / X.std(), y)


def test_one_class_apart_from_the_rest():
    """Setosa can be told from the others, which overlap: the likelihood has no maximum either."""
    X, y = load_iris(return_X_y=True)
    with pytest.warns(SeparationWarning, match="separable"):
        LogisticRegression(C=np.inf, max_iter=100).fit(X, y)


def test_separation_with_weights():
    """Rows without weight do not spoil the separation; a row of tiny weight on the wrong side does."""
    X, y = separable()
    X = X / X.std()
    weight = np.random.default_rng(1).uniform(1e-3, 10, size=100)
    flipped = y.copy()
    flipped[:3] = np.where(y[:3] == "yes", "no", "yes")
    weight[:3] = 0
    with pytest.warns(SeparationWarning):
        LogisticRegression(C=np.inf).fit(X, flipped, weight)
    weight[:3] = 1e-2
    with ep.config(on_nonconvergence="ignore"):
        assert LogisticRegression(C=np.inf).fit(X, flipped, weight).certificate_.holds


def test_a_subsample_that_shows_one_class_only():
    """Every other row: the rough start sees a single class, or none of a rare one, and must not lead astray."""
    rng = np.random.default_rng(0)
    n = 20_000
    X = rng.normal(size=(n, 4))
    alternating = np.arange(n) % 2
    rare = np.zeros(n, int)
    rare[[5, 77, 1234, 3333, 7001, 15_001, 19_999]] = 1
    for y in (alternating, rare, np.arange(n) % 4):
        for C in (1.0, np.inf):
            model = LogisticRegression(C=C).fit(X, y)
            whole = LogisticRegression(C=C, solver="newton").fit(X, y)
            assert model.certificate_.holds
            assert model.n_iter_ <= 25
            assert_allclose(model.predict_proba(X[:50]), whole.predict_proba(X[:50]), atol=1e-4)


def test_too_few_classes(points):
    X, codes = points
    with pytest.raises(DataError, match=r"y: .*only one class.*'a'"):
        LogisticRegression().fit(X, np.full(240, "a"))
    with pytest.raises(DataError, match=r"y: .*only one class of positive weight"):
        LogisticRegression().fit(X, codes, (codes == 1).astype(float))


def test_bad_class_weights(points):
    for spec, words in (
        ({0: -0.5}, r"class_weight\[0\]=-0.5; expected a finite number >= 0"),
        ({1: -1}, r"class_weight\[1\]=-1"),
        ({1: np.nan}, r"class_weight\[1\]=nan"),
        ({1: "2"}, r"class_weight\[1\]='2'"),
        ({"x": 1.0}, r"class_weight names the class 'x'.*\[0, 1, 2\]"),
        ("even", "class_weight='even'.*'balanced'"),
        ([1, 2], r"class_weight=\[1, 2\]"),
    ):
        with pytest.raises(ParameterError, match=words):
            LogisticRegression(class_weight=spec).fit(*points)
