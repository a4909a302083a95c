"""Diffusion models: noise, steps back and the bound against closed forms of a normal density; modes, labels, images."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from planted_modes import eight_gaussians
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.generative.diffusion._noise import denoised, levels, signal, step_back
from epicycle.generative.evaluate import mode_collapse
from epicycle.nets.training._randomness import drawing_from

MEAN, COVARIANCE = np.array([3.0, -2.0]), np.array([[1.0, 3.0], [3.0, 25.0]])
CPU = torch.device("cpu")


def normal_rows(n, seed=0):
    return np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, n)


def diffusion(**options):
    return ep.DiffusionModel(
        **{"hidden_layer_sizes": (64, 64), "max_iter": 30, "batch_size": 128, "random_state": 0,
           "learning_rate_init": 3e-3, **options}
    )  # fmt: skip


@pytest.fixture(scope="module")
def of_a_normal():
    return diffusion(max_iter=30).fit(normal_rows(3000))


def exact_noise(a, mean, covariance):
    """(x, t) -> (x_0, e), the conditional means given x_t of a normal x_0."""

    def estimate(x, t):
        S = a[t] * covariance + (1 - a[t]) * np.eye(len(mean))
        score = -np.linalg.solve(S, (x.numpy() - a[t] ** 0.5 * mean).T).T
        e = -((1 - a[t]) ** 0.5) * score
        return (x - (1 - a[t]) ** 0.5 * torch.from_numpy(e)) / a[t] ** 0.5, torch.from_numpy(e)

    return estimate


# ------------------------------------------------------------------------------------------- the noise


@given(st.sampled_from(["cosine", "linear"]), st.integers(2, 400))
@settings(max_examples=40)
def test_the_signal_falls_from_one_to_nearly_nothing(schedule, n_steps):
    a = signal(schedule, n_steps)
    assert a[0] == 1
    assert len(a) == n_steps + 1
    assert (np.diff(a) < 0).all()
    assert 0 < a[-1] < 0.05
    used = levels(n_steps, min(n_steps, 7))
    assert (used[0], used[-1]) == (n_steps, 0)
    assert (np.diff(used) < 0).all()


def test_the_linear_schedule_is_the_published_one():
    expected = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
    assert_allclose(signal("linear", 1000)[1:], expected, rtol=1e-12)


def test_a_step_back_draws_from_the_posterior():
    """q(x_s | x_t, x_0) of the normal chain, by conditioning its joint density."""
    a = signal("cosine", 50)
    t, s, x_0, x_t = 30, 20, 0.7, -0.4
    cov = np.sqrt(a[t] / a[s]) * (1 - a[s])  # of x_s and x_t given x_0
    mean = np.sqrt(a[s]) * x_0 + cov / (1 - a[t]) * (x_t - np.sqrt(a[t]) * x_0)
    variance = 1 - a[s] - cov**2 / (1 - a[t])
    e = (x_t - np.sqrt(a[t]) * x_0) / np.sqrt(1 - a[t])
    n = 40_000
    x, x0, noise = (torch.full((n, 1), value, dtype=torch.float64) for value in (x_t, x_0, e))
    with drawing_from(0, 0, 0, CPU):
        drawn = step_back(x, (x0, noise), float(a[t]), float(a[s]), 1.0).numpy()
    assert drawn.mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / n))
    assert drawn.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / n))


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_with_the_exact_score_the_chain_ends_in_the_density(eta):
    mean, covariance = np.array([0.5, -0.3]), np.array([[0.5, 0.3], [0.3, 0.8]])
    a = signal("cosine", 400)
    with drawing_from(1, 0, 0, CPU):
        x = torch.randn((20_000, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        drawn = denoised(x, exact_noise(a, mean, covariance), a, levels(400, 400), eta).numpy()
    assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    assert_allclose(np.cov(drawn.T), covariance, atol=0.03)


def test_ddim_draws_nothing_and_ddpm_does():
    a = signal("cosine", 60)
    estimate = exact_noise(a, np.zeros(2), np.eye(2))
    x = torch.randn((5, 2), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = {}
    for eta in (0.0, 1.0):
        for seed in (0, 1):
            with drawing_from(seed, 0, 0, CPU):
                found[eta, seed] = denoised(x, estimate, a, levels(60, 20), eta)
    assert torch.equal(found[0.0, 0], found[0.0, 1])
    assert not torch.equal(found[1.0, 0], found[1.0, 1])


# ------------------------------------------------------------------------------------------- what is learnt


def test_untrained_it_is_exact_for_standard_normal_rows():
    X = np.random.default_rng(0).normal(size=(300, 3))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = diffusion(max_iter=1, learning_rate_init=1e-12).fit(X)
    for t in (1, 500, 1000):
        assert_allclose(model.log_density_gradient(X, t), -X, atol=1e-6)


def test_the_score_of_a_normal_density_is_learnt(of_a_normal):
    model, a = of_a_normal, signal("cosine", 1000)
    shift, scale = np.array(model.architecture_["mean"]), np.array(model.architecture_["deviation"])
    mean, covariance = (MEAN - shift) / scale, COVARIANCE / np.outer(scale, scale)
    rng = np.random.default_rng(1)
    for t in (100, 300, 600, 900):
        S = a[t] * covariance + (1 - a[t]) * np.eye(2)
        u = rng.multivariate_normal(a[t] ** 0.5 * mean, S, 1000)
        exact = -np.linalg.solve(S, (u - a[t] ** 0.5 * mean).T).T / scale
        found = model.log_density_gradient(shift + scale * u, t)
        error = np.sqrt(np.mean((scale * (found - exact)) ** 2) * (1 - a[t]))  # of the noise, whose variance is 1
        assert error < 0.1
    assert_allclose(model.log_density_gradient(normal_rows(3), 1000).shape, (3, 2))


def test_the_bound_is_below_the_exact_density_and_near(of_a_normal):
    X = normal_rows(500, seed=2)
    exact = multivariate_normal(MEAN, COVARIANCE).logpdf(X)
    bound = of_a_normal.score_samples(X)
    assert bound.dtype == np.float64
    assert exact.mean() - 1.5 < bound.mean() < exact.mean() + 0.1
    far = MEAN + np.array([6.0, -30.0])
    assert of_a_normal.score_samples([far])[0] < bound.min()


@pytest.mark.parametrize("sampler", ["ddim", "ddpm"])
def test_samples_have_the_moments_of_the_density(of_a_normal, sampler):
    drawn = of_a_normal.sample(2000, random_state=0, sampler=sampler, n_steps=100)
    assert_allclose((drawn.mean(axis=0) - MEAN) / np.sqrt(np.diag(COVARIANCE)), 0, atol=0.15)
    assert_allclose(np.cov(drawn.T) / COVARIANCE, np.ones((2, 2)), atol=0.25)


def test_every_mode_is_drawn():
    X, k = eight_gaussians(1500)
    model = diffusion(max_iter=60).fit(X)
    drawn = model.sample(1500, random_state=0)
    found = mode_collapse(X, drawn, k)
    assert not found.collapsed
    assert_allclose(found.drawn_shares, 1 / 8, atol=0.06)
    centres = 2 * np.column_stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)])
    nearest = np.linalg.norm(drawn[:, None] - centres, axis=2).min(axis=1)
    assert np.mean(nearest < 0.5) > 0.9
    assert model.history_.objective[-1] < model.history_.objective[0]
    assert "no proof of optimality" in model.certificate_.meaning


def test_samples_follow_from_the_seed_and_not_from_the_threads(of_a_normal):
    for sampler in ("ddim", "ddpm"):
        with ep.config(n_jobs=1):
            one = of_a_normal.sample(2500, random_state=5, sampler=sampler, n_steps=4)
        with ep.config(n_jobs=4):
            assert_array_equal(of_a_normal.sample(2500, random_state=5, sampler=sampler, n_steps=4), one)
        assert not np.array_equal(of_a_normal.sample(2500, random_state=6, sampler=sampler, n_steps=4), one)


# ------------------------------------------------------------------------------------------- labels, forms, files


def test_labels_and_guidance():
    X, _ = eight_gaussians(800)
    y = np.array(["right", "left"])[(X[:, 0] < 0).astype(int)]
    model = diffusion(conditional=True, max_iter=40).fit(X, y)
    for guidance in (0.0, 1.0):
        drawn = model.sample(200, random_state=0, y="left", guidance=guidance)
        assert np.mean(drawn[:, 0] < 0.3) > 0.95
    given = np.array([model.score_samples(X[:20], name) for name in model.classes_])
    assert_allclose(model.score_samples(X[:20]), np.logaddexp.reduce(given + np.log(model.class_prior_)[:, None]))
    assert np.mean(model.classes_[given.argmax(axis=0)] == y[:20]) > 0.8
    assert model.log_density_gradient(X[:5], 500).shape == (5, 2)
    strict = diffusion(conditional=True, max_iter=1, label_dropout=0.0).fit(X, y)
    with pytest.raises(ParameterError, match=r"guidance=2\.0.*label_dropout=0"):
        strict.sample(3, guidance=2.0)
    with pytest.raises(ParameterError, match="y=None"):
        strict.log_density_gradient(X[:5])


@pytest.mark.parametrize("channels", [(), (8, 8)])
def test_images(channels):
    X = (16 * (load_digits().images[:200, :7] > 8)).astype(np.uint8)  # an odd side
    model = diffusion(channels=channels, n_steps=50, max_iter=3, batch_size=32).fit(X)
    drawn = model.sample(3, random_state=0, n_steps=10)
    assert drawn.shape == (3, 7, 8)
    assert drawn.dtype == np.uint8
    assert drawn.max() <= 16
    assert model.plot_samples(4, X=X).axes
    assert model.score_samples(X[:4]).shape == (4,)
    assert model.log_density_gradient(X[:4], 25).shape == (4, 7, 8)
    colours = np.stack([X, 16 - X, X], axis=3)[:60]
    assert diffusion(channels=channels, n_steps=20, max_iter=1).fit(colours).sample(2).shape == (2, 7, 8, 3)


def test_frames_files_and_weights(tmp_path):
    X = pd.DataFrame(normal_rows(300), columns=["a", "b"])
    model = diffusion(max_iter=2).fit(X)
    drawn = model.sample(5, random_state=0)
    assert list(drawn.columns) == ["a", "b"]
    model.save(tmp_path / "m.epi")
    pd.testing.assert_frame_equal(ep.load(tmp_path / "m.epi").sample(5, random_state=0), drawn)
    assert_array_equal(ep.load(tmp_path / "m.epi").score_samples(X), model.score_samples(X))
    X.to_parquet(tmp_path / "x.parquet")
    streamed = diffusion(max_iter=2).fit(ep.scan(tmp_path / "x.parquet"))
    assert streamed.score(X) == pytest.approx(model.score(X), abs=3.0)
    first = np.r_[np.ones(150), np.zeros(150)]
    weighted = diffusion(max_iter=2).fit(X.to_numpy(), sample_weight=first)
    assert_array_equal(weighted.sample(5, 0), diffusion(max_iter=2).fit(X.to_numpy()[:150]).sample(5, 0))


def test_what_is_refused(of_a_normal):
    X = normal_rows(20)
    with pytest.raises(DataError, match="NaN"):
        diffusion().fit(np.where(X > 3, np.nan, X))
    with pytest.raises(DataError, match="requires y"):
        diffusion(conditional=True).fit(X)
    for options in ({"n_steps": 1}, {"schedule": "square"}, {"label_dropout": 1.5}, {"hidden_layer_sizes": 0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            diffusion(**options).fit(X)
    with pytest.raises(ParameterError, match="sampler='euler'"):
        of_a_normal.sample(3, sampler="euler")
    with pytest.raises(ParameterError, match="n_steps=0"):
        of_a_normal.sample(3, n_steps=0)
    with pytest.raises(ParameterError, match=r"guidance=1\.0"):
        of_a_normal.sample(3, guidance=1.0)
    for t in (0, 1001):
        with pytest.raises(ParameterError, match=f"t={t}"):
            of_a_normal.log_density_gradient(X, t)
    with pytest.raises(DataError, match="2 features"):
        of_a_normal.score_samples(X[:, :1])
    with pytest.raises(DataError, match="fitted without labels"):
        of_a_normal.sample(3, y=1)
