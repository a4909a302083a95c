"""Lasso and elastic net against proximal gradient, scikit-learn, and the published path of the diabetes data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from lasso_reference import alpha_max, centred, objective, proximal_gradient
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.datasets import load_diabetes

from epicycle import ElasticNet, Lasso, LinearRegression, Ridge, lasso_path
from epicycle.exceptions import ConvergenceWarning
from epicycle.linear.lasso._design import DenseColumns
from epicycle.linear.lasso._gram import WorkingGram

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "csc64": lambda X: with_long_indices(sp.csc_array(X)),
}


def with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def problem(n, p, seed, *, density=1.0, offset=3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.2, 5.0, p) + offset * rng.standard_normal(p)
    X *= rng.random((n, p)) < density
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.3)) + 2.0 + rng.standard_normal(n)
    return X, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("l1_ratio", "positive"), [(1.0, False), (1.0, True), (0.4, False), (0.4, True), (0.0, False)])
@pytest.mark.parametrize("shape", [(60, 25), (30, 150)])
def test_agrees_with_proximal_gradient(form, weighted, l1_ratio, positive, shape):
    X, y, weight = problem(*shape, seed=1, density=0.4 if "cs" in form else 1.0)
    weight = weight if weighted else None
    A, b, x_mean, y_mean = centred(X, y, weight)
    alpha = 0.1 * alpha_max(A, b)
    factors = np.linspace(0.5, 2.0, X.shape[1])
    model = ElasticNet(alpha, l1_ratio=l1_ratio, positive=positive, penalty_weights=factors, tol=1e-14)
    model.fit(FORMS[form](X), y, weight)
    w = proximal_gradient(A, b, alpha * l1_ratio * factors, alpha * (1 - l1_ratio) * factors, positive)
    assert_allclose(model.coef_, w, rtol=0, atol=2e-7 * np.abs(w).max())
    assert_allclose(model.intercept_, y_mean - x_mean @ w, rtol=1e-5)
    assert model.certificate_.holds


@pytest.mark.parametrize("p", [20, 400])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.02])
def test_agrees_with_scikit_learn(p, fit_intercept, share):
    X, y, weight = problem(80, p, seed=2)
    alpha = share * alpha_max(*centred(X, y, weight, fit_intercept)[:2])
    ours = Lasso(alpha, fit_intercept=fit_intercept, tol=1e-13).fit(X, y, weight)
    theirs = sk.Lasso(alpha, fit_intercept=fit_intercept, tol=1e-13, max_iter=10**6).fit(X, y, sample_weight=weight)
    assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-6 * np.abs(theirs.coef_).max())
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5)
    assert np.array_equal(ours.coef_ != 0, theirs.coef_ != 0)


def test_the_diabetes_path_of_efron_et_al():
    """Order of entry in Efron et al. (2004), figure 1, at the breakpoints of least angle regression."""
    X, y = load_diabetes(return_X_y=True)  # columns of length one, as in the paper
    n = len(y)
    lam = np.array(
        [949.435260, 889.315991, 452.900969, 316.074053, 130.130851, 88.782430, 68.965221, 19.981255, 5.477473]
    )
    lam = np.append(lam, [5.089179, 2.182250, 1.310435])
    events = [3, 9, 4, 7, 2, 10, 5, 8, 6, 1, -7, 7]  # entries of variables 1..10, and one that leaves
    expected = set()
    for at, event in zip(lam, events, strict=True):
        above = Lasso(alpha=1.0005 * at / n, tol=1e-13).fit(X, y)
        assert set(np.flatnonzero(above.coef_) + 1) == expected
        expected = expected | {event} if event > 0 else expected - {-event}
        below = Lasso(alpha=0.9995 * at / n, tol=1e-13).fit(X, y)
        assert set(np.flatnonzero(below.coef_) + 1) == expected


def test_the_path_between_breakpoints_is_a_line():
    """Between events of least angle regression every coefficient is linear in alpha."""
    X, y = load_diabetes(return_X_y=True)
    breakpoints, _, exact = sk.lars_path(X - X.mean(axis=0), y - y.mean(), method="lasso")
    grid = np.concatenate([breakpoints[:-1], (breakpoints[:-1] + breakpoints[1:]) / 2])
    path = lasso_path(X, y, alphas=grid, fit_intercept=True, tol=1e-14)
    inside = np.hstack([exact[:, :-1], (exact[:, :-1] + exact[:, 1:]) / 2])
    order = np.argsort(-grid)
    assert_allclose(path.coefs, inside[:, order], rtol=0, atol=1e-4)
    assert_allclose(path.alphas, grid[order])


def test_no_penalty_is_least_squares_and_no_l1_is_ridge():
    X, y, weight = problem(70, 8, seed=3)
    assert_allclose(Lasso(alpha=0).fit(X, y, weight).coef_, LinearRegression().fit(X, y, weight).coef_, rtol=1e-9)
    net = ElasticNet(alpha=0.7, l1_ratio=0, tol=1e-14).fit(X, y, weight)
    assert_allclose(net.coef_, Ridge(alpha=0.7 * weight.sum()).fit(X, y, weight).coef_, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(40, 12), (25, 60)])
def test_unpenalised_features_are_orthogonal_to_the_residuals(form, shape):
    X, y, weight = problem(*shape, seed=4, density=0.5 if "cs" in form else 1.0)
    factors = np.ones(X.shape[1])
    factors[[0, 3]] = 0.0
    A, b, *_ = centred(X, y, weight)
    alpha = 0.2 * alpha_max(A, b)
    model = Lasso(alpha, penalty_weights=factors, tol=1e-12).fit(FORMS[form](X), y, weight)
    r = b - A @ model.coef_
    assert np.abs(A[:, [0, 3]].T @ r).max() < 1e-8 * alpha
    l1, l2 = alpha * factors, np.zeros(X.shape[1])
    w = proximal_gradient(A, b, l1, l2)
    assert_allclose(objective(A, b, model.coef_, l1, l2), objective(A, b, w, l1, l2), rtol=1e-9)


@settings(max_examples=120)
@given(
    n=st.integers(2, 40),
    p=st.integers(1, 50),
    seed=st.integers(0, 10_000),
    form=st.sampled_from(["C", "F", "csc", "csr", "float32"]),
    l1_ratio=st.sampled_from([1.0, 0.7, 0.05]),
    share=st.sampled_from([1.5, 0.3, 0.02]),
    positive=st.booleans(),
    weighted=st.booleans(),
    intercept=st.booleans(),
    defect=st.sampled_from(["none", "constant", "twin", "zero rows", "wild", "far"]),
)
def test_a_certificate_that_holds_is_true(n, p, seed, form, l1_ratio, share, positive, weighted, intercept, defect):
    """P(w) - P(reference) <= value * |y|^2 / 2 for any data: collinear, constant, p > n, scales from 1e-6 to 1e6."""
    X, y, weight = problem(n, p, seed, density=0.3 if "cs" in form else 1.0)
    if defect == "constant":
        X[:, 0] = 7.0
    elif defect == "twin":
        X[:, -1] = X[:, 0]
    elif defect == "zero rows":
        weight[: n // 2] = 0.0
    elif defect == "wild":
        X *= 10.0 ** np.random.default_rng(seed).integers(-6, 7, p)
    elif defect == "far" and "cs" not in form:
        X += 1e5
    weight = weight if weighted else None
    X = X.astype(np.float32) if form == "float32" else FORMS[form](X)
    A, b, *_ = centred(X, y, weight, intercept)
    alpha = share * alpha_max(A, b) + 1e-9
    tol = 1e-7
    model = ElasticNet(alpha, l1_ratio=l1_ratio, positive=positive, fit_intercept=intercept, tol=tol)
    far = defect == "far" and not intercept  # columns that differ by 1e-5 of their length, of which none is centred
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if far else "error", ConvergenceWarning)
        model.fit(X, y, weight)
    assert model.certificate_.holds or far
    w = model.coef_.astype(np.float64)
    l1, l2 = np.full(p, alpha * l1_ratio), np.full(p, alpha * (1 - l1_ratio))
    least = objective(A, b, proximal_gradient(A, b, l1, l2, positive, steps=3000), l1, l2)
    rounding = 1e-11 if form != "float32" else 1e-6
    assert objective(A, b, w, l1, l2) - least <= (model.certificate_.value + rounding) * (b @ b) / 2
    assert not positive or (w >= 0).all()
    gains = np.diff(model.history_.objective)
    assert (gains <= 1e-12 * (b @ b)).all()  # every round descends


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), factor=st.sampled_from([1e-3, 1e4]), p=st.sampled_from([5, 80]))
def test_scaling_y_and_alpha_scales_the_coefficients(seed, factor, p):
    X, y, weight = problem(30, p, seed)
    alpha = 0.1 * alpha_max(*centred(X, y, weight)[:2])
    one = Lasso(alpha, tol=1e-13).fit(X, y, weight).coef_
    other = Lasso(factor * alpha, tol=1e-13).fit(X, factor * y, 5.0 * weight).coef_
    assert_allclose(other, factor * one, rtol=0, atol=1e-6 * factor * np.abs(one).max())


@pytest.mark.parametrize("p", [20, 300])
def test_zero_exactly_from_alpha_max_on(p):
    X, y, weight = problem(50, p, seed=6)
    largest = alpha_max(*centred(X, y, weight)[:2])
    assert not Lasso(1.0001 * largest).fit(X, y, weight).coef_.any()
    assert np.count_nonzero(Lasso(0.9999 * largest).fit(X, y, weight).coef_) == 1
    assert_allclose(lasso_path(X, y, sample_weight=weight, fit_intercept=True, n_alphas=3).alphas[0], largest)


def test_data_far_from_the_origin():
    X, y, _ = problem(60, 200, seed=7, offset=0.0)
    alpha = 0.1 * alpha_max(*centred(X, y)[:2])
    near = Lasso(alpha, tol=1e-12).fit(X, y)
    for order in ("C", "F"):
        far = Lasso(alpha, tol=1e-12).fit(np.array(X + 1e7, order=order), y + 1e7)
        assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-5 * np.abs(near.coef_).max())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_working_set_too_large_for_a_gram_matrix(order, l1_ratio, weighted, monkeypatch):
    """Then coordinate descent keeps the residuals instead; the minimum is the same."""
    monkeypatch.setattr(WorkingGram, "fits", lambda self, count: False)
    X, y, weight = problem(50, 120, seed=8)
    weight = weight if weighted else None
    A, b, *_ = centred(X, y, weight)
    alpha = 0.05 * alpha_max(A, b)
    model = ElasticNet(alpha, l1_ratio=l1_ratio, tol=1e-13).fit(np.array(X, order=order), y, weight)
    w = proximal_gradient(A, b, np.full(120, alpha * l1_ratio), np.full(120, alpha * (1 - l1_ratio)))
    assert_allclose(model.coef_, w, rtol=0, atol=1e-6 * np.abs(w).max())


def test_a_gram_matrix_that_forgets_and_grows():
    """Working sets that come and go: what is held is always the Gram matrix of its columns."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((30, 500))
    design = DenseColumns(X, None, centre=True, threads=1)
    design.response(rng.standard_normal(30))
    held = WorkingGram(design, max_bytes=8.0 * 200 * 230)
    Z = (X - X.mean(axis=0)) / np.sqrt(30)
    for size in (10, 60, 150, 20, 190, 40):
        working_set = np.sort(rng.choice(500, size, replace=False))
        held.hold(working_set)
        assert (held.slot[working_set] >= 0).all()
        assert_array_equal(held.columns[held.slot[working_set]], working_set)
        assert_allclose(held.gram, Z[:, held.columns].T @ Z[:, held.columns], atol=1e-12)
        assert held.fits(held.size)
