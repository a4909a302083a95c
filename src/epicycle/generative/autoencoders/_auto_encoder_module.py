"""The module of an auto-encoder:  z = f(u),  u^ = g(z),  and g with the transposed weights of f where they are tied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils import parametrize

from epicycle.generative._scale import Scale
from epicycle.generative.autoencoders._coders import CodeDecoder, Encoder
from epicycle.nets.training._randomness import generator


class AutoEncoderModule(nn.Module):  # type: ignore[misc]
    """Encoder, decoder, and what makes rows noisy and codes sparse.

    Parameters
    ----------
    architecture : mapping
        That of the coders, with "tied", "noise", "masking", "sparsity" and "n_active".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.scale = Scale(architecture["mean"], architecture["deviation"], architecture["shape"])
        self.noise, self.masking = architecture["noise"], architecture["masking"]
        self.sparsity, self.n_active = architecture["sparsity"], architecture["n_active"]
        self.encoder = Encoder(architecture, architecture["n_codes"])
        self.tied = architecture["tied"]
        self.decoder = TransposedEncoder(architecture, self.encoder) if self.tied else CodeDecoder(architecture)
        if self.sparsity > 0 and not self.tied:
            parametrize.register_parametrization(self.decoder.linear[0], "weight", UnitColumns(architecture["n_codes"]))
        self.to(getattr(torch, architecture["dtype"]))

    def corrupted(self, u: torch.Tensor) -> torch.Tensor:
        """Rows with noise, and with entries at their means."""
        if self.noise > 0:
            u = u + self.noise * torch.randn(u.shape, generator=generator(), device=u.device, dtype=u.dtype)
        if self.masking > 0:
            u = u * torch.empty_like(u).bernoulli_(1.0 - self.masking, generator=generator())
        return u

    def codes(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Codes of standardised rows."""
        z = self.encoder(u, labels)
        if self.sparsity > 0:
            z = torch.relu(z)
        if self.n_active is not None and self.n_active < z.shape[1]:
            largest = z.abs().topk(self.n_active, dim=1).indices
            z = z * torch.zeros_like(z).scatter_(1, largest, 1.0)
        return z

    def decoded(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Standardised rows of codes."""
        return self.decoder(z, labels, self.encoder) if self.tied else self.decoder(z, labels)

    def losses(self, x: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """1/p |g(f(u + noise)) - u|^2 + sparsity/k |z|_1 of every row; without the noise in evaluation mode."""
        u = self.scale(x)
        z = self.codes(self.corrupted(u) if self.training else u, labels)
        found = (self.decoded(z, labels) - u).flatten(1).square().mean(1)
        return found + self.sparsity * z.abs().mean(1) if self.sparsity > 0 else found


class TransposedEncoder(nn.Module):  # type: ignore[misc]
    """From codes to rows by the transposed linear maps of an encoder, in reverse order, with biases of its own.

    The encoder is given in every call: its weights are then those of one module, and counted once.
    """

    def __init__(self, architecture: Mapping[str, Any], encoder: Encoder) -> None:
        super().__init__()
        self.n_classes, self.activation = encoder.n_classes, encoder.activation
        linear, convolutions = _affine(encoder.linear), _affine(encoder.convolutions)
        n_flat = linear[0].in_features - self.n_classes
        sizes = [layer.in_features for layer in linear[:0:-1]] + [n_flat]
        self.biases = nn.ParameterList(torch.zeros(size) for size in sizes)
        # The label enters beside the code, whose weights no layer of the encoder has.
        self.of_class = nn.Parameter(torch.zeros(sizes[0], self.n_classes)) if self.n_classes else None
        self.pixel_biases = nn.ParameterList(torch.zeros(layer.in_channels) for layer in convolutions[::-1])
        self.sides = encoder.sides[::-1]
        channels = convolutions[-1].out_channels if convolutions else architecture["shape"][-1]
        self.start = (channels, *self.sides[0])

    def forward(self, z: torch.Tensor, labels: torch.Tensor | None, encoder: Encoder) -> torch.Tensor:
        """Rows of codes z, given the codes of their classes."""
        linear, convolutions = _affine(encoder.linear)[::-1], _affine(encoder.convolutions)[::-1]
        u = z
        for i, (layer, bias) in enumerate(zip(linear, self.biases, strict=True)):
            weight = layer.weight[:, : len(bias)]  # without the columns of the classes
            u = F.linear(u if i == 0 else self.activation(u), weight.T, bias)
            if i == 0 and self.of_class is not None:
                assert labels is not None
                u = u + F.linear(F.one_hot(labels.long(), self.n_classes).to(u), self.of_class)
        u = u.unflatten(1, self.start)
        for layer, bias, side in zip(convolutions, self.pixel_biases, self.sides[1:], strict=True):
            # A convolution of stride 2 takes sides 2h - 1 and 2h to h: which of them it was decides on the padding.
            more = [n - (2 * h - 1) for n, h in zip(side, u.shape[2:], strict=True)]
            u = F.conv_transpose2d(
                self.activation(u), layer.weight, bias, stride=2, padding=1, output_padding=(more[0], more[1])
            )
        return u


class UnitColumns(nn.Module):  # type: ignore[misc]
    """Weights whose first columns have length 1, so that small codes cannot be made up for by large weights."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The weights with columns of that length."""
        return torch.cat([F.normalize(weight[:, : self.n], dim=0), weight[:, self.n :]], dim=1)


def _affine(layers: nn.Sequential) -> list[Any]:
    """The layers that have weights."""
    return [layer for layer in layers if isinstance(layer, nn.Linear | nn.Conv2d)]
