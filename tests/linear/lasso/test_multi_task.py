"""The lasso for several tasks: scikit-learn, one task, proximal gradient, the gap as a true bound, properties."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn import linear_model as sk

import epicycle as ep
from epicycle import Lasso, LassoCV, MultiTaskElasticNet, MultiTaskElasticNetCV, MultiTaskLasso, MultiTaskLassoCV, Ridge
from epicycle.exceptions import ConvergenceWarning
from epicycle.linear.lasso import _multi_task_solver


def drawn(seed=0, n=60, p=90, k=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1)) + 1.0
    Y = X[:, :4] @ rng.normal(size=(4, k)) + rng.normal(size=(n, k)) + 2.0
    return X, Y, rng.uniform(0.2, 2.0, n)


def objective(X, Y, W, b, alpha, rho, v):
    v = np.ones(len(Y)) if v is None else v
    length = np.linalg.norm(W, axis=0)
    fit = v @ ((Y - b - X @ W.T) ** 2).sum(axis=1) / (2 * v.sum())
    return fit + alpha * (rho * length.sum() + (1 - rho) / 2 * (length**2).sum())


def proximal_gradient(X, Y, alpha, rho, v, steps=5_000):
    """Accelerated proximal gradient with restarts, on rows about their means."""
    v = v / v.sum()
    x_mean, y_mean = v @ X, v @ Y
    A, B = np.sqrt(v)[:, None] * (X - x_mean), np.sqrt(v)[:, None] * (Y - y_mean)
    step = 1 / (np.linalg.norm(A, 2) ** 2 + alpha * (1 - rho))
    W = Z = np.zeros((X.shape[1], Y.shape[1]))
    t = 1.0
    for _ in range(steps):
        U = Z - step * (A.T @ (A @ Z - B) + alpha * (1 - rho) * Z)
        length = np.linalg.norm(U, axis=1, keepdims=True)
        new = U * np.maximum(1 - step * alpha * rho / np.maximum(length, 1e-300), 0)
        if np.sum((Z - new) * (new - W)) > 0:
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        Z, W, t = new + (t - 1) / t_new * (new - W), new, t_new
    return W.T, y_mean - x_mean @ W


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
@pytest.mark.parametrize("rho", [0.3, 1.0])
@pytest.mark.parametrize("shape", [(60, 90), (300, 20)])
def test_the_minimum_is_that_of_proximal_gradient(form, rho, shape):
    X, Y, v = drawn(1, *shape)
    X = X.astype(np.float32).astype(np.float64)
    alpha = 0.1
    model = MultiTaskElasticNet(alpha, l1_ratio=rho, tol=1e-12).fit(form(X), Y, v)
    W, b = proximal_gradient(X, Y, alpha, rho, v)
    digits = 1e-5 if form is np.float32 else 1e-7
    assert_allclose(model.coef_, W, rtol=0, atol=digits * np.abs(W).max())
    assert_allclose(model.intercept_, b, rtol=0, atol=digits * np.abs(W).max() * 10)
    if form is not np.float32:
        gap = objective(X, Y, model.coef_, model.intercept_, alpha, rho, v) - objective(X, Y, W, b, alpha, rho, v)
        assert gap <= model.dual_gap_ + 1e-13


def test_one_task_is_the_lasso():
    X, Y, _ = drawn(2)
    model, lasso = MultiTaskLasso(0.2, tol=1e-12).fit(X, Y[:, :1]), Lasso(0.2, tol=1e-12).fit(X, Y[:, 0])
    assert model.coef_.shape == (1, X.shape[1])
    assert_allclose(model.coef_[0], lasso.coef_, atol=1e-8)
    assert_allclose(model.predict(X)[:, 0], lasso.predict(X), atol=1e-7)


def test_without_the_first_term_it_is_ridge_regression():
    X, Y, _ = drawn(3, 50, 20)
    model = MultiTaskElasticNet(0.1, l1_ratio=0.0, tol=1e-12).fit(X, Y)
    assert_allclose(model.coef_, Ridge(0.1 * len(Y)).fit(X, Y).coef_, rtol=1e-8)
    exact = MultiTaskLasso(0.0).fit(X, Y)
    assert_allclose(exact.coef_, sk.LinearRegression().fit(X, Y).coef_, rtol=1e-8)


def test_all_coefficients_are_zero_from_the_largest_alpha_on():
    X, Y, _ = drawn(4)
    largest = np.linalg.norm((X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)), axis=1).max() / len(Y)
    assert not MultiTaskLasso(1.0001 * largest).fit(X, Y).coef_.any()
    assert MultiTaskLasso(0.99 * largest).fit(X, Y).coef_.any()


def test_large_working_sets_are_gone_over_in_pieces(monkeypatch):
    X, Y, _ = drawn(5)
    whole = MultiTaskLasso(0.1, tol=1e-7).fit(X, Y)
    monkeypatch.setattr(_multi_task_solver, "MAX_PIECE", 25)
    pieces = MultiTaskLasso(0.1, tol=1e-7).fit(X, Y)
    assert pieces.certificate_.holds
    assert_allclose(pieces.coef_, whole.coef_, atol=1e-2 * np.abs(whole.coef_).max())


def test_too_few_rounds_warn_and_warm_starts_go_on():
    X, Y, _ = drawn(6)
    with pytest.warns(ConvergenceWarning, match="Objective did not converge"):
        MultiTaskLasso(0.01, max_iter=1).fit(X, Y)
    model = MultiTaskLasso(0.1, warm_start=True, tol=1e-10).fit(X, Y)
    coef = model.coef_
    assert model.fit(X, Y).n_iter_ == 0
    assert_allclose(model.coef_, coef, atol=1e-9)


def test_a_vector_is_one_task():
    X, Y, _ = drawn(7)
    model = MultiTaskLasso(0.1, tol=1e-11).fit(X, Y[:, 0])
    assert model.coef_.shape == (X.shape[1],)
    assert_allclose(model.coef_, Lasso(0.1, tol=1e-11).fit(X, Y[:, 0]).coef_, atol=1e-7)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_weights_are_repetitions_and_tasks_may_be_turned(seed):
    X, Y, _ = drawn(seed, 25, 8, 2)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 4, len(Y))
    weight[:9] = 1
    model = MultiTaskLasso(0.1, tol=1e-11)
    coef = model.fit(X, Y, weight).coef_
    assert_allclose(coef, model.fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)).coef_, atol=1e-5)
    # The penalty knows lengths only: a rotation of the tasks rotates the coefficients.
    Q, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    assert_allclose(model.fit(X, Y @ Q, weight).coef_, (coef.T @ Q).T, atol=1e-5)


# ---------------------------------------------------------------- cross-validation


def test_cross_validation_is_that_of_scikit_learn():
    X, Y, v = drawn(8, 80, 15)
    model = MultiTaskLassoCV(n_alphas=20, tol=1e-10).fit(X, Y, v)
    reference = sk.MultiTaskLassoCV(alphas=20, tol=1e-10, max_iter=100_000).fit(X, Y, sample_weight=v)
    assert_allclose(model.alphas_, reference.alphas_)
    assert_allclose(model.mse_path_, reference.mse_path_, rtol=1e-4)
    assert model.alpha_ == pytest.approx(reference.alpha_)
    net = MultiTaskElasticNetCV(l1_ratio=[0.2, 0.9], n_alphas=10, tol=1e-10).fit(X, Y)
    reference = sk.MultiTaskElasticNetCV(l1_ratio=[0.2, 0.9], alphas=10, tol=1e-10, max_iter=100_000).fit(X, Y)
    assert (net.l1_ratio_, net.alpha_) == pytest.approx((reference.l1_ratio_, reference.alpha_))
    assert_allclose(net.coef_, reference.coef_, atol=1e-4)


def test_rows_in_files(tmp_path):
    import pandas as pd

    X, Y, _ = drawn(9, 300, 6, 2)
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)]).assign(a=Y[:, 0], b=Y[:, 1])
    frame.to_parquet(path)
    for model in (MultiTaskLasso(0.1, tol=1e-11), MultiTaskLassoCV(n_alphas=10, tol=1e-11)):
        coef = model.fit(X, Y).coef_
        outside = model.fit(ep.scan(path, target=["a", "b"]))
        assert_allclose(outside.coef_, coef, atol=1e-6)


@pytest.mark.parametrize("model", [MultiTaskLassoCV, MultiTaskElasticNetCV, LassoCV])
def test_a_tolerance_of_zero_ends_at_rounding(model):
    """Without an end at the rounding of the gap, every alpha of every fold took steps without number or gain."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 40))
    Y = 1e5 * rng.normal(size=(6, 2))
    began = time.process_time()
    with ep.config(on_nonconvergence="ignore"):
        fitted = model(tol=0, n_alphas=40, cv=2).fit(X, Y if model is not LassoCV else Y[:, 0])
    assert time.process_time() - began < 10
    assert fitted.certificate_.value < 1e-14


def test_a_sparse_matrix_with_very_many_columns_in_the_model():
    """Working sets grow by what is seen to come into use: few rounds, the gap holds, the minimum is scikit-learn's."""
    rng = np.random.default_rng(0)
    X = sp.random_array((600, 3000), density=0.02, rng=rng, format="csc")
    y = X[:, :100] @ rng.normal(size=100)
    y += 0.1 * rng.normal(size=600)
    alpha = 0.003 * np.abs(X.T @ y).max() / 600
    model = Lasso(alpha, fit_intercept=False, tol=1e-8).fit(X, y)
    other = sk.Lasso(alpha, fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)
    assert np.count_nonzero(model.coef_) > 250
    assert model.certificate_.holds
    assert model.n_iter_ <= 15
    loss = [((y - X @ w) ** 2).mean() / 2 + alpha * np.abs(w).sum() for w in (model.coef_, other.coef_)]
    assert loss[0] <= loss[1] + 1e-8 * (y @ y) / 1200


def test_columns_too_small_for_y_are_refused():
    X, Y, _ = drawn(n=20, p=5)
    X[:, 1] *= 1e-20
    with pytest.raises(ValueError, match="X: column 1 is too small for y"):
        MultiTaskLasso(alpha=1.0).fit(X, 1e140 * Y)
    large = MultiTaskLasso(alpha=1e140, tol=1e-12).fit(X[:, 2:], 1e140 * Y)
    assert_allclose(large.coef_ / 1e140, MultiTaskLasso(alpha=1.0, tol=1e-12).fit(X[:, 2:], Y).coef_, rtol=1e-9)
