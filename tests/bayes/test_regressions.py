"""Bayesian regressions against scikit-learn, multivariate densities, numerical optimisation and a Gaussian process."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal, multivariate_t, t
from sklearn import linear_model
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

import epicycle as ep
from epicycle.bayes._evidence import Hyperpriors, RidgeEvidence
from epicycle.bayes._relevance import RelevanceEvidence
from epicycle.bayes._rows import compact_rows
from epicycle.data import as_data
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

NAMES = ["ARDRegression", "BayesianLinearRegression", "BayesianRidge"]
FLAT = {"alpha_1": 1e-6, "alpha_2": 1e-6, "lambda_1": 1e-6, "lambda_2": 1e-6}


def table(seed=0, n=120, p=6, noise=0.5):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p)) @ (np.eye(p) + 0.3 * random.normal(size=(p, p))) + random.normal(size=p)
    w = random.normal(size=p) * (np.arange(p) % 2)
    return X, X @ w + 1.5 + noise * random.normal(size=n), random.integers(0, 4, n).astype(np.float64)


def log_evidence(X, y, alpha, lambdas, a=1e-6):
    """By the density of y, with gamma priors over the precisions."""
    C = np.eye(len(X)) / alpha + (X / lambdas) @ X.T
    return multivariate_normal(np.zeros(len(X)), C).logpdf(y) + np.sum(a * np.log(lambdas) - a * lambdas)


# ------------------------------------------------------------------------------------------------ evidence


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(60, 5), (8, 12)])
def test_the_evidence_is_the_density_of_y_and_its_derivatives_are_right(shape, intercept):
    X, y, _ = table(1, *shape)
    rows = compact_rows(as_data(X, y, target="numeric"), intercept=intercept, n_jobs=1)
    if intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    priors = Hyperpriors(**FLAT)
    ridge, ard = RidgeEvidence(rows, priors), RelevanceEvidence(rows, priors, 1e4)
    random = np.random.default_rng(0)
    for _ in range(5):
        alpha, lambda_ = np.exp(random.normal(size=2))
        state = ridge.at(alpha, lambda_)
        prior = 1e-6 * (np.log(alpha) - alpha)
        of_lambda = 1e-6 * (np.log(lambda_) - lambda_)
        same = np.full(shape[1], lambda_)
        assert_allclose(state.evidence, log_evidence(X, y, alpha, same, a=0) + prior + of_lambda, rtol=1e-9)

        def value(z):
            return ridge.at(*np.exp(z)).evidence

        z = np.log([alpha, lambda_])
        assert_allclose(state.gradient, approx_fprime(z, value, 1e-6), rtol=1e-3, atol=1e-3)
        slopes = [approx_fprime(z, lambda z, i=i: ridge.at(*np.exp(z)).gradient[i], 1e-6) for i in range(2)]
        assert_allclose(state.hessian, slopes, rtol=1e-3, atol=1e-3)
        lambdas = np.exp(random.normal(size=shape[1]))
        found = ard.at(np.arange(shape[1]), lambdas, alpha)
        assert_allclose(found.evidence, log_evidence(X, y, alpha, lambdas) + prior, rtol=1e-9)
        S = np.linalg.inv(np.diag(lambdas) + alpha * X.T @ X)
        assert_allclose(found.mean, alpha * S @ X.T @ y, rtol=1e-8)
        assert_allclose(found.variance, np.diagonal(S), rtol=1e-8)
        z = np.log(np.append(lambdas, alpha))

        def at(z, columns=shape[1]):
            return ard.at(np.arange(columns), np.exp(z[:-1]), np.exp(z[-1]))

        assert_allclose(ard.gradient(found), approx_fprime(z, lambda z: at(z).evidence, 1e-6), rtol=1e-3, atol=1e-3)
        slopes = [approx_fprime(z, lambda z, i=i: ard.gradient(at(z))[i], 1e-6) for i in range(len(z))]
        assert_allclose(ard.hessian(found), slopes, rtol=1e-3, atol=1e-3)


def test_ridge_finds_the_maximum_that_a_search_finds():
    X, y, _ = table(2)
    model = ep.BayesianRidge().fit(X, y)
    rows = compact_rows(as_data(X, y, target="numeric"), intercept=True, n_jobs=1)
    problem = RidgeEvidence(rows, Hyperpriors(**FLAT))
    found = minimize(lambda z: -problem.at(*np.exp(z)).evidence, [0.0, 0.0], method="Nelder-Mead", tol=1e-12)
    assert_allclose(np.log([model.alpha_, model.lambda_]), found.x, atol=1e-5)
    assert model.certificate_.holds
    assert_allclose(model.history_.log_evidence[-1], -found.fun, rtol=1e-12)


@pytest.mark.parametrize("name", ["ARDRegression", "BayesianRidge"])
@pytest.mark.parametrize("seed", range(6))
def test_the_evidence_never_falls(name, seed):
    X, y, w = table(
        seed, n=[5, 10, 25, 60, 200, 400][seed], p=[8, 10, 12, 6, 20, 3][seed], noise=[0, 0.1, 1, 3, 1, 0][seed]
    )
    model = getattr(ep, name)(compute_score=True).fit(X, y, w + 0.1)
    trace = model.scores_
    assert_allclose(trace[-1], model.history_.log_evidence[-1])
    assert np.all(np.diff(trace) >= -1e-11 * (1 + np.abs(trace[:-1])))


# ------------------------------------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_agrees_with_scikit_learn(weighted, intercept):
    X, y = load_diabetes(return_X_y=True)
    y = y / 50
    w = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    ours = ep.BayesianRidge(fit_intercept=intercept).fit(X, y, w)
    theirs = linear_model.BayesianRidge(fit_intercept=intercept, tol=1e-13, max_iter=5000).fit(X, y, w)
    for name in ("alpha_", "lambda_", "coef_", "intercept_", "sigma_", "X_offset_", "X_scale_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5, atol=1e-8, err_msg=name)
    for a, b in zip(ours.predict(X, return_std=True), theirs.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(200, 20), (30, 40)])
def test_ard_agrees_with_scikit_learn(shape):
    X, y, _ = table(3, *shape, noise=0.2)
    ours = ep.ARDRegression(tol=1e-9, max_iter=5000).fit(X, y)
    theirs = linear_model.ARDRegression(tol=1e-13, max_iter=5000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-4)
    kept = theirs.lambda_ < theirs.threshold_lambda
    assert set(np.flatnonzero(kept)) == set(ours.active_)
    assert_allclose(ours.lambda_[kept], theirs.lambda_[kept], rtol=1e-3)
    assert_allclose(ours.sigma_, theirs.sigma_, atol=1e-6)
    for a, b in zip(ours.predict(X, return_std=True), theirs.predict(X, return_std=True), strict=True):
        assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_ard_keeps_what_matters():
    random = np.random.default_rng(4)
    X = random.normal(size=(300, 40))
    y = 3 * X[:, 5] - 2 * X[:, 17] + random.normal(size=300)
    model = ep.ARDRegression().fit(X, y)
    assert {5, 17} <= set(model.active_)
    assert np.abs(np.delete(model.coef_, [5, 17])).max() < 0.2
    assert np.all(model.coef_[np.setdiff1d(np.arange(40), model.active_)] == 0)


# ------------------------------------------------------------------------------------------------ conjugate prior


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("prior", ["number", "vector", "matrix"])
def test_the_posterior_of_a_conjugate_prior(intercept, prior):
    X, y, _ = table(5, n=40, p=3)
    P = {"number": 0.7, "vector": np.array([0.5, 1, 2]), "matrix": np.diag([1.0, 2, 3]) + 0.4}[prior]
    matrix = P if np.ndim(P) == 2 else np.diag(np.broadcast_to(P, 3))
    m, a, c = np.array([0.3, -1, 0.2]), 2.5, 1.7
    model = ep.BayesianLinearRegression(
        prior_precision=P, prior_mean=m, noise_shape=a, noise_rate=c, intercept_precision=0.1, fit_intercept=intercept
    ).fit(X, y)
    Z, root = X, matrix
    if intercept:
        Z, m = np.hstack([X, np.ones((40, 1))]), np.append(m, 0.0)
        root = np.zeros((4, 4))
        root[:3, :3], root[3, 3] = matrix, 0.1
    Pn = root + Z.T @ Z
    mn = np.linalg.solve(Pn, root @ m + Z.T @ y)
    assert_allclose(model.precision_, Pn, rtol=1e-10, atol=1e-10)
    assert_allclose(np.append(model.coef_, model.intercept_)[: len(mn)], mn, rtol=1e-9)
    assert_allclose(model.noise_shape_, a + 20)
    assert_allclose(model.noise_rate_, c + (y @ y + m @ root @ m - mn @ Pn @ mn) / 2, rtol=1e-9)
    # y is distributed like Student's t in 40 dimensions.
    scale = c / a * (np.eye(40) + Z @ np.linalg.solve(root, Z.T))
    assert_allclose(model.log_evidence_, multivariate_t(Z @ m, scale, df=2 * a).logpdf(y), rtol=1e-9)
    # A new y: the conditional of the same distribution, by the quotient of evidences at a few values.
    x = np.array([[0.5, -0.3, 1.0]])
    mean, std, interval = model.predict(x, return_std=True, return_interval=True, level=0.8)
    z = np.append(x[0], 1.0)[: len(mn)]
    width = np.sqrt(model.noise_rate_ / model.noise_shape_ * (1 + z @ np.linalg.solve(Pn, z)))
    predictive = t(2 * model.noise_shape_, mn @ z, width)
    assert_allclose([mean[0], std[0]], [predictive.mean(), predictive.std()], rtol=1e-9)
    assert_allclose(interval[0], predictive.interval(0.8), rtol=1e-9)
    for new in (-1.0, 0.5, 3.0):
        more = ep.BayesianLinearRegression(**model.get_params()).fit(np.vstack([X, x]), np.append(y, new))
        assert_allclose(more.log_evidence_ - model.log_evidence_, predictive.logpdf(new), rtol=1e-7)


def test_it_is_a_gaussian_process_with_a_linear_kernel():
    X, y, _ = table(6, n=50, p=3)
    new = np.random.default_rng(1).normal(size=(20, 3))
    model = ep.BayesianLinearRegression(prior_precision=1.0, intercept_precision=0.25).fit(X, y)
    variance = model.noise_rate_ / model.noise_shape_
    kernel = ConstantKernel(variance, "fixed") * DotProduct(sigma_0=2.0, sigma_0_bounds="fixed")
    process = ep.GaussianProcessRegressor(kernel, alpha=variance, optimizer=None).fit(X, y)
    mean, std = process.predict(new, return_std=True, include_noise=True)
    freedom = 2 * model.noise_shape_
    ours, deviation = model.predict(new, return_std=True)
    assert_allclose(ours, mean, rtol=1e-7, atol=1e-9)
    assert_allclose(deviation / np.sqrt(freedom / (freedom - 2)), std, rtol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_hold_what_they_promise(name):
    random = np.random.default_rng(7)
    hits = total = 0
    for _ in range(60):
        w = random.normal(size=4)
        X, new = random.normal(size=(40, 4)), random.normal(size=(50, 4))
        model = getattr(ep, name)().fit(X, X @ w + 0.7 * random.normal(size=40))
        _, interval = model.predict(new, return_interval=True, level=0.9)
        y = new @ w + 0.7 * random.normal(size=50)
        hits, total = hits + np.sum((interval[:, 0] <= y) & (y <= interval[:, 1])), total + len(y)
    assert 0.86 < hits / total < 0.95


# ------------------------------------------------------------------------------------------------ one statistic


@pytest.mark.parametrize("name", NAMES)
def test_the_same_in_memory_from_files_on_dask_and_sparse(name, tmp_path, client):
    X, y, w = table(8, n=5000, p=5)
    X += 1000
    make = getattr(ep, name)
    whole = make().fit(X, y, w)
    columns = [f"x{j}" for j in range(5)]
    pd.DataFrame(X, columns=columns).assign(y=y, w=w).to_parquet(tmp_path / "rows.parquet")
    files = make().fit(ep.scan(tmp_path / "rows.parquet", target="y", weight="w", batch_rows=700))
    cluster = make().fit(*(da.from_array(a, chunks=(900, *a.shape[1:])) for a in (X, y, w)))
    sparse = make().fit(sp.csr_array(X), y, w)
    expected = whole.predict(X[:50], return_std=True)
    for model in (files, cluster, sparse):
        assert_allclose(model.coef_, whole.coef_, rtol=1e-6, atol=1e-8)
        model.__dict__.pop("feature_names_in_", None)
        for a, b in zip(model.predict(X[:50], return_std=True), expected, strict=True):
            assert_allclose(a, b, rtol=1e-7, atol=1e-7)  # y has deviation 1; a mean may be next to zero
    mean, std, interval = cluster.predict(da.from_array(X[:50], chunks=(20, 5)), return_std=True, return_interval=True)
    assert_allclose(std.compute(), expected[1], rtol=1e-7)
    assert_allclose(interval.compute().mean(axis=1), mean.compute(), rtol=1e-12)


def test_batches_of_a_conjugate_model_are_one_fit():
    X, y, w = table(9, n=300)
    whole = ep.BayesianLinearRegression().fit(X, y, w)
    parts = ep.BayesianLinearRegression()
    for part in np.array_split(np.arange(300), 7):
        parts.partial_fit(X[part], y[part], w[part])
    for name in ("coef_", "intercept_", "precision_", "noise_rate_", "log_evidence_", "sigma_"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(data=st.data())
def test_weights_order_and_shift(name, data):
    n, p = data.draw(st.integers(8, 40)), data.draw(st.integers(1, 5))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = random.normal(size=(n, p))
    y = X @ random.normal(size=p) + 0.3 * random.normal(size=n)
    w = random.integers(0, 3, n)
    w[:6] = 1
    make = getattr(ep, name)
    options = {} if name == "BayesianLinearRegression" else {"max_iter": 20_000}
    if name == "ARDRegression":
        options["tol"] = 1e-8
    weighted = make(**options).fit(X, y, w)
    order = random.permutation(np.repeat(np.arange(n), w))
    repeated = make(**options).fit(X[order], y[order])
    for a, b in zip(weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True):
        assert a.shape == (n,)
        assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    if name != "BayesianLinearRegression":  # whose intercept has a prior
        moved = make(**options).fit(X + 5, y + 3, w)
        assert_allclose(moved.predict(X + 5), weighted.predict(X) + 3, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_save_and_float32(name, tmp_path):
    X, y, _ = table(10)
    model = getattr(ep, name)().fit(X.astype(np.float32), y)
    mean, std = model.predict(X.astype(np.float32), return_std=True)
    assert mean.dtype == std.dtype == model.coef_.dtype == np.float32
    model.save(tmp_path / "model.epi")
    assert_allclose(ep.load(tmp_path / "model.epi").predict(X, return_std=True), model.predict(X, return_std=True))
    assert_allclose(model.coef_, getattr(ep, name)().fit(X, y).coef_, rtol=1e-3, atol=1e-4)


def test_numbers_beyond_floating_point_are_refused():
    X, y, _ = table(12)
    with pytest.raises(DataError, match="scale"):
        ep.ARDRegression(fit_intercept=False).fit([[0.3], [0.5]], [-1e149, -1e149])
    large = ep.BayesianRidge(fit_intercept=False).fit([[0.3], [0.5]], [-1e149, -1e149])
    assert np.isfinite(large.predict([[0.3]], return_std=True)).all()
    with pytest.raises(DataError, match="float32"):
        ep.BayesianLinearRegression(prior_mean=1e150).fit(X.astype(np.float32), y)
    with pytest.raises(DataError, match="float32"):
        ep.BayesianRidge(lambda_1=0.0, lambda_2=1e300, max_iter=1).fit(np.ones((3, 1), np.float32), [1, 2, 3])


def test_precisions_of_very_different_sizes():
    # the precision of the posterior has no Cholesky factor in floating point
    X, y, _ = table(13, n=3, p=8)
    model = ep.ARDRegression(lambda_1=1000.0, alpha_2=1e8, threshold_lambda=1e300, tol=0.5).fit(X, y)
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_bad_input():
    X, y, _ = table(11)
    with pytest.raises(ParameterError, match="prior_precision"):
        ep.BayesianLinearRegression(prior_precision=-np.eye(6)).fit(X, y)
    with pytest.raises(ParameterError, match="prior_precision"):
        ep.BayesianLinearRegression(prior_precision=[1, 2]).fit(X, y)
    with pytest.raises(ParameterError, match="prior_mean"):
        ep.BayesianLinearRegression(prior_mean=[1, 2]).fit(X, y)
    with pytest.raises(ParameterError, match="noise_rate"):
        ep.BayesianLinearRegression(noise_rate=0).fit(X, y)
    with pytest.raises(ParameterError, match="level"):
        ep.BayesianRidge().fit(X, y).predict(X, return_interval=True, level=1.0)
    with pytest.warns(ConvergenceWarning):
        ep.ARDRegression(max_iter=1).fit(X, y)
