"""Eight reference posteriors: moments and quantiles within Monte Carlo error of closed forms or quadrature."""

import numpy as np
import pytest
from posterior_moments import LIMIT, by_grid, scores, weighted_quantile
from scipy.special import log_ndtr, ndtri
from scipy.stats import norm

import epicycle as ep
from epicycle import bayes

SEEDS = (0, 1, 2)
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def check(model, truth, method="nuts", **options):
    """truth: (name, index) -> moments. All seeds and quantities together have to look like standard normal numbers."""
    found = []
    for seed in SEEDS:
        with ep.config(on_nonconvergence="ignore"):
            draws = bayes.sample(model, method, random_state=seed, **options)
        assert draws.certificate_.value < 1.02
        for (name, index), known in truth.items():
            found.append(scores(draws[name][(..., *index)], **known))
    z = np.concatenate(found)
    assert np.abs(z).max() < LIMIT
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5
    return z


def eight_schools_truth():
    """Given tau everything is normal: quadrature over tau alone."""
    tau = np.exp(np.linspace(-12, 7, 20_001))
    variance = ERRORS**2 + tau[:, None] ** 2
    precision = 1 / 25 + (1 / variance).sum(axis=1)
    centre = (EFFECTS / variance).sum(axis=1) / precision  # of mu given tau
    log_weight = -np.log1p((tau / 5) ** 2) + np.log(tau) - np.log(variance).sum(axis=1) / 2 - np.log(precision) / 2
    log_weight += centre**2 * precision / 2 - (EFFECTS**2 / variance).sum(axis=1) / 2
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    mu = w @ centre
    sd_mu = np.sqrt(w @ (1 / precision + centre**2) - mu**2)
    # theta_j given tau and mu has the mean (1 - b) mu + b y_j with b = tau^2 / (tau^2 + s_j^2) and the variance b s_j^2
    b = tau[:, None] ** 2 / variance
    of_theta = (1 - b) * centre[:, None] + b * EFFECTS
    var_theta = b * ERRORS**2 + (1 - b) ** 2 / precision[:, None]
    theta = w @ of_theta
    sd_theta = np.sqrt(w @ (var_theta + of_theta**2) - theta**2)
    quantiles = {p: weighted_quantile(tau, w, p) for p in (0.1, 0.5, 0.9)}
    sd_tau = np.sqrt(w @ tau**2 - (w @ tau) ** 2)
    return {
        ("mu", ()): {"mean": mu, "sd": sd_mu},
        ("tau", ()): {"mean": w @ tau, "sd": sd_tau, "quantiles": quantiles},
        **{("theta", (j,)): {"mean": theta[j], "sd": sd_theta[j]} for j in range(8)},
    }


@pytest.mark.parametrize("method", ["nuts", "hmc", "slice"])
def test_eight_schools(method):
    model = bayes.HierarchicalModel(EFFECTS, ERRORS)
    check(model, eight_schools_truth(), method, draws=2500, target_accept=0.95)


def small_regression():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, 2))
    return rng, X


@pytest.mark.parametrize("metric", ["diagonal", "dense"])
def test_logistic_regression(metric):
    rng, X = small_regression()
    y = (rng.random(60) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))).astype(float)
    signed = (2 * y - 1)[:, None] * X

    def log_density(a, b):
        z = a[..., None] * signed[:, 0] + b[..., None] * signed[:, 1]
        return -np.logaddexp(0, -z).sum(axis=-1) - (a**2 + b**2) / (2 * 1.5**2)

    truth = by_grid(log_density, np.linspace(-2, 4, 301), np.linspace(-3.5, 2.5, 301))
    model = bayes.LogisticModel(X, y, prior_scale=1.5, intercept_scale=None)
    check(model, {("coef", (j,)): truth[j] for j in range(2)}, metric=metric, draws=2000)


def test_poisson_regression_with_exposure():
    rng, X = small_regression()
    exposure = rng.uniform(0.5, 4, 60)
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0] + 0.3))

    def log_density(slope, intercept):
        z = slope[..., None] * X[:, 0] + intercept[..., None]
        prior = (slope / 2.5) ** 2 / 2 + (intercept / 10) ** 2 / 2
        return (y * z - exposure * np.exp(z)).sum(axis=-1) - prior

    truth = by_grid(log_density, np.linspace(-0.3, 1.3, 301), np.linspace(-0.6, 1.2, 301))
    model = bayes.PoissonModel(X[:, :1], y, exposure)
    check(model, {("coef", (0,)): truth[0], ("intercept", ()): truth[1]}, draws=2000)


def linear_truth(X, y, scale, shape, rate):
    """Given sigma the coefficients are normal: quadrature over log sigma."""
    A = np.column_stack([X, np.ones(len(y))])
    t = np.linspace(-3, 3, 4001)
    means, variances, log_weight = [], [], []
    for sigma in np.exp(t):
        H = A.T @ A / sigma**2 + np.eye(A.shape[1]) / scale**2
        C = np.linalg.inv(H)
        m = C @ (A.T @ y) / sigma**2
        means.append(m)
        variances.append(np.diag(C))
        log_evidence = -len(y) * np.log(sigma) - y @ y / (2 * sigma**2) + m @ H @ m / 2 - np.linalg.slogdet(H)[1] / 2
        log_weight.append(log_evidence - 2 * shape * np.log(sigma) - rate / sigma**2)
    w = np.exp(np.array(log_weight) - max(log_weight))
    w /= w.sum()
    means, variances, sigma = np.array(means), np.array(variances), np.exp(t)
    mean = w @ means
    sd = np.sqrt(w @ (variances + means**2) - mean**2)
    quantiles = {p: weighted_quantile(sigma, w, p) for p in (0.1, 0.5, 0.9)}
    sd_sigma = np.sqrt(w @ sigma**2 - (w @ sigma) ** 2)
    k = X.shape[1]
    return {
        **{("coef", (j,)): {"mean": mean[j], "sd": sd[j]} for j in range(k)},
        ("intercept", ()): {"mean": mean[k], "sd": sd[k]},
        ("sigma", ()): {"mean": w @ sigma, "sd": sd_sigma, "quantiles": quantiles},
    }


@pytest.mark.parametrize("method", ["nuts", "hmc", "metropolis", "slice", "gibbs"])
def test_linear_regression_with_unknown_noise(method):
    rng, X = small_regression()
    X, y = X[:15], X[:15] @ [1.0, 2.0] + 0.5 + rng.normal(size=15)
    model = bayes.LinearModel(X, y, prior_scale=3.0, intercept_scale=3.0, shape=2.0, rate=1.5)
    options = {"metropolis": {"thin": 20, "warmup": 3000}, "gibbs": {"draws": 600}}.get(method, {})
    check(model, linear_truth(X, y, 3.0, 2.0, 1.5), method, **{"draws": 1500, **options})


@pytest.mark.parametrize("method", ["nuts", "metropolis"])
def test_normal_with_unknown_variance(method):
    y = np.array([1.1, 2.3, 1.7, 0.4, 2.9])

    def log_density(mu, t):
        squares = ((y - mu[..., None]) ** 2).sum(axis=-1)
        return -(5 + 2) * t - (squares / 2 + 1.0) * np.exp(-2 * t) - (mu / 10) ** 2 / 2

    mu, t = by_grid(log_density, np.linspace(-6, 9, 1201), np.linspace(-1.7, 3.5, 801))
    options = {"thin": 15, "warmup": 3000} if method == "metropolis" else {}
    quantiles = {p: np.exp(value) for p, value in t["quantiles"].items()}
    model = bayes.NormalVarianceModel(y)
    check(model, {("mu", ()): mu, ("sigma", ()): {"quantiles": quantiles}}, method, draws=2500, **options)


def test_funnel_in_its_non_centred_form():
    """v ~ N(0, 3^2), x = exp(v / 2) z: x <= q has the probability E[Phi(q exp(-v / 2))]."""

    def log_density(v, z):
        return -(v**2) / 18 - z @ z / 2, (-v / 9, -z)

    def derived(v, z):
        return {"x": np.exp(v / 2) * z[0]}

    model = bayes.Model(log_density, {"v": (), "z": 2}, gradient=True, derived=derived)
    nodes = ndtri((np.arange(20_000) + 0.5) / 20_000)
    at = {float(np.mean(np.exp(log_ndtr(q * np.exp(-3 * nodes / 2))))): q for q in (-2.0, 0.1, 1.0)}
    truth = {
        ("v", ()): {"mean": 0.0, "sd": 3.0, "quantiles": {0.1: 3 * norm.ppf(0.1), 0.9: 3 * norm.ppf(0.9)}},
        ("z", (1,)): {"mean": 0.0, "sd": 1.0},
        ("x", ()): {"quantiles": at},
    }
    check(model, truth, draws=600, warmup=300, chains=2)


def test_ill_conditioned_normal_in_fifty_dimensions():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    covariance = (Q * np.logspace(-2, 2, 50)) @ Q.T
    mean = rng.normal(size=50)
    model = bayes.NormalModel(mean, covariance)
    truth = {("x", (j,)): {"mean": mean[j], "sd": np.sqrt(covariance[j, j])} for j in range(0, 50, 7)}
    check(model, truth, metric="dense", draws=1000)


def test_mixture_with_known_weights():
    """0.3 N(-1.5, 0.8^2) + 0.7 N(1, 0.6^2)."""
    weight, centre, sd = np.array([0.3, 0.7]), np.array([-1.5, 1.0]), np.array([0.8, 0.6])

    def log_density(x):
        parts = np.log(weight / sd) - ((x - centre) / sd) ** 2 / 2
        top = parts.max()
        share = np.exp(parts - top)
        return top + np.log(share.sum()), -(share / share.sum()) @ ((x - centre) / sd**2)

    mean = weight @ centre
    spread = np.sqrt(weight @ (sd**2 + centre**2) - mean**2)
    levels = {float(weight @ norm.cdf(q, centre, sd)): q for q in (-2.0, -0.5, 0.5, 1.5)}
    model = bayes.Model(log_density, {"x": ()}, gradient=True)
    check(model, {("x", ()): {"mean": mean, "sd": spread, "quantiles": levels}}, draws=1000, warmup=500)
