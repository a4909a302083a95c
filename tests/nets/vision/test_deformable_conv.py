"""Deformable convolution against torch's at zero and whole offsets, bilinear sums by hand, and differences."""

import numpy as np
import pytest
import torch
from gradient_of_module import check_module
from numpy.testing import assert_allclose
from torch.nn import functional
from vision_samples import bars

from epicycle import ConvNetClassifier
from epicycle.exceptions import ParameterError
from epicycle.nets import DeformableConv
from epicycle.nets.training._batches import ArrayRows
from epicycle.nets.vision._deformable_conv import deformed_convolution
from epicycle.nets.vision._layers import layers_of
from epicycle.nets.vision._module import conv_net


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (3, 1), (3, 2), (5, 3)])
def test_at_zero_offsets_it_is_convolution(size, stride):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 9, 7, dtype=torch.float64)
    layer = DeformableConv(3, 4, size, stride).double()
    plain = functional.conv2d(x, layer.weight, layer.bias, stride, padding=size // 2)
    assert_allclose(layer(x).detach(), plain.detach(), rtol=1e-10, atol=1e-12)


def test_whole_offsets_move_the_image():
    torch.manual_seed(1)
    x, weight = torch.randn(1, 2, 8, 8, dtype=torch.float64), torch.randn(3, 2, 3, 3, dtype=torch.float64)
    offsets = torch.zeros(1, 18, 8, 8, dtype=torch.float64)
    offsets[:, 0::2], offsets[:, 1::2] = 1.0, -2.0  # down 1, left 2
    moved = torch.zeros_like(x)
    moved[:, :, :7, 2:] = x[:, :, 1:, :6]
    found = deformed_convolution(x, offsets, weight, None, 1)
    expected = functional.conv2d(moved, weight, padding=1)
    assert_allclose(found[:, :, 1:6, 3:7], expected[:, :, 1:6, 3:7], rtol=1e-10, atol=1e-12)


def test_offsets_between_pixels_by_hand():
    rng = np.random.default_rng(0)
    x, weight, offsets = rng.normal(size=(5, 6)), rng.normal(size=(3, 3)), rng.uniform(-2, 2, (9, 2, 5, 6))

    def value(u, v):
        i, j = int(np.floor(u)), int(np.floor(v))
        total = 0.0
        for a, wa in ((i, i + 1 - u), (i + 1, u - i)):
            for b, wb in ((j, j + 1 - v), (j + 1, v - j)):
                if 0 <= a < 5 and 0 <= b < 6:
                    total += wa * wb * x[a, b]
        return total

    expected = np.zeros((5, 6))
    for u in range(5):
        for v in range(6):
            for tap in range(9):
                down, right = offsets[tap, :, u, v]
                expected[u, v] += weight.flat[tap] * value(u + tap // 3 - 1 + down, v + tap % 3 - 1 + right)
    as_tensors = [torch.from_numpy(a) for a in (x[None, None], offsets.reshape(1, 18, 5, 6), weight[None, None])]
    assert_allclose(deformed_convolution(*as_tensors, None, 1)[0, 0], expected, rtol=1e-10, atol=1e-12)


def test_gradients_of_weights_and_offsets():
    X, y = bars(6)
    torch.manual_seed(2)
    layers = layers_of([["deformable", 3, 3], "tanh", ["deformable", 2, 3, 2], "tanh"], 8, 8, 1.0)
    net = conv_net({"shape": (8, 8, 1), "mean": [0.0], "deviation": [1.0], "layers": layers, "n_outputs": 3})
    for module in net.modules():
        if isinstance(module, DeformableConv):  # away from whole places, where the bilinear surface has kinks
            torch.nn.init.normal_(module.offsets.weight, std=0.02)
            torch.nn.init.uniform_(module.offsets.bias, 0.3, 0.6)
    fitted = ConvNetClassifier()
    fitted.classes_ = np.unique(y)
    rows = ArrayRows((X[..., None].astype(np.float64),), np.searchsorted(fitted.classes_, y))
    assert check_module(net, fitted._row_losses(), rows, n_coordinates=60)


def test_as_a_layer_it_learns():
    X, y = bars(500)
    layers = [["conv", 8, 3], "relu", ["deformable", 16, 3], "relu", "global_pool"]
    model = ConvNetClassifier(layers, max_iter=12, batch_size=32, learning_rate_init=0.01, random_state=0)
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.9
    assert any("offsets" in name and np.abs(w).max() > 0 for name, w in model._weights_.items())
    with pytest.raises(ParameterError, match="odd side"):
        ConvNetClassifier([["deformable", 4, 2]]).fit(X[:20], y[:20])
