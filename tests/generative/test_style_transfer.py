"""Style transfer: Gram matrices and gradients by hand, strokes in their direction, content kept, nets of all kinds."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import optim
from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.generative.style._painting import Painting, gram, grams
from epicycle.generative.style._stages import stages_of
from epicycle.generative.style._turned_pieces import turned_pieces

SIDE = 20
COLUMN, ROW = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
RISING, FALLING = np.sin(0.9 * (ROW + COLUMN)), np.sin(0.9 * (ROW - COLUMN))
DISC = np.where(np.hypot(ROW - 10, COLUMN - 10) < 6, 1.0, -1.0)
LAYERS = [["conv", 8, 3], "relu", ["max_pool", 2], ["conv", 12, 3], "tanh", "flatten"]


@pytest.fixture(scope="module")
def net():
    """Tells rising from falling stripes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = np.where(y[:, None, None] > 0, RISING, FALLING) + 0.3 * rng.normal(size=(120, SIDE, SIDE))
    return ep.ConvNetClassifier(LAYERS, max_iter=3, batch_size=20, learning_rate_init=0.01, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def painter(net):
    return ep.StyleTransfer(net, max_iter=40, random_state=0).fit([RISING])


def slopes(image):
    """Mean products of differences along rows and columns: positive where stripes rise, negative where they fall."""
    down, right = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    return float((down * right).mean() / (down.std() * right.std()))


def test_gram_matrices_by_numpy(net, painter):
    maps = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    by_hand = np.einsum("nihw,njhw->nij", maps, maps) / 20
    assert_allclose(gram(torch.from_numpy(maps)), by_hand)
    found = net.activations(RISING[None], 2)[0]  # after the first rectifier
    assert_allclose(painter.styles_[0], np.einsum("hwi,hwj->ij", found, found) / SIDE**2, rtol=1e-4, atol=1e-6)


def test_gradients_are_those_of_differences(net):
    stages = stages_of(net, torch.device("cpu"), torch.float64)
    rng = np.random.default_rng(1)
    content, style = (torch.from_numpy(rng.normal(size=(5, 6, 1))) for _ in range(2))
    one = torch.ones(1, dtype=torch.float64)
    objective = Painting(stages, grams(stages, style, (0, 1)), (0, 1), content, 1, 3.0, 0.2, 0.1 * one, 1.5 * one)

    def value_and_gradient(u):
        return objective.value_and_gradient(u, content.shape)

    check = optim.check_gradient(optim.FunctionObjective(value_and_gradient, 30), rng.normal(size=30))
    assert check.holds


def test_strokes_have_the_direction_of_the_style_and_shapes_that_of_the_content(net, painter):
    falling = ep.StyleTransfer(net, max_iter=40, random_state=0).fit([FALLING])
    painted, other = painter.transform([DISC])[0], falling.transform([DISC])[0]
    assert slopes(painted) > slopes(DISC) + 0.1
    assert slopes(other) < slopes(DISC) - 0.1
    before, after = painter.style_distance([DISC, painted])
    assert after < before / 3
    assert np.corrcoef(painted.ravel(), DISC.ravel())[0, 1] > 0.3
    assert np.corrcoef(painter.texture(SIDE, SIDE).ravel(), DISC.ravel())[0, 1] < 0.2
    assert painter.style_distance([painter.texture(14, 24)])[0] < before / 10
    light = ep.StyleTransfer(net, style_weight=0.01, max_iter=40).fit([RISING]).transform([DISC])[0]
    assert np.abs(light - DISC).mean() < np.abs(painted - DISC).mean() / 2
    assert list(painter.history_.columns)[:2] == ["image", "objective"]
    assert "no proof of optimality" in painter.certificate_.meaning


def test_a_network_is_trained_here_where_none_is_given():
    pieces, turns = turned_pieces([RISING[..., None]], 0)
    assert_array_equal(pieces[1], np.rot90(pieces[0]))
    assert turns[:5].tolist() == [0, 1, 2, 3, 0]
    painter = ep.StyleTransfer(max_iter=15, random_state=0).fit([RISING[:12, :12]])
    assert painter.style_distance(painter.transform([DISC]))[0] < painter.style_distance([DISC])[0]


def test_any_of_the_networks_of_images():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 16, 16))
    few = {"max_iter": 1, "batch_size": 6, "random_state": 0}
    networks = [
        ep.ConvNetClassifier("resnet", width=0.1, **few).fit(X, np.arange(12) % 2),
        ep.ConvNetClassifier("inception", width=0.1, **few).fit(X, np.arange(12) % 2),
        ep.Segmenter(channels=4, depth=2, **few).fit(X, (X > 0).astype(int)),
        ep.AutoEncoder(3, channels=(4, 8), **few).fit(X),
        ep.VAE(3, channels=(4,), **few).fit(X),
    ]
    for network in networks:
        painter = ep.StyleTransfer(network, max_iter=5).fit([RISING])
        painted = painter.transform([DISC])  # of another size than the images of the network
        assert painter.style_distance(painted)[0] < painter.style_distance([DISC])[0], type(network)


def test_forms_seeds_threads_and_files(painter, net, tmp_path):
    both = np.stack([DISC, FALLING])
    painted = painter.transform(both)
    assert painted.shape == both.shape
    assert_array_equal(painted[1], painter.transform([FALLING])[0])  # whatever images are beside it
    with ep.config(n_jobs=1):
        assert_array_equal(painter.transform(both), painted)
    sized = painter.transform([DISC, FALLING[:13]])
    assert [image.shape for image in sized] == [(20, 20), (13, 20)]
    as_bytes = ((DISC + 1) * 127).astype(np.uint8)
    small = ep.StyleTransfer(net, max_iter=3).fit([((RISING + 1) * 127).astype(np.uint8)])
    assert small.transform([as_bytes])[0].dtype == np.uint8
    noise = ep.StyleTransfer(net, start="noise", max_iter=3, random_state=1).fit([RISING])
    assert_array_equal(noise.transform([DISC])[0], noise.transform([DISC])[0])
    painter.save(tmp_path / "style.epi")
    same = ep.load(tmp_path / "style.epi")
    assert_array_equal(same.transform(both), painted)
    assert painter.plot([DISC, FALLING], style=RISING).axes


def test_colours():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (20, 12, 12, 3)).astype(np.uint8)
    net = ep.ConvNetClassifier(LAYERS, max_iter=1, batch_size=10, random_state=0).fit(X, np.arange(20) % 2)
    painter = ep.StyleTransfer(net, max_iter=5, smoothness=0.1).fit(X[:2])
    assert painter.transform(X[2:4]).shape == (2, 12, 12, 3)
    assert painter.texture(12, 9).shape == (12, 9, 3)
    with pytest.raises(DataError, match="channels"):
        painter.transform(X[:2, :, :, 0])


def test_what_is_refused(net):
    with pytest.raises(ParameterError, match="network: got MLPClassifier"):
        ep.StyleTransfer(ep.MLPClassifier())
    with pytest.raises(ParameterError, match="style_weight"):
        ep.StyleTransfer(net, style_weight=-1)
    with pytest.raises(NotFittedError, match="no style"):
        ep.StyleTransfer(net).transform([DISC])
    with pytest.raises(NotFittedError):
        ep.StyleTransfer(ep.ConvNetClassifier()).fit([RISING])
    with pytest.raises(DataError, match="a list of it"):
        ep.StyleTransfer(net).fit(RISING)
    with pytest.raises(DataError, match="NaN"):
        ep.StyleTransfer(net).fit([RISING * np.nan])
    with pytest.raises(ParameterError, match="content_layer: 7"):
        ep.StyleTransfer(net, content_layer=7).fit([RISING])
    with pytest.raises(ParameterError, match="style_layers"):
        ep.StyleTransfer(net, style_layers=()).fit([RISING])
    rows = ep.AutoEncoder(2, max_iter=1, random_state=0).fit(np.eye(5))
    with pytest.raises((ParameterError, DataError)):
        ep.StyleTransfer(rows).fit([RISING])
