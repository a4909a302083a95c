"""Networks from codes to rows and from rows to one number, for tables and for images of any size.

    Generator   u = g(z, y):   linear layers; for images transposed convolutions (4 x 4), each with twice the pixels
    Critic      f(u, y) = (w + e_y)' h(u) + b:   linear layers; for images convolutions (5 x 5), each with half of them

u is a row in the units of `Scale`, images with their channels first. The class y of a conditional model enters the
generator as an indicator beside the code, and the critic as a vector e_y that is added to its last weights (Miyato and
Koyama 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from epicycle.nets.training._randomness import generator as random_numbers

#: The activations of critics: leaky ones pass gradients on everywhere, smooth ones are for those who differentiate f.
ACTIVATIONS: Mapping[str, nn.Module] = {"leaky_relu": nn.LeakyReLU(0.2), "silu": nn.SiLU()}


class Generator(nn.Module):  # type: ignore[misc]
    """Codes (n, n_codes) to rows in the units of `Scale`; pixels end within [-1, 1].

    Parameters
    ----------
    architecture : mapping
        With "shape", "n_classes", "n_codes", "hidden" and "channels".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape, channels = architecture["shape"], architecture["channels"]
        self.n_classes, self.images = architecture["n_classes"], len(shape) == 3
        self.n_codes = architecture["n_codes"]
        n_inputs = self.n_codes + self.n_classes
        self.channels_first = (shape[2], shape[0], shape[1]) if self.images else (shape[0],)
        self.sides = _sides(shape, channels)[::-1]
        if not channels:
            sizes = [n_inputs, *architecture["hidden"]]
            layers = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
            self.first = nn.Sequential(*layers, nn.Linear(sizes[-1], math.prod(shape)))
            self.blocks = nn.ModuleList()
            return
        widths = [*channels[::-1], shape[2]]
        n_flat = widths[0] * math.prod(self.sides[0])
        self.first = nn.Linear(n_inputs, n_flat, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths[:-1])
        self.blocks = nn.ModuleList(nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in pairwise(widths))

    def forward(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Rows of codes z, given the codes of their classes."""
        if self.n_classes:
            assert labels is not None
            z = torch.cat([z, functional.one_hot(labels.long(), self.n_classes).to(z)], dim=1)
        u = self.first(z)
        if not self.blocks:
            u = u.unflatten(1, self.channels_first)
            return torch.tanh(u) if self.images else u
        u = u.unflatten(1, (-1, *self.sides[0]))
        for norm, block, (height, width) in zip(self.norms, self.blocks, self.sides[1:], strict=True):
            # An odd side is one less than twice the half that it was rounded up to.
            u = block(torch.relu(norm(u)))[..., :height, :width]
        return torch.tanh(u)

    def drawn(self, n: int, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """n rows from codes that are drawn, and the codes."""
        weight = next(self.parameters())
        several = max(n, 2) if self.training else n  # of which norms of batches know the deviation
        size = (several, self.n_codes)
        z = torch.randn(size, generator=random_numbers(), device=weight.device, dtype=weight.dtype)
        if labels is not None and several > n:
            labels = labels.repeat(2)
        return self(z, labels)[:n], z[:n]


class Critic(nn.Module):  # type: ignore[misc]
    """Rows in the units of `Scale` to one number each.

    Parameters
    ----------
    architecture : mapping
        With "shape", "n_classes", "hidden", "channels", "activation" and "spectral_norm": whether the largest
        singular value of every layer is 1 (Miyato et al. 2018).
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape, channels = architecture["shape"], architecture["channels"]
        self.n_classes = architecture["n_classes"]
        norm = parametrizations.spectral_norm if architecture["spectral_norm"] else nn.Identity()
        activation = ACTIVATIONS[architecture["activation"]]
        layers: list[nn.Module] = []
        if channels:
            for a, b in pairwise([shape[2], *channels]):
                layers += [norm(nn.Conv2d(a, b, 5, 2, 2)), activation]
            n_features = channels[-1] * math.prod(_sides(shape, channels)[-1])
        else:
            sizes = [math.prod(shape), *architecture["hidden"]]
            for a, b in pairwise(sizes):
                layers += [norm(nn.Linear(a, b)), activation]
            n_features = sizes[-1]
            layers.insert(0, nn.Flatten())
        self.features = nn.Sequential(*layers, nn.Flatten())
        self.last = norm(nn.Linear(n_features, 1))
        if self.n_classes:
            self.classes = nn.Embedding(self.n_classes, n_features)
            nn.init.zeros_(self.classes.weight)

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """f of every row, given the codes of their classes."""
        h = self.features(u)
        f = self.last(h)[:, 0]
        if self.n_classes:
            assert labels is not None
            f = f + (self.classes(labels.long()) * h).sum(1)
        return f


def spectral_vectors(module: nn.Module) -> tuple[str, ...]:
    """Names of the singular vectors that the spectral norms of a module keep, for which a mean is no such vector."""
    return tuple(name for name, _ in module.named_buffers() if name.endswith(("._u", "._v")))


def _sides(shape: Sequence[int], channels: Sequence[int]) -> list[tuple[int, int]]:
    """Height and width of the images before the first convolution and after each; of a table none."""
    if len(shape) != 3:
        return []
    sides = [(shape[0], shape[1])]
    for _ in channels:
        sides.append((-(-sides[-1][0] // 2), -(-sides[-1][1] // 2)))
    return sides
