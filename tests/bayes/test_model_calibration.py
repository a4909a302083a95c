"""Simulation-based calibration of the models with closed forms.

Parameters from the prior, data from these: the rank of every parameter among draws of its posterior is uniform.
"""

import numpy as np
import pytest
from scipy.stats import chisquare, invgamma, kstest, t

from epicycle import BayesianLinearRegression
from epicycle.bayes import conjugate as cj

DRAWS, BINS, REPETITIONS = 39, 10, 600
PSI = np.array([[2.0, 0.3], [0.3, 1.0]])

#: name: (prior, data given the parameter and a generator).
MODELS = {
    "bernoulli": (cj.BetaBernoulli(1.5, 2.5), lambda p, rng: rng.binomial(1, p, 6)),
    "binomial": (cj.BetaBinomial(0.7, 1.2), lambda p, rng: np.column_stack([rng.binomial([4, 7], p), [4, 7]])),
    "poisson": (
        cj.GammaPoisson(2.0, 1.5),
        lambda rate, rng: np.column_stack([rng.poisson(rate * np.array([0.5, 2.0])), [0.5, 2.0]]),
    ),
    "exponential": (cj.GammaExponential(2.0, 3.0), lambda rate, rng: rng.exponential(1 / rate, 4)),
    "normal": (cj.NormalKnownVariance(0.5, 4.0, 2.0), lambda mean, rng: rng.normal(mean, np.sqrt(2.0), 5)),
    "categorical": (cj.DirichletCategorical([0.5, 1.5, 2.0]), lambda p, rng: rng.choice(3, 5, p=p)),
    "multinomial": (cj.DirichletMultinomial([0.5, 1.5, 2.0]), lambda p, rng: rng.multinomial(4, p, 3)),
    "normal-inverse-gamma": (
        cj.NormalInverseGamma(0.5, 0.7, 2.5, 1.5),
        lambda at, rng: rng.normal(at[0], np.sqrt(at[1]), 5),
    ),
    "normal-inverse-wishart": (
        cj.NormalInverseWishart([0.5, -1.0], 0.8, 7.5, PSI),
        lambda at, rng: rng.multivariate_normal(at[0], at[1], 5),
    ),
}


def numbers(draws):
    """All numbers of every draw, side by side."""
    parts = draws if isinstance(draws, tuple) else (draws,)
    return np.hstack([np.reshape(part, (len(part), -1)) for part in parts])


def first(draws):
    return tuple(part[0] for part in draws) if isinstance(draws, tuple) else draws[0]


@pytest.mark.parametrize("name", MODELS)
def test_ranks_of_the_truth_are_uniform(name):
    prior, simulate = MODELS[name]
    ranks = []
    for k in range(REPETITIONS):
        rng = np.random.default_rng([5, k])
        truth = prior.sample(1, random_state=2 * k)
        data = simulate(first(truth), rng)
        draws = numbers(prior.update(data).sample(DRAWS, random_state=2 * k + 1))
        ranks.append((draws < numbers(truth)).sum(axis=0))
    for column in np.array(ranks).T:
        counts = np.bincount(column * BINS // (DRAWS + 1), minlength=BINS)
        assert chisquare(counts).pvalue > 1e-4


def test_a_posterior_that_counts_the_data_twice_is_caught():
    prior, simulate = MODELS["normal"]
    ranks = []
    for k in range(REPETITIONS):
        truth = prior.sample(1, random_state=2 * k)
        data = simulate(truth[0], np.random.default_rng([5, k]))
        wrong = prior.update(data).update(data).sample(DRAWS, random_state=2 * k + 1)
        ranks.append((wrong < truth).sum())
    assert chisquare(np.bincount(np.array(ranks) * BINS // (DRAWS + 1), minlength=BINS)).pvalue < 1e-6


def test_posterior_of_linear_regression_is_calibrated():
    """The probability of a smaller coefficient, noise variance or new y is uniform over the prior."""
    options = {"prior_precision": 0.5, "prior_mean": 1.0, "noise_shape": 3.0, "noise_rate": 2.0}
    found = []
    for k in range(REPETITIONS):
        rng = np.random.default_rng([6, k])
        variance = 2.0 / rng.gamma(3.0)
        coef = 1.0 + np.sqrt(variance / 0.5) * rng.normal(size=2)
        X = rng.normal(size=(6, 2))
        y = X @ coef + np.sqrt(variance) * rng.normal(size=6)
        model = BayesianLinearRegression(fit_intercept=False, **options).fit(X[:5], y[:5])
        a, c = model.noise_shape_, model.noise_rate_
        scale = np.sqrt(c / a * np.diagonal(np.linalg.inv(model.precision_)))
        _, interval = model.predict(X[5:], return_interval=True, level=0.8)
        inside = float(interval[0, 0] < y[5] < interval[0, 1])
        found.append([*t.cdf((coef - model.coef_) / scale, 2 * a), invgamma.cdf(variance, a, scale=c), inside])
    found = np.array(found)
    for column in found[:, :3].T:
        assert kstest(column, "uniform").pvalue > 1e-4
    assert abs(found[:, 3].mean() - 0.8) < 4 * np.sqrt(0.16 / REPETITIONS)
