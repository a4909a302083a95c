"""The kernel perceptron: the bound on its mistakes, the primal, variants, margins, proofs, weights, bad kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import epicycle as ep
from epicycle import KernelPerceptron, Perceptron
from epicycle.exceptions import DataError, ParameterError
from epicycle.kernel import Gaussian, Linear, Polynomial, Sigmoid, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
RING = (np.square(X).sum(axis=1) > 1.2).astype(int)
NEW = RNG.normal(size=(25, 2))


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(0.02, 0.5), st.booleans())
def test_mistakes_never_exceed_the_bound(seed, gap, shuffle):
    """A known function separates: w'phi of the quadratic kernel, so its margin is known from outside."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, size=(60, 2))
    side = rows[:, 0] ** 2 - rows[:, 0] * rows[:, 1] - 0.2
    keep = np.abs(side) > gap
    keep[:2], side[:2], rows[:2] = True, [0.8, -0.5], [[1.0, 0.0], [0.3, 1.3]]
    rows, y = rows[keep], side[keep] > 0
    phi = Polynomial(2).feature_map(rows)
    w = np.linalg.lstsq(phi, np.where(y, 1.0, -1.0), rcond=None)[0]
    known = (np.where(y, 1, -1) * (phi @ w)).min() / np.linalg.norm(w)
    options = {"fit_intercept": False, "shuffle": shuffle, "tol": 1e-9, "max_iter": 20_000}
    model = KernelPerceptron(Polynomial(2), **options).fit(rows, y)
    assert model.separable_
    assert np.array_equal(model.predict(rows), y)
    longest = np.sqrt(Polynomial(2).diagonal(rows).max())
    assert model.radius_ == pytest.approx(longest)
    assert model.n_mistakes_ <= model.mistake_bound_ + 1e-9
    if known > 0:
        assert model.n_mistakes_ <= (longest / known) ** 2
        assert model.margin_ >= known * (1 - 2e-3)
    assert np.abs(model.dual_coef_).sum() == model.n_mistakes_ == model.history_.mistakes.sum()
    assert model.certificate_.kind == "separating function"


def test_the_margin_is_that_of_a_support_vector_machine():
    K = Gaussian(1.0)(X)
    svm = SVC(C=1e8, kernel="precomputed", tol=1e-8).fit(K + 0.0, RING)
    a = svm.dual_coef_[0]
    largest = 1 / np.sqrt(a @ K[np.ix_(svm.support_, svm.support_)] @ a)
    with_bias = KernelPerceptron(Gaussian(1.0)).fit(X, RING)
    plain = KernelPerceptron(Gaussian(1.0), fit_intercept=False).fit(X, RING)
    # a machine without a bias has no larger margin, and one whose bias counts in the norm none either
    for model in (with_bias, plain):
        assert 0 < model.margin_ <= largest * (1 + 1e-6)
        assert np.array_equal(model.predict(X), RING)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_linear_kernel_is_the_primal_perceptron(intercept, shuffle):
    rows = X + 1.5 * np.where(X[:, :1] + 0.3 * X[:, 1:] > 0, 1, -1)
    y = X[:, 0] + 0.3 * X[:, 1] > 0
    options = {"fit_intercept": intercept, "shuffle": shuffle}
    for variant in ("online", "averaged"):
        dual = KernelPerceptron("linear", variant=variant, **options).fit(rows, y)
        primal = Perceptron(variant=variant, **options).fit(rows, y)
        assert dual.n_mistakes_ == primal.n_mistakes_
        assert dual.n_iter_ == primal.n_iter_
        assert_allclose(dual.dual_coef_ @ dual.X_fit_, primal.coef_[0], rtol=1e-9)
        assert_allclose(dual.intercept_, primal.intercept_, rtol=1e-9, atol=1e-12)
        assert_allclose(dual.margin_, primal.margin_, rtol=3e-3)
        assert_allclose(dual.decision_function(NEW), primal.decision_function(NEW), rtol=1e-9)


def test_by_hand():
    """Every presentation written out, with the three ways to predict."""
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], 30)
    K = Gaussian(0.5)(rows) + 1
    new = Gaussian(0.5)(NEW, rows) + 1
    c, total, votes, mistakes = np.zeros(30), np.zeros(30), np.zeros(25), 0
    for _ in range(4):
        for i in range(30):
            votes += np.sign(new @ c)  # of the function before this row, which it does not survive if it is wrong
            total += c
            if y[i] * (K[i] @ c) <= 0:
                c[i] += y[i]
                mistakes += 1
                votes += np.sign(new @ c) - np.sign(new @ (c - y[i] * np.eye(30)[i]))
                total[i] += y[i]
    options = {"kernel": Gaussian(0.5), "shuffle": False, "max_iter": 4, "tol": 1e-9}
    with ep.config(on_nonconvergence="ignore"):
        found = {v: KernelPerceptron(variant=v, **options).fit(rows, y) for v in ("online", "averaged", "voted")}
    if found["online"].n_iter_ == 4:
        assert found["online"].n_mistakes_ == mistakes
        assert_allclose(found["online"].decision_function(NEW), new @ c, rtol=1e-9, atol=1e-12)
        assert_allclose(found["averaged"].decision_function(NEW), new @ total / 120, rtol=1e-9, atol=1e-12)
        assert_allclose(found["voted"].decision_function(NEW), votes / 120, rtol=1e-9, atol=1e-12)
    assert found["online"].n_iter_ == 4


def test_classes_that_overlap_are_proven_to():
    y = RNG.integers(0, 2, 80)
    model = KernelPerceptron("linear", tol=0.05).fit(X, y)
    assert not model.separable_
    assert model.mistake_bound_ == np.inf
    assert model.certificate_.kind == "margin bound"
    assert model.certificate_.holds
    # by linear programming: no w with y (w'x + b) >= 1
    from scipy.optimize import linprog

    signed = np.where(y == 1, 1, -1)[:, None] * np.column_stack([X, np.ones(80)])
    assert linprog(np.zeros(3), -signed, -np.ones(80), bounds=(None, None)).status == 2
    equal = KernelPerceptron(tol=0.1).fit(np.ones((4, 2)), [0, 1, 0, 1])  # equal rows, opposite labels
    assert not equal.separable_
    assert equal.certificate_.holds


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 3))
def test_weights_are_repetitions_and_the_order_does_not_matter(seed, classes):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(12, 2)), np.arange(12) % classes
    weight = rng.integers(0, 4, 12)
    weight[:classes] = 1
    weighted = KernelPerceptron(Gaussian(0.5)).fit(rows, y, weight)
    repeated = KernelPerceptron(Gaussian(0.5)).fit(np.repeat(rows, weight, axis=0), np.repeat(y, weight))
    order = rng.permutation(12)
    turned = KernelPerceptron(Gaussian(0.5)).fit(rows[order], y[order], weight[order])
    for other in (repeated, turned):
        assert_allclose(weighted.decision_function(NEW), other.decision_function(NEW), rtol=1e-9, atol=1e-9)
        assert np.array_equal(weighted.n_mistakes_, other.n_mistakes_)
    assert np.all(weighted.n_mistakes_ <= weighted.mistake_bound_)


@pytest.mark.parametrize("variant", ["online", "averaged", "voted"])
def test_rows_of_every_kind_and_files(variant, tmp_path):
    y = np.digitize(np.square(X).sum(axis=1), [0.5, 2.0])
    model = KernelPerceptron(Gaussian(0.7), variant=variant).fit(X, y)
    expected = model.decision_function(NEW)
    assert expected.shape == (25, 3)
    sparse = KernelPerceptron(Gaussian(0.7), variant=variant, shuffle=False).fit(sp.csr_array(X), y)
    dense = KernelPerceptron(Gaussian(0.7), variant=variant, shuffle=False).fit(X, y)
    assert_allclose(sparse.decision_function(sp.csr_array(NEW)), dense.decision_function(NEW), rtol=1e-8, atol=1e-10)
    given_matrix = KernelPerceptron("precomputed", variant=variant, shuffle=False).fit(Gaussian(0.7)(X), y)
    assert_allclose(given_matrix.decision_function(Gaussian(0.7)(NEW, X)), dense.decision_function(NEW), rtol=1e-9)
    model.save(tmp_path / "m.epi")
    assert np.array_equal(ep.load(tmp_path / "m.epi").decision_function(NEW), expected)
    strings = ["aab", "abb", "aaab", "bbb", "bba", "bab"]
    words = KernelPerceptron(Spectrum(2), variant=variant).fit(strings, [s[:2] == "aa" for s in strings])
    assert words.predict(["aaa", ""]).shape == (2,)


def test_rows_without_a_mistake_are_not_kept():
    model = KernelPerceptron(Gaussian(1.0)).fit(X, RING)
    assert len(model.X_fit_) == len(model.support_) == np.count_nonzero(model.dual_coef_) < len(X)
    assert_allclose(model.X_fit_, X[model.support_])


def test_a_kernel_that_is_none_proves_nothing():
    with ep.config(on_nonconvergence="ignore"):
        model = KernelPerceptron(Sigmoid(2.0, -1.0), max_iter=50).fit(X, RING)
    assert model.margin_ == 0
    assert model.mistake_bound_ == np.inf
    assert model.separable_ == bool((model.predict(X) == RING).all())
    assert model.certificate_.holds == model.separable_
    minus = KernelPerceptron(lambda A, B: -(A @ B.T), fit_intercept=False, max_iter=5)
    with pytest.warns(ep.exceptions.ConvergenceWarning):
        minus.fit(X, RING)
    assert "no Mercer kernel" in minus.certificate_.meaning


def test_bad_input():
    with pytest.raises(DataError, match="not symmetric"):
        KernelPerceptron("precomputed").fit(np.triu(np.ones((4, 4))), [0, 1, 0, 1])
    with pytest.raises(DataError, match="class"):
        KernelPerceptron().fit(X[:1], [1])
    with pytest.raises(DataError, match="NaN"):
        KernelPerceptron().fit(np.full((2, 2), np.nan), [0, 1])
    for wrong in ({"gamma": 0.0}, {"gamma": np.inf}, {"variant": "mean"}, {"tol": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            KernelPerceptron(**wrong).fit(X, RING)
    assert KernelPerceptron(Linear()).fit([[1.0], [2.0]], ["b", "a"]).predict([[2.0]])[0] == "a"


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    cuts=st.lists(st.integers(1, 39), max_size=6),
    K=st.integers(2, 4),
    variant=st.sampled_from(["online", "averaged", "voted"]),
    weighted=st.booleans(),
    sparse=st.booleans(),
)
def test_a_stream_in_any_batches_is_one_pass_of_fit(seed, cuts, K, variant, weighted, sparse):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(K, size=40)
    y[:K] = np.arange(K)
    weight = rng.choice([0.5, 1.0, 2.0, 3.25], size=40) if weighted else None
    table = sp.csr_array(X) if sparse else X
    with ep.config(on_nonconvergence="ignore"):
        whole = KernelPerceptron(variant=variant, shuffle=False, max_iter=1).fit(table, y, sample_weight=weight)
    stream = KernelPerceptron(variant=variant)
    ends = [*sorted(set(cuts)), 40]
    for start, stop in zip([0, *ends], ends, strict=False):
        v = None if weight is None else weight[start:stop]
        stream.partial_fit(table[start:stop], y[start:stop], classes=np.arange(K), sample_weight=v)
    assert_allclose(stream.decision_function(table), whole.decision_function(table), atol=1e-9)
    assert_array_equal(stream.support_, whole.support_)
    assert_allclose(stream.n_mistakes_, whole.n_mistakes_)


def test_a_stream_goes_on_after_fit_and_after_loading(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = KernelPerceptron(ep.kernel.Gaussian(1.0)).fit(X[::2], y[::2])
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    for m in (model, loaded):
        m.partial_fit(X[1::2], y[1::2])
        assert m.score(X, y) > 0.9
        assert not hasattr(m, "margin_")
    assert_allclose(model.decision_function(X), loaded.decision_function(X))
    with pytest.raises(DataError, match="not among the classes"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(DataError, match="at least 2 classes"):
        KernelPerceptron().partial_fit(X[:2], [1, 1])
    with pytest.raises(ParameterError, match="precomputed"):
        KernelPerceptron("precomputed").partial_fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("variant", ["online", "averaged", "voted"])
@pytest.mark.parametrize("scale", [1e150, 1e300, 1.7e308])
def test_huge_weights_are_the_same_mistakes(variant, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    with ep.config(on_nonconvergence="ignore"):
        a = KernelPerceptron(variant=variant, max_iter=5).fit(X, y, sample_weight=np.full(30, 1e3))
        b = KernelPerceptron(variant=variant, max_iter=5).fit(X, y, sample_weight=np.full(30, scale))
    assert np.isfinite(b.decision_function(X)).all()
    assert_array_equal(a.predict(X), b.predict(X))
    assert a.certificate_.value == pytest.approx(b.certificate_.value)
