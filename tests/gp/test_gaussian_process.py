"""Gaussian process regression: likelihood and posterior against formulas, scikit-learn, differences and refits."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnRegressor, kernels as sk

import epicycle as ep
from epicycle import GaussianProcessRegressor, LinearRegression
from epicycle.exceptions import ConvergenceError, DataError, MemoryBudgetError, ParameterError, ParameterTypeError
from epicycle.kernel import (
    NNGP,
    ArcCosine,
    ChiSquare,
    Constant,
    Gaussian,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    NeuralTangent,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scaled,
    Spectrum,
)
from epicycle.linalg._cholesky import JitterWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(50, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=50)
NEW = RNG.uniform(-2.5, 2.5, size=(12, 3))

KERNELS = [
    Gaussian(0.8),
    Gaussian((0.5, 1.0, 2.0)),
    Laplacian(1.5),
    Laplacian((0.5, 1.0, 2.0)),
    Matern(0.7, nu=0.5),
    Matern((0.5, 1.0, 2.0), nu=0.5),
    Matern((0.5, 1.0, 2.0), nu=1.5),
    Matern(0.7, nu=2.5),
    Matern((0.5, 1.0, 2.0), nu=2.5),
    RationalQuadratic(0.9, alpha=0.7),
    RationalQuadratic((0.5, 1.0, 2.0), alpha=2.0),
    Periodic(0.8, period=1.7),
    Polynomial(2, gamma=0.4, c=0.3),
    Linear(),
    NNGP(2, 1.5, 0.2),
    NeuralTangent(2, 1.3, 0.3),
    ArcCosine(1),
    Constant(2.0),
    2.0 * Gaussian(0.8) + 0.5,
    Scaled(Gaussian((0.5, 1.0, 2.0)), 3.0, bounds="fixed"),
    (Linear() + 1.0) ** 2,
    (0.7 * Gaussian((0.5, 1.0, 2.0)) + 0.1) ** 2,
    Gaussian(2.0) * Periodic(1.0, period=2.0) + 0.3 * Matern((1.0, 2.0, 3.0), nu=2.5),
    (Polynomial(2) + RationalQuadratic()).normalized(),
    3.0 * (NNGP(2, bias_variance=0.1) * Laplacian(2.0)),
]


def differences(f, theta, h=1e-5):
    return np.array([(f(theta + h * e) - f(theta - h * e)) / (2 * h) for e in np.eye(len(theta))])


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_gradients_of_the_likelihood_for_every_kernel(mean):
    weight = RNG.integers(1, 4, 50)
    targets = np.column_stack([Y, X[:, 2] ** 2])
    for kernel in [*KERNELS, ChiSquare(0.4), 2.0 * HistogramIntersection()]:
        rows = np.abs(X) if kernel in (ChiSquare(0.4), 2.0 * HistogramIntersection()) else X
        model = GaussianProcessRegressor(kernel, noise=0.1, mean=mean, optimizer=None).fit(rows, targets, weight)
        value, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
        assert value == pytest.approx(model.log_marginal_likelihood_value_, rel=1e-10)
        numerical = differences(model.log_marginal_likelihood, model.theta_)
        assert_allclose(gradient, numerical, rtol=1e-5, atol=1e-5, err_msg=repr(kernel))
        assert len(gradient) == len(model.theta_names_) == len(kernel.theta) + 1


def test_tiles_of_the_gradient_add_up():
    """More rows than a tile: what `contract_between` does in tiles is what the definition does at once."""
    rows = np.random.default_rng(1).normal(size=(330, 3))
    y = np.sin(rows[:, 0])
    for kernel in (KERNELS[1], KERNELS[8], KERNELS[22], KERNELS[9]):
        model = GaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(rows, y)
        _, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
        K, G = kernel.value_and_gradient(rows)
        S = np.linalg.inv(K + 0.1 * np.eye(330))
        W = np.outer(S @ y, S @ y) - S
        direct = [0.5 * np.vdot(W, g) for g in G] + [0.05 * np.trace(W)]
        assert_allclose(gradient, direct, rtol=1e-7, atol=1e-8)
        moved = np.column_stack([g @ (S @ y) for g in [*G, 0.1 * np.eye(330)]])
        likelihood = model._likelihood()
        information = likelihood.with_curvature(model.theta_, True)[2]
        assert_allclose(information, 0.5 * moved.T @ S @ moved, rtol=1e-7, atol=1e-8)
        assert likelihood.standard_error < 1e-7  # what rounding has done


def test_the_average_information_is_that():
    """Over draws from the model its mean is Fisher's information, tr(P dS_i P dS_j) / 2, with a basis of the mean."""
    rng = np.random.default_rng(4)
    kernel = 1.5 * Gaussian((1.0, 2.0, 1.5))
    for mean in ("zero", "constant"):
        model = GaussianProcessRegressor(kernel, noise=0.2, mean=mean, optimizer=None).fit(X[:25], Y[:25])
        likelihood = model._likelihood()
        L = np.linalg.cholesky(kernel(model.X_fit_) + 0.2 * np.eye(25))
        found = []
        for _ in range(100):
            likelihood.obs = replace(likelihood.obs, Y=L @ rng.normal(size=(25, 1)))
            found.append(likelihood.with_curvature(model.theta_, True)[2])
        S = np.linalg.inv(L @ L.T)
        H = np.ones((25, 1))
        P = S - S @ H @ H.T @ S / (H.T @ S @ H) if mean == "constant" else S
        parts = [P @ G for G in [*kernel.value_and_gradient(model.X_fit_)[1], 0.2 * np.eye(25)]]
        fisher = 0.5 * np.array([[np.trace(a @ b) for b in parts] for a in parts])
        error = np.std(found, axis=0) / np.sqrt(len(found))
        assert (np.abs(np.mean(found, axis=0) - fisher) < 5 * error + 1e-9).all()


PAIRS = [
    (2.0 * Gaussian((0.5, 1.0, 2.0)), sk.ConstantKernel(2.0) * sk.RBF([0.5, 1.0, 2.0])),
    (Matern(0.7, nu=1.5), sk.Matern(0.7, nu=1.5)),
    (
        RationalQuadratic(0.9, alpha=0.7) + 0.5 * Linear(),
        sk.RationalQuadratic(0.9, alpha=0.7) + sk.ConstantKernel(0.5) * sk.DotProduct(0.0, "fixed"),
    ),
]


@pytest.mark.parametrize("normalize", [False, True])
def test_agrees_with_scikit_learn(normalize):
    targets = np.column_stack([Y, 3 + X[:, 2] ** 2])
    noises = RNG.uniform(0.05, 0.3, 50)
    for mine, theirs in PAIRS:
        for y, alpha in ((Y, 0.1), (targets, noises)):
            ours = GaussianProcessRegressor(mine, alpha=alpha, noise=0.0, optimizer=None, normalize_y=normalize).fit(
                X, y
            )
            peer = SklearnRegressor(theirs, alpha=alpha, optimizer=None, normalize_y=normalize).fit(X, y)
            assert_allclose(ours.log_marginal_likelihood_value_, peer.log_marginal_likelihood_value_, rtol=1e-8)
            for what in ("return_std", "return_cov"):
                for a, b in zip(ours.predict(NEW, **{what: True}), peer.predict(NEW, **{what: True}), strict=True):
                    assert_allclose(a, b, rtol=1e-8, atol=1e-9)
            assert_allclose(ours.predict(NEW), peer.predict(NEW), rtol=1e-8, atol=1e-9)
            _, gradient = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
            if len(mine.theta) == len(peer.kernel_.theta):
                mine_too = ours.log_marginal_likelihood(ours.theta_, True)[1]
                assert_allclose(np.sort(mine_too), np.sort(gradient), rtol=1e-7, atol=1e-7)  # in another order


def test_the_likelihood_found_is_no_worse():
    rng = np.random.default_rng(2)
    for trial in range(6):
        n = int(rng.integers(40, 90))
        rows = rng.uniform(-2, 2, size=(n, 2))
        y = np.sin(3 * rows[:, 0]) * (trial % 3) + rows[:, 1] ** 2 + 0.3 * rng.normal(size=n)
        mine = GaussianProcessRegressor(Scaled(Gaussian((1.0, 1.0))), noise=1.0, noise_bounds=(1e-5, 1e5)).fit(rows, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = SklearnRegressor(sk.ConstantKernel(1.0) * sk.RBF([1.0, 1.0]) + sk.WhiteKernel(1.0), alpha=0.0)
            theirs.fit(rows, y)
        assert mine.log_marginal_likelihood_value_ >= theirs.log_marginal_likelihood_value_ - 1e-3
        assert mine.certificate_.holds
        slope = mine.log_marginal_likelihood(mine.theta_, eval_gradient=True)[1]
        inside = (mine.theta_ > np.log(1e-5) + 1e-9) & (mine.theta_ < np.log(1e5) - 1e-9)
        assert np.abs(slope[inside]).max(initial=0.0) <= 1e-5 * n / 2  # what the certificate says is true


def test_restarts_find_the_better_optimum():
    """The classical two optima: noise, or structure."""
    rng = np.random.default_rng(5)
    rows = np.sort(rng.uniform(0, 5, 20))[:, None]
    y = 0.5 * np.sin(3 * rows[:, 0]) + 0.1 * rng.normal(size=20)
    kernel = Scaled(Gaussian(100.0, bounds={"length_scale": (1e-2, 1e3)}), 1.0)
    one = GaussianProcessRegressor(kernel, noise=1.0, noise_bounds=(1e-5, 10.0)).fit(rows, y)
    many = GaussianProcessRegressor(
        kernel, noise=1.0, noise_bounds=(1e-5, 10.0), n_restarts_optimizer=4, random_state=0
    ).fit(rows, y)
    assert many.log_marginal_likelihood_value_ > one.log_marginal_likelihood_value_ + 1
    assert len(set(many.history_.start)) == 5
    again = GaussianProcessRegressor(
        kernel, noise=1.0, noise_bounds=(1e-5, 10.0), n_restarts_optimizer=4, random_state=0
    ).fit(rows, y)
    assert np.array_equal(many.theta_, again.theta_)
    for optimizer in (
        "fmin_l_bfgs_b",
        lambda f, x, b: (
            __import__("scipy.optimize").optimize.minimize(f, x, jac=True, bounds=b, method="L-BFGS-B", tol=1e-12).x,
            0.0,
        ),
    ):
        other = GaussianProcessRegressor(
            kernel.with_theta(many.theta_[:2]), noise=0.01, noise_bounds=(1e-5, 10.0), optimizer=optimizer, tol=1e-3
        ).fit(rows, y)
        assert other.log_marginal_likelihood_value_ == pytest.approx(many.log_marginal_likelihood_value_, abs=1e-3)


@pytest.mark.slow
def test_a_rehearsal_on_some_rows_ends_at_the_same_optimum():
    rng = np.random.default_rng(3)
    rows = rng.uniform(-2, 2, size=(1100, 2))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 + 0.2 * rng.normal(size=1100)
    kernel = Scaled(Gaussian((1.0, 1.0)), 1.0)
    model = GaussianProcessRegressor(kernel, noise=0.5, random_state=0, method="exact").fit(rows, y)
    _, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    assert model.certificate_.holds
    assert np.abs(gradient).max() <= 1e-5 * 550
    assert model.n_evaluations_ <= 15
    assert model.noise_variance_ == pytest.approx(0.04, rel=0.15)


@pytest.mark.parametrize("mean", ["zero", "linear"])
def test_leave_one_out_is_what_refits_give(mean):
    rows = np.vstack([X[:14], X[:3], X[:1]])  # some rows come twice and three times
    y = np.concatenate([Y[:14], Y[20:24]])
    weight = np.concatenate([np.ones(12), [2.0, 3.0], np.ones(4)])
    options = {"kernel": 2.0 * Gaussian(1.2), "noise": 0.1, "mean": mean, "optimizer": None, "alpha": 0.01}
    model = GaussianProcessRegressor(**options).fit(rows, y, weight)
    assert len(model.X_fit_) == 14
    found = model.leave_one_out()
    density = np.empty(18)
    for i in range(18):
        keep = np.arange(18) != i
        part = GaussianProcessRegressor(**options).fit(rows[keep], y[keep], weight[keep])
        m, s = part.predict(rows[[i]], return_std=True)
        std = np.sqrt(s[0] ** 2 + 0.11 / weight[i])
        assert found.mean[i] == pytest.approx(m[0], rel=1e-7, abs=1e-9)
        assert found.std[i] == pytest.approx(std, rel=1e-7)
        density[i] = scipy.stats.norm.logpdf(y[i], m[0], std)
    assert_allclose(found.log_density, density, rtol=1e-6, atol=1e-7)
    assert found.log_predictive == pytest.approx(density.sum())


@settings(max_examples=12)
@given(st.integers(0, 10_000))
def test_weights_are_repetitions(seed):
    """In everything, the hyper-parameters that are learnt and the likelihood among it; and zero weight is absence."""
    rng = np.random.default_rng(seed)
    rows, weight = rng.normal(size=(14, 2)), rng.integers(0, 4, 14)
    weight[:3] = 2
    y = np.column_stack([np.sin(rows[:, 0]), rows[:, 1]]) + 0.3 * rng.normal(size=(14, 2))
    repeated = np.repeat(np.arange(14), weight)
    kernel = Scaled(Gaussian(1.0, bounds={"length_scale": (0.1, 10.0)}), 1.0, bounds={"variance": (0.01, 100.0)})
    for options in ({}, {"mean": "constant", "optimizer": None}):
        weighted = GaussianProcessRegressor(kernel, noise=0.5, **options).fit(rows, y, weight)
        longer = GaussianProcessRegressor(kernel, noise=0.5, **options).fit(rows[repeated], y[repeated])
        assert weighted.log_marginal_likelihood_value_ == pytest.approx(longer.log_marginal_likelihood_value_, rel=1e-8)
        for a, b in zip(weighted.predict(NEW[:, :2], True), longer.predict(NEW[:, :2], True), strict=True):
            assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_repeated_row_has_the_likelihood_of_the_joint_normal():
    rows, y = np.vstack([X[:6], X[:2], X[:1]]), Y[:9]
    model = GaussianProcessRegressor(2.0 * Gaussian(1.1), noise=0.2, optimizer=None).fit(rows, y)
    S = 2.0 * Gaussian(1.1)(rows) + 0.2 * np.eye(9)
    expected = scipy.stats.multivariate_normal(np.zeros(9), S).logpdf(y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-10)
    posterior = (2.0 * Gaussian(1.1)(NEW, rows)) @ np.linalg.solve(S, y)
    assert_allclose(model.predict(NEW), posterior, rtol=1e-9)


def test_restricted_likelihood_of_a_basis():
    """Flat prior: the limit of a very wide normal prior on beta, but for a constant of its width."""
    H = np.column_stack([np.ones(50), X])
    wide = 1e7
    model = GaussianProcessRegressor(
        Gaussian(1.0), noise=0.1, mean=lambda rows: np.column_stack([np.ones(len(rows)), rows]), optimizer=None
    ).fit(X, Y)
    S = Gaussian(1.0)(X) + 0.1 * np.eye(50) + wide * H @ H.T
    normal = -0.5 * (Y @ np.linalg.solve(S, Y) + np.linalg.slogdet(2 * np.pi * S)[1])
    limit = normal + 2 * np.log(2 * np.pi * wide)
    assert model.log_marginal_likelihood_value_ == pytest.approx(limit, abs=1e-4)
    K = Gaussian(1.0)(NEW, X) + wide * np.column_stack([np.ones(12), NEW]) @ H.T
    mean, std = model.predict(NEW, return_std=True)
    assert_allclose(mean, K @ np.linalg.solve(S, Y), rtol=1e-4, atol=1e-5)
    prior = 1 + wide * (1 + (NEW**2).sum(axis=1))
    assert_allclose(std**2, prior - np.einsum("ij,ji->i", K, np.linalg.solve(S, K.T)), rtol=2e-2, atol=1e-3)
    same = GaussianProcessRegressor(Gaussian(1.0), noise=0.1, mean="linear", optimizer=None).fit(X, Y)
    assert_allclose(same.predict(NEW), mean, rtol=1e-7)


def test_mean_functions_that_are_given():
    line = LinearRegression().fit(X, Y)
    for mean in (line, lambda rows: line.predict(rows)):
        for normalize in (False, True):
            model = GaussianProcessRegressor(Gaussian(1.0), noise=0.1, mean=mean, optimizer=None, normalize_y=normalize)
            model.fit(X, Y)
            rest = GaussianProcessRegressor(Gaussian(1.0), noise=0.1, optimizer=None, normalize_y=normalize)
            rest.fit(X, Y - line.predict(X))
            assert_allclose(model.predict(NEW), rest.predict(NEW) + line.predict(NEW), rtol=1e-9)
            assert_allclose(model.leave_one_out().mean, rest.leave_one_out().mean + line.predict(X), rtol=1e-9)


@pytest.mark.slow
def test_intervals_cover():
    """Functions drawn from the prior: the intervals of f and of y hold what they say, at every level."""
    rng = np.random.default_rng(7)
    rows, new = np.linspace(0, 6, 25)[:, None], rng.uniform(0, 6, size=(20, 1))
    kernel = Gaussian(1.0)
    both = np.vstack([rows, new])
    L = np.linalg.cholesky(kernel(both) + 1e-10 * np.eye(45))
    model = GaussianProcessRegressor(kernel, noise=0.09, optimizer=None)
    hits = {(level, noise): [] for level in (0.5, 0.9) for noise in (False, True)}
    for _ in range(100):
        f = L @ rng.normal(size=45)
        y = f + 0.3 * rng.normal(size=45)
        model.fit(rows, y[:25])
        for (level, noise), found in hits.items():
            truth = y[25:] if noise else f[25:]
            low, high = model.predict(new, return_interval=True, level=level, include_noise=noise)[1].T
            found.append(((low <= truth) & (truth <= high)).mean())
    for (level, _), found in hits.items():
        assert np.mean(found) == pytest.approx(level, abs=4 * np.std(found) / np.sqrt(100))


def test_samples_have_the_moments_of_the_posterior():
    model = GaussianProcessRegressor(2.0 * Gaussian(1.0), noise=0.1, optimizer=None).fit(X, np.column_stack([Y, 2 * Y]))
    mean, covariance = model.predict(NEW, return_cov=True)
    drawn = model.sample_y(NEW, 4000, random_state=1)
    assert drawn.shape == (12, 2, 4000)
    assert np.array_equal(drawn, model.sample_y(NEW, 4000, random_state=1))
    assert_allclose(drawn.mean(axis=2), mean, atol=5 * np.sqrt(covariance.max() / 4000))
    assert_allclose(np.cov(drawn[:, 0]), covariance[:, :, 0], atol=0.15 * covariance.max())
    noisy = model.sample_y(NEW, 4000, random_state=1, include_noise=True)
    assert_allclose(noisy.var(axis=2)[:, 0], np.diagonal(covariance[:, :, 0]) + 0.1, rtol=0.15)


# ------------------------------------------------------------------- trouble


def test_ill_conditioned_cases_end_with_a_stated_jitter():
    """200 matrices that are singular to working precision: equal rows, smooth kernels, many rows, no noise."""
    rng = np.random.default_rng(8)
    stated = 0
    for trial in range(200):
        n = int(rng.integers(3, 60))
        rows = rng.uniform(size=(n, int(rng.integers(1, 3)))) * 10.0 ** rng.integers(-6, 1)
        if trial % 3 == 0:
            rows = np.vstack([rows, rows[: n // 2]])
        y = np.sin(rows.sum(axis=1)) + (trial % 2) * 0.1 * rng.normal(size=len(rows))
        kernel = [Gaussian(5.0), 1e6 * Gaussian(50.0), Polynomial(3), Linear(), Matern(1e4, nu=2.5), Constant(3.0)][
            trial % 6
        ]
        optimizer = "bfgs" if trial % 5 == 0 and trial % 6 < 2 else None
        model = GaussianProcessRegressor(kernel, noise=0.0, optimizer=optimizer, max_iter=4)
        with warnings.catch_warnings(record=True) as said, ep.config(on_nonconvergence="ignore"):
            warnings.simplefilter("always")
            model.fit(rows, y)
        told = [w for w in said if issubclass(w.category, JitterWarning)]
        assert bool(told) == (model.jitter_ > 0)
        if told:
            stated += 1
            assert f"jitter_={model.jitter_:.2e}" in str(told[0].message)
            assert f"{model.jitter_:.1e} was added" in model.certificate_.meaning
            assert model.jitter_ <= 1e-4 * float(np.mean(kernel.diagonal(rows))) + 1e-300
        assert np.isfinite(model.predict(rows, return_std=True)).all()
        assert model._backward_error_ < 1e-10
    assert stated > 100


def test_the_jitter_is_the_smallest():
    rows = np.linspace(0, 1, 40)[:, None]
    model = GaussianProcessRegressor(Gaussian(2.0), noise=0.0, optimizer=None)
    with pytest.warns(JitterWarning, match="not positive definite"):
        model.fit(rows, np.sin(rows[:, 0]))
    K = Gaussian(2.0)(model.X_fit_)
    np.linalg.cholesky(K + 10 * model.jitter_ * np.eye(40))  # LAPACK's own order of rounding is another
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K + model.jitter_ / 10 * np.eye(40))
    assert_allclose(model.predict(rows), np.sin(rows[:, 0]), atol=1e-6)
    # equal rows that say different things: with too little jitter nothing but rounding would be left
    with pytest.warns(JitterWarning):
        model.fit(np.vstack([X[:10], X[:10]]), np.concatenate([Y[:10], Y[:10] + 1]))
    assert_allclose(model.predict(X[:10]), Y[:10] + 0.5, atol=1e-4)


def test_a_kernel_that_is_none():
    matrix = -np.eye(6)
    with pytest.raises(ConvergenceError, match="not positive semi-definite"):
        GaussianProcessRegressor("precomputed", noise=1e-3, noise_bounds="fixed").fit(matrix, np.arange(6.0))


GPR = GaussianProcessRegressor
BAD = {
    "NaN": (lambda: GPR().fit([[np.nan], [1.0]], [1.0, 2.0]), DataError, "NaN"),
    "infinite y": (lambda: GPR().fit([[0.0], [1.0]], [1.0, np.inf]), DataError, "y"),
    "bounds upside down": (
        lambda: GPR(noise_bounds=(2.0, 1.0)).fit(X, Y),
        ParameterError,
        "noise_bounds=.*low <= high",
    ),
    "bounds of zero": (lambda: GPR(noise_bounds=(0.0, 1.0)).fit(X, Y), ParameterError, "noise_bounds"),
    "bounds of three": (lambda: GPR(noise_bounds=(1, 2, 3)).fit(X, Y), ParameterError, "noise_bounds"),
    "negative alpha": (lambda: GPR(alpha=-1.0).fit(X, Y), ParameterError, "alpha"),
    "alpha of wrong length": (lambda: GPR(alpha=np.ones(3)).fit(X, Y), DataError, "alpha.*50"),
    "alpha with NaN": (lambda: GPR(alpha=np.full(50, np.nan)).fit(X, Y), ParameterError, "alpha"),
    "no such mean": (lambda: GPR(mean="line").fit(X, Y), ParameterError, "did you mean 'linear'"),
    "mean of wrong type": (lambda: GPR(mean=3).fit(X, Y), ParameterTypeError, "mean=3"),
    "mean of wrong shape": (lambda: GPR(mean=lambda r: np.ones((2, 2))).fit(X, Y), DataError, "mean"),
    "mean of NaN": (lambda: GPR(mean=lambda r: r[:, 0] * np.nan).fit(X, Y), DataError, "mean.*NaN"),
    "more columns than rows": (lambda: GPR(mean="linear").fit(X[:3], Y[:3]), DataError, "mean: .* columns for 3"),
    "scales of other columns": (lambda: GPR(Gaussian((1.0, 2.0))).fit(X, Y), DataError, "length_scale"),
    "level": (lambda: GPR().fit(X, Y).predict(X, return_interval=True, level=1.0), ParameterError, "level"),
    "theta": (lambda: GPR().fit(X, Y).log_marginal_likelihood([1.0]), ParameterError, "theta"),
    "no rows": (lambda: GPR().fit(np.empty((0, 2)), []), DataError, "0 sample"),
    "no noise, inducing": (lambda: GPR(noise=0.0, method="inducing").fit(X, Y), DataError, "noise"),
    "overflow": (lambda: GPR(Polynomial(3)).fit(X * 1e150, Y), DataError, "not finite|overflow"),
}


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
@pytest.mark.parametrize("kind", BAD)
def test_bad_input(kind):
    call, error, words = BAD[kind]
    with pytest.raises(error, match=words):
        call()


def test_small_and_degenerate_data():
    one = GaussianProcessRegressor().fit([[1.0]], [3.0])
    assert np.isfinite(one.predict([[1.0], [5.0]], return_std=True)).all()
    constant = GaussianProcessRegressor(normalize_y=True).fit(X, np.full(50, 7.0))
    assert_allclose(constant.predict(NEW), 7.0)
    flat = GaussianProcessRegressor().fit(np.ones((5, 2)), [1.0, 2.0, 3.0, 4.0, 5.0])
    assert flat.predict([[1.0, 1.0]]) == pytest.approx(3.0, abs=0.5)
    assert len(flat.X_fit_) == 1
    far = GaussianProcessRegressor(random_state=0).fit(X * 1e8 + 1e10, Y * 1e-9)
    near = GaussianProcessRegressor(random_state=0).fit(X, Y)
    assert_allclose(far.predict(NEW * 1e8 + 1e10), 1e-9 * near.predict(NEW), rtol=1e-3, atol=1e-12)


# ------------------------------------------------------------------- forms of data


def test_float32_and_sparse_and_strings_and_precomputed(tmp_path):
    model = GaussianProcessRegressor(2.0 * Gaussian(1.0), noise=0.1, optimizer=None).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    single = GaussianProcessRegressor(2.0 * Gaussian(1.0), noise=0.1, optimizer=None).fit(X.astype(np.float32), Y)
    for a, b in zip(single.predict(NEW.astype(np.float32), True, True), model.predict(NEW, True, True), strict=True):
        assert a.dtype == np.float32
        assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    sparse = GaussianProcessRegressor(2.0 * Gaussian(1.0), noise=0.1, optimizer=None).fit(sp.csr_array(X), Y)
    for a, b in zip(sparse.predict(sp.csr_array(NEW), True), (mean, std), strict=True):
        assert_allclose(a, b, rtol=1e-8)
    assert sp.issparse(sparse.X_fit_)
    given = GaussianProcessRegressor("precomputed", noise=0.1, noise_bounds="fixed").fit(2.0 * Gaussian(1.0)(X), Y)
    assert_allclose(given.predict(2.0 * Gaussian(1.0)(NEW, X)), mean, rtol=1e-8)
    weight = np.arange(50) % 3
    given.fit(2.0 * Gaussian(1.0)(X), Y, weight)  # rows without weight have their columns still
    fewer = GaussianProcessRegressor(2.0 * Gaussian(1.0), noise=0.1, optimizer=None).fit(X, Y, weight)
    assert_allclose(given.predict(2.0 * Gaussian(1.0)(NEW, X)), fewer.predict(NEW), rtol=1e-8)
    words = ["gattaca", "gatta", "cattaca", "tagaca", "cagat", "aaaa"]
    text = GaussianProcessRegressor(Spectrum(2).normalized(), noise=0.1).fit(words, [1.0, 1.2, 0.9, 0.3, 0.5, 0.0])
    assert text.predict(["gattac"], return_std=True)[0][0] > 0.6
    learnt = GaussianProcessRegressor(mean="linear").fit(X, Y)
    learnt.save(tmp_path / "gp.epi")
    loaded = ep.load(tmp_path / "gp.epi")
    for a, b in zip(loaded.predict(NEW, True, True), learnt.predict(NEW, True, True), strict=True):
        assert np.array_equal(a, b)
    assert loaded.leave_one_out().log_predictive == learnt.leave_one_out().log_predictive
    assert loaded.log_marginal_likelihood(loaded.theta_) == pytest.approx(learnt.log_marginal_likelihood_value_)


def test_any_number_of_threads_and_any_order_of_rows():
    rows = np.random.default_rng(9).normal(size=(300, 3))
    y = np.sin(rows[:, 0])
    one = GaussianProcessRegressor(noise=0.1, n_jobs=1).fit(rows, y)
    three = GaussianProcessRegressor(noise=0.1, n_jobs=3).fit(rows, y)
    order = np.random.default_rng(1).permutation(300)
    moved = GaussianProcessRegressor(noise=0.1).fit(rows[order], y[order])
    assert np.array_equal(one.theta_, three.theta_)
    assert np.array_equal(one.predict(NEW), three.predict(NEW))
    assert_allclose(moved.theta_, one.theta_, rtol=1e-6)


@pytest.mark.serial
def test_memory_stays_below_four_matrices():
    n = 900
    rows = np.random.default_rng(10).normal(size=(n, 4))
    model = GaussianProcessRegressor(Scaled(Gaussian((1.0, 1.0, 1.0, 1.0))), noise=0.1, max_iter=1)
    y = np.sin(rows[:, 0])
    tracemalloc.start()
    with ep.config(on_nonconvergence="ignore"):
        model.fit(rows, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 8 * n * n
    with ep.config(memory_limit=1 << 24), pytest.raises(MemoryBudgetError, match="GaussianProcessRegressor"):
        model.fit(rows, y)
