"""The networks between rows and codes:  h = f(u, y)  and  u = g(z, y),  u a row with its channels first, y its class.

    f:  convolutions (3 x 3, every second pixel), then linear layers          row -> hidden units -> outputs
    g:  linear layers, then transposed convolutions (4 x 4, two pixels each)  code -> hidden units -> row

The class of a conditional model is an indicator vector beside the first inputs of the linear layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from epicycle.nets.mlp._module import ACTIVATIONS

#: Factor of the last weights of a decoder at the start.
_SMALL = 0.1


class Encoder(nn.Module):  # type: ignore[misc]
    """From rows to `n_outputs` numbers.

    Parameters
    ----------
    architecture : mapping
        With "shape", "n_classes", "hidden", "channels" and "activation".
    n_outputs : int
    """

    def __init__(self, architecture: Mapping[str, Any], n_outputs: int) -> None:
        super().__init__()
        activation = ACTIVATIONS[architecture["activation"]]
        self.n_classes = architecture["n_classes"]
        self.sides = _sides(architecture)
        self.activation = activation()
        convolutions: list[nn.Module] = []
        for n_in, n_out in pairwise(_channels(architecture)):
            convolutions += [nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), activation()]
        self.convolutions = nn.Sequential(*convolutions)
        n_flat = _channels(architecture)[-1] * math.prod(self.sides[-1])
        self.linear = _linear([n_flat + self.n_classes, *architecture["hidden"], n_outputs], activation)
        start_weights(self, architecture["activation"])

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Outputs of rows u, given the codes of their classes."""
        return self.linear(with_class(self.convolutions(u).flatten(1), labels, self.n_classes))


class CodeDecoder(nn.Module):  # type: ignore[misc]
    """From codes to rows, channels first."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        activation = ACTIVATIONS[architecture["activation"]]
        self.n_classes = architecture["n_classes"]
        channels = _channels(architecture)[::-1]
        self.sides = _sides(architecture)[::-1]
        n_flat = channels[0] * math.prod(self.sides[0])
        sizes = [architecture["n_codes"] + self.n_classes, *architecture["hidden"][::-1], n_flat]
        self.linear = _linear(sizes, activation)
        self.start = (channels[0], *self.sides[0])
        self.activation = activation()
        self.convolutions = nn.ModuleList(
            nn.ConvTranspose2d(n_in, n_out, 4, stride=2, padding=1) for n_in, n_out in pairwise(channels)
        )
        start_weights(self, architecture["activation"])
        with torch.no_grad():  # rows near their means, which the codes move first where that helps
            (self.convolutions or self.linear)[-1].weight.mul_(_SMALL)

    def forward(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Rows of codes z, given the codes of their classes."""
        u = self.linear(with_class(z, labels, self.n_classes)).unflatten(1, self.start)
        for convolution, side in zip(self.convolutions, self.sides[1:], strict=True):
            # An odd side is one less than twice the half that it was rounded up to.
            u = convolution(self.activation(u))[..., : side[0], : side[1]]
        return u


def start_weights(module: nn.Module, activation: str) -> None:
    """Weights with which hidden units are as spread as what they are given (He et al. 2015), and no biases.

    Torch's own shrink a row with every layer: codes that tell nothing yet are soon ignored.
    """
    gain = nn.init.calculate_gain(activation if activation in ("relu", "tanh") else "linear")
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            n_in = layer.weight[0].numel()  # of transposed convolutions: four of their taps meet in a pixel
            if isinstance(layer, nn.ConvTranspose2d):
                n_in = layer.weight.shape[0] * 4
            nn.init.normal_(layer.weight, std=gain / math.sqrt(n_in))
            nn.init.zeros_(layer.bias)


def with_class(x: torch.Tensor, labels: torch.Tensor | None, n_classes: int) -> torch.Tensor:
    """(x, indicator of the class) of every row; x alone where there are no classes."""
    if not n_classes:
        return x
    assert labels is not None
    return torch.cat([x, F.one_hot(labels.long(), n_classes).to(x)], dim=1)


def _channels(architecture: Mapping[str, Any]) -> list[int]:
    """Channels before the first convolution and after each; of a table its columns, as those of one pixel."""
    return [architecture["shape"][-1], *architecture["channels"]]


def _sides(architecture: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Height and width before the first convolution and after each; of a table none."""
    shape = architecture["shape"]
    if len(shape) == 1:
        return [()]
    sides = [(shape[0], shape[1])]
    for _ in architecture["channels"]:
        sides.append((-(-sides[-1][0] // 2), -(-sides[-1][1] // 2)))
    return list(sides)


def _linear(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), activation()]
    return nn.Sequential(*layers[:-1])
