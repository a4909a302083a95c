"""Parameters and attributes of scikit-learn's support vector machines, against scikit-learn itself."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.datasets import load_iris, make_regression
from sklearn.metrics.pairwise import pairwise_kernels

import epicycle as ep
from epicycle import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from epicycle.exceptions import ConvergenceError, DataError, DataTypeError, NotFittedError, ParameterError

X, THREE = load_iris(return_X_y=True)
TWO = (THREE == 2).astype(int)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("cls", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_give_the_answers_of_dense_ones(cls, kernel, container, tmp_path):
    model = {"kernel": kernel, "gamma": 0.1}
    dense, sparse = cls(**model).fit(X, THREE), cls(**model).fit(container(X), THREE)
    for name in ("support_vectors_", "dual_coef_") + (("coef_",) if kernel == "linear" else ()):
        assert isinstance(getattr(sparse, name), container)
        assert_allclose(getattr(sparse, name).toarray(), getattr(dense, name), rtol=1e-10, atol=1e-12)
    assert_array_equal(sparse.support_, dense.support_)
    assert_allclose(sparse.predict(container(X)), dense.predict(X), atol=1e-9)
    assert sparse.shape_fit_ == X.shape
    assert sparse.fit_status_ == 0
    sparse.save(tmp_path / "model.epi")
    again = ep.load(tmp_path / "model.epi")
    assert_array_equal(again.predict(X), sparse.predict(X))
    assert_array_equal(again.dual_coef_.toarray(), sparse.dual_coef_.toarray())


def test_coef_is_read_only_and_iterations_are_counted_by_function():
    model = SVC(kernel="linear").fit(X, THREE)
    with pytest.raises(AttributeError, match="coef_"):
        model.coef_ = np.zeros((3, 4))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 0.0
    assert model.n_iter_.shape == (3,)
    assert_array_equal(SVC(class_weight={0: 2.0}).fit(X, THREE).class_weight_, [2.0, 1.0, 1.0])
    assert not hasattr(SVC().fit(X, THREE), "coef_")


def test_probability_warns_as_there():
    with pytest.warns(FutureWarning, match="probability.+deprecated"):
        given = SVC(probability=True, random_state=0).fit(X, THREE)
    assert_array_equal(given.predict_proba(X), SVC(probability="platt", random_state=0).fit(X, THREE).predict_proba(X))
    two = SVC(probability="platt").fit(X, TWO)
    with pytest.warns(FutureWarning, match="probA_"):
        A = two.probA_
    with pytest.warns(FutureWarning, match="probB_"):
        B = two.probB_
    assert_allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(A * two.decision_function(X) + B)))
    without = SVC().fit(X, TWO)
    without.probability = "platt"
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        without.predict_proba(X)


def test_callable_kernels_get_sparse_rows_and_strings():
    def product(A, B):
        assert sp.issparse(A)
        assert sp.issparse(B)
        return A @ B.T

    mine = SVC(kernel=product).fit(sp.csr_matrix(X), TWO)
    assert_array_equal(mine.predict(X), SVC(kernel="linear").fit(X, TWO).predict(X))
    words = ["a a", "a", "b", "b b", "a b"]

    def counts(S, T):
        return [[float(s.count("a") * t.count("a") + s.count("b") * t.count("b")) for t in T] for s in S]

    K = np.array(counts(words, words))
    assert_allclose(
        SVR(kernel=counts).fit(words, np.arange(5.0)).predict(words),
        SVR(kernel="precomputed").fit(K, np.arange(5.0)).predict(K),
    )
    with pytest.raises(DataTypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(K), [0, 0, 1, 1, 1])


def test_what_is_said_of_weights_votes_and_scales():
    for cls in (SVC, NuSVC, SVR, OneClassSVM):
        with pytest.raises(DataError, match="all samples have zero or negative weights"):
            cls().fit(X, THREE, np.zeros(150))
    with pytest.raises(DataError, match="belong to the same class"):
        SVC().fit(X, TWO, (TWO == 1).astype(float))
    ties = SVC(decision_function_shape="ovo", break_ties=True).fit(X, THREE)
    with pytest.raises(ParameterError, match="break_ties must be False"):
        ties.predict(X)
    for cls in (SVC, NuSVC, SVR, OneClassSVM):
        with pytest.raises(DataError, match="not finite"):
            cls().fit(np.finfo(float).max * (X / 10), THREE)
    for cls in (SVC, SVR):  # the variance is below the smallest number
        assert np.isfinite(cls().fit(X * 1e-170, THREE).intercept_).all()


def test_no_error_beyond_the_tube():
    A, b = make_regression(random_state=0)
    hard = SVR(C=np.inf).fit(A, b)
    assert np.abs(hard.predict(A) - b).max() <= 0.1 + 1e-3
    assert_allclose(hard.predict(A), svm.SVR(C=1e10).fit(A, b).predict(A), atol=2e-2)
    with ep.config(on_nonconvergence="raise"), pytest.raises(ConvergenceError):
        SVR(C=np.inf, kernel="linear", max_iter=10_000).fit(X[:, :1], THREE)


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("scaling", [1.0, 20.0])
def test_l1_penalty_is_that_of_liblinear(y, scaling):
    mine = LinearSVC("l1", "squared_hinge", dual=False, tol=1e-9, intercept_scaling=scaling).fit(X, y)
    like = {"penalty": "l1", "dual": False, "intercept_scaling": scaling, "random_state": 0}
    peer = svm.LinearSVC(tol=1e-8, max_iter=10**6, **like).fit(X, y)
    assert mine.certificate_.holds
    assert_allclose(mine.coef_, peer.coef_, atol=1e-5)
    assert_allclose(mine.intercept_, peer.intercept_, atol=1e-5)
    F = np.abs(mine.coef_).sum(axis=1) + np.abs(mine.intercept_) / scaling
    for k in range(len(F)):
        sign = np.where(y == (1 if len(F) == 1 else k), 1, -1)
        F[k] += (np.maximum(1 - sign * (X @ mine.coef_[k] + mine.intercept_[k]), 0) ** 2).sum()
    assert_allclose(mine.objective_, F)
    sparse = LinearSVC("l1", dual=False, tol=1e-9, intercept_scaling=scaling).fit(sp.csr_matrix(X), y)
    assert_allclose(sparse.coef_, mine.coef_, atol=1e-6)


def test_l1_penalty_with_many_columns_and_weights():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 1500))
    y, v = (A[:, 0] - A[:, 1] > 0).astype(int), rng.integers(0, 3, size=100)
    mine = LinearSVC("l1", C=0.05, tol=1e-8).fit(A, y, v)
    repeated = LinearSVC("l1", C=0.05, tol=1e-8).fit(np.repeat(A, v, axis=0), np.repeat(y, v))
    assert_allclose(mine.coef_, repeated.coef_, atol=1e-6)
    assert 0 < np.count_nonzero(mine.coef_) < 60
    f32 = LinearSVC("l1", C=0.05).fit(A.astype(np.float32), y, v)
    assert f32.coef_.dtype == np.float32
    assert f32.certificate_.holds


def test_arguments_that_liblinear_does_not_have():
    for bad in ({"loss": "hinge", "dual": False}, {"penalty": "l1", "dual": True}, {"penalty": "l1", "loss": "hinge"}):
        with pytest.raises(ParameterError, match="Unsupported set of arguments"):
            LinearSVC(**bad).fit(X, TWO)
    with pytest.raises(ParameterError, match="Unsupported set of arguments"):
        LinearSVR(dual=False).fit(X, TWO)
    for dual in (True, "auto"):
        assert_array_equal(LinearSVC(dual=dual).fit(X, TWO).coef_, LinearSVC().fit(X, TWO).coef_)


@pytest.mark.parametrize("cls", [LinearSVC, LinearSVR])
def test_sparsify_and_densify(cls):
    model = cls().fit(X, THREE)
    before, coef = model.predict(X), model.coef_
    assert sp.issparse(model.sparsify().coef_)
    assert_array_equal(model.predict(X), before)
    assert_array_equal(model.densify().coef_, coef)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("nu", [0.1, 0.4, 1.0])
def test_nu_regression_is_that_of_libsvm_and_of_its_own_tube(kernel, nu):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 2))
    y, v = np.sin(A[:, 0]) + 0.1 * rng.normal(size=150), rng.integers(0, 3, size=150).astype(float)
    mine = NuSVR(kernel=kernel, nu=nu, tol=1e-6).fit(A, y)
    peer = svm.NuSVR(kernel=kernel, nu=nu, tol=1e-8).fit(A, y)
    assert mine.certificate_.holds

    def primal(model):  # the best tube ends at a row
        r = np.sort(np.abs(y - model.predict(A)))[::-1]
        b = model.dual_coef_[0]
        K = pairwise_kernels(model.support_vectors_, metric=kernel, **({} if kernel == "linear" else {"gamma": gamma}))
        return 0.5 * b @ K @ b + min(nu * len(y) * e + np.maximum(r - e, 0).sum() for e in [*r, 0.0])

    gamma = 1 / (2 * A.var())
    assert primal(mine) <= primal(peer) + 1e-8 * abs(primal(peer))
    assert np.ptp(mine.predict(A) - peer.predict(A)) < 1e-5
    # b + e is a value with nu n / 2 residuals above it, b - e one with as many below: where that is a whole number,
    # anything between two residuals (with nu = 0.4 and a linear kernel an interval of length 3e-4).
    r = np.sort(y - mine.predict(A) + mine.intercept_)
    k, half = int(nu * 75 + 1e-9), nu * 75
    above, below = (r[::-1][[k, k - 1 if half == k else k]], r[[k - 1 if half == k else k, k]])
    low, high = (above + below) / 2
    assert low - 1e-8 <= mine.intercept_[0] <= high + 1e-8
    assert low - 1e-6 <= peer.intercept_[0] <= high + 1e-6  # LIBSVM ends some 1e-7 away
    assert np.mean(np.abs(y - mine.predict(A)) > mine.epsilon_ + 1e-4) <= nu <= len(mine.support_) / 150
    # With the width of its tube given, C-regression has the same solution.
    tube = SVR(kernel=kernel, epsilon=mine.epsilon_, tol=1e-7).fit(A, y)
    assert_allclose(mine.predict(A), tube.predict(A), atol=1e-3)
    weighted = NuSVR(kernel=kernel, nu=nu, tol=1e-6, gamma=0.5).fit(A, y, v)
    n = v.astype(int)
    repeated = NuSVR(kernel=kernel, nu=nu, tol=1e-6, gamma=0.5).fit(np.repeat(A, n, axis=0), np.repeat(y, n))
    # Where no row is free the constant may lie anywhere between two bounds.
    assert np.ptp(weighted.predict(A) - repeated.predict(A)) < 1e-4


def nu_regression_by_force(x, y, nu):
    """(w, b, e) of the linear machine with C = 1 on one column, from all ways in which rows can be in and out.

    A row is above the tube, on its upper side, inside, on its lower side or below; each choice leaves linear equations
    in w, b, e and the multipliers of the rows on a side.
    """
    n, best = len(y), (np.inf, None)
    for states in itertools.product((2, 1, 0, -1, -2), repeat=n):
        states = np.array(states)
        free = np.flatnonzero(np.abs(states) == 1)
        bound = np.where(np.abs(states) == 2, np.sign(states), 0.0)
        m = len(free)
        # Unknowns: w, b, e, then a_i >= 0 of free rows, which enter with their sign.
        M, right = np.zeros((m + 3, m + 3)), np.zeros(m + 3)
        M[0, 0], M[0, 3:], right[0] = 1.0, -states[free] * x[free], bound @ x  # w = sum_i b_i x_i
        M[1, 3:], right[1] = states[free], -bound.sum()  # sum_i b_i = 0
        M[2, 3:], right[2] = 1.0, nu * n - np.abs(bound).sum()  # sum_i |b_i| = nu n
        for row, i in enumerate(free, start=3):
            M[row, :3], right[row] = (x[i], 1.0, states[i]), y[i]  # y_i - w x_i - b = +-e
        found = np.linalg.lstsq(M, right, rcond=None)[0]
        residual = np.abs(M @ found - right).max()
        w, b, e = found[:3]
        if residual > 1e-9 or e < -1e-9 or (found[3:] < -1e-9).any() or (found[3:] > 1 + 1e-9).any():
            continue
        value = w * w / 2 + nu * n * e + np.maximum(np.abs(y - w * x - b) - e, 0).sum()
        if value < best[0] - 1e-12:
            best = value, (w, b, e)
    return best


@pytest.mark.parametrize("seed", range(3))
def test_nu_regression_is_the_minimum_over_all_active_sets(seed):
    rng = np.random.default_rng(seed)
    x, nu = rng.normal(size=5), 0.5  # nu n / 2 is no whole number: the constant is unique
    y = x + rng.normal(size=5)
    value, (w, b, e) = nu_regression_by_force(x, y, nu)
    model = NuSVR(kernel="linear", nu=nu, tol=1e-9).fit(x[:, None], y)
    assert_allclose([model.coef_[0, 0], model.intercept_[0], model.epsilon_], [w, b, e], rtol=0, atol=1e-7)
    assert_allclose(np.abs(model.dual_objective_), value, rtol=1e-8)
    peer = svm.NuSVR(kernel="linear", nu=nu, tol=1e-9).fit(x[:, None], y)
    assert_allclose(peer.intercept_, b, atol=1e-5)


def test_nu_regression_on_a_given_matrix():
    y = X[:, 3]
    K = X[:, :3] @ X[:, :3].T
    given, linear = NuSVR(kernel="precomputed", tol=1e-6).fit(K, y), NuSVR(kernel="linear", tol=1e-6).fit(X[:, :3], y)
    assert_allclose(given.predict(K), linear.predict(X[:, :3]), atol=1e-4)


@pytest.mark.filterwarnings("ignore::epicycle.exceptions.ConvergenceWarning", "ignore:Solver terminated early")
@pytest.mark.parametrize("cls", [SVC, SVR, NuSVC, OneClassSVM])
def test_no_steps_end_at_the_start(cls):
    ours, theirs = cls(max_iter=0).fit(X, THREE), getattr(svm, cls.__name__)(max_iter=0).fit(X, THREE)
    assert not ours.certificate_.holds
    assert_array_equal(ours.n_iter_, theirs.n_iter_)
    assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Liblinear failed")
@pytest.mark.parametrize("solver", ["dual-cd", "newton"])
@pytest.mark.parametrize("cls", [LinearSVC, LinearSVR])
def test_no_passes_of_a_linear_machine_leave_zeros(cls, solver):
    model = cls(max_iter=0, solver=solver).fit(X, TWO)
    assert not model.certificate_.holds
    assert not model.coef_.any()
    assert model.intercept_ == 0
