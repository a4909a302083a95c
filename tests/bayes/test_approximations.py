"""Laplace's approximation and variational inference: normal densities exactly, others against quadrature."""

import numpy as np
import pytest
from scipy.special import expit, gammaln

import epicycle as ep
from epicycle import bayes
from epicycle.bayes._gaussian_families import FullRank, LowRank, MeanField
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, ParameterError, ParameterTypeError


def normal_target(d=4, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    S = A @ A.T + 0.2 * np.eye(d)
    m, P = 3 * rng.normal(size=d), np.linalg.inv(S)
    log_z = 0.5 * (d * np.log(2 * np.pi) + np.linalg.slogdet(S)[1])
    return m, S, log_z, lambda u: -0.5 * (u - m) @ P @ (u - m), lambda u: -P @ (u - m), lambda u: -P


class Logistic:
    """A logistic regression of two coefficients with a normal prior, and its posterior on a grid."""

    def __init__(self, n=60, seed=1):
        rng = np.random.default_rng(seed)
        self.X = np.column_stack([np.ones(n), rng.normal(size=n)])
        self.y = (rng.random(n) < expit(self.X @ [0.5, 1.5])).astype(float)
        side = np.linspace(-4, 7, 331)
        grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
        z = grid @ self.X.T
        logs = (self.y * z - np.logaddexp(0, z)).sum(axis=-1) - (grid**2).sum(axis=-1) / 8
        area = (side[1] - side[0]) ** 2
        self.log_z = np.log(np.exp(logs - logs.max()).sum() * area) + logs.max()
        weight = np.exp(logs - self.log_z) * area
        self.mean = np.einsum("ij,ijk->k", weight, grid)
        away = grid - self.mean
        self.covariance = np.einsum("ij,ijk,ijl->kl", weight, away, away)

    def value(self, w):
        z = self.X @ w
        return float(self.y @ z - np.logaddexp(0, z).sum() - w @ w / 8)

    def gradient(self, w):
        return self.X.T @ (self.y - expit(self.X @ w)) - w / 4


# ---------------------------------------------------------------- Laplace


@pytest.mark.parametrize("given", ["nothing", "gradient", "hessian"])
def test_laplace_is_exact_for_normal_densities(given):
    m, S, log_z, value, gradient, hessian = normal_target()
    options = {"nothing": {}, "gradient": {"gradient": gradient}, "hessian": {"gradient": gradient, "hessian": hessian}}
    fit = bayes.laplace(value, np.zeros(4), **options[given])
    np.testing.assert_allclose(fit.mode, m, atol=1e-7)
    np.testing.assert_allclose(fit.normal.covariance, S, rtol=1e-6, atol=1e-7)
    assert fit.log_evidence == pytest.approx(log_z, abs=1e-7)
    assert fit.certificate_.holds
    assert fit.certificate_.kind == "newton decrement"
    assert np.all(np.diff(fit.history_.objective) <= 1e-9)
    assert fit.psis(500, random_state=0).k_hat < 0.3
    ends = fit.interval(0.95)
    np.testing.assert_allclose(ends.mean(axis=1), m, atol=1e-6)
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * 1.959964 * np.sqrt(np.diagonal(S)), rtol=1e-5)


def test_laplace_of_a_logistic_posterior():
    model = Logistic()
    fit = bayes.laplace(model.value, [0.0, 0.0], gradient=model.gradient)
    np.testing.assert_allclose(model.gradient(fit.mode), 0, atol=1e-8)
    p = expit(model.X @ fit.mode)
    H = (model.X * (p * (1 - p))[:, None]).T @ model.X + np.eye(2) / 4
    np.testing.assert_allclose(fit.normal.covariance, np.linalg.inv(H), rtol=1e-7)
    # The posterior is skewed: mode and mean differ, the evidence is good to a few percent.
    assert np.all(np.abs(fit.mode - model.mean) < 0.3 * np.sqrt(np.diagonal(model.covariance)))
    assert fit.log_evidence == pytest.approx(model.log_z, abs=0.05)


def test_units_of_parameters_do_not_matter():
    model = Logistic()
    units = np.array([1e-4, 1e5])
    plain = bayes.laplace(model.value, [0.0, 0.0], gradient=model.gradient)
    scaled = bayes.laplace(
        lambda w: model.value(w / units), [0.0, 0.0], gradient=lambda w: model.gradient(w / units) / units
    )
    np.testing.assert_allclose(scaled.mode / units, plain.mode, rtol=1e-5)
    assert scaled.log_evidence == pytest.approx(plain.log_evidence + np.log(units).sum(), abs=1e-5)


def test_laplace_with_constraints():
    """A gamma posterior of a rate, normal on the scale of logarithms: Stirling's formula for the evidence."""
    shape, rate = 30.0, 4.0
    fit = bayes.laplace(
        lambda p: float((shape - 1) * np.log(p["rate"]) - rate * p["rate"]),
        {"rate": 1.0},
        gradient=lambda p: {"rate": (shape - 1) / p["rate"] - rate},
        constraints={"rate": bayes.Positive()},
    )
    assert fit.mode["rate"] == pytest.approx(shape / rate)  # of the density of log rate
    assert fit.normal.variance[0] == pytest.approx(1 / shape, rel=1e-6)
    exact = gammaln(shape) - shape * np.log(rate)
    assert fit.log_evidence == pytest.approx(exact, abs=1 / (12 * shape) * 1.01)
    assert fit.log_evidence < exact
    draws = fit.sample(50_000, random_state=0)["rate"]
    assert draws.shape == (50_000,)
    assert (draws > 0).all()
    # The mean of the lognormal distribution.
    assert draws.mean() == pytest.approx(shape / rate * np.exp(1 / (2 * shape)), rel=0.005)
    low, high = fit.interval(0.9)["rate"]
    assert np.mean((draws > low) & (draws < high)) == pytest.approx(0.9, abs=0.02)


def test_laplace_refuses_what_has_no_mode():
    with pytest.raises(ConvergenceError, match="curvature is not positive"):
        bayes.laplace(lambda u: -((u[0] - 1) ** 2), [0.0, 0.0])  # flat in the second
    with pytest.raises(ConvergenceError, match="curvature is not positive"):
        bayes.laplace(lambda u: float(u[0] ** 2 - u[1] ** 2), [0.0, 1.0], max_iter=3)  # a saddle


def test_a_search_cut_short_is_not_certified():
    def rosenbrock(u):
        return -((1 - u[0]) ** 2) - 100 * (u[1] - u[0] ** 2) ** 2

    fit = bayes.laplace(rosenbrock, [-1.2, 1.0])
    np.testing.assert_allclose(fit.mode, [1, 1], atol=1e-6)
    assert fit.certificate_.holds
    with pytest.warns(ConvergenceWarning, match="standard deviations away"):
        loose = bayes.laplace(rosenbrock, [-1.2, 1.0], tol=0.0)
    assert not loose.certificate_.holds


# ---------------------------------------------------------------- variational inference


@pytest.mark.parametrize("init", ["laplace", "start"])
@pytest.mark.parametrize("family", ["full-rank", "low-rank"])
def test_families_that_hold_the_density_recover_it(family, init):
    m, S, log_z, value, gradient, _ = normal_target()
    fit = bayes.variational(
        value, np.zeros(4), gradient=gradient, family=family, rank=3, init=init, random_state=0, n_draws=2000
    )
    np.testing.assert_allclose(fit.normal.mean, m, atol=1e-4)
    np.testing.assert_allclose(fit.normal.covariance, S, atol=1e-4)
    assert fit.elbo == pytest.approx(log_z, abs=1e-6)
    assert fit.log_evidence == pytest.approx(log_z, abs=1e-6)
    assert fit.certificate_.kind == "PSIS k-hat"
    assert fit.certificate_.holds
    assert fit.converged


@pytest.mark.parametrize("init", ["laplace", "start"])
def test_mean_field_of_a_normal_density(init):
    """The best independent q has the mean m and the variances 1 / P_ii; its distance is known in closed form."""
    m, S, log_z, value, gradient, _ = normal_target(3, seed=4)
    P = np.linalg.inv(S)
    with ep.config(on_nonconvergence="ignore"):
        fit = bayes.variational(value, np.zeros(3), gradient=gradient, init=init, random_state=0, n_draws=4000)
    np.testing.assert_allclose(fit.normal.mean, m, atol=0.05)
    np.testing.assert_allclose(fit.normal.variance * np.diagonal(P), 1, atol=0.04)
    best = log_z + 0.5 * (-np.log(np.diagonal(P)).sum() - np.linalg.slogdet(S)[1])
    assert abs(fit.elbo - best) < 4 * fit.elbo_error + 0.005
    assert fit.elbo < log_z


@pytest.mark.parametrize("family", ["mean-field", "full-rank", "low-rank"])
def test_logistic_posterior(family):
    model = Logistic()
    fit = bayes.variational(
        model.value, [0.0, 0.0], gradient=model.gradient, family=family, rank=1, random_state=0, n_samples=8
    )
    assert fit.elbo <= model.log_z + 4 * fit.elbo_error
    assert fit.log_evidence == pytest.approx(model.log_z, abs=0.05)
    sd = np.sqrt(np.diagonal(model.covariance))
    assert np.all(np.abs(fit.normal.mean - model.mean) < 0.1 * sd)
    if family != "mean-field":
        np.testing.assert_allclose(np.sqrt(fit.normal.variance), sd, rtol=0.1)
        assert fit.certificate_.holds
    # Reweighted draws have the moments of the posterior.
    u, _ = fit.log_ratios(20_000, random_state=5)
    weights = np.exp(fit.psis(20_000, random_state=5).log_weights)
    np.testing.assert_allclose(weights @ u, model.mean, atol=0.1 * sd.min())


def test_a_family_that_is_far_away_is_said_to_be_so():
    P = np.linalg.inv(np.array([[1.0, 0.995], [0.995, 1.0]]))
    with pytest.warns(ConvergenceWarning, match="draws of the mean-field family do not stand"):
        fit = bayes.variational(lambda u: -u @ P @ u / 2, [0.0, 0.0], gradient=lambda u: -P @ u, random_state=0)
    assert not fit.certificate_.holds
    assert fit.k_hat > 0.7


def test_trace_repetition_and_constraints():
    def run(seed, **options):
        return bayes.variational(
            lambda p: float(29 * np.log(p["rate"]) - 4 * p["rate"] - (p["shift"] ** 2).sum() / 2),
            {"rate": 1.0, "shift": np.zeros(2)},
            gradient=lambda p: {"rate": 29 / p["rate"] - 4, "shift": -p["shift"]},
            constraints={"rate": bayes.Positive()},
            random_state=seed,
            **options,
        )

    fit, again = run(3), run(3)
    assert np.array_equal(fit.history_.elbo, again.history_.elbo)
    assert np.array_equal(fit.normal.mean, again.normal.mean)
    assert fit.history_.n_iter <= 10_000
    assert np.all(np.diff(fit.history_.step) <= 0)
    exact = gammaln(30) - 30 * np.log(4) + np.log(2 * np.pi)
    assert fit.elbo <= exact + 4 * fit.elbo_error
    assert fit.log_evidence == pytest.approx(exact, abs=0.01)
    draws = fit.sample(1000, random_state=0)
    assert draws["rate"].shape == (1000,)
    assert draws["shift"].shape == (1000, 2)
    with ep.config(on_nonconvergence="ignore"):
        short = run(3, max_iter=50, n_draws=500)
    assert short.history_.n_iter == 50
    assert not short.converged


def test_without_gradients():
    model = Logistic()
    fit = bayes.variational(model.value, [0.0, 0.0], family="full-rank", random_state=0, max_iter=300, n_draws=500)
    sd = np.sqrt(np.diagonal(model.covariance))
    assert np.all(np.abs(fit.normal.mean - model.mean) < 0.2 * sd)


@pytest.mark.parametrize("family", [MeanField(3), FullRank(3), LowRank(3, 2)], ids=lambda f: type(f).__name__)
def test_reparametrised_gradients_by_differences(family):
    """d/d(parameters) of log p(v(parameters)) - log q(v) with the parameters of q held: what the estimator claims."""
    rng = np.random.default_rng(0)
    parameters = family.start(rng) + 0.3 * rng.normal(size=len(family.start(rng)))
    z = rng.normal(size=(7, family.noise_size))
    c = rng.normal(size=3)

    def log_p(v):
        return np.sin(v @ c) - (v**2).sum(axis=1)

    q = family.normal(parameters, np.zeros(3), np.ones(3))
    v = family.draw(parameters, z)
    slopes = np.cos(v @ c)[:, None] * c - 2 * v
    found = family.gradient(parameters, z, slopes + family.minus_score(parameters, z))
    expected = np.zeros(len(parameters))
    for j in range(len(parameters)):
        ends = []
        for sign in (1, -1):
            moved = parameters.copy()
            moved[j] += sign * 1e-6
            w = family.draw(moved, z)
            ends.append(np.mean(log_p(w) - q.logpdf(w)))
        expected[j] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(found, expected, atol=1e-7)
    # The draws are those of q.
    many = family.draw(parameters, rng.normal(size=(200_000, family.noise_size)))
    np.testing.assert_allclose(np.cov(many.T), q.covariance, atol=0.03 * np.abs(q.covariance).max())


def test_models_that_can_be_sampled():
    """A compiled model, one of Python functions with constraints, and the function by itself are one density."""
    data = Logistic(200)
    compiled = bayes.LogisticModel(data.X[:, 1:], data.y, prior_scale=2.0, intercept_scale=2.0)
    fit = bayes.laplace(compiled)
    plain = bayes.laplace(data.value, [0.0, 0.0], gradient=data.gradient)
    assert fit.mode["coef"] == pytest.approx(plain.mode[1], abs=1e-6)
    assert fit.mode["intercept"] == pytest.approx(plain.mode[0], abs=1e-6)
    np.testing.assert_allclose(fit.normal.covariance, plain.normal.covariance[::-1, ::-1], rtol=1e-6)
    fit = bayes.variational(compiled, family="full-rank", random_state=0)
    draws = bayes.sample(compiled, random_state=0)
    both = np.concatenate([draws["coef"].reshape(-1), draws["intercept"].reshape(-1)]).reshape(2, -1)
    np.testing.assert_allclose(fit.normal.mean, both.mean(axis=1), atol=0.05)
    np.testing.assert_allclose(fit.normal.covariance, np.cov(both), rtol=0.15, atol=0.01)
    named = bayes.Model(
        lambda rate, scale: float((scale - 1) * np.log(rate) - 4 * rate),
        {"rate": bayes.Positive()},
        gradient=lambda rate, scale: {"rate": (scale - 1) / rate - 4},
        data={"scale": 30.0},
    )
    fit = bayes.laplace(named)
    assert fit.mode["rate"] == pytest.approx(7.5)
    assert fit.log_evidence == pytest.approx(gammaln(30) - 30 * np.log(4), abs=0.003)
    assert bayes.laplace(named, {"rate": 2.0}).mode["rate"] == pytest.approx(7.5)
    with pytest.raises(ParameterError, match=r"start: expected a dict with the parameters \['rate'\]"):
        bayes.laplace(named, [1.0])
    with pytest.raises(ParameterError, match="gradient: is part of the model"):
        bayes.laplace(named, gradient=lambda rate: rate)
    with pytest.raises(ParameterError, match="start: not given"):
        bayes.laplace(lambda u: 0.0)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("run", [bayes.laplace, bayes.variational])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"log_density": 3}, ParameterTypeError, "log_density: expected a function, got int"),
        ({"log_density": None}, ParameterTypeError, "log_density: expected a function, got NoneType|None"),
        ({"log_density": lambda u: float("nan")}, DataError, "log_density: returned nan at"),
        ({"log_density": lambda u: u}, DataError, "log_density: returned ndarray; expected one number"),
        ({"log_density": lambda u: 1 / 0}, DataError, "log_density: raised ZeroDivisionError"),
        ({"log_density": lambda u: -np.inf}, DataError, "start: log_density is -inf there"),
        ({"gradient": lambda u: np.zeros(3)}, DataError, r"gradient: returned shape \(3,\); expected \(2,\)"),
        ({"gradient": lambda u: np.full(2, np.nan)}, DataError, "gradient: holds NaN"),
        ({"gradient": lambda u: u.missing}, DataError, "gradient: raised AttributeError"),
        ({"start": [np.nan, 0.0]}, ParameterError, "start: is empty or holds NaN"),
        ({"start": "ab"}, ParameterTypeError, "start: expected numbers"),
        ({"constraints": bayes.Positive(2), "start": [1.0, -1.0]}, ParameterError, "start: '' is not in the set"),
        ({"constraints": {"scale": bayes.Positive()}}, ParameterError, "constraints: 'scale' is no parameter"),
        ({"constraints": 3}, ParameterTypeError, "expected a Constraint"),
        ({"max_iter": 0}, ParameterError, "max_iter=0"),
    ],
)
def test_bad_densities(run, arguments, error, message):
    given = {"log_density": lambda u: -float(u @ u), "start": [1.0, 1.0], **arguments}
    if run is bayes.variational:
        given = {"init": "start", **given}
    with pytest.raises(error, match=message):
        run(given.pop("log_density"), given.pop("start"), **given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "diagonal"}, "family='diagonal'; expected one of"),
        ({"init": "zero"}, "init='zero'"),
        ({"family": "low-rank", "rank": 3}, "rank=3; expected at most 2"),
        ({"n_samples": 1}, "n_samples=1"),
        ({"step": 0.0}, "step=0"),
        ({"n_draws": 10}, "n_draws=10"),
    ],
)
def test_bad_options(arguments, message):
    with pytest.raises(ParameterError, match=message):
        bayes.variational(lambda u: -float(u @ u), [1.0, 1.0], **arguments)


def test_a_wrong_gradient_is_noticed():
    _, _, _, value, gradient, _ = normal_target()
    with pytest.warns(ConvergenceWarning, match="standard deviations away"):
        fit = bayes.laplace(value, np.zeros(4), gradient=lambda u: gradient(u) + 0.5)
    assert not fit.certificate_.holds


def test_draws_off_the_domain():
    with pytest.raises(DataError, match="is -inf at a draw; give constraints"):
        bayes.variational(
            lambda u: -float(u[0]) if u[0] > 0 else -np.inf,
            [0.5],
            gradient=lambda u: np.array([-1.0]),
            init="start",
            random_state=0,
        )
