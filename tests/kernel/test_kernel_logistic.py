"""Kernel logistic regression: the primal on the feature map, a gap that is true, weights, bad kernels, files."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.special import log_softmax

import epicycle as ep
from epicycle import KernelLogisticRegression, LogisticRegression
from epicycle.exceptions import DataError, ParameterError
from epicycle.kernel import Gaussian, Linear, Matern, Polynomial, Sigmoid, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
CIRCLE = (np.square(X).sum(axis=1) + 0.6 * RNG.normal(size=90) > 1.4).astype(int)
THREE = np.digitize(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=90), [-0.3, 0.4])
NEW = RNG.normal(size=(15, 2))


def objective(model, K, y, weight=None):
    """F from the fitted attributes alone."""
    c = np.atleast_2d(model.dual_coef_.T).T
    Z = K @ c + model.intercept_
    scores = np.hstack([np.zeros_like(Z), Z]) if Z.shape[1] == 1 else Z
    own = log_softmax(scores, axis=1)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -np.sum(own if weight is None else weight * own) + np.sum(c * (K @ c)) / (2 * model.C)


@pytest.mark.parametrize("y", [CIRCLE, THREE], ids=["two", "three"])
@pytest.mark.parametrize("intercept", [True, False])
def test_equals_logistic_regression_on_the_features(y, intercept):
    weight = RNG.uniform(0.3, 2.0, len(y))
    for kernel, C in ((Linear(), 3.0), (Polynomial(2, c=0.5), 0.7)):
        dual = KernelLogisticRegression(C, kernel=kernel, fit_intercept=intercept).fit(X, y, weight)
        primal = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-12).fit(kernel.feature_map(X), y, weight)
        expected = primal.predict_proba(kernel.feature_map(NEW))
        assert_allclose(dual.predict_proba(NEW), expected, rtol=1e-5, atol=1e-6)
        assert dual.certificate_.holds
        assert_allclose(np.exp(dual.predict_log_proba(NEW)), dual.predict_proba(NEW), rtol=1e-10)
        assert np.array_equal(dual.predict(NEW), dual.classes_[expected.argmax(axis=1)])


@pytest.mark.parametrize("y", [CIRCLE, THREE], ids=["two", "three"])
def test_the_gap_is_true_from_the_first_step(y):
    for kernel, C, intercept in ((Gaussian(0.7), 5.0, True), (Matern(1.0), 0.3, False), (Linear(), 50.0, True)):
        K = kernel(X)
        best = objective(KernelLogisticRegression(C, kernel=kernel, fit_intercept=intercept, tol=1e-14).fit(X, y), K, y)
        for steps in (1, 2, 3, 5):
            with ep.config(on_nonconvergence="ignore"):
                early = KernelLogisticRegression(C, kernel=kernel, fit_intercept=intercept, max_iter=steps).fit(X, y)
            value = objective(early, K, y)
            assert value == pytest.approx(early.history_.objective[-1], rel=1e-10)
            assert -1e-10 <= (value - best) / value <= early.certificate_.value + 1e-13
            assert early.certificate_.holds == (early.certificate_.value <= 1e-12) == early.converged_


def test_coefficients_are_the_residuals():
    model = KernelLogisticRegression(2.0, kernel=Gaussian(1.0)).fit(X, THREE)
    truth = THREE[:, None] == model.classes_
    assert_allclose(model.dual_coef_, 2.0 * (truth - model.predict_proba(X)), atol=1e-6)
    assert_allclose(model.dual_coef_.sum(axis=0), 0, atol=1e-8)
    assert len(model.history_.objective) == model.n_iter_


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(2, 3), st.booleans())
def test_weights_are_repetitions_and_the_order_does_not_matter(seed, classes, intercept):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(14, 2)), np.arange(14) % classes
    weight = rng.integers(0, 3, 14)
    weight[:classes] = 1
    options = {"kernel": Gaussian(1.0), "fit_intercept": intercept}
    weighted = KernelLogisticRegression(3.0, **options).fit(rows, y, weight)
    repeated = KernelLogisticRegression(3.0, **options).fit(np.repeat(rows, weight, axis=0), np.repeat(y, weight))
    order = rng.permutation(14)
    turned = KernelLogisticRegression(3.0, **options).fit(rows[order], y[order], weight[order])
    for other in (repeated, turned):
        assert_allclose(weighted.predict_proba(NEW), other.predict_proba(NEW), atol=1e-6)
    assert weighted.certificate_.holds


def test_class_weights_are_weights():
    balanced = KernelLogisticRegression(class_weight="balanced").fit(X, THREE)
    counts = np.bincount(THREE)
    by_hand = KernelLogisticRegression().fit(X, THREE, (len(THREE) / (3 * counts))[THREE])
    assert_allclose(balanced.predict_proba(NEW), by_hand.predict_proba(NEW), atol=1e-7)


def test_rows_of_every_kind_and_files(tmp_path):
    model = KernelLogisticRegression(gamma=0.5).fit(X, CIRCLE)
    expected = model.predict_proba(NEW)
    sparse = KernelLogisticRegression(gamma=0.5).fit(sp.csr_array(X), CIRCLE)
    assert_allclose(sparse.predict_proba(sp.csr_array(NEW)), expected, atol=1e-7)
    single = KernelLogisticRegression(gamma=0.5).fit(X.astype(np.float32), CIRCLE)
    assert single.decision_function(NEW.astype(np.float32)).dtype == np.float32
    assert_allclose(single.predict_proba(NEW.astype(np.float32)), expected, atol=1e-4)
    weight = np.where(np.arange(90) % 5 == 0, 0.0, 1.0)  # rows without a weight leave no trace in a given matrix
    part = KernelLogisticRegression(gamma=0.5).fit(X, CIRCLE, weight)
    given_matrix = KernelLogisticRegression(kernel="precomputed").fit(Gaussian(1.0)(X), CIRCLE, weight)
    assert_allclose(given_matrix.predict_proba(Gaussian(1.0)(NEW, X)), part.predict_proba(NEW), atol=1e-7)
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").predict_proba(NEW), expected)
    strings = ["".join(RNG.choice(list("ACGT"), 20)) for _ in range(60)]
    labels = np.array(["few", "many"])[[int(s.count("AC") > 1) for s in strings]]
    words = KernelLogisticRegression(10.0, kernel=Spectrum(2)).fit(strings, labels)
    assert words.score(strings, labels) > 0.9
    assert words.predict_proba([""]).shape == (1, 2)


def test_hard_cases_end_with_a_certificate():
    """Equal rows with opposite labels, classes that can be separated, one row of a class, huge and tiny penalties."""
    equal = KernelLogisticRegression().fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert_allclose(equal.predict_proba(np.ones((1, 2))), 0.5)
    assert equal.certificate_.holds
    apart = X + 4 * CIRCLE[:, None]
    for C in (1e-6, 1e3, 1e6):
        model = KernelLogisticRegression(C, kernel=Gaussian(2.0)).fit(apart, CIRCLE)
        assert model.certificate_.holds
    one = KernelLogisticRegression(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    assert one.certificate_.holds
    far = KernelLogisticRegression().fit(X + 1e8, CIRCLE).predict_proba(NEW + 1e8)
    assert_allclose(far, KernelLogisticRegression().fit(X, CIRCLE).predict_proba(NEW), atol=1e-6)


def test_exact_steps_and_conjugate_gradients_agree(monkeypatch):
    exact = [KernelLogisticRegression(5.0, kernel=Gaussian(0.7)).fit(X, y) for y in (CIRCLE, THREE)]
    assert all(not model.history_.steps.any() for model in exact)
    monkeypatch.setattr("epicycle.kernel._logistic_newton._low_rank_factor", lambda K, scores: None)
    for y, other in zip((CIRCLE, THREE), exact, strict=True):
        model = KernelLogisticRegression(5.0, kernel=Gaussian(0.7)).fit(X, y)
        assert model.history_.steps.all()
        assert model.certificate_.holds
        assert_allclose(model.decision_function(NEW), other.decision_function(NEW), atol=1e-5)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 3))
    y = np.digitize(rows[:, 0] * rows[:, 1], [-0.3, 0.3])
    options = {"kernel": Matern(0.5, nu=0.5), "tol": 1e-6}  # of full rank, too large for exact steps
    first, second = (KernelLogisticRegression(n_jobs=n, **options).fit(rows, y) for n in (1, 3))
    assert first.history_.steps.all()
    assert np.array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(2.0, -1.0), lambda A, B: -np.exp(-np.square(A[:, None] - B).sum(axis=2))],
    ids=["sigmoid", "minus"],
)
def test_no_mercer_kernel_is_refused(kernel):
    with pytest.raises(DataError, match=r"no Mercer kernel.*eigenvalue -.*is_mercer"):
        KernelLogisticRegression(kernel=kernel).fit(X, CIRCLE)


def test_bad_matrices_and_labels():
    K = Gaussian()(X)
    K[3, 5] += 0.1
    with pytest.raises(DataError, match=r"not symmetric: X\[3, 5\]"):
        KernelLogisticRegression(kernel="precomputed").fit(K, CIRCLE)
    with pytest.raises(DataError, match="not symmetric: k"):
        KernelLogisticRegression(kernel=lambda A, B: np.add.outer(A[:, 0], 2 * B[:, 0])).fit(X, CIRCLE)
    with pytest.raises(DataError, match="class"):
        KernelLogisticRegression().fit(X, np.zeros(90))
    with pytest.raises(DataError, match="class"):
        KernelLogisticRegression().fit(X[:1], [1])
    with pytest.raises(DataError, match="NaN"):
        KernelLogisticRegression().fit(np.full((4, 2), np.nan), [0, 1, 0, 1])
    for wrong in ({"gamma": 0.0}, {"gamma": np.inf}, {"C": 0.0}, {"C": np.inf}, {"kernel": "rbff"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            KernelLogisticRegression(**wrong).fit(X, CIRCLE)
