"""Gradient descent and the pseudo-inverse, the double descent of test errors, and networks as Gaussian processes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle.exceptions import ConvergenceError, DataError, ParameterError
from epicycle.nets.examples import double_descent, minimum_norm, network_prior


def test_descent_ends_at_the_solution_nearest_to_its_start():
    rng = np.random.default_rng(0)
    X, y, start = rng.normal(size=(20, 50)), rng.normal(size=20), rng.normal(size=50)
    found = minimum_norm(X, y)
    assert_allclose(found.weights, np.linalg.pinv(X) @ y, atol=1e-8)
    assert_allclose(X @ found.weights, y, atol=1e-8)
    assert np.all(np.diff(found.loss) <= 0)
    assert np.all(np.diff(found.norm) >= -1e-12)
    other = minimum_norm(X, y, start=start)
    assert_allclose(X @ other.weights, y, atol=1e-8)
    null = np.linalg.svd(X)[2][20:]  # what no row sees stays as it was
    assert_allclose(null @ other.weights, null @ start, atol=1e-10)
    assert np.linalg.norm(other.weights) > np.linalg.norm(found.weights)
    assert other.distance[-1] < 1e-7


def test_rows_that_contradict_each_other():
    X, y = np.array([[1.0, 1, 0], [1, 1, 0]]), np.array([1.0, 3])
    assert_allclose(minimum_norm(X, y).weights, [1, 1, 0], atol=1e-8)
    with pytest.raises(ConvergenceError, match="raise max_iter"):
        minimum_norm(np.diag([1.0, 1e-3]), [1.0, 1.0], max_iter=10)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(560, 10))
    y = X @ rng.normal(size=10) / np.sqrt(10) + 0.5 * rng.normal(size=560)
    return X[:60], y[:60], X[60:], y[60:]


def test_the_test_error_falls_rises_and_falls_again(noisy):
    curve = double_descent(*noisy, [5, 20, 60, 200, 2000], n_networks=7)
    test, train = np.median(curve.test_error, axis=1), np.median(curve.train_error, axis=1)
    assert test[2] > 5 * test[1]
    assert test[4] < test[2] / 5
    assert np.all(np.diff(train) < 0) or train[-1] < 1e-20
    assert train[3] < 1e-15
    assert curve.norm[4].max() < curve.norm[2].min()
    calm = double_descent(*noisy, [60], alpha=0.1, n_networks=7)
    assert np.median(calm.test_error) < test[2] / 5


def test_the_last_layer_is_that_of_least_squares(noisy):
    """Ridge by its normal equations, for the hidden units of the same seed."""
    X, y, X_new, y_new = noisy
    ridge = double_descent(X, y, X_new, y_new, [30, 100], alpha=0.5, n_networks=3, random_state=4)
    plain = double_descent(X, y, X_new, y_new, [30, 100], alpha=1e-9, n_networks=3, random_state=4)
    assert (ridge.train_error >= plain.train_error).all()
    assert (ridge.norm <= plain.norm).all()
    again = double_descent(X, y, X_new, y_new, [100, 30], alpha=0.5, n_networks=3, random_state=4)
    assert_allclose(again.test_error[::-1], ridge.test_error)


def test_wide_networks_are_gaussian_processes():
    X = np.random.default_rng(0).normal(size=(4, 3))
    prior = network_prior(X, [2, 8, 128], depth=2, bias_variance=0.1, n_networks=3000)
    assert prior.kurtosis[0] > prior.kurtosis[1] > prior.kurtosis[2]
    assert prior.kurtosis[0] > 3
    assert abs(prior.kurtosis[2]) < 0.6
    assert prior.distance[2] < 0.1
    assert_allclose(network_prior(X, [8], depth=2, bias_variance=0.1, n_networks=3000).outputs, prior.outputs[1:2])


def test_one_hidden_layer_has_the_covariance_at_any_width():
    X = np.random.default_rng(0).normal(size=(4, 3))
    prior = network_prior(X, [1, 3], n_networks=40_000)
    assert (prior.distance < 0.15).all()


def test_bad_input_is_named(noisy):
    X, y, X_new, y_new = noisy
    with pytest.raises(DataError, match="y: expected 60"):
        minimum_norm(X, y[:5])
    with pytest.raises(DataError, match="start: expected 10"):
        minimum_norm(X, y, start=[1.0])
    with pytest.raises(DataError, match="X_test: has 3 columns"):
        double_descent(X, y, X_new[:, :3], y_new, [5])
    with pytest.raises(ParameterError, match="widths"):
        double_descent(X, y, X_new, y_new, [0])
    with pytest.raises(DataError, match="X: expected a table"):
        network_prior(np.full((2, 2), np.nan), [3])
