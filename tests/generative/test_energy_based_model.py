"""Energies: chains against known densities, log Z against integrals, gradients, modes, outliers, labels, images."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from planted_modes import eight_gaussians, two_moons
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.generative.energy._chains import annealed, log_mean, move
from epicycle.generative.energy._draws import Draws
from epicycle.generative.evaluate import mode_collapse
from epicycle.nets.training._batches import ArrayRows, MiniBatch
from epicycle.nets.training._randomness import drawing_from

CPU = torch.device("cpu")
#: Two players circle, so they go slowly, and the mean of their weights is kept.
ADVERSARIAL = {
    "method": "adversarial",
    "learning_rate": "constant",
    "learning_rate_init": 3e-3,
    "average": 0.99,
    "energy_penalty": 0.05,
    "max_iter": 120,
}


def energy(**options):
    return ep.EnergyBasedModel(
        **{"hidden_layer_sizes": (64, 64), "batch_size": 128, "max_iter": 50, "n_moves": 5, "n_chains": 128,
           "n_levels": 0, "learning_rate_init": 1e-2, "random_state": 0, **options}
    )  # fmt: skip


@pytest.fixture(scope="module")
def of_two_modes():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal([-2, 0], 0.5, (400, 2)), rng.normal([2, 0], 0.5, (400, 2))])
    return energy(n_levels=200, n_annealed=100, energy_penalty=0.001, random_state=1).fit(X), X


def log_standard(u):
    return -(u.square().sum(1) + 2 * np.log(2 * np.pi)) / 2


# ------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("n_leapfrog", [1, 5])
def test_moves_leave_a_density_as_it_is(n_leapfrog):
    """From draws of a skewed density, after moves with a step of any size, its moments are the same."""
    rate = torch.tensor([1.0, 0.5], dtype=torch.float64)

    def log_density(u):  # of logarithms of gamma variables
        return (3 * u - rate * u.exp()).sum(1)

    rng = np.random.default_rng(0)
    u = torch.from_numpy(np.log(rng.gamma(3.0, 1 / rate.numpy(), (6000, 2))))
    with drawing_from(0, 0, 0, CPU):
        moved = move(log_density, u, torch.tensor(0.6), 15, n_leapfrog, adapt=False)
    assert 0.2 < moved.accepted < 1
    found = moved.u.numpy()
    assert_allclose(found.mean(axis=0), 0.9228 - np.log(rate.numpy()), atol=0.03)  # digamma(3)
    assert_allclose(found.var(axis=0), 0.3949, atol=0.03)  # trigamma(3)
    assert float((moved.u - u).abs().mean()) > 0.3


@pytest.mark.parametrize("n_leapfrog", [1, 5])
def test_chains_find_a_normal_density_and_their_step(n_leapfrog):
    scale = torch.tensor([2.0, 0.5], dtype=torch.float64)
    start = torch.full((2000, 2), 3.0, dtype=torch.float64)
    with drawing_from(1, 0, 0, CPU):
        moved = move(lambda u: -(u / scale).square().sum(1) / 2, start, torch.tensor(0.2), 200, n_leapfrog)
        again = move(lambda u: -(u / scale).square().sum(1) / 2, moved.u, moved.step, 10, n_leapfrog, adapt=False)
    assert again.accepted == pytest.approx({1: 0.6, 5: 0.8}[n_leapfrog], abs=0.12)
    assert_allclose(again.u.numpy().std(axis=0), scale, rtol=0.1)


@given(st.floats(0.3, 3.0), st.floats(-2.0, 2.0), st.integers(0, 1000))
@settings(max_examples=30)
def test_annealed_importance_sampling_finds_a_known_constant_within_its_error(precision, shift, seed):
    """f = exp(-c |u - m|^2 / 2): E f is a product of normal integrals."""
    with drawing_from(seed, 0, 0, CPU):
        u = torch.randn((150, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        v = torch.randn((30, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(seed + 1))

        def log_f(x):
            return -precision * (x - shift).square().sum(1) / 2

        steps = annealed(log_f, log_standard, v, torch.tensor(0.5, dtype=torch.float64), 60, 1)[2]
        led, log_w, _ = annealed(log_f, log_standard, u, steps, 60, 1)
    value, error = log_mean(log_w)
    exact = -np.log1p(precision) - precision * shift**2 / (1 + precision)
    assert abs(value - exact) < 5 * error + 0.01
    assert error < 0.3
    assert_allclose(led.mean(0), precision * shift / (1 + precision), atol=0.5)


# ------------------------------------------------------------------------------------------- the model


def test_log_z_is_the_integral_within_its_error(of_two_modes):
    model, X = of_two_modes
    side = np.linspace(-7, 7, 281)
    grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    dev, mean = np.array(model.architecture_["deviation"]), np.array(model.architecture_["mean"])
    exact = logsumexp(-model.energy(mean + dev * grid)) + 2 * np.log(side[1] - side[0])
    value, error = model.log_normalizer_[0], model.log_normalizer_error_[0]
    assert 0 < error < 0.3
    assert abs(value - exact) < 4 * error
    assert f"standard error of {error:.2g}" in model.certificate_.meaning
    cell = (side[1] - side[0]) ** 2 * dev.prod()
    assert np.exp(model.score_samples(mean + dev * grid)).sum() * cell == pytest.approx(1, abs=4 * error)
    # The density that the rows are from is about as likely.
    normal = -0.5 * (((np.abs(X[:, :1]) - 2) / 0.5) ** 2 + (X[:, 1:] / 0.5) ** 2) - np.log(2 * 2 * np.pi * 0.25)
    assert model.score(X) == pytest.approx(normal.mean(), abs=0.15)


def test_energies_tell_outliers(of_two_modes):
    model, X = of_two_modes
    odd = np.random.default_rng(1).uniform(-4, 4, (200, 2))
    odd = odd[np.hypot(np.abs(odd[:, 0]) - 2, odd[:, 1]) > 1.8]
    labels = np.r_[np.zeros(len(X)), np.ones(len(odd))]
    assert roc_auc_score(labels, model.energy(np.r_[X, odd])) > 0.97
    assert model.energy([[0.0, 3.0]])[0] > model.energy([[2.0, 0.0]])[0]


@pytest.mark.parametrize("method", ["persistent", "contrastive", "adversarial"])
def test_the_gradient_is_rows_less_draws(method):
    """Of the loss -mean f(x) + mean f(draws), with penalties, by differences with the same draws."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = energy(method=method, hidden_layer_sizes=(4,), max_iter=1, n_chains=6, noise=0.1).fit(X)
    batch = MiniBatch((torch.from_numpy(X),))
    draws = Draws(method, 2, 1, 0.3, 0.1, 0.1)
    module = model._build_module(model.architecture_).double()
    start = {name: value.clone() for name, value in module.state_dict().items()}
    turns = model._own_gradients(module, ArrayRows((X,)))
    turns.players["energy"] = draws.energy

    def value():
        module.load_state_dict({**module.state_dict(), **{n: start[n] for n in ("chains", "step")}})
        u = module.scale(batch.inputs[0])
        with drawing_from(3, 0, 0, CPU):
            noisy = u + 0.1 * module.noise(6)
            drawn, _ = draws._drawn(module, noisy, None)
        f, g = module(noisy, None), module(fixed[0] if fixed else drawn, None)
        return (-f + 0.1 * f.square() + g + 0.1 * g.square()).sum() / 6, drawn

    fixed = []
    fixed.append(value()[1])
    module.load_state_dict(start)
    with drawing_from(3, 0, 0, CPU):
        turns(batch, 0)
    weight = module.energy.last.weight
    with torch.no_grad():
        before, h = weight[0, 0].item(), 1e-6
        weight[0, 0] = before + h
        above = value()[0].item()
        weight[0, 0] = before - h
        below = value()[0].item()
    assert weight.grad[0, 0].item() == pytest.approx((above - below) / (2 * h), rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "persistent"},
        {"method": "persistent", "sampler": "hmc", "n_moves": 1},
        {"method": "contrastive"},
        ADVERSARIAL,
    ],
)
def test_samples_are_where_the_rows_are(options):
    X, k = two_moons(800)
    model = energy(**options).fit(X)
    drawn = model.sample(500, random_state=0)
    assert not mode_collapse(X, drawn, k).missing.any()
    away = np.sqrt(((drawn[:, None] - X[None, ::4]) ** 2).sum(-1)).min(1)
    assert np.mean(away < 0.35) > 0.8
    if options["method"] == "adversarial":
        assert {"energy_loss", "actor_loss"} <= set(model.history_)
    else:
        assert 0.2 < model.history_["accepted"][-1] < 0.95


def test_eight_modes_are_drawn():
    X, k = eight_gaussians(1000)
    drawn = energy(max_iter=50).fit(X).sample(800, random_state=0)
    assert mode_collapse(X, drawn, k).missing.sum() <= 1


def test_without_a_network_it_is_the_normal_density():
    """f = 0, where an untrained last layer is set to it: log Z = 0 and samples are normal."""
    X = np.random.default_rng(0).normal(size=(400, 2)) * [1, 3] + 5
    model = energy(max_iter=1).fit(X)
    with torch.no_grad():
        for p in model.module_.energy.last.parameters():
            p.zero_()
    model.n_levels = 10
    model._normalise()
    assert_allclose(model.log_normalizer_, 0, atol=1e-9)
    u = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = -(u**2).sum(axis=1) / 2 - np.log(2 * np.pi * X.std(axis=0).prod())
    assert_allclose(model.score_samples(X), expected, atol=1e-6)
    drawn = model.sample(2000, random_state=0)
    assert_allclose(np.cov(drawn.T) / np.cov(X.T).diagonal(), np.eye(2), atol=0.15)


def test_samples_follow_from_the_seed_and_not_from_the_threads(of_two_modes):
    model, _ = of_two_modes
    with ep.config(n_jobs=1):
        one = model.sample(1500, random_state=5, n_moves=5)
    with ep.config(n_jobs=4):
        assert_array_equal(model.sample(1500, random_state=5, n_moves=5), one)
    assert not np.array_equal(model.sample(1500, random_state=6, n_moves=5), one)


# ------------------------------------------------------------------------------------------- labels, forms, files


@pytest.mark.parametrize("options", [{"max_iter": 30}, {"max_iter": 30, "method": "contrastive"}, ADVERSARIAL])
def test_labels_of_unequal_shares(options):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.2, "few", "many")
    X = rng.normal(size=(600, 2)) * 0.5 + np.where(y == "few", -2.0, 2.0)[:, None]
    model = energy(conditional=True, n_levels=200, n_annealed=50, **options).fit(X, y)
    for name, sign in (("few", -1), ("many", 1)):
        assert np.mean(sign * model.sample(200, random_state=0, y=name)[:, 0] > 0) > 0.9
    assert model.log_normalizer_.shape == model.log_normalizer_error_.shape == (2,)
    given = np.array([model.score_samples(X[:50], name) for name in model.classes_])
    assert_allclose(model.score_samples(X[:50]), np.logaddexp.reduce(given + np.log(model.class_prior_)[:, None]))
    assert np.mean(model.classes_[given.argmax(axis=0)] == y[:50]) > 0.9
    with pytest.raises(ParameterError, match="y=None"):
        model.energy(X)
    weights = model.module_.chain_weights()
    chains = model.module_.chain_labels
    if "method" not in options:
        share = float(weights[chains == 0].sum() / weights.sum())
        assert share == pytest.approx(model.class_prior_[0], abs=1e-5)


@pytest.mark.parametrize("options", [{"channels": ()}, {"channels": (4, 8)}, {"channels": 4, "method": "adversarial"}])
def test_images(options):
    X = (16 * (load_digits().images[:100, :7] > 8)).astype(np.uint8)
    model = energy(
        max_iter=2, n_moves=2, n_chains=16, noise=0.1, batch_size=32, n_levels=5, n_annealed=4, **options
    ).fit(X)
    assert np.isfinite(model.score_samples(X[:4])).all()
    drawn = model.sample(3, random_state=0, n_moves=3)
    assert drawn.shape == (3, 7, 8)
    assert drawn.dtype == np.uint8
    assert model.energy(X[:4]).shape == (4,)
    assert model.plot_samples(4, X=X).axes


def test_frames_files_and_weights(tmp_path):
    X = pd.DataFrame(two_moons(200)[0], columns=["a", "b"])
    options = {"max_iter": 2, "n_levels": 10, "n_annealed": 5}
    model = energy(**options).fit(X)
    drawn = model.sample(5, random_state=0)
    assert list(drawn.columns) == ["a", "b"]
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    pd.testing.assert_frame_equal(loaded.sample(5, random_state=0), drawn)
    assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    X.to_parquet(tmp_path / "x.parquet")
    assert energy(**options).fit(ep.scan(tmp_path / "x.parquet")).sample(5, 0).shape == (5, 2)
    first = np.r_[np.ones(100), np.zeros(100)]
    weighted = energy(**options).fit(X.to_numpy(), sample_weight=first)
    assert_array_equal(weighted.energy(X.to_numpy()), energy(**options).fit(X.to_numpy()[:100]).energy(X.to_numpy()))


def test_what_is_refused(of_two_modes):
    model, X = of_two_modes
    with pytest.raises(DataError, match="NaN"):
        energy().fit(np.where(X > 3, np.nan, X))
    with pytest.raises(DataError, match="requires y"):
        energy(conditional=True).fit(X)
    for options in ({"method": "guess"}, {"sampler": "gibbs"}, {"n_moves": 0}, {"renewal": 1.5}, {"noise": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            energy(**options).fit(X)
    with pytest.raises(ParameterError, match="n_chains=1: every class needs a chain"):
        energy(conditional=True, n_chains=1).fit(X, X[:, 0] > 0)
    with pytest.raises(ParameterError, match="n_levels=0"):
        energy(max_iter=1).fit(X[:50]).score_samples(X)
    with pytest.raises(DataError, match="2 features"):
        model.energy(X[:, :1])
    with pytest.raises(ParameterError, match="n_moves=-1"):
        model.sample(3, n_moves=-1)
