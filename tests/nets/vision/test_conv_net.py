"""Convolutional networks against convolutions by SciPy, numerical gradients, a linear baseline, and planted pixels."""

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import correlate2d
from vision_samples import bars

import epicycle as ep
from epicycle import ConvNetClassifier
from epicycle.exceptions import DataError, DataTypeError, ParameterError
from epicycle.nets.training._batches import ArrayRows
from epicycle.nets.vision._augmentation import RandomAffine
from epicycle.nets.vision._layers import ARCHITECTURES, layers_of
from epicycle.nets.vision._module import conv_net

LAYERS = [["conv", 8, 3], "gelu", ["conv", 16, 3], "gelu", "global_pool"]
SETTINGS = {"architecture": LAYERS, "max_iter": 12, "batch_size": 32, "learning_rate_init": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return ConvNetClassifier(**SETTINGS).fit(*bars(400))


def described(layers, n_outputs=3, shape=(8, 8, 1)):
    return {"shape": shape, "mean": [0.5], "deviation": [2.0], "layers": layers, "n_outputs": n_outputs}


def test_a_forward_pass_by_scipy():
    torch.manual_seed(0)
    layers = layers_of([["conv", 2, 3], "relu", ["max_pool", 2], ["conv", 3, 3, 2], "tanh", "flatten"], 8, 8, 1.0)
    net = conv_net(described(layers)).eval()
    X = np.random.default_rng(0).normal(size=(2, 8, 8, 1)).astype(np.float32)
    w1, b1, w2, b2, w, b = (p.detach().numpy() for p in net.parameters())
    for x, found in zip(X[..., 0], net(torch.from_numpy(X)).detach().numpy(), strict=True):
        z = (x - 0.5) / 2
        z = np.array([np.maximum(correlate2d(z, f[0], "same") + c, 0) for f, c in zip(w1, b1, strict=True)])
        z = z.reshape(2, 4, 2, 4, 2).max(axis=(2, 4))
        maps = [sum(correlate2d(z[j], f[j], "same") for j in range(2)) + c for f, c in zip(w2, b2, strict=True)]
        z = np.tanh(np.array(maps)[:, ::2, ::2])
        assert_allclose(found, w @ z.ravel() + b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_gradients_of_every_architecture(name):
    torch.manual_seed(1)
    X, y = bars(6)
    fitted = ConvNetClassifier(name, width=0.06)
    fitted.classes_ = np.unique(y)
    rows = ArrayRows((X[..., None].astype(np.float64),), np.searchsorted(fitted.classes_, y))
    net = conv_net(described(layers_of(name, 8, 8, 0.06)))
    assert check_module(net, fitted._row_losses(), rows, n_coordinates=20)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 9, 3), (28, 28, 1), (100, 130, 3)])
def test_named_architectures_fit_images_of_any_size(name, shape):
    height, width, channels = shape
    architecture = described(layers_of(name, height, width, 0.06), 4, shape)
    architecture |= {"mean": [0.0] * channels, "deviation": [1.0] * channels}
    found = conv_net(architecture).eval()(torch.zeros(2, *shape, dtype=torch.uint8))
    assert found.shape == (2, 4)


def test_a_bar_is_found_where_a_linear_model_cannot(model):
    X, y = bars(800)
    linear = ep.LogisticRegression(max_iter=500).fit(X[:400].reshape(400, -1), y[:400])
    assert model.score(X[400:], y[400:]) > 0.95
    assert linear.score(X[400:].reshape(400, -1), y[400:]) < 0.6
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)


def test_the_same_bits_for_any_number_of_threads():
    settings = {**SETTINGS, "max_iter": 2, "batch_size": 64, "rotation": 10.0, "zoom": 0.1, "architecture": "resnet"}
    fits = []
    for threads in (1, 2):
        with ep.config(n_jobs=threads):
            fits.append(ConvNetClassifier(**settings, width=0.1).fit(*bars(130)))
    for a, b in zip(*(fit._weights_.values() for fit in fits), strict=True):
        assert_array_equal(a, b)


def test_bytes_floats_and_a_channel_axis_are_the_same_images():
    X, y = bars(60)
    X = np.clip(80 * X + 80, 0, 255).astype(np.uint8)
    short = {**SETTINGS, "max_iter": 2}
    found = [ConvNetClassifier(**short).fit(Z, y).predict_proba(Z) for Z in (X, X.astype(float), X[..., None])]
    assert_allclose(found[1], found[0], atol=1e-5)
    assert_array_equal(found[2], found[0])


def test_images_of_weight_zero_are_not_there():
    X, y = bars(90)
    v = np.r_[np.ones(60), np.zeros(30)]
    short = {**SETTINGS, "max_iter": 3}
    found = ConvNetClassifier(**short).fit(X, y, sample_weight=v)
    assert_allclose(found.predict_proba(X), ConvNetClassifier(**short).fit(X[:60], y[:60]).predict_proba(X), atol=1e-5)


def test_two_classes_and_a_stream():
    X, y = bars(200)
    X, y = X[y != "leans"], y[y != "leans"]
    model = ConvNetClassifier(**{**SETTINGS, "learning_rate": "constant"})
    for _ in range(8):
        model.partial_fit(X[:60], y[:60], classes=["lies", "stands"]).partial_fit(X[60:100], y[60:100])
    assert model.score(X[100:], y[100:]) > 0.9
    assert model.architecture_["n_outputs"] == 1
    with pytest.raises(DataError, match="leans"):
        model.partial_fit(*bars(3))


# --------------------------------------------------------------------------------------------- augmentation


def test_shifts_and_flips_are_those_of_the_pixels():
    X = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (20, 9, 7, 2), dtype=np.uint8))
    (same,) = RandomAffine(0, 0, 0, False)((X,), np.random.default_rng(0))
    assert_array_equal(same, X)
    (mirrored,) = RandomAffine(0, 0, 0, True)((X,), np.random.default_rng(1))
    kinds = [bool((a == b).all()) + 2 * bool((a == b.flip(1)).all()) for a, b in zip(mirrored, X, strict=True)]
    assert set(kinds) == {1, 2}
    (moved,) = RandomAffine(2, 0, 0, False)((X,), np.random.default_rng(2))
    for a, b in zip(moved, X, strict=True):
        padded = np.pad(b.numpy(), ((2, 2), (2, 2), (0, 0)), mode="edge")
        assert any((padded[i : i + 9, j : j + 7] == a.numpy()).all() for i in range(5) for j in range(5))


def test_a_quarter_turn_turns_any_image():
    X = torch.from_numpy(np.random.default_rng(0).random((1, 6, 6, 1), dtype=np.float32))

    class Quarter:
        def uniform(self, low, high, size):
            return np.full(size, high)

        def random(self, n):
            return np.ones(n)

    (turned,) = RandomAffine(0, 90.0, 0, False)((X,), Quarter())
    assert any(np.allclose(turned[0, :, :, 0], np.rot90(X[0, :, :, 0], k), atol=1e-5) for k in (1, 3))


# --------------------------------------------------------------------------------------------- what it looks at


@pytest.mark.parametrize("method", ["gradient", "grad_cam", "occlusion"])
def test_saliency_lies_on_the_bar(model, method):
    X, y = bars(400)
    chosen = np.flatnonzero((y == "stands") & (model.predict(X) == y))[:40]
    maps = model.saliency(X[chosen], method=method)
    assert maps.shape == (len(chosen), 8, 8)
    place = np.abs(X[chosen].mean(axis=1)).argmax(axis=1)
    at = np.array([m[:, p].mean() for m, p in zip(maps, place, strict=True)])
    away = np.array(
        [np.delete(m, range(max(p - 1, 0), p + 2), axis=1).mean() for m, p in zip(maps, place, strict=True)]
    )
    assert np.mean(at > away) > 0.8


def test_gradients_of_scores_by_differences(model):
    X, _ = bars(2)
    found = model.saliency(X, ["lies", "leans"])
    for k, label in enumerate(("lies", "leans")):
        for place in ((2, 3), (6, 6)):
            moved = np.repeat(X[k : k + 1], 2, axis=0)
            moved[:, *place] += [0.01, -0.01]
            scores = model._scores(moved)[:, model.classes_.tolist().index(label)]
            assert found[k][place] == pytest.approx(abs(scores[0] - scores[1]) / 0.02, rel=0.05, abs=1e-3)


def test_filters_activations_and_pictures(model):
    X, _ = bars(3)
    assert model.filters_.shape == (8, 3, 3, 1)
    assert model.activations(X, 1).shape == (3, 8, 8, 8)
    assert_allclose(model.activations(X, -1), model._scores(X), rtol=1e-5, atol=1e-6)
    smooth = torch.nn.functional.gelu(torch.from_numpy(model.activations(X, 1)))
    assert_allclose(model.activations(X, 2), smooth, rtol=1e-5, atol=1e-6)
    assert len(model.plot_filters().axes) == 8
    assert len(model.plot_saliency(X).axes) == 6
    with pytest.raises(ParameterError, match="layer=99"):
        model.activations(X, 99)


# --------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        (np.zeros((5, 64)), DataError, r"reshape the rows, to X.reshape\(-1, 8, 8\)"),
        (np.full((5, 8, 8), np.nan), DataError, "NaN"),
        (np.full((5, 8, 8), 1e300), DataError, "infinity"),
        (np.zeros((0, 8, 8)), DataError, "0 sample"),
        (np.array([["a"]]), DataTypeError, "dtype <U1"),
    ],
)
def test_what_is_no_images_is_refused(X, error, match):
    with pytest.raises(error, match=match):
        ConvNetClassifier().fit(X, np.arange(len(X)) % 2)


def test_images_of_another_size_are_refused(model):
    with pytest.raises(DataError, match=r"\(9, 9, 1\); ConvNetClassifier was fitted to \(8, 8, 1\)"):
        model.predict(np.zeros((2, 9, 9)))
    with pytest.raises(DataError, match="one class"):
        ConvNetClassifier().fit(np.zeros((4, 8, 8)), np.zeros(4))
    with pytest.raises(DataTypeError, match="one size"):
        ConvNetClassifier().fit(np.array([np.zeros((2, 2)), np.zeros((3, 3))], dtype=object), [0, 1])


@pytest.mark.parametrize(
    ("layers", "match"),
    [
        ([["convolution", 3, 3]], r"architecture\[0\]=\['convolution', 3, 3\]; expected one of conv"),
        (["relu", ["conv", 3]], r"architecture\[1\].*takes 2 or 3 numbers; got 1"),
        ([["conv", 3, 4]], "odd side"),
        ([["conv", 0, 3]], "at least 1"),
        (["flatten", ["conv", 3, 3]], "needs an image"),
        ([["max_pool", 2]] * 4, r"1 x 1 there"),
        ([["dropout", 1.0]], "probability"),
    ],
)
def test_layers_that_cannot_be_are_named(layers, match):
    with pytest.raises(ParameterError, match=match):
        ConvNetClassifier(layers).fit(*bars(6))
