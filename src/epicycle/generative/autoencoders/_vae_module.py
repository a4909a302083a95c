"""The module of a variational auto-encoder:  q(z | x) = N(m(x), s(x)^2),  p(x | z) normal or Bernoulli around g(z)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from epicycle.generative._scale import Scale
from epicycle.generative.autoencoders._coders import CodeDecoder, Encoder
from epicycle.nets.training._randomness import generator

_LOG_2PI = math.log(2 * math.pi)
#: Logarithms of deviations: of codes at the start; ends of those of columns and of codes, for finite densities.
_START_SPREAD = -1.0
_LEAST_NOISE, _LARGEST_SPREAD = math.log(1e-3), 8.0


class VariationalModule(nn.Module):  # type: ignore[misc]
    """Encoder, decoder and noise of a variational auto-encoder."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape, k = architecture["shape"], architecture["n_codes"]
        self.n_codes = k
        self.scale = Scale(architecture["mean"], architecture["deviation"], shape)
        self.bernoulli = architecture["decoder"] == "bernoulli"
        self.binarize = bool(architecture["binarize"])
        self.encoder = Encoder(architecture, 2 * k)
        self.decoder = CodeDecoder(architecture)
        with torch.no_grad():  # deviations that follow from no row yet, and leave room for what the means tell
            self.encoder.linear[-1].weight[k:] = 0.0
            self.encoder.linear[-1].bias[k:] = _START_SPREAD
        if not self.bernoulli:
            noise = architecture["noise"]
            start = torch.zeros(shape[-1]) if noise is None else torch.full((shape[-1],), math.log(noise))
            self.log_noise = nn.Parameter(start, requires_grad=noise is None)
        self.to(getattr(torch, architecture["dtype"]))

    # ------------------------------------------------------------------------------------------- its distributions

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Rows as the networks see them: standardised, or bits, which are drawn where they are only probable."""
        u = self.scale(x)
        return torch.bernoulli(u, generator=generator()) if self.binarize else u

    def posterior(self, u: torch.Tensor, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(m, log s) of q(z | x)."""
        m, log_s = self.encoder(u, labels).chunk(2, dim=1)
        return m, log_s.clamp(-_LARGEST_SPREAD, _LARGEST_SPREAD)

    def log_noise_of_rows(self) -> torch.Tensor:
        """log sigma of the columns or channels, in the shape that goes with rows."""
        found = self.log_noise.clamp(min=_LEAST_NOISE)
        return found[:, None, None] if self.scale.images else found

    def log_likelihood(self, u: torch.Tensor, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(x | z) of every row in the units of x, for one code each or for codes of shape (draws, n, k)."""
        draws = z.shape[:-2]
        if draws and labels is not None:
            labels = labels.repeat(draws[0])
        found = self.decoder(z.flatten(0, -2), labels).view(*draws, *u.shape)
        if self.bernoulli:
            entries = -F.binary_cross_entropy_with_logits(found, u.expand_as(found), reduction="none")
            return entries.flatten(len(draws) + 1).sum(-1)
        log_noise = self.log_noise_of_rows()
        entries = -0.5 * ((u - found) * torch.exp(-log_noise)).square() - log_noise
        return entries.flatten(len(draws) + 1).sum(-1) - 0.5 * _LOG_2PI * u[0].numel() - self.scale.log_volume

    # ------------------------------------------------------------------------------------------- bounds

    def noise(self, n: int, n_rows: int) -> torch.Tensor:
        """n draws of standard normal e for each row."""
        like = self.scale.mean
        return torch.randn((n, n_rows, self.n_codes), generator=generator(), device=like.device, dtype=like.dtype)

    def log_weights(self, x: torch.Tensor, labels: torch.Tensor | None, e: torch.Tensor) -> torch.Tensor:
        """log p(x, z) - log q(z | x) of draws z = m + s e for each row, of shape (n, n_rows); e has (n, n_rows, k)."""
        u = self.rows(x)
        m, log_s = self.posterior(u, labels)
        z = m + torch.exp(log_s) * e
        ratio = 0.5 * (e.square() - z.square()) + log_s  # log p(z) - log q(z | x)
        return self.log_likelihood(u, z, labels) + ratio.sum(-1)

    def negative_bound(self, x: torch.Tensor, labels: torch.Tensor | None, beta: float) -> torch.Tensor:
        """-E log p(x | z) + beta KL(q(z | x) | p(z)) of every row, the expectation by one draw."""
        u = self.rows(x)
        m, log_s = self.posterior(u, labels)
        z = m + torch.exp(log_s) * self.noise(1, len(m))[0]
        return beta * divergences(m, log_s).sum(1) - self.log_likelihood(u, z, labels)

    # ------------------------------------------------------------------------------------------- rows of codes

    def means(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """The means of p(x | z), in the units and the layout of x."""
        found = self.decoder(z, labels)
        return self.scale.inverse(torch.sigmoid(found) if self.bernoulli else found)

    def draws(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Draws from p(x | z)."""
        found = self.decoder(z, labels)
        if self.bernoulli:
            return self.scale.inverse(torch.bernoulli(torch.sigmoid(found), generator=generator()))
        e = torch.randn(found.shape, generator=generator(), device=found.device, dtype=found.dtype)
        return self.scale.inverse(found + torch.exp(self.log_noise_of_rows()) * e)


def divergences(m: torch.Tensor, log_s: torch.Tensor) -> torch.Tensor:
    """KL(N(m, s^2) | N(0, 1)) of every entry."""
    return 0.5 * (m.square() + torch.exp(2 * log_s) - 1) - log_s
