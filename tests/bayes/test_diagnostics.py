"""R-hat, ESS and MCSE against ArviZ's on stored chains, and against what is known of autoregressions."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle import bayes
from epicycle.bayes.sampling._diagnostics import diagnose
from epicycle.exceptions import DataError, ParameterError

STORED = json.loads((Path(__file__).parent / "arviz_chains.json").read_text())["chains"]


def ours(x):
    ess = bayes.effective_sample_size
    return {
        "r_hat": bayes.r_hat(x),
        **{f"ess_{kind}": ess(x, kind) for kind in ("bulk", "tail", "mean", "sd")},
        "ess_quantile_0.25": ess(x, "quantile", probability=0.25),
        "mcse_mean": bayes.mcse(x),
        "mcse_sd": bayes.mcse(x, "sd"),
        "mcse_quantile_0.25": bayes.mcse(x, "quantile", probability=0.25),
    }


@pytest.mark.parametrize("name", STORED)
def test_equal_to_arviz_on_stored_chains(name):
    stored = STORED[name]
    x = np.array(stored["draws"])
    for key, value in ours(x).items():
        if stored[key] is None:  # ArviZ wants two chains; one chain has two halves
            assert (name, key) == ("one chain", "r_hat")
            continue
        assert_allclose(value, stored[key], rtol=1e-8, atol=0, err_msg=key)
    assert_allclose(bayes.bfmi(x), stored["bfmi"], rtol=1e-10)


def autoregression(rng, m, n, rho):
    x = np.empty((m, n))
    x[:, 0] = rng.normal(size=m)
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + rng.normal(size=m) * np.sqrt(1 - rho**2)
    return x


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.6, 0.9])
def test_ess_of_an_autoregression(rho):
    """tau = (1 + rho) / (1 - rho)."""
    rng = np.random.default_rng(3)
    found = np.mean([bayes.effective_sample_size(autoregression(rng, 4, 2000, rho), "mean") for _ in range(12)])
    assert_allclose(found, 8000 * (1 - rho) / (1 + rho), rtol=0.12)


def test_mcse_is_the_spread_of_estimates():
    rng = np.random.default_rng(4)
    runs = [autoregression(rng, 4, 500, 0.7) for _ in range(300)]
    estimates = np.array([[x.mean(), x.std(), np.quantile(x, 0.1)] for x in runs])
    errors = np.mean(
        [[bayes.mcse(x), bayes.mcse(x, "sd"), bayes.mcse(x, "quantile", probability=0.1)] for x in runs[:60]], axis=0
    )
    assert_allclose(errors, estimates.std(axis=0), rtol=0.15)


def test_invariances():
    rng = np.random.default_rng(0)
    x = autoregression(rng, 4, 200, 0.5)
    for f in (bayes.r_hat, bayes.effective_sample_size):
        assert_allclose(f(np.exp(x)), f(x), rtol=0.02)  # by ranks: nearly free of the scale (folding is not)
        assert_allclose(f(3 * x - 7), f(x), rtol=1e-9)
        assert_allclose(f(x[[2, 0, 3, 1]]), f(x), rtol=1e-9)
    many = np.stack([x, x**3], axis=-1).reshape(4, 200, 2, 1)
    assert_allclose(bayes.r_hat(many), [[bayes.r_hat(x)], [bayes.r_hat(x**3)]], rtol=1e-12)


def test_chains_that_stick_or_differ_are_found():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 200))
    assert bayes.r_hat(x) < 1.02
    shifted, wide, drifting = x.copy(), x.copy(), x + np.linspace(0, 2, 200)
    shifted[0] += 1
    wide[0] *= 4
    assert min(bayes.r_hat(shifted), bayes.r_hat(wide), bayes.r_hat(drifting)) > 1.05
    assert np.isnan(bayes.r_hat(np.ones((4, 100))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bayes.r_hat([1.0, 2.0]), "draws: shape"),
        (lambda: bayes.r_hat("abc"), "draws"),
        (lambda: bayes.bfmi(np.zeros((2, 3, 4))), "energy: shape"),
        (lambda: bayes.effective_sample_size(np.zeros((2, 9)), "middle"), "kind='middle'"),
        (lambda: bayes.mcse(np.zeros((2, 9)), "quantile", probability=1.0), "probability=1.0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((DataError, ParameterError), match=message):
        call()


def test_too_few_or_infinite_draws_give_nan():
    assert np.isnan(bayes.r_hat(np.zeros((4, 3))))
    assert np.isnan(bayes.effective_sample_size([[1.0, 2.0, 3.0, np.inf, 4.0]]))


def test_quantities_do_not_depend_on_their_company():
    """Many are diagnosed at a time; each is as if alone, ties, constants and infinities among the others or not."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4, 101, 40))
    x[..., 3] = np.round(x[..., 3])
    x[..., 5] = 2.0
    x[1, 7, 8] = np.inf
    r_hats, bulk, tail = diagnose(x)
    for k in range(40):
        alone = [bayes.r_hat(x[..., k]), *(bayes.effective_sample_size(x[..., k], kind) for kind in ("bulk", "tail"))]
        assert_allclose([r_hats[k], bulk[k], tail[k]], alone, rtol=1e-12)
    assert np.isnan(r_hats[[5, 8]]).all()
    assert np.isfinite(np.delete(r_hats, [5, 8])).all()
