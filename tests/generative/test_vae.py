"""Variational auto-encoders: bounds against exact likelihoods, gradients, collapse, images, labels, files."""

import numpy as np
import pandas as pd
import pytest
import torch
from coder_samples import on_a_curve
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import CollapseWarning, DataError, ParameterError
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import drawing_from

DIGITS, NAMES = load_digits().images / 16, load_digits().target
BITS = (DIGITS > 0.5).astype(float)


def vae(**options):
    return ep.VAE(**{"n_codes": 2, "hidden_layer_sizes": (16,), "max_iter": 20, "learning_rate_init": 0.01,
                     "random_state": 0, **options})  # fmt: skip


def exact_of_linear_decoder(model, X):
    """log N(x; b, W W' + diag sigma^2), in the units of X."""
    module, a = model.module_, model.architecture_
    (layer,) = module.decoder.linear
    W, b = (w.detach().double().numpy() for w in (layer.weight, layer.bias))
    sigma = np.exp(module.log_noise.detach().double().numpy())
    mean, deviation = np.array(a["mean"]), np.array(a["deviation"])
    covariance = deviation[:, None] * (W @ W.T + np.diag(sigma**2)) * deviation
    return multivariate_normal(mean + deviation * b, covariance).logpdf(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bound_estimate_and_exact_likelihood_are_in_order(dtype):
    X = (on_a_curve(400)[0] * [1, 5, 0.1, 2, 3] + 7).astype(dtype)
    model = vae(hidden_layer_sizes=(), max_iter=40, learning_rate_init=0.05).fit(X)
    assert model.module_.decoder.linear[0].weight.dtype == getattr(torch, np.dtype(dtype).name)
    exact = exact_of_linear_decoder(model, X)
    bound, few, many = model.score_samples(X), model.log_likelihood(X, n_importance=20), model.log_likelihood(X)
    assert bound.dtype == many.dtype == np.float64
    assert bound.mean() < few.mean() + 0.005  # sixteen and twenty draws: their noise
    assert few.mean() < many.mean() + 0.005
    assert bound.mean() < many.mean() < exact.mean() + 0.005
    assert_allclose(many, exact, atol=0.25)
    assert exact.mean() == pytest.approx(many.mean(), abs=0.02)
    normal = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X).mean()
    assert abs(exact.mean() - normal) < 0.5  # two factors explain what there is


def test_of_bits_the_likelihood_is_a_sum_over_all_rows():
    """A density of three bits adds up to one, and its bound to less."""
    X = np.random.default_rng(0).integers(0, 2, (300, 3)).astype(float)
    X[:, 1] = X[:, 0]
    model = vae(decoder="bernoulli", max_iter=100, n_codes=1, learning_rate_init=0.03).fit(X)
    every = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], dtype=float)
    assert np.exp(model.log_likelihood(every, n_importance=5000)).sum() == pytest.approx(1, abs=0.02)
    assert np.exp(model.score_samples(every)).sum() < 1
    counts = np.array([np.mean((row == X).all(axis=1)) for row in every])
    assert_allclose(np.exp(model.log_likelihood(every)), counts, atol=0.08)
    assert set(np.unique(model.sample(100, random_state=0))) <= {0.0, 1.0}


@pytest.mark.parametrize("options", [{}, {"decoder": "bernoulli"}, {"n_importance": 4}, {"beta": 3.0}])
@pytest.mark.parametrize("conditional", [False, True])
def test_gradients_are_those_of_differences(options, conditional):
    rng = np.random.default_rng(0)
    X = rng.random((6, 3))
    y = rng.integers(0, 2, 6) if conditional else None
    model = vae(activation="tanh", hidden_layer_sizes=(4,), max_iter=1, conditional=conditional, **options).fit(X, y)
    losses = model._row_losses()

    def with_the_same_draws(module, batch):
        with drawing_from(3, 0, 0, torch.device("cpu")):
            return losses(module, batch)

    batch = MiniBatch((torch.from_numpy(X),), None if y is None else torch.from_numpy(y), torch.ones(6).double())
    assert check_module(model.module_, with_the_same_draws, [batch], n_coordinates=30).holds


def test_more_draws_of_the_objective_give_a_better_likelihood_of_the_model():
    X = on_a_curve(300)[0]
    one, ten = (vae(n_importance=k, max_iter=30).fit(X) for k in (1, 10))
    assert ten.log_likelihood(X).mean() > one.log_likelihood(X).mean() - 0.05
    assert -ten.history_.objective[-1] > -one.history_.objective[-1]


def test_a_code_that_says_nothing_is_told():
    X = on_a_curve(200)[0]
    with pytest.warns(CollapseWarning, match="posterior has collapsed"):
        model = vae(beta=1000.0, max_iter=40, learning_rate_init=0.05).fit(X)
    assert (model.code_divergences_ < 0.01).all()
    assert "0 of 2 entries of the code tell something" in model.certificate_.meaning
    model = vae(n_codes=6, max_iter=100, learning_rate_init=0.03).fit(X)
    used = int((model.code_divergences_ > 0.01).sum())
    assert 2 <= used < 6  # there are two numbers behind the rows
    assert f"{used} of 6 entries" in model.certificate_.meaning


def test_images_by_convolutions_and_their_codes():
    X = (255 * BITS[:300]).astype(np.uint8)[:, :7]  # odd and even sides
    model = vae(n_codes=4, channels=(4, 8), decoder="bernoulli", batch_size=16, max_iter=12).fit(X)
    assert model.sample(3, random_state=0).shape == (3, 7, 8)
    assert set(np.unique(model.sample(3, random_state=0))) == {0, 255}
    assert model.reconstruct(X[:5]).dtype == np.uint8
    assert model.encode(X[:5]).shape == (5, 4)
    assert model.plot_samples(9, X=X).axes
    floats = vae(n_codes=4, channels=(4, 8), decoder="bernoulli", batch_size=16, max_iter=12).fit(X / np.float32(255))
    assert_allclose(floats.score_samples(X / np.float32(255)), model.score_samples(X), rtol=1e-4)
    colours = np.stack([X, 255 - X, X], axis=3)
    model = vae(n_codes=4, channels=4, max_iter=5).fit(colours)
    assert model.sample(2, random_state=0).shape == (2, 7, 8, 3)
    assert model.log_likelihood(colours[:3], n_importance=10).shape == (3,)


def test_digits_are_reconstructed():
    model = vae(n_codes=8, decoder="bernoulli", hidden_layer_sizes=(128,), max_iter=30).fit(DIGITS[:1500])
    error = np.mean((model.reconstruct(DIGITS[1500:]) - DIGITS[1500:]) ** 2)
    assert error < 0.55 * DIGITS[1500:].var(axis=0).mean()
    assert model.history_.objective[-1] < model.history_.objective[0]


def test_bits_are_drawn_anew_of_probabilities():
    X = np.clip(DIGITS[:300], 0.1, 0.9)
    model = vae(decoder="bernoulli", binarize=True, max_iter=5).fit(X)
    assert_array_equal(model.log_likelihood(X, n_importance=20), model.log_likelihood(X, n_importance=20))
    # The bits of a row are the same for all draws: the estimate is of one probability.
    assert model.log_likelihood(X, n_importance=500).mean() < -0.3 * 64
    once = (np.random.default_rng(0).random(X.shape) < X).astype(float)
    assert_allclose(model.score_samples(once).mean(), model.score_samples(X).mean(), rtol=0.05)


def test_labels():
    X, y = DIGITS[NAMES < 3], np.array(["zero", "one", "two"])[NAMES[NAMES < 3]]
    model = vae(n_codes=4, decoder="bernoulli", conditional=True, hidden_layer_sizes=(64,), max_iter=30).fit(X, y)
    judge = ep.LogisticRegression().fit(X.reshape(len(X), -1), y)
    for name in ("zero", "one", "two"):
        codes = np.random.default_rng(0).normal(size=(40, 4))
        assert np.mean(judge.predict(model.decode(codes, name).reshape(40, -1)) == name) > 0.9
    given = np.array([model.score_samples(X[:30], name) for name in model.classes_])
    assert_allclose(model.score_samples(X[:30]), np.logaddexp.reduce(given + np.log(model.class_prior_)[:, None]))
    assert (model.log_likelihood(X[:30]) >= given.max(axis=0) + np.log(0.3) - 1).all()
    assert np.mean(model.classes_[given.argmax(axis=0)] == y[:30]) > 0.9  # Bayes' rule
    assert model.latent_traversal([0], n_steps=3, y="one").shape == (1, 3, 8, 8)
    with pytest.raises(DataError, match="conditional"):
        model.encode(X)


def test_a_pipeline_of_codes():
    X = pd.DataFrame(on_a_curve(300)[0], columns=list("abcde"))
    model = vae(max_iter=10).fit(X)
    assert_array_equal(model.transform(X), model.encode(X))
    assert list(model.get_feature_names_out()) == ["vae0", "vae1"]
    assert list(model.reconstruct(X).columns) == list("abcde")
    assert_allclose(model.fit_transform(X), model.encode(X))


def test_weights_are_repetitions():
    X = on_a_curve(60)[0]
    v = np.arange(60) % 3
    options = {"batch_size": 1000, "max_iter": 150, "hidden_layer_sizes": ()}
    weighted = vae(**options).fit(X, sample_weight=v)
    repeated = vae(**options).fit(np.repeat(X, v, axis=0))
    assert weighted.score(X) == pytest.approx(repeated.score(X), abs=0.3)


def test_ten_thousand_images_in_a_second():
    """Processor time, since other work may run: an architecture for MNIST, untrained but for one batch."""
    import time

    X = (np.random.default_rng(0).random((64, 28, 28)) < 0.2).astype(np.float32)
    model = ep.VAE(32, decoder="bernoulli", hidden_layer_sizes=(512, 256), max_iter=1, random_state=0).fit(X)
    model.sample(2000, random_state=0)
    began = time.process_time()
    model.sample(10_000, random_state=0)
    assert time.process_time() - began < 2.0  # of two threads


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"decoder": "bernoulli"}, np.array([[0.0, 2.0], [1.0, 0.5]]), "between 0 and 1.*0 to 2"),
        ({"decoder": "bernoulli"}, np.array([[0.0, -0.5], [1.0, 0.5]]), "between 0 and 1"),
        ({"channels": (4,)}, np.ones((5, 3)), "channels=.*X is a table"),
    ],
)
def test_what_is_refused(options, X, message):
    with pytest.raises((DataError, ParameterError), match=message):
        vae(**options).fit(X)


def test_arguments_that_do_not_go_together():
    X = on_a_curve(30)[0]
    with pytest.raises(ParameterError, match="importance-weighted bound"):
        vae(beta=2.0, n_importance=5).fit(X)
    with pytest.raises(ParameterError, match="decoder='bernoulli'"):
        vae(binarize=True).fit(X)
    for name in ("n_codes", "n_importance", "hidden_layer_sizes", "channels"):
        with pytest.raises(ParameterError, match=name):
            vae(**{name: 0}).fit(X)
    model = vae(max_iter=1).fit(X)
    with pytest.raises(ParameterError, match="n_importance=0"):
        model.log_likelihood(X, n_importance=0)
    bits = vae(decoder="bernoulli", max_iter=1).fit(X > 0)
    with pytest.raises(DataError, match="between 0 and 1"):
        bits.score_samples(3 * X)
