"""Restricted Boltzmann machines: likelihoods against sums over all states, gradients, chains, annealing, refusals."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import DataError, MemoryBudgetError, ParameterError
from epicycle.generative.energy._chains import log_mean
from epicycle.generative.energy._rbm_module import BoltzmannMachine
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import drawing_from

EVERY = np.array(list(product([0.0, 1.0], repeat=5)))
CPU = torch.device("cpu")


def machine(n_hidden=3, **options):
    return ep.RestrictedBoltzmannMachine(
        n_hidden, **{"max_iter": 20, "learning_rate_init": 0.05, "n_levels": 50, "random_state": 0, **options}
    )


def caused(n, seed=0):
    """Five bits: the first two nearly always agree, the next two never do, the last is by itself."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.random((3, n)) < [[0.3], [0.5], [0.8]]
    return np.column_stack([a, a ^ (rng.random(n) < 0.05), b, ~b, c]).astype(float)


def by_all_states(weights, X):
    """log p(x) by all states of both layers at once, with the weights taken out of the module."""
    W, b, c = (weights[f"machine.{name}"].astype(float) for name in ("weight", "visible", "hidden"))
    hidden = np.array(list(product([0.0, 1.0], repeat=len(c))))

    def joint(rows):
        return (rows @ b)[:, None] + (hidden @ c)[None, :] + rows @ W.T @ hidden.T

    every = np.array(list(product([0.0, 1.0], repeat=len(b))))
    return logsumexp(joint(X), axis=1) - logsumexp(joint(every))


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 7), st.sampled_from(["persistent", "contrastive", "enumeration"]), st.integers(0, 10**6))
def test_the_likelihood_is_that_of_enumeration(n_hidden, method, seed):
    model = machine(n_hidden, method=method, max_iter=3, random_state=seed).fit(caused(40, seed))
    found = model.score_samples(EVERY)
    assert_allclose(found, by_all_states(model._weights_, EVERY), rtol=1e-5, atol=1e-6)
    assert np.exp(found).sum() == pytest.approx(1, rel=1e-5)
    assert model.log_normalizer_error_ == 0
    assert_allclose(model.free_energy(EVERY), -(found + model.log_normalizer_), rtol=1e-5, atol=1e-5)


def wide_machine(n_visible, n_hidden, size, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        shared = {"shape": [n_visible], "top": 1.0, "threshold": 0.5, "dtype": "float32", "n_chains": 4}
        module = BoltzmannMachine({**shared, "n_hidden": n_hidden})
        for p in module.parameters():
            p.data.normal_(0, size)
    return module


@pytest.mark.parametrize(("n_visible", "n_hidden", "size"), [(30, 8, 0.3), (8, 30, 0.3), (12, 12, 0.6)])
def test_annealing_finds_log_z_within_its_error(n_visible, n_hidden, size):
    module = wide_machine(n_visible, n_hidden, size)
    with drawing_from(1, 0, 0, CPU):
        value, error = log_mean(module.annealed(200, 300)[1])
    assert 0 < error < 0.2
    assert abs(value - float(module.machine.log_normalizer().detach())) < 4 * error


@pytest.mark.parametrize("method", ["enumeration", "contrastive"])
def test_gradients(method):
    """By enumeration that of the likelihood; otherwise that of F at the rows less F at the chains."""
    X = torch.from_numpy(caused(6))
    model = machine(method=method, max_iter=1).fit(caused(6))
    module = model.module_.double()
    assert check_module(module, model._row_losses(), [MiniBatch((X,))], n_coordinates=12).holds
    if method == "enumeration":
        module.zero_grad()
        model._row_losses()(module, MiniBatch((X,))).mean().backward()
        p = np.exp(model.score_samples(EVERY))
        expected = (p[:, None] * model.transform(EVERY)).T @ EVERY - model.transform(caused(6)).T @ caused(6) / 6
        assert_allclose(module.machine.weight.grad.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(("method", "at_most"), [("enumeration", 0.08), ("persistent", 0.2), ("contrastive", 0.25)])
def test_what_is_learnt_is_the_distribution(method, at_most):
    X = caused(400)
    options = {"max_iter": 120, "batch_size": 50, "n_chains": 200, "n_moves": 2}
    model = machine(5, method=method, **options).fit(X)
    counts = np.array([np.mean((row == X).all(axis=1)) for row in EVERY])
    seen = counts > 0
    p = X.mean(axis=0)
    independent = np.log(np.where(EVERY > 0, p, 1 - p)).sum(axis=1)
    divergences = [counts[seen] @ (np.log(counts[seen]) - q[seen]) for q in (model.score_samples(EVERY), independent)]
    assert divergences[0] < at_most
    assert divergences[1] > 1.0


def test_draws_have_the_probabilities_of_the_model():
    model = machine(max_iter=30, method="enumeration").fit(caused(200))
    drawn = model.sample(3000, random_state=1)
    counts = np.array([np.sum((row == drawn).all(axis=1)) for row in EVERY])
    expected = 3000 * np.exp(model.score_samples(EVERY))
    order = np.argsort(expected)  # the rarest states together
    counts, expected = (np.append(v[order[10:]], v[order[:10]].sum()) for v in (counts, expected))
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_images_features_and_files(tmp_path):
    X = (load_digits().images[:200] * 15).astype(np.uint8)
    model = machine(24, max_iter=10, n_annealed=20).fit(X)
    assert 0 < model.log_normalizer_error_ < 1
    assert "annealed importance sampling" in model.certificate_.meaning
    assert set(np.unique(model.sample(5, random_state=0))) <= {0, 255}
    assert model.sample(5, random_state=0).shape == (5, 8, 8)
    assert model.transform(X[:7]).shape == (7, 24)
    assert model.score(X) > model.score(255 - X)
    assert model.plot_samples(4, X=X).axes
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").score_samples(X[:5]), model.score_samples(X[:5]))
    frame = pd.DataFrame(caused(60), columns=list("abcde"))
    drawn = machine(max_iter=2).fit(frame).sample(3, random_state=0)
    assert list(drawn.columns) == list("abcde")


def test_samples_follow_from_the_seed_and_not_from_the_threads():
    model = machine(max_iter=2).fit(caused(60))
    drawn = model.sample(2500, random_state=3, n_moves=5)
    with ep.config(n_jobs=1):
        assert_array_equal(model.sample(2500, random_state=3, n_moves=5), drawn)
    assert (model.sample(2500, random_state=4, n_moves=5) != drawn).any()


def test_what_is_refused():
    X = (np.random.default_rng(0).random((30, 25)) < 0.5).astype(float)
    with pytest.raises(MemoryBudgetError, match="the smaller layer has 22 bits"):
        machine(22, method="enumeration").fit(X)
    with pytest.raises(MemoryBudgetError, match=r"n_hidden=1000000000 would need .*fewer hidden bits or chains"):
        machine(10**9, n_chains=41).fit(X)
    with pytest.raises(MemoryBudgetError, match=r"n_annealed=4611686018427387904 would need .*fewer annealed chains"):
        machine(64, n_annealed=2**62, n_levels=10).fit(X)
    with pytest.raises(ParameterError, match="n_levels=0"):
        machine(22, max_iter=1, n_levels=0).fit(X).score_samples(X)
    with pytest.raises(ParameterError, match="method"):
        machine(method="exact").fit(X)
    with pytest.raises(DataError, match="NaN"):
        machine().fit(X * np.nan)
