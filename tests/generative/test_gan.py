"""Adversarial networks: games against closed forms, gradients, modes in the plane, collapse, labels, images, files."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from planted_modes import PLANTED, eight_gaussians
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import CollapseWarning, DataError, ParameterError
from epicycle.generative.adversarial._compared import Compared
from epicycle.generative.adversarial._losses import GAMES, Players
from epicycle.generative.evaluate import mode_collapse
from epicycle.nets.training._batches import ArrayRows, MiniBatch
from epicycle.nets.training._randomness import drawing_from, generator

CPU = torch.device("cpu")
LOSSES = list(GAMES)


def gan(**options):
    return ep.GAN(
        **{
            "n_codes": 4,
            "hidden_layer_sizes": (64, 64),
            "batch_size": 128,
            "max_iter": 100,
            "random_state": 0,
            **options,
        }
    )


def quiet_fit(model, X, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modes that short fits leave out, and of a fit that was stopped
        return model.fit(X, *args, **kwargs)


class StopAt:
    """Asks to stop after so many iterations."""

    def __init__(self, n):
        self.n = n

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        return fitted_estimator is not None and fitted_estimator.n_iter_ >= self.n

    def teardown(self, estimator, context):
        pass


@pytest.fixture(scope="module")
def of_three_epochs():
    return quiet_fit(gan(max_iter=3), eight_gaussians(300)[0])


# ------------------------------------------------------------------------------------------- the games


def test_the_games_are_their_formulas():
    f = torch.linspace(-4, 4, 9, dtype=torch.float64)
    s = 1 / (1 + np.exp(-f.numpy()))
    expected = {
        "minimax": (-np.log(s), -np.log(1 - s), np.log(1 - s)),
        "non_saturating": (-np.log(s), -np.log(1 - s), -np.log(s)),
        "wasserstein": (-f.numpy(), f.numpy(), -f.numpy()),
        "hinge": (np.maximum(0, 1 - f.numpy()), np.maximum(0, 1 + f.numpy()), -f.numpy()),
    }
    for name, game in GAMES.items():
        for loss, formula in zip(game, expected[name], strict=True):
            assert_allclose(loss(f), formula, atol=1e-12)


class LinearCritic(torch.nn.Module):
    """f(x) = |x|^2 / 2, whose slope at x is x, and a generator that draws zeros."""

    class Zeros(torch.nn.Module):
        def drawn(self, n, labels):
            return torch.zeros((n, 2), dtype=torch.float64), None

    def __init__(self):
        super().__init__()
        self.generator = self.Zeros()

    def scale(self, x):
        return x

    def critic(self, x, labels):
        return x.square().sum(1) / 2


def test_penalties_are_those_of_a_critic_whose_slope_is_known():
    X = torch.tensor([[3.0, 4.0], [0.0, 2.0]], dtype=torch.float64)
    batch, module = MiniBatch((X,)), LinearCritic()
    f = X.square().sum(1) / 2
    with drawing_from(0, 0, 0, CPU):
        real, drawn = Players("hinge", 0.5).critic(module, batch)
    assert_allclose(real.detach(), torch.relu(1 - f) + 0.5 * torch.tensor([25.0, 4.0]) / 2)
    assert_allclose(drawn.detach(), torch.ones(2))
    with drawing_from(0, 0, 0, CPU):
        penalised = Players("wasserstein", 10.0).critic(module, batch)[0].detach()
    with drawing_from(0, 0, 0, CPU):  # the same points between rows and zeros
        t = torch.rand((2, 1), generator=generator(), dtype=torch.float64)[:, 0]
    size = t * torch.tensor([5.0, 2.0])
    assert_allclose(penalised, -f + 10 * (size - 1).square())


@pytest.mark.parametrize("loss", LOSSES)
def test_each_player_moves_alone_down_its_own_loss(loss):
    """The gradients of a turn are differences of the player's loss, and the other player has none."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = quiet_fit(gan(loss=loss, max_iter=1, hidden_layer_sizes=(4,), n_codes=2), X)
    module, players = model._build_module(model.architecture_).double(), model._players()
    batch = MiniBatch((torch.from_numpy(X),))
    turns = model._own_gradients(module, ArrayRows((X,)))
    for step, name in ((0, "critic"), (len(turns.order) - 1, "generator")):

        def value(name=name):
            with drawing_from(3, 0, 0, CPU):
                return sum(part.sum() for part in getattr(players, name)(module, batch) if part is not None) / 6

        with drawing_from(3, 0, 0, CPU):
            turns(batch, step)
        other = {"critic": "generator", "generator": "critic"}[name]
        assert all(p.grad is None for p in getattr(module, other).parameters())
        for p in getattr(module, name).parameters():
            with torch.no_grad():
                before, h = p.view(-1)[0].item(), 1e-6
                p.view(-1)[0] = before + h
            above = value().item()
            with torch.no_grad():
                p.view(-1)[0] = before - h
            below = value().item()
            with torch.no_grad():
                p.view(-1)[0] = before
            assert p.grad.view(-1)[0].item() == pytest.approx((above - below) / (2 * h), rel=1e-4, abs=1e-7)


# ------------------------------------------------------------------------------------------- modes


def near(drawn, X):
    """The share of drawn rows within 0.1 of a real one."""
    return np.mean(np.sqrt(((drawn[:, None] - X[None]) ** 2).sum(-1)).min(1) < 0.1)


@pytest.mark.parametrize("name", list(PLANTED))
def test_every_mode_is_drawn(name):
    X, k = PLANTED[name](1000)
    model = quiet_fit(gan(max_iter=200), X)  # a small part of a mode may be told as missing
    drawn = model.sample(1000, random_state=0)
    assert not mode_collapse(X, drawn, k).missing.any()
    normal = np.random.default_rng(0).multivariate_normal(X.mean(0), np.cov(X.T), 1000)
    if name != "rings":  # which are all drawn, but not sharply after so few rounds
        assert near(drawn, X) > near(normal, X) + 0.15  # the parts, not only their mean and spread
    assert model.coverage_ > 0.85
    assert model.history_["coverage"][-1] > model.history_["coverage"][0] - 0.2
    assert {"critic_loss", "generator_loss", "gradient_norm"} <= set(model.history_)
    assert "no mode collapse" in model.certificate_.meaning or "regions" in model.certificate_.meaning
    assert "no proof of optimality" in model.certificate_.meaning


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "wasserstein", "critic_steps": 2, "gradient_penalty": 1.0, "average": 0.99, "max_iter": 200},
        {"loss": "hinge"},
        {"loss": "minimax"},
    ],
)
def test_other_games_draw_every_mode(options):
    X, k = eight_gaussians(1000)
    model = quiet_fit(gan(**options), X)
    found = mode_collapse(X, model.sample(1000, random_state=0), k)
    assert found.missing.sum() <= 1
    assert model.coverage_ > 0.8


def test_a_generator_that_collapses_is_named():
    X, _ = eight_gaussians(400)
    with pytest.warns(CollapseWarning, match=r"GAN: mode collapse: \d+ of 10 regions with \d+%"):
        model = gan(max_iter=1, learning_rate_init=1e-9).fit(X)
    assert model.coverage_ < 0.7
    assert "mode collapse" in model.certificate_.meaning
    with pytest.warns(CollapseWarning, match="rows repeat each other|not drawn"):
        gan(max_iter=1, learning_rate_init=1e-9, n_codes=1, hidden_layer_sizes=(1,)).fit(X)


def test_weights_choose_the_rows_that_draws_are_compared_with():
    X = np.r_[np.full((50, 2), -1.0), np.full((50, 2), 1.0)] + 0.01 * np.random.default_rng(0).normal(size=(100, 2))
    module = quiet_fit(gan(max_iter=1), X).module_
    weight = np.r_[np.full(50, 1e-9), np.ones(50)]
    real = Compared(module, ArrayRows((X,), None, weight, dtype=np.float64)).real
    assert (module.scale.inverse(real.to(module.scale.mean)) > 0).all()


def test_spectral_norms_are_one():
    model = quiet_fit(gan(spectral_norm=True, max_iter=30), eight_gaussians(300)[0])
    critic = model.module_.critic
    linear = [layer for layer in critic.modules() if isinstance(layer, torch.nn.Linear)]
    assert len(linear) == 3
    for layer in linear:
        assert float(torch.linalg.matrix_norm(layer.weight.detach(), 2)) == pytest.approx(1, abs=0.1)
    assert any(name.endswith("_u") for name in model.module_.states)


# ------------------------------------------------------------------------------------------- labels, forms, files


def test_labels():
    X, _ = eight_gaussians(600)
    y = np.array(["low", "high"])[(X[:, 1] > 0).astype(int)]
    X, y = X[np.abs(X[:, 1]) > 0.5], y[np.abs(X[:, 1]) > 0.5]
    model = quiet_fit(gan(conditional=True, max_iter=80), X, y)
    for name, sign in (("low", -1), ("high", 1)):
        assert np.mean(sign * model.sample(200, random_state=0, y=name)[:, 1] > 0) > 0.9
    assert model.decode(np.zeros((1, 4)), "high").shape == (1, 2)
    with pytest.raises(DataError, match="conditional"):
        model.decode(np.zeros((1, 4)))


@pytest.mark.parametrize("channels", [(), (4, 8)])
def test_images(channels):
    X = (16 * (load_digits().images[:97, :7] > 8)).astype(np.uint8)  # odd sides, and a last batch of one image
    model = quiet_fit(gan(channels=channels, max_iter=1, batch_size=32), X, load_digits().target[:97])
    drawn = model.sample(3, random_state=0)
    assert drawn.shape == (3, 7, 8)
    assert drawn.dtype == np.uint8
    assert drawn.max() <= 16
    assert model.plot_samples(4, X=X).axes
    assert model.latent_traversal([0], n_steps=3).shape == (1, 3, 7, 8)
    tiny = quiet_fit(gan(channels=channels, max_iter=1, batch_size=32), X[:33, :4, :4])  # one pixel in the middle
    assert tiny.sample(2).shape == (2, 4, 4)


def test_samples_follow_from_the_seed_and_not_from_the_threads(of_three_epochs):
    with ep.config(n_jobs=1):
        one = of_three_epochs.sample(3000, random_state=5)
    with ep.config(n_jobs=4):
        assert_array_equal(of_three_epochs.sample(3000, random_state=5), one)
    assert not np.array_equal(of_three_epochs.sample(3000, random_state=6), one)


def test_a_fit_that_was_cut_off_ends_in_the_same_bits(tmp_path):
    """Three batches an epoch and two players: the turn is not the same at the start of each epoch."""
    X, _ = eight_gaussians(300)
    whole = quiet_fit(gan(max_iter=4, critic_steps=3), X)

    half = gan(max_iter=4, critic_steps=3).set_callbacks(StopAt(1), ep.Checkpoint(tmp_path / "run.epi"))
    quiet_fit(half, X)
    resumed = ep.Checkpoint.resume(tmp_path / "run.epi")
    assert resumed.n_iter_ == 1
    quiet_fit(resumed, X)
    assert_array_equal(resumed.history_.objective, whole.history_.objective)
    assert_array_equal(resumed.sample(5, 0), whole.sample(5, 0))


def test_frames_files_and_weights(tmp_path):
    X = pd.DataFrame(eight_gaussians(300)[0], columns=["a", "b"])
    model = quiet_fit(gan(max_iter=2), X)
    drawn = model.sample(5, random_state=0)
    assert list(drawn.columns) == ["a", "b"]
    model.save(tmp_path / "m.epi")
    pd.testing.assert_frame_equal(ep.load(tmp_path / "m.epi").sample(5, random_state=0), drawn)
    X.to_parquet(tmp_path / "x.parquet")
    assert quiet_fit(gan(max_iter=2), ep.scan(tmp_path / "x.parquet")).sample(5, 0).shape == (5, 2)
    first = np.r_[np.ones(150), np.zeros(150)]
    weighted = quiet_fit(gan(max_iter=2), X.to_numpy(), sample_weight=first)
    assert_array_equal(weighted.sample(5, 0), quiet_fit(gan(max_iter=2), X.to_numpy()[:150]).sample(5, 0))


def test_ten_thousand_images_in_a_second():
    """Processor time, since other work may run: convolutions for MNIST, untrained but for one batch."""
    import time

    X = (np.random.default_rng(0).random((64, 28, 28)) < 0.2).astype(np.float32)
    model = quiet_fit(ep.GAN(max_iter=1, channels=(), hidden_layer_sizes=(256, 512), random_state=0), X)
    model.sample(1000, random_state=0)
    began = time.process_time()
    model.sample(10_000, random_state=0)
    assert time.process_time() - began < 2.0  # of two threads


def test_what_is_refused(of_three_epochs):
    X = eight_gaussians(30)[0]
    with pytest.raises(DataError, match="NaN"):
        gan().fit(np.where(X > 1, np.nan, X))
    with pytest.raises(DataError, match="requires y"):
        gan(conditional=True).fit(X)
    for options in ({"loss": "square"}, {"n_codes": 0}, {"gradient_penalty": -1.0}, {"critic_steps": 0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            gan(**options).fit(X)
    with pytest.raises(ParameterError, match="compile=True"):
        gan(compile=True).fit(X)
    with pytest.raises(DataError, match=r"Z: expected an array of shape \(n, 4\)"):
        of_three_epochs.decode(np.zeros((3, 5)))
    with pytest.raises(DataError, match="fitted without labels"):
        of_three_epochs.sample(3, y=1)
    with pytest.raises(ParameterError, match="n=0"):
        of_three_epochs.sample(0)
