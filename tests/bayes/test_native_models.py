"""Compiled densities: against NumPy's formulas, their gradients against differences, and the conjugate blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle import bayes
from epicycle._native import bayes as native
from epicycle.exceptions import DataError, ParameterError

rng = np.random.default_rng(2)
X = rng.normal(size=(75, 3))  # not a multiple of the block of rows
LABELS = (rng.random(75) < 0.4).astype(float)
COUNTS = rng.poisson(2.0, 75).astype(float)
EXPOSURE = rng.uniform(0.5, 2, 75)
A = rng.normal(size=(9, 9))
COVARIANCE = A @ A.T + np.eye(9)


def normal_value(x):
    return -0.5 * (x - 1) @ np.linalg.solve(COVARIANCE, x - 1)


def logistic_value(coef, intercept):
    z = X @ coef + intercept
    return np.sum(LABELS * z - np.logaddexp(0, z)) - coef @ coef / (2 * 2.5**2) - intercept**2 / 200


def poisson_value(coef, intercept):
    z = X @ coef + intercept + np.log(EXPOSURE)
    return np.sum(COUNTS * z - np.exp(z)) - coef @ coef / (2 * 2.5**2) - intercept**2 / 200


def linear_value(coef, intercept, sigma):
    r = COUNTS - X @ coef - intercept
    prior = coef @ coef / 200 + intercept**2 / 200
    # the density of sigma^2, and the Jacobian 2 sigma from there to sigma
    return -75 * np.log(sigma) - r @ r / (2 * sigma**2) - prior - 4 * np.log(sigma) - 1 / sigma**2 + np.log(sigma)


def variance_value(mu, sigma):
    r = COUNTS - mu
    return -75 * np.log(sigma) - r @ r / (2 * sigma**2) - mu**2 / 200 - 3 * np.log(sigma) - 1 / sigma**2


def hierarchical_value(mu, tau, eta):
    r = (COUNTS - mu - tau * eta) / EXPOSURE
    return -r @ r / 2 - eta @ eta / 2 - mu**2 / 50 - np.log1p((tau / 5) ** 2)


MODELS = {
    "normal": (bayes.NormalModel(np.ones(9), COVARIANCE), normal_value),
    "precision": (bayes.NormalModel(np.ones(9), precision=np.linalg.inv(COVARIANCE)), normal_value),
    "logistic": (bayes.LogisticModel(X, LABELS), logistic_value),
    "poisson": (bayes.PoissonModel(X, COUNTS, EXPOSURE), poisson_value),
    "linear": (bayes.LinearModel(X, COUNTS), linear_value),
    "variance": (bayes.NormalVarianceModel(COUNTS), variance_value),
    "hierarchical": (bayes.HierarchicalModel(COUNTS, EXPOSURE), hierarchical_value),
}
every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_value_up_to_a_constant(name):
    model, formula = MODELS[name]
    points = np.random.default_rng(0).normal(size=(6, model.parameters.size)) * 0.7
    expected = [formula(**model.parameters.constrain(u)) + model.parameters.log_jacobian(u) for u in points]
    found = [model.value(u) for u in points]
    assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9, atol=1e-8)


@every_model
def test_gradient_by_differences(name):
    model, _ = MODELS[name]
    u = np.random.default_rng(1).normal(size=model.parameters.size) * 0.7
    differences = [(model.value(u + 1e-5 * e) - model.value(u - 1e-5 * e)) / 2e-5 for e in np.eye(len(u))]
    gradient = model.value_and_gradient(u)[1]
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("n", [1, 31, 32, 33, 5000])
def test_rows_that_do_not_fill_a_block(n):
    rows, labels = np.resize(X, (n, 3)), np.resize(LABELS, n)
    model = bayes.LogisticModel(rows, labels, intercept_scale=None)
    w = np.array([0.3, -2.0, 30.0])  # margins far out too
    z = rows @ w
    expected = np.sum(labels * z - np.logaddexp(0, z)) - w @ w / (2 * 2.5**2)
    assert_allclose(model.value(w), expected, rtol=1e-12)
    counts = bayes.PoissonModel(rows, np.resize(COUNTS, n), intercept_scale=None)
    z = rows @ (w / 30)
    expected = np.sum(np.resize(COUNTS, n) * z - np.exp(z)) - (w / 30) @ (w / 30) / (2 * 2.5**2)
    assert_allclose(counts.value(w / 30), expected, rtol=1e-12)


def test_least_squares_far_from_the_origin_keep_their_digits():
    y = 1e8 + np.array([1.0, 2.0, 4.0])
    model = bayes.NormalVarianceModel(y, mean=1e8)
    r = np.array([-1.5, -0.5, 1.5])
    at = [model.value(np.array([1e8 + m, 0.0])) for m in (2.5, 0.0)]
    expected = [-(r @ r) / 2 - 2.5**2 / 200, -np.array([1.0, 2, 4]) @ np.array([1.0, 2, 4]) / 2]
    assert_allclose(at[0] - at[1], expected[0] - expected[1], rtol=1e-6)


@pytest.mark.parametrize("name", ["normal", "linear", "variance"])
def test_conjugate_blocks_leave_the_posterior_as_it_is(name):
    """Gibbs steps from exact draws (by NUTS) give the same mean as these."""
    model, _ = MODELS[name]
    truth = bayes.sample(model, metric="dense", random_state=1, draws=4000)
    gibbs = bayes.sample(model, "gibbs", random_state=2, draws=1500, thin=2)
    for parameter in model.parameters.constraints:
        difference = truth[parameter].mean(axis=(0, 1)) - gibbs[parameter].mean(axis=(0, 1))
        error = np.hypot(bayes.mcse(truth[parameter]), bayes.mcse(gibbs[parameter]))
        assert np.max(np.abs(difference) / error) < 4.5


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bayes.NormalModel([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "covariance: not positive definite"),
        (lambda: bayes.NormalModel([0.0, 0.0], [[1.0, 0.5], [0.2, 1.0]]), "covariance: .*symmetric"),
        (lambda: bayes.NormalModel([0.0]), "covariance, precision"),
        (lambda: bayes.LogisticModel(X, LABELS + 1), "y: expected only 0 and 1"),
        (lambda: bayes.LogisticModel(X, LABELS[:-1]), "y: 74 rows; expected 75"),
        (lambda: bayes.LogisticModel(X, LABELS, prior_scale=0.0), "prior_scale=0.0"),
        (lambda: bayes.LogisticModel(X * np.nan, LABELS), "X: .*finite"),
        (lambda: bayes.PoissonModel(X, COUNTS - 5), "y: expected counts"),
        (lambda: bayes.PoissonModel(X, COUNTS, EXPOSURE * 0), "exposure"),
        (lambda: bayes.LinearModel(X, COUNTS, rate=-1.0), "rate=-1.0"),
        (lambda: bayes.LinearModel("rows", COUNTS), "X: expected numbers"),
        (lambda: bayes.HierarchicalModel([1.0, 2.0], [1.0, -1.0]), "sigma: expected numbers above 0"),
    ],
)
def test_bad_data_is_named(build, message):
    with pytest.raises((DataError, ParameterError), match=message):
        build()


def test_kernels_check_their_arguments():
    density = native.NormalDensity(np.zeros(2), np.eye(2))
    with pytest.raises(ValueError, match="one number for every coordinate"):
        native.log_density(density, np.zeros(3))
    arrays = (np.empty((5, 2)), np.empty((5, 7)), np.zeros(2, np.int64), np.zeros(1, np.int64))
    settings = {"warmup": 10, "thin": 1, "dense": False, "target_accept": 0.8, "step_size": 0.0, "max_depth": 10}
    settings |= {"sampler": "nuts", "integration_time": 1.0}
    for wrong, named in (({"sampler": "walk"}, "sampler"), ({"thin": 0}, "thin"), ({"target_accept": 1.0}, "accept")):
        with pytest.raises(ValueError, match=named):
            native.ChainOptions(**settings | wrong)
    with pytest.raises(ValueError, match="sample_chain"):
        native.sample_chain(density, native.ChainOptions(**settings), np.zeros(3), np.ones(4, np.uint64), *arrays)
