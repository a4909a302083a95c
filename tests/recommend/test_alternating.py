"""Half-steps, objectives and optima against closed forms and brute force that share no code with them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import _native
from epicycle.optim import check_gradient
from epicycle.recommend import CollaborativeFiltering
from epicycle.recommend._alternating import MemoryEquations, Model, SidePenalty
from epicycle.recommend._joint_gradient import JointObjective
from epicycle.recommend._ratings import Ratings

SMALL = {"n_factors": 3, "random_state": 0}


def objective(model, pairs, value, weight, reg, bias_reg):
    """F by its definition, for weighted penalties."""
    u, i = np.searchsorted(model.users_, pairs[:, 0]), np.searchsorted(model.items_, pairs[:, 1])
    x, y, b, c = model.user_factors_, model.item_factors_, model.user_bias_, model.item_bias_
    error = value - model.mean_ - b[u] - c[i] - np.sum(x[u] * y[i], axis=1)
    n, m = np.bincount(u, weight, len(x)), np.bincount(i, weight, len(y))
    penalty = reg * (n @ np.sum(x**2, axis=1) + m @ np.sum(y**2, axis=1)) + bias_reg * (b @ b + c @ c)
    return 0.5 * (weight @ error**2 + penalty)


@pytest.mark.parametrize("steps", [0, 60])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("k", [0, 7, 16, 18])  # with and without room in a panel of 16, and more than one
def test_a_half_step_is_a_ridge_regression_of_every_row(ratings, bias, steps, k):
    pairs, value = ratings
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, size=900)
    items = rng.normal(size=(30, k + bias))
    start, order = _native.recommend.grouped(pairs[:, 0].astype(np.int32), 40)
    assert_allclose(np.diff(start), np.bincount(pairs[:, 0], minlength=40))
    at, target, a = pairs[order, 1].astype(np.int32), value[order], weight[order]
    base, penalty, scale = np.eye(k + bias), rng.uniform(0.1, 1, size=k + bias), rng.uniform(1, 2, size=40)
    x = rng.normal(size=(40, k + bias))
    before = x.copy()
    numbers = _native.recommend.half_step(start, at, target, a, items, bias, base, penalty, scale, x, steps, 1)
    for u in range(40):
        own = slice(start[u], start[u + 1])
        Z = items[at[own]].copy()
        t = target[own].copy()
        if bias:
            t -= Z[:, k]
            Z[:, k] = 1.0
        A = Z.T @ (a[own, None] * Z) + base + np.diag(scale[u] * penalty)
        b = Z.T @ (a[own] * t)
        assert_allclose(x[u], np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)
        g = A @ before[u] - b
        value = 0.5 * a[own] @ (t - Z @ x[u]) ** 2 + 0.5 * x[u] @ (base + np.diag(scale[u] * penalty)) @ x[u]
        assert_allclose(numbers[u], [b @ b, g @ g, value], rtol=1e-9)


def test_the_objective_is_its_definition_and_never_rises(ratings):
    pairs, value = ratings
    weight = np.random.default_rng(2).uniform(0.5, 2, size=900)
    model = CollaborativeFiltering(**SMALL, reg=0.2, bias_reg=2.0).fit(pairs, value, weight)
    trace = np.asarray(model.history_.objective)
    assert_allclose(trace[-1], objective(model, pairs, value, weight, 0.2, 2.0), rtol=1e-12)
    assert np.all(np.diff(trace) <= 1e-12 * trace[0])
    assert len(trace) > 3
    assert model.certificate_.holds
    assert model.converged_
    assert model.mean_ == pytest.approx(np.average(value, weights=weight))


def test_the_joint_gradient_is_the_derivative(ratings):
    pairs, value = ratings[0][:60] % 8, ratings[1][:60]
    coded = Ratings(pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32), value, None, 8, 8)
    penalties = SidePenalty(0.1, 2.0, np.arange(1.0, 9)), SidePenalty(0.1, 2.0, np.arange(2.0, 10))
    for bias, curvature in ((True, None), (False, np.abs(value))):
        equations = MemoryEquations(penalties, coded.grouped(value, curvature), everywhere=not bias)
        model = Model(np.random.default_rng(3).normal(size=16 * (2 + bias)), 8, 8, 2, bias)
        assert check_gradient(JointObjective(equations, model), model.flat).holds


@pytest.mark.parametrize(
    ("method", "solver"), [("als", "cholesky"), ("als", "cg"), ("gradient", "lbfgs"), ("gradient", "sgd")]
)
def test_a_full_matrix_has_the_soft_thresholded_svd_as_its_optimum(method, solver):
    # min |R - XY'|^2/2 + reg/2 (|X|^2 + |Y|^2) is reached where XY' has the singular values (s - reg)+ of R.
    rng = np.random.default_rng(4)
    R = rng.normal(size=(25, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(25, 20))
    tol, max_iter = (1e-3, 3000) if solver == "sgd" else (1e-6, 5000)
    model = CollaborativeFiltering(
        method,
        solver=solver,
        n_factors=6,
        reg=2.0,
        weighted_reg=False,
        biases=False,
        center="none",
        clip=False,
        tol=tol,
        max_iter=max_iter,
        random_state=0,
        learning_rate=0.05,
    ).fit(sp.csr_array(R))
    U, s, Vt = np.linalg.svd(R)
    kept = np.maximum(s - 2.0, 0)[:6]
    best = U[:, :6] * kept @ Vt[:6]
    found = model.user_factors_ @ model.item_factors_.T
    assert model.certificate_.holds
    assert_allclose(found, best, atol=0.02 if solver == "sgd" else 1e-4)
    value = 0.5 * np.sum((R - best) ** 2) + 2.0 * kept.sum()
    assert model.history_.objective[-1] == pytest.approx(value, rel=1e-3 if solver == "sgd" else 1e-8)


def test_biases_alone_are_one_ridge_regression(ratings):
    pairs, value = ratings
    model = CollaborativeFiltering(n_factors=0, bias_reg=3.0, tol=1e-9, clip=False).fit(pairs, value)
    Z = np.zeros((900, 70))
    Z[np.arange(900), pairs[:, 0]] = Z[np.arange(900), 40 + pairs[:, 1]] = 1.0
    w = np.linalg.solve(Z.T @ Z + 3.0 * np.eye(70), Z.T @ (value - value.mean()))
    assert_allclose(model.predict(pairs), value.mean() + Z @ w, atol=1e-6)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_implicit_feedback_counts_every_pair(solver):
    rng = np.random.default_rng(5)
    R = rng.poisson(0.4, size=(20, 15)).astype(float)
    R[0, 0] = -2.0  # a dislike: preference 0 with confidence
    model = CollaborativeFiltering(
        "implicit", n_factors=3, alpha=4.0, reg=0.5, solver=solver, tol=1e-7, max_iter=3000, random_state=0
    ).fit(sp.csr_array(R))
    C, P = 1 + 4.0 * np.abs(R), (R > 0).astype(float)
    x, y = model.user_factors_, model.item_factors_
    F = 0.5 * (np.sum(C * (P - x @ y.T) ** 2) + 0.5 * np.sum(x**2) + 0.5 * np.sum(y**2))
    trace = np.asarray(model.history_.objective)
    assert trace[-1] == pytest.approx(F, rel=1e-10)
    assert np.all(np.diff(trace) <= 1e-10 * trace[0])
    gradient = (C * (x @ y.T - P)) @ y + 0.5 * x, (C * (x @ y.T - P)).T @ x + 0.5 * y
    assert max(np.abs(g).max() for g in gradient) < 1e-4
    assert model.certificate_.holds


def test_rows_of_one_pair_add_up_in_implicit_feedback():
    pairs, count = np.array([[0, 0], [0, 1], [1, 1], [2, 0]]), np.array([3, 1, 2, 1])
    model = CollaborativeFiltering("implicit", **SMALL)
    once, often = model.fit(pairs, count).predict(pairs), model.fit(np.repeat(pairs, count, axis=0)).predict(pairs)
    assert_allclose(once, often, rtol=1e-10)


def test_content_is_a_ridge_regression_for_every_user(ratings):
    pairs, value = ratings
    F = np.random.default_rng(6).normal(size=(30, 4))
    model = CollaborativeFiltering("content", reg=2.0, center="none", clip=False)
    model.fit(pairs, value, item_features=(np.arange(30), F))
    assert model.certificate_.value < 1e-12
    for u in (0, 7):
        own = pairs[:, 0] == u
        Z = np.column_stack([F[pairs[own, 1]], np.ones(own.sum())])
        w = np.linalg.solve(Z.T @ Z + np.diag([2.0] * 4 + [0.0]), Z.T @ value[own])
        assert_allclose(model.predict([(u, i) for i in range(30)]), F @ w[:4] + w[4], rtol=1e-9, atol=1e-9)


def test_passes_of_stochastic_gradients_are_those_of_the_formulas(ratings):
    pairs, value = ratings
    rng = np.random.default_rng(7)
    user, item = pairs[:200, 0].astype(np.int32), pairs[:200, 1].astype(np.int32)
    x, y = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    lu, li = rng.uniform(0, 0.1, size=(40, 2)), rng.uniform(0, 0.1, size=(30, 2))
    order, got = rng.permutation(200), (x.copy(), y.copy())
    _native.recommend.sgd_pass(order, user, item, value[:200], None, lu, li, 0.03, *got, True)
    for j in order:
        u, i = user[j], item[j]
        r = value[j] - x[u, :3] @ y[i, :3] - x[u, 3] - y[i, 3]
        steep = x[u, :3] @ x[u, :3] + y[i, :3] @ y[i, :3] + 2 + lu[u].sum() + li[i].sum()
        step = min(0.03, 1 / steep)
        pu, pi = np.array([lu[u, 0]] * 3 + [lu[u, 1]]), np.array([li[i, 0]] * 3 + [li[i, 1]])
        dx, dy = r * np.append(y[i, :3], 1) - pu * x[u], r * np.append(x[u, :3], 1) - pi * y[i]
        x[u] += step * dx
        y[i] += step * dy
    assert_allclose(got[0], x, rtol=1e-10)
    assert_allclose(got[1], y, rtol=1e-10)


def test_passes_of_personalised_ranking_are_those_of_the_formulas():
    rng = np.random.default_rng(8)
    user, item = np.repeat(np.arange(5, dtype=np.int32), 2), np.tile(np.array([1, 3], dtype=np.int32), 5)
    start = np.arange(0, 11, 2)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(6, 3))
    got, positive, negative = (x.copy(), y.copy()), rng.integers(10, size=50), rng.integers(6, size=50, dtype=np.int32)
    used, right = _native.recommend.bpr_pass(positive, negative, user, item, start, item, 0.01, 0.1, *got, True)
    n = hits = 0
    for s, j in zip(positive, negative, strict=True):
        u, i = user[s], item[s]
        if j in (1, 3):
            continue
        margin = x[u, :2] @ (y[i, :2] - y[j, :2]) + y[i, 2] - y[j, 2]
        n, hits, g = n + 1, hits + (margin > 0), 1 / (1 + np.exp(margin))
        dx = g * (y[i, :2] - y[j, :2]) - 0.01 * x[u, :2]
        di = g * np.append(x[u, :2], 1) - 0.01 * y[i]
        dj = -g * np.append(x[u, :2], 1) - 0.01 * y[j]
        x[u, :2] += 0.1 * dx
        y[i] += 0.1 * di
        y[j] += 0.1 * dj
    assert (used, right) == (n, hits)
    assert_allclose(got[0], x, rtol=1e-10)
    assert_allclose(got[1], y, rtol=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100.0))
def test_scale_repetition_and_order(seed, factor):
    rng = np.random.default_rng(seed)
    pairs, value = rng.integers(6, size=(25, 2)), rng.normal(size=25)
    times = rng.integers(1, 4, size=25)

    def scores(pairs, value, weight=None, reg=0.3):
        model = CollaborativeFiltering(n_factors=2, reg=reg, clip=False, random_state=0, max_iter=4)
        with ep.config(on_nonconvergence="ignore"):
            return model.fit(pairs, value, weight).predict(every)

    every = np.array([(u, i) for u in np.unique(pairs[:, 0]) for i in np.unique(pairs[:, 1])])
    plain = scores(pairs, value, times)
    assert_allclose(scores(np.repeat(pairs, times, axis=0), np.repeat(value, times)), plain, rtol=1e-7, atol=1e-9)
    order = rng.permutation(25)
    assert_allclose(scores(pairs[order], value[order], times[order]), plain, rtol=1e-7, atol=1e-9)
    # Factors grow with the root of the ratings, biases with the ratings: only the first penalty has to follow.
    assert_allclose(scores(pairs, factor * value, times, 0.3 * factor), factor * plain, rtol=1e-7, atol=1e-8 * factor)
