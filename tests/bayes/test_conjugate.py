"""Conjugate models against numerical integration, scipy.stats, each other, and simulation."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.integrate import dblquad, quad
from scipy.special import gammaln, logsumexp

import epicycle as ep
from epicycle.bayes import conjugate as cj
from epicycle.exceptions import DataError, DataTypeError, ParameterError, ParameterTypeError

RNG = np.random.default_rng(7)
NUMBERS = RNG.normal(1.0, 1.5, 9)
ROWS = RNG.normal([1.0, -2.0], [1.0, 0.5], (8, 2))
COUNTS = RNG.multinomial(6, [0.2, 0.3, 0.5], 5)
PSI = np.array([[2.0, 0.3], [0.3, 1.0]])

#: name -> (prior, data, log-likelihood of one parameter, support): each with one unknown number.
SCALAR = {
    "bernoulli": (
        cj.BetaBernoulli(1.5, 2.5),
        np.array([1, 0, 1, 1, 0, 1]),
        lambda t, x: stats.bernoulli.logpmf(x, t).sum(),
        (0, 1),
    ),
    "binomial": (
        cj.BetaBinomial(0.7, 1.2),
        np.array([[3, 10], [4, 5], [0, 2]]),
        lambda t, x: stats.binom.logpmf(x[:, 0], x[:, 1], t).sum(),
        (0, 1),
    ),
    "poisson": (
        cj.GammaPoisson(2.0, 1.5),
        np.array([[2, 0.5], [0, 1.0], [7, 3.0]]),
        lambda t, x: stats.poisson.logpmf(x[:, 0], t * x[:, 1]).sum(),
        (0, np.inf),
    ),
    "exponential": (
        cj.GammaExponential(2.0, 3.0),
        np.array([0.3, 2.0, 1.1]),
        lambda t, x: stats.expon.logpdf(x, scale=1 / t).sum(),
        (0, np.inf),
    ),
    "normal": (
        cj.NormalKnownVariance(0.5, 4.0, 2.0),
        NUMBERS,
        lambda t, x: stats.norm.logpdf(x, t, np.sqrt(2.0)).sum(),
        (-np.inf, np.inf),
    ),
}
#: name -> (model, data) of all models.
ALL = {
    **{name: case[:2] for name, case in SCALAR.items()},
    "categorical": (cj.DirichletCategorical([0.5, 1.5, 2.0]), np.array([0, 2, 2, 1, 2])),
    "multinomial": (cj.DirichletMultinomial([0.5, 1.5, 2.0]), COUNTS),
    "normal-inverse-gamma": (cj.NormalInverseGamma(0.5, 0.7, 2.5, 1.5), NUMBERS),
    "normal-inverse-wishart": (cj.NormalInverseWishart([0.5, -1.0], 0.8, 7.5, PSI), ROWS),
}


def parameters(model):
    return np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in vars(model).values() if v is not None])


def integral(function, support, inside):
    """Over the support, split around where the integrand is large."""
    low, high = support
    cuts = [low, *np.clip(inside, low, high), high]
    return sum(quad(function, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairwise(cuts) if a < b)


# ---------------------------------------------------------------- closed forms are integrals


@pytest.mark.parametrize("name", SCALAR)
def test_one_number_by_quadrature(name):
    prior, data, log_likelihood, support = SCALAR[name]
    posterior = prior.update(data)
    bulk = posterior.distribution().quantile([1e-9, 1 - 1e-9])

    def joint(t):
        return np.exp(log_likelihood(t, data) + prior.logpdf(t))

    evidence = integral(joint, support, bulk)
    assert prior.log_evidence(data) == pytest.approx(np.log(evidence), rel=1e-9)
    for t in posterior.distribution().quantile([0.1, 0.5, 0.8]):
        assert posterior.pdf(t) == pytest.approx(joint(t) / evidence, rel=1e-8)
        assert posterior.cdf(t) == pytest.approx(integral(joint, (support[0], t), bulk) / evidence, rel=1e-7)
    mean = integral(lambda t: t * joint(t), support, bulk) / evidence
    assert posterior.mean() == pytest.approx(mean, rel=1e-8)
    second = integral(lambda t: (t - mean) ** 2 * joint(t), support, bulk) / evidence
    assert posterior.variance() == pytest.approx(second, rel=1e-7)


@pytest.mark.parametrize("name", SCALAR)
def test_predictions_of_one_number_by_quadrature(name):
    prior, data, log_likelihood, support = SCALAR[name]
    posterior = prior.update(data)
    bulk = posterior.distribution().quantile([1e-9, 1 - 1e-9])
    predictive = {
        "binomial": lambda: posterior.predictive(trials=4),
        "poisson": lambda: posterior.predictive(exposure=2.5),
    }.get(name, posterior.predictive)()
    rows = {
        "bernoulli": np.array([0, 1]),
        "binomial": np.array([[k, 4] for k in range(5)]),
        "poisson": np.array([[k, 2.5] for k in (0, 1, 5, 20)]),
        "exponential": np.array([0.1, 1.0, 4.0]),
        "normal": np.array([-2.0, 1.0, 3.0]),
    }[name]
    for row in rows:
        x = row if np.ndim(row) == 0 else row[0]
        expected = integral(lambda t, row=row: np.exp(log_likelihood(t, row[None])) * posterior.pdf(t), support, bulk)
        assert predictive.pdf(x) == pytest.approx(expected, rel=1e-7)
        assert np.exp(posterior.log_evidence(row[None])) == pytest.approx(expected, rel=1e-7)


def test_dirichlet_by_quadrature():
    prior, counts = cj.DirichletMultinomial([1.5, 2.0, 1.2]), np.array([[2, 1, 3], [0, 4, 1]])
    posterior = prior.update(counts)

    def joint(b, a):
        p = np.array([a, b, 1 - a - b])
        if (p <= 0).any():
            return 0.0
        return np.exp(
            sum(stats.multinomial.logpmf(x, x.sum(), p) for x in counts) + stats.dirichlet.logpdf(p, prior.alpha)
        )

    evidence = dblquad(joint, 0, 1, 0, lambda a: 1 - a, epsabs=1e-12)[0]
    assert prior.log_evidence(counts) == pytest.approx(np.log(evidence), rel=1e-6)
    p = np.array([0.2, 0.5, 0.3])
    assert posterior.pdf(p) == pytest.approx(joint(p[1], p[0]) / evidence, rel=1e-5)
    assert posterior.logpdf([0.5, 0.6, -0.1]) == -np.inf
    # Categories that are counted one by one have the same evidence but for the ways to order them.
    codes = np.repeat([0, 1, 2, 1, 2], [2, 1, 3, 4, 1])
    ways = stats.multinomial.logpmf([2, 1, 3], 6, [1 / 3] * 3) - 6 * np.log(1 / 3)
    ways += stats.multinomial.logpmf([0, 4, 1], 5, [1 / 3] * 3) - 5 * np.log(1 / 3)
    assert cj.DirichletCategorical(prior.alpha).log_evidence(codes) + ways == pytest.approx(prior.log_evidence(counts))


def test_normal_inverse_gamma_by_quadrature():
    prior, data = ALL["normal-inverse-gamma"]
    posterior = prior.update(data)

    # Trapezoids in m and log v, whose error falls exponentially with their number.
    m, log_v = np.linspace(-25, 27, 1301), np.linspace(-3.5, 9, 801)
    M, V = np.meshgrid(m, np.exp(log_v))
    logs = stats.norm.logpdf(M, prior.mu, np.sqrt(V / prior.kappa)) + stats.invgamma.logpdf(
        V, prior.alpha, scale=prior.beta
    )
    for x in data:
        logs = logs + stats.norm.logpdf(x, M, np.sqrt(V))

    def integrated(values):
        return np.trapezoid(np.trapezoid(values * V, m, axis=1), log_v)

    evidence = integrated(np.exp(logs))
    density = np.exp(logs) / evidence
    assert prior.log_evidence(data) == pytest.approx(np.log(evidence), rel=1e-9)
    np.testing.assert_allclose(posterior.logpdf(M, V), logs - np.log(evidence), rtol=1e-9, atol=1e-8)
    assert posterior.mean() == pytest.approx((integrated(density * M), integrated(density * V)), rel=1e-7)
    # The t distributions: of the mean, and of the next observation.
    edge = posterior.marginals()["mean"].pdf(0.4)
    assert edge == pytest.approx(np.trapezoid(posterior.pdf(0.4, V[:, 0]) * V[:, 0], log_v), rel=1e-9)
    mixture = integrated(stats.norm.pdf(3.0, M, np.sqrt(V)) * density)
    assert posterior.predictive().pdf(3.0) == pytest.approx(mixture, rel=1e-8)
    assert posterior.predictive().logpdf(3.0) == pytest.approx(posterior.log_evidence([3.0]), rel=1e-10)
    assert posterior.logpdf(0.0, -1.0) == -np.inf


def test_normal_inverse_wishart():
    prior, rows = ALL["normal-inverse-wishart"]
    posterior = prior.update(rows)
    # In one dimension it is the normal-inverse-gamma model with alpha = nu / 2 and beta = psi / 2.
    one = cj.NormalInverseWishart([0.5], 0.7, 5.0, [[3.0]])
    same = cj.NormalInverseGamma(0.5, 0.7, 2.5, 1.5)
    assert one.log_evidence(NUMBERS) == pytest.approx(same.log_evidence(NUMBERS), rel=1e-12)
    assert one.logpdf([0.3], [[2.0]]) == pytest.approx(same.logpdf(0.3, 2.0), rel=1e-12)
    assert one.predictive().logpdf([1.0]) == pytest.approx(same.predictive().logpdf(1.0), rel=1e-12)
    for a, b in zip(one.interval(0.9), same.interval(0.9), strict=True):
        assert a[0] == pytest.approx(b, rel=1e-12)
    # Density and Bayes' rule at two points, against scipy's normal and inverse Wishart distributions.
    ratios = []
    for m, V in (([0.4, -1.5], PSI), ([1.0, -2.0], np.eye(2))):
        expected = stats.multivariate_normal.logpdf(m, prior.mu, V / prior.kappa) + stats.invwishart.logpdf(
            V, prior.nu, prior.psi
        )
        assert prior.logpdf(m, V) == pytest.approx(expected, rel=1e-12)
        likelihood = stats.multivariate_normal.logpdf(rows, m, V).sum()
        ratios.append(likelihood + expected - posterior.logpdf(m, V))
    assert ratios == pytest.approx([prior.log_evidence(rows)] * 2, rel=1e-12)
    x = np.array([0.2, 0.1])
    assert posterior.predictive().logpdf(x) == pytest.approx(posterior.log_evidence([x]), rel=1e-10)
    assert prior.logpdf([0, 0], -np.eye(2)) == -np.inf


@pytest.mark.parametrize("name", ["normal-inverse-gamma", "normal-inverse-wishart", "categorical", "multinomial"])
def test_moments_are_those_of_draws(name):
    prior, data = ALL[name]
    model = prior.update(data)
    draws = model.sample(200_000, random_state=3)
    parts = draws if isinstance(draws, tuple) else (draws,)
    means, variances = (m if isinstance(m, tuple) else (m,) for m in (model.mean(), model.variance()))
    for part, mean, variance in zip(parts, means, variances, strict=True):
        error = np.sqrt(variance / len(part))
        assert np.all(np.abs(part.mean(axis=0) - mean) < 5 * error)
        # The variance of a squared deviation, from the draws themselves.
        squares = (part - mean) ** 2
        assert np.all(np.abs(squares.mean(axis=0) - variance) < 6 * squares.std(axis=0) / np.sqrt(len(part)))
    numbers = {
        "normal-inverse-gamma": lambda: np.column_stack(draws),
        "normal-inverse-wishart": lambda: np.column_stack(
            [draws.mean, np.diagonal(draws.covariance, axis1=1, axis2=2)]
        ),
    }.get(name, lambda: draws)()
    for column, marginal in zip(numbers.T, model.marginals().values(), strict=True):
        assert stats.kstest(column[:20_000], marginal.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", ALL)
def test_predictions_are_mixtures_of_likelihoods(name):
    """Draws of a parameter, then of an observation, have the distribution that `predictive` gives."""
    prior, data = ALL[name]
    model = prior.update(data)
    n, rng = 50_000, np.random.default_rng(11)
    theta = model.sample(n, random_state=5)
    mixture, predictive = {
        "bernoulli": lambda: (rng.random(n) < theta, model.predictive()),
        "binomial": lambda: (rng.binomial(7, theta), model.predictive(7)),
        "poisson": lambda: (rng.poisson(3 * theta), model.predictive(3.0)),
        "exponential": lambda: (rng.exponential(1 / theta), model.predictive()),
        "normal": lambda: (rng.normal(theta, np.sqrt(model.sigma2)), model.predictive()),
        "categorical": lambda: (np.array([rng.choice(3, p=p) for p in theta[:5000]]), model.predictive()),
        "multinomial": lambda: (rng.multinomial(7, theta), model.predictive(7)),
        "normal-inverse-gamma": lambda: (rng.normal(theta.mean, np.sqrt(theta.variance)), model.predictive()),
        "normal-inverse-wishart": lambda: (
            theta.mean + (np.linalg.cholesky(theta.covariance) @ rng.standard_normal((n, 2, 1)))[..., 0],
            model.predictive(),
        ),
    }[name]()
    drawn = predictive.sample(len(mixture), random_state=9)
    if name == "categorical":
        mixture, drawn = np.eye(3)[mixture], np.eye(3)[drawn]
    for sample in (mixture, drawn):
        error = 5 * np.std(sample, axis=0) / np.sqrt(len(sample))
        assert np.all(np.abs(np.mean(sample, axis=0) - predictive.mean()) < error)
    spread = np.cov(np.asarray(drawn, dtype=float).T)
    expected = predictive.variance()
    if name == "categorical":
        expected, spread = expected, np.diagonal(spread)
    np.testing.assert_allclose(spread, expected, rtol=0.1, atol=0.02 * np.max(np.abs(expected)))
    if name not in ("categorical",):
        low, high = np.asarray(predictive.interval(0.9)).T
        inside = ((np.asarray(mixture) >= low) & (np.asarray(mixture) <= high)).mean(axis=0)
        assert np.all(inside > 0.9 - 5 * np.sqrt(0.09 / n))


def test_predictions_of_several_numbers_add_up():
    counts = cj.DirichletMultinomial([0.5, 1.5, 2.0]).predictive(5)
    every = np.array([[a, b, 5 - a - b] for a in range(6) for b in range(6 - a)])
    assert counts.pmf(every).sum() == pytest.approx(1, rel=1e-12)
    assert counts.pmf([1, 1, 1]) == 0
    reference = stats.dirichlet_multinomial(counts.alpha, 5)
    np.testing.assert_allclose(counts.logpmf(every), reference.logpmf(every), rtol=1e-10)
    np.testing.assert_allclose(counts.variance(), reference.cov())
    np.testing.assert_allclose(counts.cdf([5, 5, 5]), 1)
    categorical = cj.DirichletCategorical([1, 3]).predictive()
    assert categorical.pmf([0, 1, 2, 0.5]).tolist() == [0.25, 0.75, 0, 0]
    t = cj.NormalInverseWishart([0.0, 0.0], 1.0, 5.0, np.eye(2)).predictive()
    assert t.cdf([0.0, 0.0]) == pytest.approx(0.25, abs=1e-3)
    assert np.isnan(cj.NormalInverseWishart([0.0, 0.0], 1.0, 1.5, np.eye(2)).predictive().mean()).all()


# ---------------------------------------------------------------- batches, weights, chain rule


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(ALL)), seed=st.integers(0, 10**6))
def test_batches_weights_and_order(name, seed):
    prior, data = ALL[name]
    rng = np.random.default_rng(seed)
    cut = int(rng.integers(0, len(data) + 1))
    whole = prior.update(data)
    first = prior.update(data[:cut])
    np.testing.assert_allclose(parameters(first.update(data[cut:])), parameters(whole), rtol=1e-11, atol=1e-12)
    chain = prior.log_evidence(data[:cut]) + first.log_evidence(data[cut:])
    assert chain == pytest.approx(prior.log_evidence(data), rel=1e-10, abs=1e-10)
    shuffled = data[rng.permutation(len(data))]
    np.testing.assert_allclose(parameters(prior.update(shuffled)), parameters(whole), rtol=1e-11, atol=1e-12)
    # A weight is a number of repetitions, and 0 leaves a row out.
    weight = rng.integers(0, 4, len(data))
    weight[0] = 2
    repeated = np.repeat(data, weight, axis=0)
    weighted = prior.update(data, sample_weight=weight)
    np.testing.assert_allclose(parameters(weighted), parameters(prior.update(repeated)), rtol=1e-11, atol=1e-12)
    assert prior.log_evidence(data, weight) == pytest.approx(prior.log_evidence(repeated), rel=1e-10)
    estimates = [prior.mle(data, weight), prior.mle(repeated)]  # a number, an array, or a mean and a covariance
    parts = [estimate if isinstance(estimate, tuple) else (estimate,) for estimate in estimates]
    for a, b in zip(*parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_nothing_changes_without_data_and_nothing_is_written_to(name):
    prior, data = ALL[name]
    before = parameters(prior).copy()
    copy = data.copy()
    prior.update(data)
    assert np.array_equal(parameters(prior), before)
    assert np.array_equal(data, copy)
    assert prior.update(data[:0]) == prior
    assert prior.log_evidence(data[:0]) == 0.0
    assert prior != prior.update(data)
    with pytest.raises(AttributeError):
        prior.alpha = 3.0
    with pytest.raises(DataError, match="no rows of positive weight"):
        prior.mle(data[:0])


@pytest.mark.parametrize("name", ALL)
def test_containers(name):
    prior, data = ALL[name]
    expected = prior.update(data)
    table = data if data.ndim == 2 else data[:, None]
    names = [f"c{j}" for j in range(table.shape[1])]
    containers = [pd.DataFrame(table, columns=names), pl.DataFrame(table, schema=names), table.tolist(), table]
    containers += [sp.csr_array(table), sp.coo_matrix(table)]
    if data.ndim == 1:
        containers += [pd.Series(data), pl.Series(data), data.tolist()]
    for container in containers:
        np.testing.assert_allclose(parameters(prior.update(container)), parameters(expected), rtol=1e-13)
        assert prior.log_evidence(container) == pytest.approx(prior.log_evidence(data), rel=1e-12)
    in_float32 = prior.update(data.astype(np.float32))
    np.testing.assert_allclose(parameters(in_float32), parameters(expected), rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_files(name, tmp_path):
    prior, data = ALL[name]
    posterior = prior.update(data)
    ep.save(posterior, tmp_path / "model.epi")
    assert ep.load(tmp_path / "model.epi") == posterior


# ---------------------------------------------------------------- estimates


@pytest.mark.parametrize("name", SCALAR)
def test_mode_and_maximum_likelihood_are_maxima(name):
    prior, data, log_likelihood, _ = SCALAR[name]
    posterior = prior.update(data)
    for point, function in ((posterior.mode(), posterior.logpdf), (prior.mle(data), lambda t: log_likelihood(t, data))):
        steps = 1e-4 * np.array([-1, 1]) * max(abs(point), 0.1)
        assert all(function(point) > function(point + step) for step in steps)


@pytest.mark.parametrize("name", ["normal-inverse-gamma", "normal-inverse-wishart"])
def test_joint_modes(name):
    prior, data = ALL[name]
    posterior = prior.update(data)
    mean, spread = posterior.mode()
    best = posterior.logpdf(mean, spread)
    for factor in (0.99, 1.01):
        assert best > posterior.logpdf(mean, np.multiply(spread, factor))
        assert best > posterior.logpdf(np.multiply(mean, factor), spread)
    np.testing.assert_allclose(prior.mle(data)[0], np.mean(data, axis=0))
    np.testing.assert_allclose(prior.mle(data)[1], np.cov(data.T, bias=True))


def test_modes_at_the_ends():
    assert cj.BetaBernoulli(0.5, 2).mode() == 0.0
    assert cj.BetaBernoulli(2, 1).mode() == 1.0
    assert cj.BetaBernoulli(0.5, 1).mode() == 0.0
    assert cj.GammaPoisson(0.5, 1).mode() == 0.0
    np.testing.assert_allclose(cj.DirichletCategorical([1, 2, 3]).mode(), [0, 1 / 3, 2 / 3])
    for model in (
        cj.BetaBernoulli(1, 1),
        cj.BetaBernoulli(0.5, 0.5),
        cj.DirichletCategorical([1, 1, 1]),
        cj.DirichletCategorical([0.5, 2, 3]),
    ):
        with pytest.raises(ParameterError, match="it has no mode"):
            model.mode()


def test_far_from_the_origin():
    """Sums of squares are taken around the mean: a shift of 1e8 costs no digits that the data still has."""
    shifted, at = NUMBERS + 1e8, 1e8
    data = shifted - at  # as rounded
    near, far = cj.NormalInverseGamma(0.0, 1.0, 2.0, 2.0), cj.NormalInverseGamma(at, 1.0, 2.0, 2.0)
    assert far.log_evidence(shifted) == pytest.approx(near.log_evidence(data), rel=1e-7)
    known, away = cj.NormalKnownVariance(0.0, 2.0, 3.0), cj.NormalKnownVariance(at, 2.0, 3.0)
    assert away.log_evidence(shifted) == pytest.approx(known.log_evidence(data), rel=1e-7)


# ---------------------------------------------------------------- intervals


@settings(max_examples=60, deadline=None)
@given(
    a=st.floats(0.2, 200),
    b=st.floats(0.2, 200),
    level=st.floats(0.05, 0.995),
    model=st.sampled_from([cj.BetaBernoulli, cj.GammaPoisson, cj.NormalKnownVariance]),
)
def test_intervals_hold_their_level_and_are_shortest(a, b, level, model):
    d = model(a, b)
    low, high = d.interval(level)
    assert d.cdf(low) == pytest.approx((1 - level) / 2, rel=1e-6)
    assert d.cdf(high) - d.cdf(low) == pytest.approx(level, rel=1e-8)
    if model is cj.BetaBernoulli and a < 1 and b < 1:
        with pytest.raises(ParameterError, match="mode at each end"):
            d.interval(level, "highest-density")
        return
    shortest = d.interval(level, "highest-density")
    assert d.cdf(shortest[1]) - d.cdf(shortest[0]) == pytest.approx(level, rel=1e-7)
    assert shortest[1] - shortest[0] <= (high - low) * (1 + 1e-9)
    for p in np.linspace(0, 1 - level, 7)[1:-1]:
        ends = d.distribution().quantile([p, p + level])
        assert shortest[1] - shortest[0] <= (ends[1] - ends[0]) * (1 + 1e-7)


def test_intervals_of_counts():
    d = cj.GammaPoisson(3.0, 1.0).predictive()
    low, high = d.interval(0.9, "highest-density")
    inside = np.arange(low, high + 1)
    assert d.pmf(inside).sum() >= 0.9
    probabilities = d.pmf(np.arange(60))
    # Nothing outside is more probable than what is inside, and no shorter range holds as much.
    assert max(np.delete(probabilities, inside.astype(int))) <= d.pmf(inside).min() + 1e-12
    width = len(inside) - 1
    assert max(probabilities[k : k + width].sum() for k in range(40)) < 0.9
    assert cj.BetaBernoulli(1, 1).interval(0.5, "highest-density") == (0.25, 0.75)
    with pytest.raises(ParameterError, match="mode at each end"):
        cj.BetaBinomial(0.5, 0.5).predictive(5).interval(0.9, "highest-density")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["equal-tailed", "highest-density"])
def test_coverage(kind):
    """Parameters drawn from the prior lie in the interval of the posterior as often as its level says."""
    n, level, rng = 1500, 0.9, np.random.default_rng(17)

    def covers(prior, observe):
        inside = 0
        for _ in range(n):
            theta = prior.sample(1, random_state=int(rng.integers(2**40)))
            theta = type(theta)(*(part[0] for part in theta)) if isinstance(theta, tuple) else theta[0]
            ends = prior.update(observe(theta)).interval(level, kind)
            low, high = ends.mean if isinstance(ends, tuple) and hasattr(ends, "mean") else ends
            value = theta.mean if hasattr(theta, "variance") and isinstance(theta, tuple) else theta
            inside += low <= value <= high
        return inside / n

    error = 4 * np.sqrt(level * (1 - level) / n)
    cases = [
        (cj.BetaBernoulli(2, 3), lambda t: rng.random(12) < t),
        (cj.GammaPoisson(3, 2), lambda t: rng.poisson(t, 8)),
        (cj.GammaExponential(3, 2), lambda t: rng.exponential(1 / t, 8)),
        (cj.NormalKnownVariance(1, 2, 3), lambda t: rng.normal(t, np.sqrt(3), 8)),
        (cj.NormalInverseGamma(1, 1, 3, 2), lambda t: rng.normal(t.mean, np.sqrt(t.variance), 6)),
    ]
    for prior, observe in cases:
        assert abs(covers(prior, observe) - level) < error, prior


# ---------------------------------------------------------------- Bayes factors, figures, bad input


def test_bayes_factor():
    flips = np.array([1] * 9 + [0])
    a, b = cj.BetaBernoulli(1, 1), cj.BetaBernoulli(1e9, 1e9)
    factor = cj.bayes_factor(a, b, flips)
    # 9! 1! / 11! against 2^-10.
    assert factor.value == pytest.approx(2**10 / 110, rel=1e-6)
    assert factor.log_value == pytest.approx(a.log_evidence(flips) - b.log_evidence(flips))
    assert factor.probability() == pytest.approx(factor.value / (1 + factor.value))
    assert factor.probability(0.1) == pytest.approx(factor.value / (factor.value + 9))
    assert factor.strength == "positive"
    assert "evidence for a, positive" in str(factor)
    assert cj.bayes_factor(b, a, flips).log_value == -factor.log_value
    with pytest.raises(ParameterTypeError, match="b: expected a conjugate model, got int"):
        cj.bayes_factor(a, 3, flips)


@pytest.mark.parametrize("name", ALL)
def test_plot(name):
    plt = pytest.importorskip("matplotlib.pyplot")
    prior, data = ALL[name]
    ax = prior.plot(data)
    labels = [text.get_text().partition(" ")[0] for text in ax.get_legend().get_texts()]
    assert {"prior", "posterior"} <= set(labels)
    assert {"likelihood", "likelihood,", "maximum"} & set(labels)
    if name in SCALAR:
        curves = {line.get_label().partition(" ")[0].rstrip(","): line.get_xydata() for line in ax.get_lines()}
        x, y = curves["likelihood"].T
        assert np.trapezoid(y, x) == pytest.approx(1)
        _, _, log_likelihood, _ = SCALAR[name]
        logs = np.array([log_likelihood(t, data) for t in x[100:300:50]])
        np.testing.assert_allclose(np.diff(np.log(y[100:300:50])), np.diff(logs), atol=1e-8)
        x, y = curves["posterior"].T
        np.testing.assert_allclose(y, prior.update(data).pdf(x))
    assert prior.plot().get_legend() is not None
    plt.close("all")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cj.BetaBernoulli(0, 1), "alpha=0; expected a number above 0: the prior would be improper"),
        (lambda: cj.BetaBernoulli(1, float("inf")), "beta=inf.*improper"),
        (lambda: cj.BetaBinomial(1, 1, trials=0), "trials=0"),
        (lambda: cj.GammaPoisson(1, -1), "rate=-1.*improper"),
        (lambda: cj.NormalKnownVariance(0, float("inf"), 1), "tau2=inf.*improper"),
        (lambda: cj.NormalKnownVariance(0, 1, 0), "sigma2=0"),
        (lambda: cj.NormalInverseGamma(kappa=0), "kappa=0.*improper"),
        (lambda: cj.NormalInverseGamma(mu=float("nan")), "mu=nan"),
        (lambda: cj.DirichletCategorical([1, 0]), "alpha: holds 0.*improper"),
        (lambda: cj.DirichletCategorical([1]), r"alpha: shape \(1,\)"),
        (lambda: cj.DirichletCategorical("abc"), "alpha='abc'"),
        (lambda: cj.NormalInverseWishart([0, 0], 1, 1.0, np.eye(2)), "nu=1.0; expected more than 1"),
        (lambda: cj.NormalInverseWishart([0, 0], 1, 3, np.diag([1, -1])), "psi: is not positive definite"),
        (lambda: cj.NormalInverseWishart([0, 0], 1, 3, np.diag([1, 0])), "psi: is not positive definite"),
        (lambda: cj.NormalInverseWishart([0, 0], 1, 3, [[1, 0.5], [0, 1]]), "psi: is not symmetric"),
        (lambda: cj.NormalInverseWishart([0, 0], 1, 3, np.eye(3)), r"psi: shape \(3, 3\); expected \(2, 2\)"),
        (lambda: cj.BetaBinomial().predictive(), "trials: not given"),
        (lambda: cj.GammaPoisson().predictive(0), "exposure=0; expected a finite number above 0"),
        (lambda: cj.BetaBernoulli().interval(1.0), "level=1.0"),
        (lambda: cj.BetaBernoulli().interval(0.9, "hdi"), "kind='hdi'; expected one of"),
        (lambda: cj.BetaBernoulli().sample(-1), "n=-1"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize(
    ("prior", "data", "error", "message"),
    [
        (cj.BetaBernoulli(), [0, 2], DataError, "data: holds 2; expected 0 and 1"),
        (cj.BetaBernoulli(), [0, float("nan")], DataError, "data"),
        (cj.BetaBernoulli(), ["yes"], DataTypeError, "data: holds strings"),
        (cj.BetaBernoulli(), None, DataTypeError, "data: expected numbers, got NoneType"),
        (cj.BetaBernoulli(), [[0, 1]], DataError, "data: 2 columns"),
        (cj.BetaBinomial(), [1, 2], DataError, "successes and trials"),
        (cj.BetaBinomial(trials=3), [4], DataError, "4 successes among 3 trials at row 0"),
        (cj.BetaBinomial(trials=3), [0.5], DataError, "holds 0.5; expected counts"),
        (cj.GammaPoisson(), [-1], DataError, "holds -1; expected counts"),
        (cj.GammaPoisson(), [[1, 0.0]], DataError, "an exposure of 0"),
        (cj.GammaExponential(), [-0.5], DataError, "waiting times"),
        (cj.DirichletCategorical([1, 1]), [0, 2], DataError, "expected categories 0 to 1"),
        (cj.DirichletMultinomial([1, 1]), [[1, 2, 3]], DataError, "3 columns; expected counts of 2"),
        (cj.DirichletMultinomial([1, 1]), sp.csr_array([[1, -2]]), DataError, "holds -2"),
        (cj.NormalInverseWishart([0, 0], 1, 3, np.eye(2)), [[1.0]], DataError, "1 columns; expected 2"),
        (cj.NormalInverseGamma(), [[[1.0]]], DataError, "shape"),
        (cj.NormalInverseGamma(), [[1.0], [2.0, 3.0]], DataError, "data"),
    ],
)
def test_bad_data(prior, data, error, message):
    with pytest.raises(error, match=message):
        prior.update(data)


def test_bad_weights():
    with pytest.raises(DataError, match="sample_weight"):
        cj.BetaBernoulli().update([0, 1], sample_weight=[1.0])
    with pytest.raises(DataError, match="sample_weight"):
        cj.BetaBernoulli().update([0, 1], sample_weight=[1.0, -1.0])


def test_evidence_of_large_counts_is_finite():
    d = cj.GammaPoisson(1.0, 1.0)
    counts = np.full(1000, 10**6)
    # A sum over a grid of rates, in logarithms.
    rates = np.linspace(0.999e6, 1.001e6, 20_001)
    logs = 1000 * (10**6 * np.log(rates) - rates - gammaln(10**6 + 1)) - rates
    assert d.log_evidence(counts) == pytest.approx(logsumexp(logs) + np.log(rates[1] - rates[0]), rel=1e-6)
