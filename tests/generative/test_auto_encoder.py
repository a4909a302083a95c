"""Auto-encoders: linear ones against PCA, gradients, noise, sparse codes, tied weights, images, labels, codes."""

import numpy as np
import pandas as pd
import pytest
import torch
from coder_samples import on_a_curve
from gradient_of_module import check_module
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from real_images import images, needs
from scipy.linalg import subspace_angles
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._randomness import drawing_from

DIGITS, NAMES = load_digits().images / 16, load_digits().target


def coder(**options):
    return ep.AutoEncoder(**{"n_codes": 2, "hidden_layer_sizes": (16,), "max_iter": 20, "learning_rate_init": 0.01,
                             "random_state": 0, **options})  # fmt: skip


def lost_by_pca(X, new, k):
    """Squared distances of new rows from their reconstructions by k components of X (scikit-learn's PCA)."""
    flat, new = X.reshape(len(X), -1).astype(float), new.reshape(len(new), -1).astype(float)
    pca = PCA(k).fit(flat)
    return np.sum((pca.inverse_transform(pca.transform(new)) - new) ** 2, axis=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_one_is_principal_components(weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)) + 3
    v = rng.integers(0, 3, 60) if weighted else None
    shown = X if v is None else np.repeat(X, v, axis=0)
    linear = {"hidden_layer_sizes": (), "batch_size": 60, "max_iter": 600, "learning_rate_init": 0.03, "tied": True}
    model = coder(**linear).fit(X, sample_weight=v)
    pca = PCA(2).fit(shown)
    slopes = model.decode(np.eye(2)) - model.decode(np.zeros((2, 2)))
    assert subspace_angles(slopes.T, pca.components_.T).max() < 1e-6
    assert_allclose(model.reconstruct(X), pca.inverse_transform(pca.transform(X)), atol=1e-6)
    assert model.reconstruction_error(shown).mean() == pytest.approx(lost_by_pca(shown, shown, 2).mean(), rel=1e-9)
    lost = 1 - pca.explained_variance_ratio_.sum()
    assert f"{lost:.6g} of the variance is lost, by principal components {lost:.6g}" in model.certificate_.meaning


def test_a_linear_one_with_weights_of_its_own_is_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5)) @ np.diag([5.0, 3, 1, 0.5, 0.5]) @ rng.normal(size=(5, 5))
    model = coder(hidden_layer_sizes=(), batch_size=100, max_iter=800, learning_rate_init=0.03).fit(X)
    assert model.reconstruction_error(X).mean() == pytest.approx(lost_by_pca(X, X, 2).mean(), rel=0.01)
    slopes = model.decode(np.eye(2)) - model.decode(np.zeros((2, 2)))
    assert subspace_angles(slopes.T, PCA(2).fit(X).components_.T).max() < 0.05


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(1, 3), st.booleans(), st.floats(0.01, 100), st.integers(0, 10**6))
def test_no_linear_code_loses_less_than_principal_components(p, k, tied, scale, seed):
    X = scale * np.random.default_rng(seed).normal(size=(30, p))
    model = coder(n_codes=k, hidden_layer_sizes=(), tied=tied, batch_size=30, max_iter=10, random_state=seed).fit(X)
    assert model.reconstruction_error(X).mean() >= lost_by_pca(X, X, min(k, p)).mean() * (1 - 1e-9)
    assert_allclose(model.score(X), -model.reconstruction_error(X).mean())
    assert_allclose(model.code_covariance_, np.cov(model.encode(X).T, bias=True).reshape(k, k), atol=1e-10)


SORTS = [
    {},
    {"tied": True},
    {"noise": 0.3},
    {"masking": 0.4, "tied": True},
    {"sparsity": 0.2},
    {"n_active": 2},
    {"standardize": True, "hidden_layer_sizes": ()},
]


@pytest.mark.parametrize(("options", "conditional"), [(o, i % 2 == 1) for i, o in enumerate(SORTS)])
def test_gradients_are_those_of_differences(options, conditional):
    rng = np.random.default_rng(1)
    X = rng.random((6, 4))
    y = np.arange(6) % 2 if conditional else None
    model = coder(**{"n_codes": 3, "activation": "tanh", "hidden_layer_sizes": (4,), "max_iter": 1,
                     "conditional": conditional, **options}).fit(X, y)  # fmt: skip
    losses = model._row_losses()

    def with_the_same_draws(module, batch):
        with drawing_from(3, 0, 0, torch.device("cpu")):
            return losses(module.train(), batch)

    batch = MiniBatch((torch.from_numpy(X),), None if y is None else torch.from_numpy(y), torch.ones(6).double())
    assert check_module(model.module_, with_the_same_draws, [batch], n_coordinates=20).holds


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shape", [(7, 8), (5, 5, 3)])
def test_gradients_of_convolutions(tied, shape):
    X = np.random.default_rng(0).random((5, *shape))
    model = coder(channels=(3, 4), activation="tanh", hidden_layer_sizes=(5,), tied=tied, max_iter=1).fit(X)
    x = torch.from_numpy(X.reshape(5, *shape[:2], -1))
    assert check_module(model.module_, model._row_losses(), [MiniBatch((x,))], n_coordinates=25).holds


def test_the_way_back_of_tied_convolutions_is_the_adjoint_of_the_way_there():
    """<f(u), z> = <u, f'(z)>, without activations and biases."""
    rng = np.random.default_rng(0)
    X = rng.random((5, 7, 8, 2))
    model = coder(channels=(3, 4), hidden_layer_sizes=(6,), activation="identity", tied=True, max_iter=1).fit(X)
    module = model.module_.double()
    with torch.no_grad():
        for name, p in module.named_parameters():
            if "bias" in name:
                p.zero_()
        u, z = torch.from_numpy(rng.normal(size=(5, 2, 7, 8))), torch.from_numpy(rng.normal(size=(5, 2)))
        there, back = (module.codes(u, None) * z).sum(), (module.decoded(z, None) * u).sum()
    assert float(there) == pytest.approx(float(back), rel=1e-12)
    untied = coder(channels=(3, 4), hidden_layer_sizes=(6,), max_iter=1).fit(X)
    weights = [sum(p.numel() for p in m.module_.parameters() if p.ndim > 1) for m in (model, untied)]
    assert weights[0] < 0.5 * weights[1]


@pytest.mark.parametrize("options", [{}, {"channels": (16, 32), "batch_size": 32, "max_iter": 15}])
def test_digits_are_reconstructed_better_than_by_principal_components(options):
    X, new = DIGITS[:1400].astype(np.float32), DIGITS[1400:].astype(np.float32)
    model = coder(**{"n_codes": 8, "max_iter": 20, "hidden_layer_sizes": (128,), "learning_rate_init": 0.005,
                     **options}).fit(X)  # fmt: skip
    assert model.reconstruction_error(new).mean() < 0.9 * lost_by_pca(X, new, 8).mean()


@pytest.mark.slow
@needs("mnist.npz")
def test_mnist_is_reconstructed_better_than_by_principal_components():
    X, new = images("mnist.npz", "x_train")[:20_000], images("mnist.npz", "x_test")[:2000]
    model = ep.AutoEncoder(32, max_iter=20, random_state=0).fit(X)
    assert model.reconstruction_error(new).mean() < 0.6 * lost_by_pca(X, new, 32).mean()


@pytest.mark.slow
@needs("olivetti_faces.npz")
def test_faces_are_reconstructed_better_than_by_principal_components():
    """Of five pictures a person, the five others: 200 rows to learn 4,096 pixels from, with weights used both ways."""
    X = images("olivetti_faces.npz", "images")
    first = np.arange(len(X)) % 10 < 5
    options = {"hidden_layer_sizes": (), "channels": (16, 32, 64), "tied": True, "batch_size": 20, "noise": 0.1}
    model = ep.AutoEncoder(16, max_iter=120, random_state=0, **options).fit(X[first])
    assert model.reconstruction_error(X[~first]).mean() < lost_by_pca(X[first], X[~first], 16).mean()


def test_denoising():
    """What was made noisy comes back nearer to the truth than it went in, and nearer than without noise in the fit."""
    rng = np.random.default_rng(0)
    X, new = DIGITS[:1400], DIGITS[1400:]
    noisy = new + 0.25 * rng.normal(size=new.shape)
    options = {"n_codes": 24, "hidden_layer_sizes": (64,), "max_iter": 15, "learning_rate_init": 0.005}
    plain, denoising = coder(**options).fit(X), coder(noise=0.6, **options).fit(X)
    errors = [np.mean((rows - new) ** 2) for rows in (noisy, plain.reconstruct(noisy), denoising.reconstruct(noisy))]
    assert errors[2] < 0.9 * errors[1] < 0.9 * errors[0]
    assert_array_equal(denoising.reconstruct(new), denoising.reconstruct(new))  # no noise but in the fit
    masked = coder(masking=0.3, **options).fit(X)
    hidden = np.where(rng.random(new.shape) < 0.3, X.mean(), new)
    assert np.mean((masked.reconstruct(hidden) - new) ** 2) < np.mean((plain.reconstruct(hidden) - new) ** 2)


def test_sparse_codes():
    X = DIGITS[:500]
    options = {"n_codes": 40, "hidden_layer_sizes": (), "max_iter": 20, "learning_rate_init": 0.01}
    few = coder(n_active=5, **options).fit(X).encode(X)
    assert ((few != 0).sum(axis=1) <= 5).all()
    assert (few != 0).any(axis=0).sum() > 15
    shares = []
    for sparsity in (0.01, 1.0):
        model = coder(sparsity=sparsity, **options).fit(X)
        codes = model.encode(X)
        assert (codes >= 0).all()
        assert_allclose(np.linalg.norm(model.module_.decoder.linear[0].weight.detach(), axis=0), 1, rtol=1e-5)
        shares.append(np.mean(codes > 0))
    assert shares[1] < 0.5 * shares[0]


def test_columns_of_different_units():
    X = on_a_curve(300)[0] * [1, 1000, 1, 1, 1]
    by_units, by_deviations = (coder(standardize=s, n_codes=1, max_iter=30).fit(X) for s in (False, True))
    lost = [np.mean((m.reconstruct(X) - X) ** 2, axis=0) / X.var(axis=0) for m in (by_units, by_deviations)]
    assert lost[0][1] < 0.01  # nothing but the wide column counts
    assert lost[0][[0, 3]].max() > 0.8
    assert lost[1].mean() < lost[0].mean() - 0.1
    stretched = by_units.architecture_["deviation"]
    assert_allclose(stretched, np.sqrt(np.mean(X.var(axis=0))))


def test_rows_are_drawn_like_those_of_the_fit():
    X = on_a_curve(500)[0] + 5
    model = coder(max_iter=40).fit(X)
    drawn = model.sample(2000, random_state=0)
    assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.2)
    assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.4)
    assert_allclose(model.code_mean_, model.encode(X).mean(axis=0), atol=1e-6)
    steps = model.latent_traversal([0], n_steps=3, extent=1.0)[0]
    at = model.code_mean_ + np.outer([-1, 0, 1], [np.sqrt(model.code_covariance_[0, 0]), 0])
    assert_allclose(steps, model.decode(at), rtol=1e-6)


def test_images_labels_and_pictures():
    X, y = (255 * DIGITS[NAMES < 3]).astype(np.uint8), np.array(["zero", "one", "two"])[NAMES[NAMES < 3]]
    model = coder(n_codes=3, channels=(4,), conditional=True, max_iter=15, batch_size=32).fit(X, y)
    assert model.reconstruct(X[:5], y[:5]).dtype == np.uint8
    assert model.sample(4, random_state=0, y="one").shape == (4, 8, 8)
    assert model.plot_samples(9, X=X).axes
    assert model.plot_latent_traversal(y="two").axes
    with pytest.raises(DataError, match="conditional"):
        model.encode(X)
    tied = coder(n_codes=3, tied=True, conditional=True, hidden_layer_sizes=(8,), max_iter=5).fit(X, y)
    assert tied.decode(np.zeros((2, 3)), ["one", "two"]).shape == (2, 8, 8)
    assert (tied.decode(np.zeros((2, 3)), "one") != tied.decode(np.zeros((2, 3)), "two")).any()


def test_a_pipeline_of_codes(tmp_path):
    X = pd.DataFrame(on_a_curve(200)[0], columns=list("abcde"))
    model = coder(max_iter=10).fit(X)
    assert_array_equal(model.transform(X), model.encode(X))
    assert list(model.get_feature_names_out()) == ["autoencoder0", "autoencoder1"]
    assert list(model.reconstruct(X).columns) == list("abcde")
    assert_allclose(model.inverse_transform(model.transform(X)), model.reconstruct(X))
    both = make_pipeline(StandardScaler(), coder(max_iter=10)).fit(X)
    assert both.inverse_transform(both.transform(X)).shape == X.shape
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert_array_equal(loaded.transform(X), model.transform(X))
    assert_array_equal(loaded.sample(5, random_state=1), model.sample(5, random_state=1))


def test_errors_tell_unusual_rows():
    X = on_a_curve(500)[0]
    model = coder(max_iter=40).fit(X)
    odd = X[:50].copy()
    odd[:, 2] = -odd[:, 2]
    odd = odd[np.abs(odd[:, 2]) > 1]
    assert np.median(model.reconstruction_error(odd)) > 5 * np.quantile(model.reconstruction_error(X), 0.9)
    assert pdist(model.encode(X)).max() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_active": 3}, "n_active=3.*n_codes=2"),
        ({"n_active": 0}, "n_active=0"),
        ({"noise": -1.0}, "noise"),
        ({"masking": 1.0}, "masking"),
        ({"sparsity": -0.1}, "sparsity"),
        ({"channels": (4,)}, "channels=.*X is a table"),
        ({"n_codes": 0}, "n_codes"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        coder(**options).fit(on_a_curve(30)[0])
    with pytest.raises(DataError, match="NaN"):
        coder().fit(np.full((5, 3), np.nan))
