"""The perceptron: mistakes against their bound, margins against other solvers, votes and means by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

import epicycle as ep
from epicycle import Perceptron
from epicycle.exceptions import ConvergenceWarning, MemoryBudgetError, ParameterError


def separable(seed, n=80, p=4, margin=0.2, scale=1.0):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(n, p)), rng.normal(size=p)
    side = X @ u / np.linalg.norm(u) + 0.2
    X = X[np.abs(side) > margin]
    return scale * X, np.where((X @ u / np.linalg.norm(u) + 0.2) > 0, 1, -1)


def is_separable(X, y):
    """By linear programming: is there (w, b) with y (w'x + b) >= 1 for all rows?"""
    A = -y[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None), method="highs")
    return found.status == 0


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    p=st.integers(1, 12),
    margin=st.sampled_from([0.05, 0.3, 1.0]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    shuffle=st.booleans(),
    sparse=st.booleans(),
    variant=st.sampled_from(["online", "averaged", "voted"]),
)
def test_mistakes_never_exceed_the_bound(seed, p, margin, scale, shuffle, sparse, variant):
    X, y = separable(seed, p=p, margin=margin, scale=scale)
    assume(len(np.unique(y)) == 2)
    table = sp.csr_array(X) if sparse else X
    with ep.config(on_nonconvergence="ignore"):
        model = Perceptron(variant=variant, shuffle=shuffle, tol=None, max_iter=60).fit(table, y)
    Z = y[:, None] * np.column_stack([X, np.ones(len(X))])
    assert model.separable_
    assert model.radius_ == pytest.approx(np.linalg.norm(Z, axis=1).max())
    assert model.n_mistakes_ <= model.mistake_bound_ == pytest.approx((model.radius_ / model.margin_) ** 2)
    assert model.n_mistakes_ == model.history_.mistakes.sum()
    if model.certificate_.holds:
        w = np.append(model._learner_["v"][:, 0], model._learner_["b"])  # the last weights, whatever the variant
        assert (Z @ w > 0).all()
        assert (Z @ w).min() / np.linalg.norm(w) <= model.margin_ * (1 + 2e-3)


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 60), p=st.integers(1, 8), flip=st.integers(0, 5))
def test_separable_or_not_agrees_with_linear_programming(seed, n, p, flip):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X @ rng.normal(size=p) + 0.1 > 0, 1, -1)
    y[rng.integers(n, size=flip)] *= -1
    assume(len(np.unique(y)) == 2)
    with ep.config(on_nonconvergence="ignore"):
        model = Perceptron(max_iter=200, tol=1e-6).fit(X, y)
    assert model.separable_ == is_separable(X, y)
    kind, holds = model.certificate_.kind, model.certificate_.holds
    if model.separable_:
        assert not holds or kind == "separating hyperplane"
        assert model.score(X, y) == 1 or not holds
    else:
        assert kind == "margin bound"
        assert holds
        assert np.isinf(model.mistake_bound_)


@pytest.mark.parametrize(("n", "p"), [(60, 2), (200, 6), (90, 120)])
def test_the_margin_is_the_hard_margin(n, p):
    X, y = separable(n, n=n, p=p)
    model = Perceptron(max_iter=20_000, tol=None).fit(X, y)
    Z = np.column_stack([X, np.ones(len(X))])
    svm = LinearSVC(loss="hinge", C=1e6, fit_intercept=False, tol=1e-8, max_iter=2_000_000).fit(Z, y)
    margin = (y * (Z @ svm.coef_[0])).min() / np.linalg.norm(svm.coef_)
    assert model.margin_ == pytest.approx(margin, rel=2e-3)


def test_in_many_dimensions_by_coordinate_ascent(monkeypatch):
    from epicycle.linear.online import _margin as margin

    X, y = separable(5, n=120, p=10, margin=0.4)
    exact = Perceptron().fit(X, y)
    monkeypatch.setattr(margin, "MAX_FEATURES_EXACT", 0)
    for table in (X, sp.csr_array(X)):
        model = Perceptron().fit(table, y)
        assert model.margin_ == pytest.approx(exact.margin_, rel=2e-2)
        assert model.margin_ <= exact.margin_ * (1 + 2e-3)
    noise = np.random.default_rng(0).choice([-1, 1], size=len(y))
    assert Perceptron().fit(X, noise).certificate_.kind == "margin bound"
    assert Perceptron().fit(X, noise).certificate_.holds


def test_iris_setosa_is_separable_and_the_others_are_not():
    X, y = load_iris(return_X_y=True)
    model = Perceptron().fit(X, y)
    assert model.separable_.tolist() == [True, False, False]
    assert model.n_mistakes_[0] <= model.mistake_bound_[0] < np.inf
    assert np.isinf(model.mistake_bound_[1:]).all()
    assert model.certificate_.kind == "margin bound"
    assert model.certificate_.holds


def test_too_few_passes_say_so():
    X, y = separable(0, n=300, margin=0.01)
    with pytest.warns(ConvergenceWarning, match="separating hyperplane"):
        model = Perceptron(max_iter=1).fit(X, y)
    assert not model.certificate_.holds
    assert "too few" in model.certificate_.meaning
    assert model.n_mistakes_ <= model.mistake_bound_


def by_hand(X, y, passes):
    """The perceptron as the notes have it; all its weight vectors with the rows they survived."""
    w, kept, mean, shown = np.zeros(X.shape[1] + 1), [], np.zeros(X.shape[1] + 1), 0
    survived, mistakes = 0, 0
    for _ in range(passes):
        for x, target in zip(np.column_stack([X, np.ones(len(X))]), y, strict=True):
            if target * (w @ x) <= 0:
                kept.append((w, survived))
                w, survived, mistakes = w + target * x, 0, mistakes + 1
            survived += 1
            mean += w
            shown += 1
    return w, [*kept, (w, survived)], mean / shown, mistakes


@pytest.mark.parametrize("sparse", [False, True])
def test_variants_against_the_algorithms(sparse):
    X, y = separable(3, n=60)
    y[:4] *= -1  # not separable, so that it goes on making mistakes
    table = sp.csr_array(X) if sparse else X
    w, kept, mean, mistakes = by_hand(X, y, 3)
    with ep.config(on_nonconvergence="ignore"):
        models = {
            variant: Perceptron(variant=variant, shuffle=False, max_iter=3, tol=None).fit(table, y)
            for variant in ("online", "averaged", "voted")
        }
    assert {model.n_mistakes_ for model in models.values()} == {mistakes}
    assert_allclose(np.append(models["online"].coef_, models["online"].intercept_), w, rtol=1e-12)
    assert_allclose(np.append(models["averaged"].coef_, models["averaged"].intercept_), mean, rtol=1e-11)
    Z = np.column_stack([X, np.ones(len(X))])
    votes = sum(count * np.sign(Z @ vector) for vector, count in kept) / (3 * len(X))
    assert_allclose(models["voted"].decision_function(table), votes, atol=1e-12)
    assert_array_equal(models["voted"].predict(table), np.where(votes > 0, 1, -1))


def test_votes_on_streams_with_late_classes_and_in_files(tmp_path):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    model = Perceptron(variant="voted")
    for i in range(0, 150, 7):
        model.partial_fit(X[i : i + 7], y[i : i + 7])
    known = Perceptron(variant="voted").partial_fit(X, y, classes=[0, 1, 2])
    assert_allclose(model.decision_function(X), known.decision_function(X), atol=1e-12)
    assert_array_equal(model.n_mistakes_, known.n_mistakes_)
    model.save(tmp_path / "votes.epi")
    assert_array_equal(ep.load(tmp_path / "votes.epi").predict(X), model.predict(X))


def test_votes_state_their_memory():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 50_000), density=1e-3, rng=rng, format="csr")
    y = rng.integers(2, size=400)
    with ep.config(memory_limit=40_000_000), pytest.raises(MemoryBudgetError, match="averaged"):
        Perceptron(variant="voted", max_iter=2, tol=None).fit(X, y)


def test_averages_and_votes_beat_the_last_weights_on_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = np.where(X @ rng.normal(size=20) + 2 * rng.normal(size=3000) > 0, 1, -1)
    scores = {
        variant: Perceptron(variant=variant).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:])
        for variant in ("online", "averaged", "voted")
    }
    assert scores["averaged"] > scores["online"]
    assert scores["voted"] > scores["online"]


def test_warm_start_and_weights():
    X, y = separable(1)
    model = Perceptron(warm_start=True).fit(X, y)
    assert model.fit(X, y).n_mistakes_ == 0  # it begins with weights that separate
    assert not hasattr(model, "mistake_bound_")
    with pytest.raises(ParameterError, match="voted"):
        model.set_params(variant="voted").fit(X, y)
    halves = Perceptron().fit(X, y, sample_weight=np.full(len(y), 0.5))
    assert halves.n_mistakes_ <= halves.mistake_bound_
    assert halves.certificate_.holds
