r"""The module of an energy-based model:  log p(u | y) = f(u, y) + log N(u; 0, I) - log Z_y,  and its chains.

u is a row in the units of `Scale`. The normal factor keeps every model proper, and annealed chains start from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.generative._row_nets import Critic, Generator, spectral_vectors
from epicycle.generative._scale import Scale
from epicycle.nets.training._randomness import generator

#: Size of the first leapfrog steps, times d^(1/4).
_FIRST_STEP = 0.3


class Energy(nn.Module):  # type: ignore[misc]
    """f, the scale and the chains of an architecture; with "n_codes" a generator and what it is checked by.

    Parameters
    ----------
    architecture : mapping
        As for `Critic` and `Generator`, with "n_chains", "shares" (of the classes) and "method".
    """

    #: What the training loop does not average with the weights.
    states: tuple[str, ...] = ("chains", "chain_labels", "step", "last_loss")

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape = architecture["shape"]
        self.scale = Scale(architecture["mean"], architecture["deviation"], shape)
        self.row = (shape[2], shape[0], shape[1]) if len(shape) == 3 else (shape[0],)
        self.n_columns, self.n_classes = math.prod(shape), architecture["n_classes"]
        self.energy = Critic(architecture)
        if architecture["method"] == "adversarial":
            self.actor = Actor(architecture)
        self.register_buffer("chains", torch.randn(architecture["n_chains"], *self.row))
        self.register_buffer("chain_labels", torch.arange(architecture["n_chains"]) % max(self.n_classes, 1))
        self.register_buffer("shares", torch.tensor(architecture["shares"]), persistent=False)
        self.register_buffer("step", torch.tensor(_FIRST_STEP / self.n_columns**0.25))
        self.register_buffer("last_loss", torch.zeros(()))
        self.states += spectral_vectors(self)
        self.to(getattr(torch, architecture["dtype"]))

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """f of rows u."""
        f: torch.Tensor = self.energy(u, labels)
        return f

    def chain_weights(self) -> torch.Tensor:
        """Of the chains, with mean one: those of a class have its share among the rows together."""
        if not self.n_classes:
            return torch.ones_like(self.shares[:1])
        present = torch.bincount(self.chain_labels, minlength=self.n_classes)
        weights = (self.shares / present.clamp(min=1))[self.chain_labels]
        return weights / weights.mean()

    def log_normal(self, u: torch.Tensor) -> torch.Tensor:
        """log N(u; 0, I)."""
        return -(u.flatten(1).square().sum(1) + self.n_columns * math.log(2 * math.pi)) / 2

    def noise(self, n: int) -> torch.Tensor:
        """n rows of standard normal noise."""
        size = (n, *self.row)
        return torch.randn(size, generator=generator(), device=self.chains.device, dtype=self.chains.dtype)


class Actor(nn.Module):  # type: ignore[misc]
    r"""A generator with noise, u = g(z, y) + s e, and q(z | u) = N(m(u), c(u)), which bounds its entropy from below:

    H(u) >= H(u | z) + H(z) + E log q(z | u)
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.generator = Generator(architecture)
        self.recogniser = Critic({**architecture, "spectral_norm": False, "n_classes": 0})
        self.recogniser.last = nn.Linear(self.recogniser.last.in_features, 2 * architecture["n_codes"])
        self.log_noise = nn.Parameter(torch.tensor(-2.0))

    def draw(self, n: int, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, their codes)."""
        mean, z = self.generator.drawn(n, labels)
        e = torch.randn(mean.shape, generator=generator(), device=mean.device, dtype=mean.dtype)
        return mean + self.log_noise.exp() * e, z

    def entropy(self, u: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """The bound, for every draw, up to a constant."""
        mean, log_scale = self.recogniser.last(self.recogniser.features(u)).chunk(2, dim=1)
        log_scale = log_scale.clamp(-7, 7)
        log_q = -((z - mean) / log_scale.exp()).square() / 2 - log_scale
        return self.log_noise * u[0].numel() + log_q.sum(1)
