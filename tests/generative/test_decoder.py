"""Decoders with learnt codes: linear ones against factor analysis, gaps, modes, gradients, images, labels, codes."""

import numpy as np
import pandas as pd
import pytest
import torch
from coder_samples import on_a_curve
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from real_images import images, needs
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, FactorAnalysis

import epicycle as ep
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.generative.autoencoders._decoder_module import factor_of_sum
from epicycle.nets.training._batches import MiniBatch

DIGITS, NAMES = load_digits().images / 16, load_digits().target


def decoder(**options):
    return ep.Decoder(**{"n_codes": 2, "hidden_layer_sizes": (16,), "max_iter": 15, "learning_rate_init": 0.01,
                         "random_state": 0, **options})  # fmt: skip


def factors(n=200):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(n, 5)) * [0.5, 0.3, 0.8, 0.4, 0.6]
    return (rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + noise) * [1, 10, 0.1, 1, 1] + 3


def linear(X, **options):
    """(a decoder without hidden layers, mean and covariance of the normal distribution that it is)."""
    model = decoder(hidden_layer_sizes=(), batch_size=50, max_iter=120, learning_rate_init=0.1, **options).fit(X)
    (layer,) = model.module_.decoder.linear
    W, b = (w.detach().double().numpy() for w in (layer.weight, layer.bias))
    s = np.exp(model.module_.log_noise.detach().double().numpy())
    mean, deviation = np.array(model.architecture_["mean"]), np.array(model.architecture_["deviation"])
    return model, mean + deviation * b, deviation[:, None] * (W @ W.T + np.diag(s**2)) * deviation


def test_a_linear_one_is_factor_analysis():
    X = factors()
    model, mean, covariance = linear(X)
    exact = multivariate_normal(mean, covariance).logpdf(X)
    assert_allclose(model.score_samples(X), exact, atol=1e-4)  # the posterior is normal: its draws are exact
    assert_allclose(model.log_likelihood(X, n_importance=3), exact, atol=1e-4)
    assert exact.mean() == pytest.approx(FactorAnalysis(2, tol=1e-8, max_iter=5000).fit(X).score(X), abs=0.03)
    drawn, unit = model.sample(20_000, random_state=0), np.sqrt(np.diag(covariance))
    assert_allclose(drawn.mean(axis=0) / unit, mean / unit, atol=0.04)
    assert_allclose(np.cov(drawn.T) / np.outer(unit, unit), covariance / np.outer(unit, unit), atol=0.04)


def test_missing_entries_are_left_out_of_the_density():
    X = factors()
    model, mean, covariance = linear(X)
    gaps = X.copy()
    gaps[:, [0, 3]] = np.nan
    seen = [1, 2, 4]
    expected = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(X[:, seen])
    assert_allclose(model.score_samples(gaps), expected, atol=1e-4)
    # what is decoded in the gaps is the conditional mean
    regression = covariance[np.ix_([0, 3], seen)] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    conditional = mean[[0, 3]] + (X[:, seen] - mean[seen]) @ regression.T
    assert_allclose(model.reconstruct(gaps)[:, [0, 3]], conditional, atol=1e-5 * X.std())
    assert np.isfinite(model.reconstruct(np.full((1, 5), np.nan))).all()
    assert_allclose(model.encode(np.full((1, 5), np.nan)), 0, atol=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_codes_and_densities_of_any_linear_decoder_and_any_gaps(seed):
    rng = np.random.default_rng(seed)
    model = decoder(n_codes=3, hidden_layer_sizes=(), max_iter=1).fit(rng.normal(size=(8, 4)))
    W, b, s = rng.normal(size=(4, 3)), rng.normal(size=4), rng.uniform(0.2, 2, size=4)
    with torch.no_grad():
        (layer,) = model.module_.decoder.linear
        for weight, value in ((layer.weight, W), (layer.bias, b), (model.module_.log_noise, np.log(s))):
            weight.copy_(torch.from_numpy(value))
    mean, deviation = np.array(model.architecture_["mean"]), np.array(model.architecture_["deviation"])
    U = np.where(rng.random((12, 4)) < 0.4, np.nan, rng.normal(size=(12, 4)))
    found = model.encode(mean + deviation * U), model.score_samples(mean + deviation * U)
    for u, z, density in zip(U, *found, strict=True):
        seen = ~np.isnan(u)
        V = W[seen] / s[seen, None] ** 2
        assert_allclose(z, np.linalg.solve(W[seen].T @ V + np.eye(3), V.T @ (u - b)[seen]), atol=1e-6)
        covariance = W[seen] @ W[seen].T + np.diag(s[seen] ** 2)
        expected = multivariate_normal(b[seen], covariance).logpdf(u[seen]) if seen.any() else 0.0
        assert density == pytest.approx(expected - np.log(deviation[seen]).sum(), abs=1e-4)


def test_gaps_in_the_fit():
    X = factors(250)
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.25, np.nan, X)
    model, *_ = linear(gaps)
    whole, *_ = linear(X)
    assert model.score(X) > whole.score(X) - 0.15
    filled, hidden = model.reconstruct(gaps), np.isnan(gaps)
    errors = ((filled - X) / X.std(axis=0))[hidden], ((X.mean(axis=0) - X) / X.std(axis=0))[hidden]
    assert np.mean(errors[0] ** 2) < 0.6 * np.mean(errors[1] ** 2)


def test_codes_are_modes():
    X = on_a_curve(60)[0]
    model = decoder(activation="tanh", max_iter=30).fit(X)
    module, Z = model.module_, model.encode(X)
    u = module.scale(torch.from_numpy(X))

    def value(z, i):
        with torch.no_grad():
            return -float(module.log_joint(u[i : i + 1], torch.from_numpy(z[None]), None))

    for i in range(0, 60, 12):
        best = min((minimize(value, start, args=(i,)) for start in (Z[i], np.zeros(2), -Z[i])), key=lambda r: r.fun)
        assert value(Z[i], i) <= best.fun + 1e-4
    assert_allclose(model.encode(X[5:6]), Z[5:6], atol=1e-8)  # whatever rows are beside it


@pytest.mark.parametrize("conditional", [False, True])
def test_gradients_are_those_of_differences(conditional):
    rng = np.random.default_rng(1)
    X = rng.random((6, 4))
    X[2, 1] = np.nan
    y = np.arange(6) % 2 if conditional else None
    model = decoder(activation="tanh", hidden_layer_sizes=(4,), max_iter=1, conditional=conditional).fit(X, y)
    module = model.module_
    module.codes = torch.from_numpy(rng.normal(size=(6, 2)))
    batch = MiniBatch((torch.from_numpy(X), torch.arange(6)), None if y is None else torch.from_numpy(y))
    assert check_module(module, model._row_losses(), [batch], n_coordinates=25).holds
    u, labels = module.scale(batch.inputs[0]), batch.target
    z = torch.from_numpy(rng.normal(size=(6, 2))).requires_grad_(True)
    (slope,) = torch.autograd.grad(module.log_joint(u, z, labels).sum(), z)
    assert_allclose(module._slope_and_jacobian(u, z.detach(), labels)[0].detach(), slope, atol=1e-10)


def test_factors_where_squares_leave_no_digit_of_the_ridge():
    torch.manual_seed(0)
    J, ridge = torch.randn(5, 7, 3, dtype=torch.float64), torch.rand(5, dtype=torch.float64) + 0.1
    L = factor_of_sum(J, ridge)
    assert_allclose(L @ L.mT, J.mT @ J + ridge[:, None, None] * torch.eye(3), atol=1e-13)
    for size in (1e9, 1e24):  # the squares of one do not fit into float32
        J = size * torch.randn(3, 9, 1).expand(3, 9, 4)  # equal columns
        L = factor_of_sum(J, torch.ones(3)).double()
        expected = J.double().mT @ J.double()
        assert_allclose(L @ L.mT / expected.max(), expected / expected.max(), atol=1e-6)
        assert (L.diagonal(dim1=1, dim2=2) >= 1).all()


def test_a_curve_is_followed_better_than_by_a_plane():
    rng = np.random.default_rng(0)
    t = rng.normal(size=300)
    X = np.column_stack([t, t**2]) + 0.1 * rng.normal(size=(300, 2))
    model = decoder(n_codes=1, activation="tanh", batch_size=30, max_iter=80, learning_rate_init=0.03).fit(X)
    pca = PCA(1).fit(X)
    lost = np.sum((pca.inverse_transform(pca.transform(X)) - X) ** 2, axis=1)
    assert model.reconstruction_error(X).mean() < 0.1 * lost.mean()
    assert model.score(X) > multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X).mean() + 0.8


def test_digits_are_made_again_better_than_by_principal_components_and_from_their_halves():
    X, new = DIGITS[:1200].astype(np.float32), DIGITS[1200:1300].astype(np.float32)
    model = decoder(n_codes=6, hidden_layer_sizes=(64,), batch_size=32, max_iter=15, learning_rate_init=0.005).fit(X)
    pca = PCA(6).fit(X.reshape(-1, 64))
    flat = new.reshape(-1, 64)
    lost = np.sum((pca.inverse_transform(pca.transform(flat)) - flat) ** 2, axis=1)
    assert model.reconstruction_error(new).mean() < lost.mean()
    covered = new.copy()
    covered[:, 4:] = np.nan
    found = model.reconstruct(covered)[:, 4:]
    assert np.mean((found - new[:, 4:]) ** 2) < 0.9 * np.mean((X[:, 4:].mean(axis=0) - new[:, 4:]) ** 2)
    between = model.interpolate(*model.encode(new[:2]), n_steps=5)
    assert_allclose(between[0], model.reconstruct(new[:1])[0], atol=1e-4)
    assert between.shape == (5, 8, 8)


@pytest.mark.slow
@needs("olivetti_faces.npz")
def test_faces_are_made_again_better_than_by_principal_components():
    X = images("olivetti_faces.npz", "images")[:, ::2, ::2]
    model = decoder(
        n_codes=16, hidden_layer_sizes=(512,), batch_size=20, max_iter=150, learning_rate_init=0.001, n_moves=10
    ).fit(X)
    pca = PCA(16).fit(X.reshape(400, -1))
    flat = X.reshape(400, -1)
    lost = np.sum((pca.inverse_transform(pca.transform(flat)) - flat) ** 2, axis=1)
    assert model.reconstruction_error(X).mean() < lost.mean()


def test_convolutions_labels_and_pictures(tmp_path):
    X, y = (255 * DIGITS[NAMES < 2]).astype(np.uint8)[:, :7], NAMES[NAMES < 2]
    model = decoder(n_codes=3, channels=(8,), conditional=True, batch_size=32, max_iter=12).fit(X, y)
    assert model.sample(4, random_state=0, y=1).shape == (4, 7, 8)
    assert model.reconstruct(X[:5], y[:5]).dtype == np.uint8
    assert model.plot_samples(9, X=X).axes
    assert model.plot_latent_traversal(y=1).axes
    given = np.array([model.score_samples(X[:40], label) for label in (0, 1)])
    assert np.mean(given.argmax(axis=0) == y[:40]) > 0.9
    model.save(tmp_path / "m.epi")
    assert_array_equal(ep.load(tmp_path / "m.epi").encode(X[:3], y[:3]), model.encode(X[:3], y[:3]))


def test_a_pipeline_of_codes():
    X = pd.DataFrame(on_a_curve(100)[0], columns=list("abcde"))
    X.loc[3, "b"] = np.nan
    model = decoder(max_iter=3).fit(X)
    assert list(model.get_feature_names_out()) == ["decoder0", "decoder1"]
    assert model.transform(X).shape == (100, 2)
    assert list(model.reconstruct(X).columns) == list("abcde")
    assert not model.reconstruct(X).isna().to_numpy().any()
    assert_array_equal(model.transform(X), decoder(max_iter=3).fit_transform(X))
    assert "codes" not in model._weights_ or not model._weights_["codes"].size


def test_what_is_refused(tmp_path):
    X = on_a_curve(40)[0]
    for bad in (np.where(X > 2, np.inf, X), np.full((5, 4, 4), np.inf)):
        with pytest.raises(DataError, match="infinity"):
            decoder().fit(bad)
    empty = X.copy()
    empty[:, 2] = np.nan
    with pytest.raises(DataError, match="all entries of column or channel 2 are missing"):
        decoder().fit(empty)
    with pytest.raises(ParameterError, match="compile=True"):
        decoder(compile=True).fit(X)
    for options in ({"n_moves": 0}, {"noise": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            decoder(**options).fit(X)
    pd.DataFrame(X, columns=list("abcde")).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataTypeError, match="fitted in memory"):
        decoder().fit(ep.scan(tmp_path / "t.parquet"))
    with pytest.raises(DataError, match="infinity"):
        decoder(max_iter=1).fit(X).encode(np.where(X > 2, np.inf, X))
