"""The module of a convolutional network, built from its list of layers.

Images come in as (n, height, width, channels), bytes or floats, and are standardised by the means and deviations of the
channels of the training images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.nets.training._randomness import Dropout
from epicycle.nets.vision._deformable_conv import DeformableConv

_ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}


class Standardise(nn.Module):  # type: ignore[misc]
    """(n, height, width, channels) to (n, channels, height, width), each channel of mean 0 and deviation 1."""

    def __init__(self, mean: list[float], deviation: list[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(deviation)[:, None, None], persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The standardised images."""
        return (images.permute(0, 3, 1, 2).to(self.mean) - self.mean) * self.scale


def conv(n_in: int, n_out: int, size: int, stride: int = 1, *, bias: bool = True) -> nn.Conv2d:
    """Convolution that keeps the size of the image; weights start as He et al. (2015) have it for rectified units."""
    layer = nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=bias)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def conv_norm(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(conv(n_in, n_out, size, stride, bias=False), nn.BatchNorm2d(n_out))


class Residual(nn.Module):  # type: ignore[misc]
    """a(x + f(x)) with f two 3 x 3 convolutions; x is projected where its shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(n_in, n_out, 3, stride)
        self.second = conv_norm(n_out, n_out, 3)
        nn.init.zeros_(self.second[1].weight)  # a new block passes x on: deep networks then start as shallow ones
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else conv_norm(n_in, n_out, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        return torch.relu(self.shortcut(x) + self.second(torch.relu(self.first(x))))


class Inception(nn.Module):  # type: ignore[misc]
    """1 x 1, 3 x 3 and 5 x 5 convolutions, the larger ones of fewer channels first, and pooling: side by side."""

    def __init__(self, n_in: int, a: int, b: int, c: int, d: int) -> None:
        super().__init__()
        fewer = max(1, n_in // 2)

        def branch(*layers: nn.Module) -> nn.Sequential:
            return nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))

        self.branches = nn.ModuleList(
            [
                branch(conv_norm(n_in, a, 1)),
                branch(conv_norm(n_in, fewer, 1), conv_norm(fewer, b, 3)),
                branch(conv_norm(n_in, fewer, 1), conv_norm(fewer, c, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, padding=1), branch(conv_norm(n_in, d, 1))),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Channels of all branches."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def conv_net(architecture: Mapping[str, Any]) -> nn.Sequential:
    """The layers of ``architecture["layers"]`` between `Standardise` and a linear layer of the outputs."""
    height, width, channels = architecture["shape"]
    net: list[nn.Module] = [Standardise(architecture["mean"], architecture["deviation"])]
    size: tuple[int, ...] = (channels, height, width)  # of one image at this layer, or (units,)

    def flatten() -> None:
        nonlocal size
        if len(size) == 3:
            net.append(nn.Flatten())
            size = (math.prod(size),)

    for name, *values in architecture["layers"]:
        if name in ("flatten", "linear"):
            flatten()
        if name == "linear":
            net.append(_linear(size[0], values[0]))
            size = (values[0],)
        elif name == "dropout":
            net.append(Dropout(values[0]))
        elif name in _ACTIVATIONS:
            net.append(_ACTIVATIONS[name]())
        elif name == "batch_norm":
            net.append(nn.BatchNorm2d(size[0]) if len(size) == 3 else nn.BatchNorm1d(size[0]))
        elif name == "global_pool":
            net += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            size = (size[0],)
        elif name != "flatten":
            layer, channels, stride = _spatial(name, size[0], values)
            net.append(layer)
            pooling = name in ("max_pool", "average_pool")  # leaves out what fills no square, where strides keep it
            size = (channels, *(n // stride if pooling else -(-n // stride) for n in size[1:]))
    flatten()
    net.append(_linear(size[0], architecture["n_outputs"], last=True))
    return nn.Sequential(*net)


def _spatial(name: str, n_in: int, values: list[int]) -> tuple[nn.Module, int, int]:
    """(layer, channels after it, what sides are divided by)."""
    if name == "conv":
        channels, filter_size, stride = values if len(values) == 3 else (*values, 1)
        return conv(n_in, channels, filter_size, stride), channels, stride
    if name == "deformable":
        channels, filter_size, stride = values if len(values) == 3 else (*values, 1)
        return DeformableConv(n_in, channels, filter_size, stride), channels, stride
    if name == "residual":
        channels, stride = values if len(values) == 2 else (*values, 1)
        return Residual(n_in, channels, stride), channels, stride
    if name == "inception":
        a, b, c, d = values
        return Inception(n_in, a, b, c, d), a + b + c + d, 1
    pool = nn.MaxPool2d if name == "max_pool" else nn.AvgPool2d
    return pool(values[0]), n_in, values[0]


def _linear(n_in: int, n_out: int, *, last: bool = False) -> nn.Linear:
    """A linear layer; the last one starts with scores near zero, that is with equal probabilities."""
    layer = nn.Linear(n_in, n_out)
    if last:
        nn.init.normal_(layer.weight, std=0.01)
    else:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer
