"""Helmholtz machines: enumeration against sums written out, bounds, both phases, draws, labels, images, refusals."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import chisquare
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import ConvergenceError, DataError, MemoryBudgetError, ParameterError
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import drawing_from

EVERY = np.array(list(product([0.0, 1.0], repeat=4)))


def machine(**options):
    return ep.WakeSleep(**{"hidden_layer_sizes": (3, 2), "max_iter": 30, "learning_rate_init": 0.02,
                           "random_state": 0, **options})  # fmt: skip


def caused(n):
    """Four bits: the first two nearly always agree, the last two never do."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, n)) < [[0.3], [0.5]]
    flipped = rng.random(n) < 0.05
    return np.column_stack([a, a ^ flipped, b, ~b]).astype(float)


def summed_over_all_states(model, X, k=0):
    """log p(x) by all states of all layers at once, with the weights taken out of the module."""
    weights = {name: w.astype(float) for name, w in model._weights_.items()}
    n = len(model.architecture_["hidden"])
    indicator = np.eye(model.architecture_["n_classes"])[k] if model.architecture_["n_classes"] else np.empty(0)
    total = np.zeros(len(X))
    for state in product(*(product([0.0, 1.0], repeat=size) for size in model.architecture_["hidden"])):
        layers = [np.array(h) for h in state]

        def bits(level, layers=layers):
            given = np.concatenate([layers[level], indicator])
            return expit(weights[f"generative.{level}.weight"] @ given + weights[f"generative.{level}.bias"])

        top = expit(weights["prior"][k])
        p = np.prod(np.where(layers[-1], top, 1 - top))
        for level in range(1, n):
            on = bits(level)
            p *= np.prod(np.where(layers[level - 1], on, 1 - on))
        on = bits(0)
        total += p * np.prod(np.where(X > 0.5, on, 1 - on), axis=1)
    return np.log(total)


@pytest.mark.parametrize("hidden", [(3,), (3, 2), (2, 3, 2)])
def test_enumeration_is_the_sum_over_all_states(hidden):
    model = machine(hidden_layer_sizes=hidden, max_iter=10).fit(caused(100))
    exact = model.exact_log_likelihood(EVERY)
    assert_allclose(exact, summed_over_all_states(model, EVERY), rtol=1e-9)
    assert np.exp(exact).sum() == pytest.approx(1)


def test_enumeration_given_labels():
    X, y = caused(200), np.array(["b", "a"])[(caused(200)[:, 0]).astype(int)]
    model = machine(conditional=True, max_iter=40).fit(X, y)
    given = np.array([model.exact_log_likelihood(EVERY, label) for label in "ab"])
    assert_allclose(given, [summed_over_all_states(model, EVERY, k) for k in (0, 1)], rtol=1e-9)
    mixture = np.log(model.class_prior_ @ np.exp(given))
    assert_allclose(model.exact_log_likelihood(EVERY), mixture)
    assert_array_equal(model.exact_log_likelihood(X, y), np.where(y == "a", *model_of_each(model, X)))
    drawn = model.sample(300, random_state=0, y="a")
    assert drawn[:, 0].mean() > 0.8 > 0.2 > model.sample(300, random_state=0, y="b")[:, 0].mean()
    assert model.score_samples(X, y).mean() < model.exact_log_likelihood(X, y).mean()


def model_of_each(model, X):
    return [model.exact_log_likelihood(X, label) for label in "ab"]


@settings(max_examples=12)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 10**6))
def test_bound_estimate_and_probability_are_in_order(hidden, seed):
    X = np.random.default_rng(seed).integers(0, 2, (30, 5)).astype(float)
    model = machine(hidden_layer_sizes=hidden, max_iter=5, random_state=seed).fit(X)
    exact, bound, estimate = model.exact_log_likelihood(X), model.score_samples(X), model.log_likelihood(X)
    assert bound.mean() < exact.mean() + 0.02  # the mean of sixteen draws each
    assert bound.mean() < estimate.mean() + 0.02
    assert estimate.mean() == pytest.approx(exact.mean(), abs=0.1)


def test_what_is_learnt_is_the_distribution():
    X = caused(400)
    model = machine(hidden_layer_sizes=(4,), max_iter=100, batch_size=50, learning_rate_init=0.1).fit(X)
    counts = np.array([np.mean((row == X).all(axis=1)) for row in EVERY])
    seen = counts > 0
    p = X.mean(axis=0)
    independent = np.log(np.where(EVERY > 0, p, 1 - p)).sum(axis=1)
    divergences = [
        counts[seen] @ (np.log(counts[seen]) - q[seen]) for q in (model.exact_log_likelihood(EVERY), independent)
    ]
    assert divergences[0] < 0.1
    assert divergences[1] > 1.0
    assert model.history_.objective[-1] < model.history_.objective[0] - 0.5


def test_each_phase_moves_its_own_weights_along_its_gradient():
    X = torch.from_numpy(caused(8))
    for phase, moved in (("wake", ("prior", "generative")), ("sleep", ("recognition",))):
        model = machine(max_iter=2).fit(caused(8))
        module = model.module_.double()
        for name, p in module.named_parameters():
            p.requires_grad_(name.startswith(moved))

        def losses(module, batch, phase=phase):
            with drawing_from(3, 0, 0, torch.device("cpu")):
                if phase == "wake":
                    return module.wake_losses(batch.inputs[0], None)[0]
                return module.sleep_losses(batch.n_rows, None)

        assert check_module(module, losses, [MiniBatch((X,))], n_coordinates=12).holds
        # and one backward pass of the fit gives each part the gradient of its phase, and nothing else
        for p in module.parameters():
            p.requires_grad_(True)
            p.grad = None
        with drawing_from(3, 0, 0, torch.device("cpu")):
            model._row_losses()(module.train(), MiniBatch((X,))).sum().backward()
        if phase == "wake":
            together = {name: p.grad.clone() for name, p in module.named_parameters()}
            module.zero_grad()
            losses(module, MiniBatch((X,))).sum().backward()
            for name, p in module.named_parameters():
                if name.startswith(moved):
                    assert_array_equal(p.grad, together[name])
                else:
                    assert p.grad is None
                    assert together[name].abs().sum() > 0


def test_the_value_of_the_objective_is_the_negative_bound():
    X = caused(300)
    model = machine(max_iter=60).fit(X)
    assert model._mean_loss(model.module_, model._rows_of(X)) == pytest.approx(-model.score(X), abs=0.1)


def test_draws_have_the_probabilities_of_the_model():
    model = machine(max_iter=20).fit(caused(200))
    drawn = model.sample(4000, random_state=1)
    counts = np.array([np.sum((row == drawn).all(axis=1)) for row in EVERY])
    expected = 4000 * np.exp(model.exact_log_likelihood(EVERY))
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_images_and_what_stands_for_a_bit(tmp_path):
    X = (load_digits().images[:300] * 15).astype(np.uint8)
    model = machine(hidden_layer_sizes=(12, 6), max_iter=8).fit(X)
    assert set(np.unique(model.sample(5, random_state=0))) == {0, 255}
    assert model.sample(5, random_state=0).shape == (5, 8, 8)
    assert [h.shape for h in model.hidden_layers(X[:7])] == [(7, 12), (7, 6)]
    assert model.plot_samples(9, X=X).axes
    bits = (X > 127).astype(float)
    same = machine(hidden_layer_sizes=(12, 6), max_iter=8).fit(bits.astype(np.float32))
    assert_allclose(same.exact_log_likelihood(bits[:5]), model.exact_log_likelihood(X[:5]), rtol=1e-5)
    whole = machine(hidden_layer_sizes=(12, 6), max_iter=8).fit((X > 127).astype(np.uint8))  # bytes that are bits
    assert set(np.unique(whole.sample(5, random_state=0))) == {0, 1}
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").exact_log_likelihood(X[:5]), model.exact_log_likelihood(X[:5]))


def test_tables_above_a_threshold():
    X = pd.DataFrame(3 + 2 * caused(100), columns=list("abcd"))
    model = machine(threshold=4.0, max_iter=10).fit(X)
    assert_allclose(model.score_samples(X), machine(max_iter=10).fit(caused(100)).score_samples(caused(100)))
    assert list(model.sample(3).columns) == list("abcd")


def test_what_is_refused():
    X = caused(40)
    model = machine(hidden_layer_sizes=(13,), max_iter=1).fit(X)
    with pytest.raises(MemoryBudgetError, match=r"13 bits has 2\^13 states.*log_likelihood"):
        model.exact_log_likelihood(X)
    with pytest.raises(DataError, match="4 features"):
        machine(max_iter=1).fit(X).exact_log_likelihood(X[:, :2])
    for options in ({"hidden_layer_sizes": (0,)}, {"hidden_layer_sizes": ()}, {"threshold": np.nan}):
        with pytest.raises((ParameterError, DataError), match=next(iter(options))):
            machine(**options).fit(X)
    named = machine(max_iter=1, conditional=True).fit(X, X[:, 0])
    with pytest.raises(DataError, match="conditional; expected a label"):
        named.hidden_layers(X)
    with pytest.raises(DataError, match="NaN"):
        machine().fit(np.full((5, 3), np.nan))


def test_steps_beyond_all_numbers_end_with_a_name():
    """Bits are drawn by scores that are no numbers before the loss is looked at."""
    X, v = np.random.default_rng(0).normal(size=(60, 40)), np.tile([1e100, 0.5], 30)
    with pytest.raises(ConvergenceError, match="no longer a number"):
        ep.WakeSleep(batch_size=4, max_iter=3, random_state=0).fit(X.astype(np.float32), sample_weight=v)
