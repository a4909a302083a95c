"""SVC of several classes, NuSVC, SVR and OneClassSVM against libsvm; what is kept, probabilities, memory, bad input."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss

import epicycle as ep
from epicycle import SVC, SVR, NuSVC, OneClassSVM
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.kernel import Gaussian, Spectrum
from epicycle.svm._calibration import couple, platt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * RNG.normal(size=240)
LABELS = (X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=240) > 0.8).astype(int)
THREE = np.digitize(Y, [-0.5, 0.7])
WEIGHT = RNG.uniform(0.2, 2.0, 240)


# ------------------------------------------------------------------------------------------------ several classes


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_pairs_are_those_of_libsvm(kernel):
    T, y = load_iris(return_X_y=True)
    mine = SVC(kernel=kernel, gamma=0.5, coef0=1.0, degree=2, tol=1e-8).fit(T, y)
    peer = svm.SVC(kernel=kernel, gamma=0.5, coef0=1.0, degree=2, tol=1e-9).fit(T, y)
    assert_array_equal(mine.support_, peer.support_)
    assert_array_equal(mine.n_support_, peer.n_support_)
    assert_allclose(mine.support_vectors_, peer.support_vectors_)
    assert_allclose(mine.dual_coef_, peer.dual_coef_, atol=1e-3)  # libsvm has entries in single precision
    assert_allclose(mine.intercept_, peer.intercept_, atol=1e-3)
    assert_array_equal(mine.predict(T), peer.predict(T))
    assert_allclose(mine.decision_function(T), peer.decision_function(T), atol=1e-3)
    mine.decision_function_shape = peer.decision_function_shape = "ovo"
    assert_allclose(mine.decision_function(T), peer.decision_function(T), atol=1e-3)
    if kernel == "linear":
        assert_allclose(mine.coef_, peer.coef_, atol=1e-3)
    mine.decision_function_shape, mine.break_ties = "ovr", True
    assert mine.predict(T).shape == y.shape


def test_one_against_the_rest():
    mine = SVC(multi_class="ovr", tol=1e-8).fit(X, THREE)
    columns = [SVC(tol=1e-8).fit(X, k == THREE).decision_function(X) for k in range(3)]
    assert_allclose(mine.decision_function(X), np.column_stack(columns), atol=1e-6)
    assert_array_equal(mine.predict(X), np.column_stack(columns).argmax(axis=1))
    assert mine.dual_coef_.shape == (3, len(mine.support_))


def test_pairs_do_not_depend_on_how_their_matrices_are_had():
    """Blocks shared by pairs, a matrix for each pair, rows in a small cache; one thread or several."""
    T, y = load_digits(return_X_y=True)
    T, y = T[:500] / 16, y[:500]
    first = SVC(C=5.0, tol=1e-7).fit(T, y)
    for arguments in ({"cache_size": 0.15}, {"cache_size": 0.01}, {"n_jobs": 3}, {"cache_size": 0.01, "n_jobs": 3}):
        other = SVC(C=5.0, tol=1e-7, **arguments).fit(T, y)
        assert other.certificate_.holds
        assert_allclose(other.decision_function(T), first.decision_function(T), atol=1e-5)
        assert_allclose(other.dual_objective_, first.dual_objective_, rtol=1e-7)
    assert first.n_iter_.shape == (45,) == (first.history_.n_iter,)


def test_the_same_bits_for_any_number_of_threads():
    T = np.random.default_rng(1).normal(size=(2600, 10))
    y = (T[:, 0] + T[:, 1] ** 2 > 1).astype(int)
    for arguments in ({"cache_size": 2.0}, {}):
        models = [SVC(n_jobs=k, **arguments).fit(T, y) for k in (1, 2, 5)]
        for model in models[1:]:
            assert_array_equal(model.dual_coef_, models[0].dual_coef_)
            assert_array_equal(model.decision_function(T), models[0].decision_function(T))
    several = np.digitize(T[:, 0] + T[:, 1], [-0.6, 0.6])  # pairs that compute rows when they need them
    models = [SVC(n_jobs=k).fit(T, several) for k in (1, 4)]
    assert_array_equal(models[0].decision_function(T), models[1].decision_function(T))
    exact = SVC(tol=1e-6).fit(T, several)
    assert_allclose(models[0].dual_objective_, exact.dual_objective_, rtol=1e-4)


# ------------------------------------------------------------------------------------------------ the other machines


def test_regression_is_that_of_libsvm():
    for kernel, weight in (("linear", None), ("rbf", None), ("poly", WEIGHT), ("linear", WEIGHT)):
        for epsilon in (0.0, 0.1, 0.5):
            arguments = {"kernel": kernel, "epsilon": epsilon, "C": 2.0, "gamma": 0.3, "coef0": 1.0}
            mine = SVR(tol=1e-7, **arguments).fit(X, Y, weight)
            peer = svm.SVR(tol=1e-7, max_iter=500_000, **arguments).fit(X, Y, weight)
            assert mine.certificate_.holds
            assert_allclose(mine.predict(X), peer.predict(X), atol=1e-4)
            b = np.zeros(240)
            b[mine.support_] = mine.dual_coef_[0]
            f, C = mine.kernel_(X) @ b, 2.0 * (np.ones(240) if weight is None else weight)
            primal = 0.5 * b @ f + C @ np.maximum(np.abs(Y - f - mine.intercept_[0]) - epsilon, 0)
            assert primal == pytest.approx(mine.dual_objective_[0], rel=1e-5)
            assert np.all(np.abs(b) <= C * (1 + 1e-12))


def test_regression_inside_the_tube_needs_no_rows():
    model = SVR(epsilon=10.0).fit(X, Y)
    assert len(model.support_) == 0
    assert_allclose(model.predict(X), model.intercept_[0])
    assert model.certificate_.holds
    assert SVR().fit(X[:1], Y[:1]).predict(X[:1]) == pytest.approx(Y[0], abs=0.1)


def test_regression_with_a_far_offset():
    model, moved = (SVR(kernel="linear", tol=1e-7).fit(T, t) for T, t in ((X, Y), (X + 1e7, Y + 1e6)))
    assert_allclose(moved.coef_, model.coef_, rtol=1e-5, atol=1e-6)
    assert_allclose(moved.predict(X + 1e7) - 1e6, model.predict(X), atol=1e-5)


def test_nu_classification_is_that_of_libsvm():
    for kernel, nu in (("rbf", 0.3), ("rbf", 0.6), ("poly", 0.5)):
        arguments = {"kernel": kernel, "nu": nu, "gamma": 0.3, "coef0": 1.0}
        mine = NuSVC(tol=1e-7, **arguments).fit(X, LABELS)
        peer = svm.NuSVC(tol=1e-7, max_iter=500_000, **arguments).fit(X, LABELS)
        assert mine.certificate_.holds
        assert_allclose(mine.decision_function(X), peer.decision_function(X), atol=1e-3)
        inside = (mine.margins(X, LABELS).functional < 1 - 1e-4).mean()
        assert inside <= nu + 1e-9
        assert len(mine.support_) / 240 >= nu - 1e-9
        # Divided by the margin it is the machine whose C is the largest coefficient.
        same = SVC(kernel=kernel, gamma=0.3, coef0=1.0, C=np.abs(mine.dual_coef_).max(), tol=1e-8).fit(X, LABELS)
        assert_allclose(same.decision_function(X), mine.decision_function(X), atol=1e-3)
    several = NuSVC(nu=0.3).fit(X, THREE)
    assert several.nu_.shape == (3,)
    with pytest.raises(ParameterError, match=r"nu is infeasible: nu=0.9 for 1 against 0; expected at most 0.\d+"):
        NuSVC(nu=0.9).fit(X, (np.arange(240) < 60).astype(int))


def test_one_class_is_that_of_libsvm():
    for nu, weight in ((0.1, None), (0.5, None), (0.3, WEIGHT)):
        mine = OneClassSVM(nu=nu, gamma=0.2, tol=1e-8).fit(X, sample_weight=weight)
        peer = svm.OneClassSVM(nu=nu, gamma=0.2, tol=1e-8).fit(X, sample_weight=weight)
        assert mine.certificate_.holds
        assert mine.offset_ == pytest.approx(float(peer.offset_[0]), rel=1e-5)
        assert_allclose(mine.decision_function(X), peer.decision_function(X), atol=1e-4)
        assert_allclose(mine.score_samples(X), mine.decision_function(X) + mine.offset_)
    outside = (OneClassSVM(nu=0.1, tol=1e-8).fit_predict(X) == -1).mean()
    assert outside <= 0.1


# ------------------------------------------------------------------------------------------------ inputs


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 4, 40)
    count[:4] = 1
    T, t = rng.normal(size=(40, 3)), rng.normal(size=40)
    labels = (t > 0).astype(int)
    labels[:2] = 0, 1
    order = rng.permutation(40)
    again = np.repeat(np.arange(40), count)
    for model, y in ((SVC(gamma=0.5), labels), (SVR(gamma=0.5), t), (OneClassSVM(gamma=0.5), None)):
        f = model.fit(T, y, sample_weight=count)
        values = f.predict(T) if y is t else f.decision_function(T)
        for rows, weight in ((again, None), (order, count[order])):
            g = model.fit(T[rows], None if y is None else y[rows], sample_weight=weight)
            assert_allclose(g.predict(T) if y is t else g.decision_function(T), values, atol=1e-6)


def test_sparse_frames_and_single_precision():
    T = sp.random_array((200, 30), density=0.2, rng=np.random.default_rng(2)).tocsr()
    y = np.asarray(T.sum(axis=1)).ravel() > 3
    for kernel in ("linear", "rbf", "poly"):
        dense = SVC(kernel=kernel, C=10.0, tol=1e-7).fit(T.toarray(), y)
        sparse = SVC(kernel=kernel, C=10.0, tol=1e-7).fit(T, y)
        assert sp.issparse(sparse.support_vectors_)
        assert_allclose(sparse.decision_function(T), dense.decision_function(T.toarray()), atol=1e-5)
        small = SVC(kernel=kernel, C=10.0, cache_size=0.01).fit(T, y)
        assert small.certificate_.holds
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SVC().fit(frame, LABELS)
    assert list(model.feature_names_in_) == list("abcd")
    single = SVC().fit(X.astype(np.float32), LABELS)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.decision_function(X), model.decision_function(frame), atol=1e-3)


def test_strings_and_given_matrices(tmp_path):
    rng = np.random.default_rng(0)
    motif = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(80)]
    labels = np.arange(80) % 2
    texts = [s[:10] + ("TATAAT" if k else "GCGCGC") + s[16:] for s, k in zip(motif, labels, strict=True)]
    kernel = Spectrum(4).normalized()
    model = SVC(kernel=kernel, C=10.0).fit(texts, labels)
    assert model.score(texts, labels) == 1.0
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").decision_function(texts), model.decision_function(texts))
    K = kernel(texts)
    given_matrix = SVC(kernel="precomputed", C=10.0).fit(K, labels)
    assert_allclose(given_matrix.decision_function(K), model.decision_function(texts), atol=1e-9)
    dropped = SVC(kernel="precomputed", C=10.0).fit(K, labels, sample_weight=(np.arange(80) >= 6).astype(float))
    assert dropped.support_.min() >= 6
    assert_allclose(
        dropped.decision_function(K), SVC(kernel=kernel, C=10.0).fit(texts[6:], labels[6:]).decision_function(texts)
    )
    assert SVR(kernel=kernel).fit(texts, np.asarray(labels, float)).certificate_.holds


def test_memory_is_bounded_by_the_cache():
    T = np.random.default_rng(1).normal(size=(6000, 8))  # of which the matrix has 144 MB in single precision
    y = (T[:, 0] + T[:, 1] ** 2 > 1).astype(int)
    tracemalloc.start()
    model = SVC(cache_size=8, tol=1e-2, n_jobs=1).fit(T, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.certificate_.holds
    assert peak < (8 + 14) * 2**20 + 3 * T.nbytes


# ------------------------------------------------------------------------------------------------ probabilities


def test_platt_is_the_maximum_of_its_likelihood():
    rng = np.random.default_rng(0)
    f = rng.normal(size=500)
    positive = rng.random(500) < 1 / (1 + np.exp(-(2 * f - 0.5)))
    A, B = platt(f, positive)
    up = positive.sum()
    target = np.where(positive, (up + 1) / (up + 2), 1 / (500 - up + 2))

    def loss(a, b):
        p = 1 / (1 + np.exp(a * f + b))
        return -(target * np.log(p) + (1 - target) * np.log(1 - p)).sum()

    steps = [(1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4)]
    assert all(loss(A, B) < loss(A + s, B + t) for s, t in steps)
    assert pytest.approx((-2, 0.5), abs=0.4) == (A, B)
    assert np.isfinite(platt(np.array([1e6, -1e6]), np.array([True, False]))).all()


def test_coupling_minimises_the_disagreement_of_pairs():
    rng = np.random.default_rng(0)
    r = rng.uniform(0.05, 0.95, size=(20, 4, 4))
    r = r / (r + r.transpose(0, 2, 1))
    p = couple(r.copy())
    assert_allclose(p.sum(axis=1), 1.0)

    def cost(q):
        d = r.transpose(0, 2, 1) * q[:, :, None] - r * q[:, None, :]
        return np.square(d).sum(axis=(1, 2))

    for _ in range(30):
        other = np.abs(p + 0.02 * rng.normal(size=p.shape))
        assert np.all(cost(p) <= cost(other / other.sum(axis=1, keepdims=True)) + 1e-12)
    true = rng.dirichlet(np.ones(4), size=20)
    assert_allclose(couple(true[:, :, None] / (true[:, :, None] + true[:, None, :])), true, atol=1e-6)


def test_probabilities_are_calibrated():
    rng = np.random.default_rng(3)
    T = rng.normal(size=(3000, 2))
    y = (rng.random(3000) < 1 / (1 + np.exp(-3 * T[:, 0]))).astype(int)
    for how in ("platt", "isotonic"):
        model = SVC(probability=how, gamma=0.3).fit(T[:800], y[:800])
        p = model.predict_proba(T[800:])
        assert_allclose(p.sum(axis=1), 1.0)
        seen, said = calibration_curve(y[800:], p[:, 1], n_bins=5, strategy="quantile")
        assert np.abs(seen - said).max() < 0.12
    for how, shape in (("platt", "ovo"), ("isotonic", "ovr")):
        model = SVC(probability=how, multi_class=shape).fit(X, THREE)
        P = model.predict_proba(X)
        assert_allclose(P.sum(axis=1), 1.0)
        assert log_loss(THREE, P) < 0.8
        assert_allclose(np.exp(model.predict_log_proba(X)), P)
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        _ = SVC().predict_proba
    assert "probability='platt'" in str(caught.value.__cause__)
    again = [SVC(probability="platt", random_state=4).fit(X, LABELS).predict_proba(X) for _ in range(2)]
    assert_array_equal(*again)


# ------------------------------------------------------------------------------------------------ bad input


def test_what_is_refused():
    K = Gaussian()(X)
    uneven = K.copy()
    uneven[3, 7] += 0.5
    missing = X.copy()
    missing[5, 1] = np.nan
    cases = [
        (SVC(kernel="precomputed"), (uneven, LABELS), DataError, r"not symmetric: X\[\d, \d\]"),
        (SVC(kernel="precomputed"), (K[:, :-1], LABELS), DataError, "square"),
        (SVC(), (missing, LABELS), DataError, "X contains NaN"),
        (SVC(), (X, np.zeros(240)), DataError, "only one class"),
        (SVC(), (X[:1], LABELS[:1]), DataError, "class"),
        (SVC(C=0.0), (X, LABELS), ParameterError, "C=0.0"),
        (SVC(C=-1.0), (X, LABELS), ParameterError, "C=-1.0"),
        (SVC(gamma=0.0), (X, LABELS), ParameterError, "gamma=0.0"),
        (SVC(gamma=np.inf), (X, LABELS), ParameterError, "gamma=inf"),
        (SVC(gamma="wide"), (X, LABELS), ParameterError, "gamma='wide'"),
        (SVC(kernel="rbv"), (X, LABELS), ParameterError, "kernel='rbv'"),
        (SVC(kernel=lambda A, B: np.ones(3)), (X, LABELS), DataError, "kernel.*shape"),
        (SVC(cache_size=0), (X, LABELS), ParameterError, "cache_size=0"),
        (SVC(max_iter=-2), (X, LABELS), ParameterError, "max_iter=-2"),
        (SVC(slack="l3"), (X, LABELS), ParameterError, "slack='l3'"),
        (SVC(class_weight={5: 1.0}), (X, LABELS), ParameterError, "class_weight names the class 5"),
        (SVC(), (X, LABELS, -np.ones(240)), DataError, "sample_weight"),
        (SVC(tol="small"), (X, LABELS), ParameterTypeError, "tol='small'"),
        (SVR(epsilon=-0.1), (X, Y), ParameterError, "epsilon=-0.1"),
        (NuSVC(nu=0.0), (X, LABELS), ParameterError, "nu=0.0"),
        (OneClassSVM(nu=1.5), (X,), ParameterError, "nu=1.5"),
        (SVC(kernel=Spectrum(2)), ([1, 2], [0, 1]), DataError, "expected strings"),
    ]
    for model, arguments, error, words in cases:
        with pytest.raises(error, match=words):
            model.fit(*arguments)
        assert not hasattr(model, "support_")


def test_rows_that_cannot_be_told_apart():
    T = np.ones((20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (SVC(), SVC(kernel="linear"), SVC(slack="l2"), SVC(solver="dual-cd")):
            model.fit(T, np.arange(20) % 2)
            assert model.certificate_.holds
            assert len(set(model.predict(T))) == 1
        assert SVR().fit(T, np.arange(20.0)).certificate_.holds
        assert OneClassSVM().fit(T).certificate_.holds
