"""Crammer and Singer's machine, the smallest C of an L1 penalty, and the gap of a hard margin."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm as reference
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import load_iris

import epicycle as ep
from epicycle import LinearSVC
from epicycle.exceptions import DataError, ParameterError
from epicycle.svm import l1_min_c
from epicycle.svm._dual_problem import DualProblem


def joint(**parameters):
    return LinearSVC(multi_class="crammer_singer", **parameters)


def objective(theta, X, y, weight, C, scale):
    """P, from its definition."""
    W, b = theta[:, :-1], scale * theta[:, -1]
    Z = X @ W.T + b
    own = Z[np.arange(len(y)), y]
    slack = np.max(Z - own[:, None] + (np.arange(Z.shape[1]) != y[:, None]), axis=1)
    return 0.5 * (theta**2).sum() + C * (weight * slack).sum()


def rows(seed=0, n=60, p=3, K=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.argmax(X @ rng.normal(size=(p, K)) + rng.gumbel(size=(n, K)), axis=1), rng.uniform(0.5, 2, size=n)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_minimum_of_the_objective(fit_intercept):
    X, y, weight = rows()
    model = joint(C=0.5, tol=1e-8, intercept_scaling=2.0, fit_intercept=fit_intercept).fit(X, y, weight)
    assert model.certificate_.holds
    scale = 2.0 if fit_intercept else 0.0
    theta = np.column_stack([model.coef_, model.intercept_ / 2])
    value = objective(theta, X, y, weight, 0.5, scale)
    assert_allclose(model.objective_, value, rtol=1e-12)
    # A general method for the quadratic program in (theta, slack) shares nothing with this one.
    K, d, n = 3, 4, len(y)
    F = np.column_stack([X, np.full(n, scale)])
    A, low = [], []
    for i in range(n):
        for k in range(K):
            row = np.zeros(K * d + n)
            row[K * d + i] = 1.0
            row[y[i] * d : (y[i] + 1) * d] += F[i]
            row[k * d : (k + 1) * d] -= F[i]
            A.append(row)
            low.append(float(k != y[i]))
    A, low = np.array(A), np.array(low)
    start = np.zeros(K * d + n)
    start[K * d :] = 1.0
    found = minimize(
        lambda x: 0.5 * x[: K * d] @ x[: K * d] + 0.5 * weight @ x[K * d :],
        start,
        jac=lambda x: np.concatenate([x[: K * d], 0.5 * weight]),
        constraints={"type": "ineq", "fun": lambda x: A @ x - low, "jac": lambda x: A},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert value == pytest.approx(found.fun, rel=1e-6)
    assert model.dual_objective_[0] <= found.fun * (1 + 1e-9)


def test_liblinear_and_other_forms_of_rows():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    model = joint(tol=1e-8).fit(X, y)
    there = reference.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=100_000).fit(X, y)
    assert_allclose(model.coef_, there.coef_, atol=1e-3)
    assert_array_equal(model.predict(X), there.predict(X))
    assert_allclose(joint(tol=1e-8).fit(sp.csr_array(X), y).coef_, model.coef_, atol=1e-4)
    single = joint().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert single.certificate_.holds
    pair = y < 2
    two = joint(tol=1e-8).fit(X[pair], y[pair])
    both = reference.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=100_000).fit(X[pair], y[pair])
    assert two.coef_.shape == (1, 4)
    assert_allclose(two.coef_, both.coef_, atol=1e-3)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_weights_are_repetitions_and_the_bound_is_true(seed):
    X, y, _ = rows(seed, n=20)
    if len(np.unique(y)) < 3:
        return
    X[0] = 0.0
    times = np.random.default_rng(seed).integers(1, 4, size=len(y))
    weighted = joint(tol=1e-7, fit_intercept=False).fit(X, y, times)
    repeated = joint(tol=1e-7, fit_intercept=False).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)
    assert_allclose(weighted.coef_, repeated.coef_, atol=2e-2)
    rough = joint(tol=1e-2, fit_intercept=False).fit(X, y, times)
    assert rough.dual_objective_[0] <= weighted.objective_[0] * (1 + 1e-12)
    assert rough.objective_[0] >= weighted.dual_objective_[0] * (1 - 1e-12)


def test_refused(tmp_path):
    X, y, _ = rows()
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    scan = ep.scan(tmp_path / "rows.npy", target=3)
    with pytest.raises(DataError, match="needs X in memory"):
        joint().fit(scan)
    with pytest.raises(ParameterError, match="multi_class='ovo'"):
        LinearSVC(multi_class="ovo").fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
def test_the_smallest_price(loss, fit_intercept):
    X, y, _ = rows()
    for form in (X, sp.csr_array(X), X.tolist()):
        for labels in (y, y == 1, y.astype(str)):
            C = l1_min_c(form, labels, loss=loss, fit_intercept=fit_intercept, intercept_scaling=3.0)
            there = reference.l1_min_c(X, labels, loss=loss, fit_intercept=fit_intercept, intercept_scaling=3.0)
            assert_allclose(C, there, rtol=1e-12)
    with pytest.raises(ParameterError, match="loss='hinge'"):
        l1_min_c(X, y, loss="hinge")
    with pytest.raises(DataError, match="ill-posed"):
        l1_min_c(np.zeros((4, 1)), [0, 1, 0, 1], fit_intercept=False)


def test_the_gap_of_a_hard_margin_sees_rows_inside_it():
    """x = -1, 1 with w = 2b x: the optimum is b = 1/2; at b = 1/4 the dual is 3/8 below 1/2 - 1/8 = 3/8 of it."""
    x, z = np.array([-1.0, 1.0]), np.array([-1.0, 1.0])
    problem = DualProblem(z, np.array([-np.inf, 0.0]), np.array([0.0, np.inf]), stretches=True)
    b = np.array([-0.25, 0.25])
    f = np.outer(x, x) @ b
    found = problem.evidence(b, f, 1.0)
    assert found.dual == pytest.approx(0.375)
    assert found.primal == pytest.approx(0.5)  # stretched until both rows are on the margin
    assert found.gap >= (0.5 - 0.375) / 0.5 * (1 - 1e-12)
    best = problem.evidence(2 * b, 2 * f, 1.0)
    assert best.gap == pytest.approx(0.0, abs=1e-12)
    # Without a factor that makes it feasible, nothing is known.
    assert problem.evidence(-b * [1, 1], -f, 1.0).gap == np.inf


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_a_hard_margin_is_certified_truly(tol):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 0.5, -0.5)
    model = ep.SVC(C=np.inf, kernel="linear", tol=tol).fit(X, y)
    exact = ep.SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
    assert model.certificate_.holds
    best = float(exact.dual_objective_[0])
    assert (best - float(model.dual_objective_[0])) / best <= model.duality_gap_[0] + 1e-9
