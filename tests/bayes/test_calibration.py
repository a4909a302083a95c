"""Simulation-based calibration of every sampler, and mutations that the checks have to catch.

Parameters from the prior, data from these, draws from the posterior: the rank of the true parameter among the draws is
uniform if, and only if, sampler, density and Jacobians are right (Talts et al. 2018).
"""

import numpy as np
import pytest
from posterior_moments import LIMIT, scores
from scipy.stats import chisquare

import epicycle as ep
from epicycle import bayes

N_DRAWS, BINS = 63, 8
#: Iterations for every draw that is kept, so that draws are next to independent.
THIN = {"nuts": 2, "hmc": 2, "metropolis": 25, "slice": 3, "gibbs": 2}


def simulate(rng, n=6):
    """mu ~ N(0, 2^2), sigma^2 ~ inverse gamma(3, 4), y ~ N(mu, sigma^2)."""
    mu, sigma = rng.normal(0, 2), np.sqrt(4 / rng.gamma(3))
    return mu, sigma, rng.normal(mu, sigma, n)


def model_of(y):
    return bayes.NormalVarianceModel(y, scale=2.0, shape=3.0, rate=4.0)


def python_model(y, positive):
    """The same model, in Python and under a constraint of the test's choice."""

    def log_density(mu, sigma, y):
        r, n = y - mu, len(y)
        value = -(n + 7) * np.log(sigma) - (r @ r / 2 + 4) / sigma**2 - mu**2 / 8
        return value, (r.sum() / sigma**2 - mu / 4, -(n + 7) / sigma + (r @ r + 8) / sigma**3)

    return bayes.Model(log_density, {"mu": (), "sigma": positive}, gradient=True, data={"y": y})


def ranks(build, method, repetitions, *, warmup=300, seed=0):
    found = []
    for k in range(repetitions):
        rng = np.random.default_rng([seed, k])
        mu, sigma, y = simulate(rng)
        with ep.config(on_nonconvergence="ignore"):
            draws = bayes.sample(
                build(y),
                method,
                draws=N_DRAWS,
                warmup=warmup,
                thin=THIN[method],
                chains=1,
                random_state=int(rng.integers(2**31)),
            )
        found.append([(draws["mu"] < mu).sum(), (draws["sigma"] < sigma).sum()])
    return np.array(found)


def p_values(found):
    counts = [np.bincount(column * BINS // (N_DRAWS + 1), minlength=BINS) for column in found.T]
    return np.array([chisquare(c).pvalue for c in counts])


@pytest.mark.parametrize("method", THIN)
def test_ranks_are_uniform(method, repetitions):
    warmup = 2000 if method == "metropolis" else 100 if method == "gibbs" else 300
    found = ranks(model_of, method, repetitions(900), warmup=warmup)
    assert p_values(found).min() > 1e-4


def test_ranks_are_uniform_of_a_density_in_python(repetitions):
    found = ranks(lambda y: python_model(y, bayes.Positive()), "nuts", repetitions(240), warmup=150)
    assert p_values(found).min() > 1e-4


# ------------------------------------------------------------------------------------------------- mutations


class WithoutJacobian(bayes.Positive):
    """x = exp(u) whose log-determinant was forgotten; its gradient is consistent, so that nobody sees it there."""

    def log_jacobian(self, u):
        return np.zeros(u.shape[:-1])

    def _slope(self, u):
        return np.exp(u), np.zeros_like(u)


def test_a_forgotten_jacobian_is_caught():
    """s ~ gamma(3) has mean and variance 3; without the Jacobian it comes out as gamma(2)."""

    def log_density(s):
        return 2 * np.log(s) - s, 2 / s - 1

    found = []
    for constraint in (bayes.Positive(), WithoutJacobian()):
        model = bayes.Model(log_density, {"s": constraint}, gradient=True)
        with ep.config(on_nonconvergence="ignore"):
            draws = bayes.sample(model, draws=700, warmup=300, chains=2, random_state=0)
        found.append(np.abs(scores(draws["s"], mean=3.0, sd=np.sqrt(3))).max())
    right, wrong = found
    assert right < LIMIT < wrong


def hamiltonian_chains(rng, *, accepts, n_chains=4, n_draws=3000, step=1.6):
    """Leapfrog on N(0, 1) and N(0, 0.9^2), plain NumPy, with or without the Metropolis step at the end."""
    scale = np.array([1.0, 0.9])
    q, kept = rng.normal(size=(n_chains, 2)), np.empty((n_chains, n_draws, 2))
    for t in range(n_draws):
        p = rng.normal(size=q.shape)
        x, momentum = q.copy(), p.copy()
        for _ in range(2):
            momentum -= step / 2 * x / scale**2
            x += step * momentum
            momentum -= step / 2 * x / scale**2
        before, after = ((a / scale) ** 2 + b**2 for a, b in ((q, p), (x, momentum)))
        accepted = rng.random(n_chains) < np.exp(np.minimum(0, (before - after).sum(axis=1) / 2))
        q = np.where(accepted[:, None] | (not accepts), x, q)
        kept[:, t] = q
    return kept


def test_a_sampler_without_its_metropolis_step_is_caught():
    rng = np.random.default_rng(0)
    exact, unadjusted = (hamiltonian_chains(rng, accepts=a)[..., 0] for a in (True, False))
    assert np.abs(scores(exact, mean=0.0, sd=1.0)).max() < LIMIT
    assert np.abs(scores(unadjusted, mean=0.0, sd=1.0)).max() > 2 * LIMIT
    assert bayes.r_hat(unadjusted) < 1.01  # the chains agree, on the wrong distribution: only a reference tells
