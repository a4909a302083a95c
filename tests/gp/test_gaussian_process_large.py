"""Gaussian processes for many rows: inducing rows and conjugate gradients against the exact process."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle import GaussianProcessClassifier, GaussianProcessRegressor
from epicycle.gp._inducing import InducingLikelihood, choose_rows
from epicycle.gp._iterative import CovarianceOperator, IterativeLikelihood
from epicycle.gp._laplace_low_rank import LowRankLaplace
from epicycle.kernel import Gaussian, Linear, Matern, Scaled, Spectrum
from epicycle.kernels._gram import low_rank_factor

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(120, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.2 * RNG.normal(size=(120, 2))
WEIGHT = RNG.integers(1, 4, 120)
NEW = RNG.uniform(-2.5, 2.5, size=(9, 3))
KERNEL = 2.0 * Gaussian((1.0, 2.0, 3.0)) + 0.5 * Matern(1.0, nu=2.5)
MEANS = pytest.mark.parametrize("mean", ["zero", "linear"])


def fitted(method, mean="zero", **options):
    model = GaussianProcessRegressor(
        KERNEL, noise=0.1, optimizer=None, method=method, mean=mean, random_state=0, **options
    )
    return model.fit(X, Y, WEIGHT)


@MEANS
def test_all_rows_as_inducing_rows_are_the_exact_process(mean):
    exact, found = fitted("exact", mean), fitted("inducing", mean, n_inducing=120)
    assert found.log_marginal_likelihood_value_ == pytest.approx(exact.log_marginal_likelihood_value_, rel=1e-7)
    assert found.log_marginal_likelihood_value_ <= exact.log_marginal_likelihood_value_
    for a, b in zip(found.predict(NEW, True, True), exact.predict(NEW, True, True), strict=True):
        assert_allclose(a, b, atol=1e-7)


@MEANS
@pytest.mark.parametrize("how", ["greedy", "kmeans++"])
def test_the_bound_is_below_and_rises_with_the_rows(mean, how):
    exact = fitted("exact", mean).log_marginal_likelihood_value_
    bounds = [
        fitted("inducing", mean, n_inducing=m, inducing=how).log_marginal_likelihood_value_ for m in (5, 20, 60, 110)
    ]
    assert bounds == sorted(bounds)
    assert bounds[-1] < exact


@MEANS
def test_gradient_of_the_bound(mean):
    exact = fitted("exact", mean)._likelihood()
    theta = exact.model.theta
    likelihood = InducingLikelihood(exact.model, exact.obs, exact.H, 1, 25, "greedy", 0)
    likelihood.start(theta)
    _, gradient = likelihood.value_and_gradient(theta)
    for i, e in enumerate(np.eye(len(theta))):
        up, down = (likelihood.value_and_gradient(theta + s * 1e-5 * e, False)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-4)


@MEANS
def test_conjugate_gradients_are_the_exact_process(mean):
    exact, found = fitted("exact", mean), fitted("cg", mean, n_inducing=30)
    assert_allclose(found.alpha_, exact.alpha_, rtol=1e-6, atol=1e-7)
    for a, b in zip(found.predict(NEW, True, True), exact.predict(NEW, True, True), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    assert found.certificate_.holds
    assert found.certificate_.value < 1e-9
    # with a preconditioner of full rank nothing is left to chance
    whole = fitted("cg", mean, n_inducing=120)
    assert whole.log_marginal_likelihood_value_ == pytest.approx(exact.log_marginal_likelihood_value_, rel=1e-6)
    assert found.log_marginal_likelihood_value_ == pytest.approx(exact.log_marginal_likelihood_value_, abs=4)


@pytest.mark.slow
def test_estimates_of_determinant_and_gradient_have_the_errors_they_say():
    exact = fitted("exact")._likelihood()
    theta = exact.model.theta
    value, gradient = exact.value_and_gradient(theta)
    off, own = [], []
    for seed in range(20):
        likelihood = IterativeLikelihood(exact.model, exact.obs, exact.H, 1, 15, seed, draws=8)
        estimate, slope = likelihood.value_and_gradient(theta)
        off.append((estimate - value, *(slope - gradient)))
        own.append(likelihood.standard_error)
    off = np.array(off)
    assert (np.abs(off.mean(axis=0)) < 4 * off.std(axis=0) / np.sqrt(20) + 1e-6).all()  # no bias
    assert 0.3 < np.mean(own) / off[:, 1:].std(axis=0).max() < 3


def test_products_without_the_matrix():
    A = KERNEL.prepare(X)
    D = np.full(120, 0.1)
    stored, blocked = (CovarianceOperator(KERNEL, A, D, 10, 1, stored) for stored in (True, False))
    assert blocked.K is None
    assert_allclose(blocked.times(Y), stored.times(Y), rtol=1e-12)
    assert_allclose(blocked.solve(Y, 1e-10).X, np.linalg.solve(KERNEL(X) + 0.1 * np.eye(120), Y), rtol=1e-7, atol=1e-8)
    assert_allclose(stored.precondition(Y), np.linalg.solve(stored.R.T @ stored.R + 0.1 * np.eye(120), Y), rtol=1e-9)


def test_hyper_parameters_of_the_approximations():
    rng = np.random.default_rng(1)
    rows = rng.uniform(-3, 3, size=(700, 1))
    y = np.sin(2 * rows[:, 0]) + 0.2 * rng.normal(size=700)
    kernel = Scaled(Gaussian(1.0), 1.0)
    exact = GaussianProcessRegressor(kernel, method="exact").fit(rows, y)
    for method, loss in (("inducing", 1e-3), ("cg", 0.2)):
        model = GaussianProcessRegressor(kernel, method=method, n_inducing=40, random_state=0).fit(rows, y)
        assert model.certificate_.holds
        there = exact.log_marginal_likelihood(model.theta_)
        assert exact.log_marginal_likelihood_value_ - loss < there <= exact.log_marginal_likelihood_value_ + 1e-6
        assert_allclose(model.predict(rows[:20]), exact.predict(rows[:20]), atol=0.01)
        again = GaussianProcessRegressor(kernel, method=method, n_inducing=40, random_state=0).fit(rows, y)
        assert np.array_equal(again.theta_, model.theta_)
    assert "known to" in model.certificate_.meaning  # of the gradient, from draws


def test_large_data_is_approximated_and_said():
    rng = np.random.default_rng(2)
    rows = rng.uniform(-3, 3, size=(2500, 2))
    y = np.sin(rows[:, 0]) + 0.1 * rng.normal(size=2500)
    model = GaussianProcessRegressor(noise=0.1, n_inducing=40, random_state=0).fit(rows, y)
    assert model.method_ == "inducing"
    assert len(model.X_fit_) <= 40
    assert np.array_equal(np.unique(model.inducing_rows_), np.sort(model.inducing_rows_))
    assert {tuple(r) for r in model.X_fit_} == {tuple(r) for r in rows[model.inducing_rows_]}
    assert model.fitted_nbytes < 300_000  # what was given is not all kept
    assert model.noise_variance_ == pytest.approx(0.01, rel=0.1)


def test_chosen_rows():
    for how in ("greedy", "kmeans++"):
        chosen = choose_rows(KERNEL, KERNEL.prepare(X), 30, how, 0)
        assert len(set(chosen.tolist())) == 30
    _, R, _ = low_rank_factor(KERNEL, KERNEL.prepare(X), 120, floor=1e-9)
    assert_allclose(R.T @ R, KERNEL(X), atol=1e-7)
    # a kernel of rank 3 has no fourth row to add
    assert len(low_rank_factor(Linear(), Linear().prepare(X), 50, floor=1e-9)[0]) == 3
    words = np.array(["gattaca", "cattaca", "aaaa", "gattaca"], dtype=object)
    assert len(choose_rows(Spectrum(2), Spectrum(2).prepare(words), 4, "greedy", 0)) == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier_with_inducing_rows(n_classes):
    y = np.digitize(
        X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * RNG.normal(size=120), np.linspace(-1, 1.5, n_classes + 1)[1:-1]
    )
    exact = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y, WEIGHT)
    found = GaussianProcessClassifier(KERNEL, optimizer=None, method="inducing", n_inducing=120).fit(X, y, WEIGHT)
    assert found.log_marginal_likelihood_value_ == pytest.approx(exact.log_marginal_likelihood_value_, rel=1e-6)
    assert_allclose(found.predict_proba(NEW), exact.predict_proba(NEW), atol=1e-6)
    from epicycle.gp._observations import count_labels

    seen = count_labels(X, y, WEIGHT.astype(float), n_classes, KERNEL)
    likelihood = LowRankLaplace(KERNEL, seen, 1, 100, 15, "greedy", 0, type(None))
    theta = KERNEL.theta
    likelihood.start(theta)
    _, gradient = likelihood.value_and_gradient(theta)
    for i, e in enumerate(np.eye(len(theta))):
        up, down = (likelihood.value_and_gradient(theta + s * 1e-5 * e, False)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=2e-4)
