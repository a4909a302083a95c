"""Filters of nonlinear systems: Kalman's on linear ones, the exact posterior on a grid, derivatives, bad functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from epicycle.control import ExtendedKalmanFilter, KalmanFilter, ParticleFilter, UnscentedKalmanFilter, linearize
from epicycle.exceptions import DataError, ParameterError

A, B, C = np.array([[0.9, 0.2], [-0.1, 0.8]]), np.array([[0.5], [1.0]]), np.array([[1.0, 0.3]])
W, V, FIRST = np.array([[0.2, 0.05], [0.05, 0.1]]), np.array([[0.4]]), np.eye(2)


def series(T=30):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(T, 1))
    linear = KalmanFilter(A, C, W, V, B=B, mean=[1.0, -1.0], covariance=FIRST)
    y = linear.sample(T, u, random_state=1)[1]
    y[[5, 6, 20]] = np.nan
    return linear, y, u


@pytest.mark.parametrize(
    "make",
    [
        lambda *a, **k: ExtendedKalmanFilter(*a, **k),
        lambda *a, **k: ExtendedKalmanFilter(*a, f_jacobian=lambda x, u: A, h_jacobian=lambda x: C, **k),
        lambda *a, **k: UnscentedKalmanFilter(*a, **k),
        lambda *a, **k: UnscentedKalmanFilter(*a, alpha=0.1, beta=2.0, kappa=0.0, **k),
    ],
)
def test_linear_systems_are_filtered_exactly(make):
    linear, y, u = series()
    ours = make(lambda x, v: A @ x + B @ v, lambda x: C @ x, W, V, mean=[1.0, -1.0], covariance=FIRST).filter(y, u)
    theirs = linear.filter(y, u)
    for name in ("mean", "covariance", "predicted_mean", "predicted_covariance", "log_densities"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8)


def test_particles_come_near_kalman_and_are_the_same_for_a_seed():
    linear, y, u = series()
    cloud = ParticleFilter(
        lambda X, v: X @ A.T + v @ B.T,
        lambda X: X @ C.T,
        W,
        V,
        mean=[1.0, -1.0],
        covariance=FIRST,
        n_particles=20_000,
        random_state=3,
    )
    ours, theirs = cloud.filter(y, u), linear.filter(y, u)
    assert_allclose(ours.mean, theirs.mean, atol=0.05)
    assert_allclose(ours.covariance, theirs.covariance, atol=0.03)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=0.3)
    assert (cloud.effective_sizes_ <= 20_000 * (1 + 1e-9)).all()
    assert_array_equal(cloud.filter(y, u).mean, ours.mean)


def growth(x):
    return x / 2 + 5 * x / (1 + x**2)


def on_a_grid(y, mean, variance, w, v):
    """Posterior means and log-likelihood of a scalar system by integration."""
    x = np.linspace(-12, 12, 1201)
    prior, total, means = norm(mean, np.sqrt(variance)).pdf(x), 0.0, []
    move = norm.pdf(x[:, None], growth(x)[None], np.sqrt(w)) * (x[1] - x[0])
    for now in y:
        joint = prior * norm.pdf(now, x**2 / 4, np.sqrt(v))
        evidence = joint.sum() * (x[1] - x[0])
        total += np.log(evidence)
        posterior = joint / evidence
        means.append((posterior * x).sum() * (x[1] - x[0]))
        prior = move @ posterior
    return np.array(means), total


def test_a_nonlinear_system_against_integration():
    y = np.array([0.4, 1.0, 1.9, 2.3, 1.6])
    means, total = on_a_grid(y, 1.5, 0.3, 0.2, 0.2)
    options = {"mean": [1.5], "covariance": [[0.3]]}
    arguments = (growth, lambda x: x**2 / 4, [[0.2]], [[0.2]])
    cloud = ParticleFilter(*arguments, **options, n_particles=40_000, random_state=0).filter(y)
    assert_allclose(cloud.mean.ravel(), means, atol=0.02)
    assert cloud.log_likelihood == pytest.approx(total, abs=0.03)
    for kind in (ExtendedKalmanFilter, UnscentedKalmanFilter):  # approximations: near, not exact
        assert_allclose(kind(*arguments, **options).filter(y).mean.ravel(), means, atol=0.15)


def test_derivatives():
    f = lambda x, u: np.array([x[0] * x[1] ** 2, np.exp(x[0]) + u[0] * x[1]])  # noqa: E731
    expected = np.array([[4.0, 4.0], [np.exp(1.0), 3.0]])
    for method, tolerance in (("differences", 1e-8), ("complex", 1e-14)):
        value, by_state, by_control = linearize(f, [1.0, 2.0], [3.0], method=method)
        assert_allclose(value, [4.0, np.exp(1.0) + 6.0])
        assert_allclose(by_state, expected, rtol=tolerance)
        assert_allclose(by_control, [[0.0], [2.0]], rtol=tolerance, atol=tolerance)
    with pytest.raises(DataError, match="returned real numbers"):
        linearize(lambda x: np.abs(x), [1.0], method="complex")


def test_bad_functions_and_arguments():
    given = {"mean": [0.0], "covariance": [[1.0]]}
    for kind in (ExtendedKalmanFilter, UnscentedKalmanFilter, ParticleFilter):
        with pytest.raises(DataError, match="f: got int; expected a function"):
            kind(1, np.sin, [[1.0]], [[1.0]], **given)
        with pytest.raises(DataError, match="V: its smallest eigenvalue is 0"):
            kind(np.sin, np.sin, [[1.0]], [[0.0]], **given)
        with pytest.raises(DataError, match=r"y: got shape \(2, 2\)"):
            kind(np.sin, np.sin, [[1.0]], [[1.0]], **given).filter(np.zeros((2, 2)))
        with pytest.raises(DataError, match="finite"):
            kind(lambda x: x * np.nan, np.sin, [[1.0]], [[1.0]], **given).filter([[1.0], [2.0]])
    with pytest.raises(ParameterError, match="n_particles"):
        ParticleFilter(np.sin, np.sin, [[1.0]], [[1.0]], **given, n_particles=0)
