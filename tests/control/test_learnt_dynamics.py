"""Dynamics learnt from trajectories: least squares, noise, features, and a pole that they balance."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from epicycle.control import LQR, CartPole, FeatureDynamics, InvertedPendulum, LinearDynamics
from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.tree import DecisionTreeRegressor


def trials(simulator, rows, steps, size, seed=0):
    rng = np.random.default_rng(seed)
    controls = rng.uniform(-size, size, (rows, steps, simulator.n_controls))
    return simulator.rollout(simulator.reset(rows, random_state=seed), controls)


def noisy_system(seed, rows=400, steps=25):
    rng = np.random.default_rng(seed)
    A = np.array([[0.9, 0.2, 0.0], [-0.1, 0.8, 0.3], [0.0, 0.1, 0.7]])
    B, c = rng.normal(size=(3, 2)), np.array([0.5, -0.2, 0.1])
    W = np.array([[0.04, 0.01, 0.0], [0.01, 0.09, -0.02], [0.0, -0.02, 0.01]])
    X, U = np.zeros((rows, steps + 1, 3)), rng.normal(size=(rows, steps, 2))
    for t in range(steps):
        w = rng.multivariate_normal(np.zeros(3), W, size=rows)
        X[:, t + 1] = X[:, t] @ A.T + U[:, t] @ B.T + c + w
    return A, B, c, W, X, U


def test_a_system_and_its_noise_are_found():
    A, B, c, W, X, U = noisy_system(0)
    model = LinearDynamics(fit_intercept=True).fit(X, U)
    Z = np.column_stack([X[:, :-1].reshape(-1, 3), U.reshape(-1, 2), np.ones(10_000)])
    exact = np.linalg.lstsq(Z, X[:, 1:].reshape(-1, 3), rcond=None)[0].T
    assert_allclose(np.column_stack([model.A_, model.B_, model.c_]), exact, rtol=1e-9, atol=1e-11)
    assert_allclose(np.column_stack([model.A_, model.B_, model.c_]), np.column_stack([A, B, c]), atol=0.02)
    assert_allclose(model.noise_, W, atol=0.003)
    assert model.certificate_.holds
    left = X[:, 1:].reshape(-1, 3) - Z @ exact.T
    assert_allclose(model.noise_, left.T @ left / (10_000 - 6), rtol=1e-9)
    draws = model.step(np.zeros((20_000, 3)), np.zeros(2), noise=True, random_state=1)
    assert_allclose(np.cov(draws.T), W, atol=0.004)
    assert_allclose(draws.mean(axis=0), c, atol=0.01)
    lists = LinearDynamics(fit_intercept=True).fit(list(X), list(U))
    assert_allclose(lists.A_, model.A_, rtol=1e-12)


@given(st.integers(0, 2**32), st.sampled_from([0.01, 100.0]))
def test_units_and_order_do_not_matter(seed, scale):
    _, _, _, _, X, U = noisy_system(seed, rows=6, steps=8)
    model = LinearDynamics().fit(X, U)
    order = np.random.default_rng(seed).permutation(6)
    other = LinearDynamics().fit(scale * X[order], U[order])
    assert_allclose(other.A_, model.A_, rtol=1e-7, atol=1e-9)
    assert_allclose(other.B_, scale * model.B_, rtol=1e-7, atol=1e-9 * scale)
    assert_allclose(other.noise_, scale**2 * model.noise_, rtol=1e-6, atol=1e-12 * scale**2)
    penalised = LinearDynamics(alpha=1e9, difference=True).fit(X, U)
    assert_allclose(penalised.A_, np.eye(3), atol=1e-5)


def test_the_pole_is_balanced_for_ten_thousand_steps_from_learnt_dynamics():
    cart = CartPole()
    paths = trials(cart, 200, 20, 5.0)
    for model in (LinearDynamics(), FeatureDynamics()):
        _, A, B = model.fit(paths).derivatives(np.zeros(4), np.zeros(1))
        policy = LQR(A, B, np.eye(4), [[0.1]]).solve()
        run = cart.rollout(cart.reset(20, random_state=5), policy=policy, n_steps=10_000)
        assert run.lengths.min() == 10_000
        assert np.abs(run.states[:, -1]).max() < 0.01
    # Without what was learnt the pole falls within seconds.
    assert cart.rollout(cart.reset(20, random_state=5), np.zeros((10_000, 1))).lengths.max() < 200


def test_features_make_a_pendulum_linear():
    rod = InvertedPendulum(max_speed=np.inf)
    paths = trials(rod, 60, 20, 2.0)
    model = FeatureDynamics(features=lambda X, U: np.column_stack([np.sin(X[:, 0]), X[:, 1], U])).fit(paths)
    x, u = rod.reset(50, random_state=9), np.random.default_rng(0).uniform(-2, 2, (50, 1))
    assert_allclose(model.step(x, u), rod.step(x, u), atol=1e-9)
    assert model.certificate_.holds
    states, _ = model.rollout(x[0], np.zeros((30, 1)))
    assert_allclose(states, rod.rollout(x[0], np.zeros((30, 1))).states, atol=1e-6)
    for ours, exact in zip(model.derivatives(x[0], u[0]), rod.derivatives(x[0], u[0]), strict=True):
        assert_allclose(ours, exact, atol=1e-7)


def test_noise_of_flexible_models_is_taken_from_steps_held_out():
    _, _, _, W, X, U = noisy_system(1, rows=40)
    tree = DecisionTreeRegressor(random_state=0)
    held = FeatureDynamics(tree, folds=4).fit(X, U)
    inside = FeatureDynamics(tree, folds=None).fit(X, U)
    assert np.abs(inside.noise_).max() < 1e-12  # a full tree repeats its data
    assert (np.diag(held.noise_) > np.diag(W)).all()  # the truth, and the errors of the tree
    assert_allclose(held.history_.held_out, np.diag(held.noise_))
    assert held.certificate_.kind == "none"
    path, controls = held.rollout(X[0, 0], policy=lambda Z: np.ones((len(Z), 2)), n_steps=5, random_state=3)
    assert path.shape == (6, 3)
    assert (controls == 1).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda X, U: LinearDynamics(alpha=-1), ParameterError, "alpha"),
        (lambda X, U: LinearDynamics().fit(X, X[:, :-1] @ np.ones((3, 1))), DataError, "cannot be told apart"),
        (lambda X, U: LinearDynamics().fit(X[0, :4], U[0, :3]), DataError, "3 steps for 5 coefficients"),
        (lambda X, U: LinearDynamics().fit(X, U[:, :-1]), DataError, r"\(T \+ 1, n\)"),
        (lambda X, U: LinearDynamics().fit(X * np.nan, U), DataError, "finite"),
        (lambda X, U: LinearDynamics().fit(3), DataError, "rollouts"),
        (lambda X, U: LinearDynamics().step([0.0], [0.0]), NotFittedError, "fit first"),
        (lambda X, U: FeatureDynamics(3), DataError, "fit and predict"),
        (lambda X, U: FeatureDynamics(features=lambda A, B: A[:2]).fit(X, U), DataError, "features: got shape"),
    ],
)
def test_errors(call, error, words):
    _, _, _, _, X, U = noisy_system(2, rows=5)
    with pytest.raises(error, match=words):
        call(X, U)
