r"""The module of an energy-based model:  log p(u | y) = f(u, y) + log N(u; 0, I) - log Z_y,  and its chains.

u is a row in the units of `Scale`. The normal factor keeps every model proper, and annealed chains start from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.generative._row_nets import Critic, Generator
from epicycle.generative._scale import Scale
from epicycle.nets.training._randomness import generator

#: Size of the first leapfrog steps, times d^(1/4).
_FIRST_STEP = 0.3


class Energy(nn.Module):  # type: ignore[misc]
    """f, the scale and the chains of an architecture; with "n_codes" a generator and what it is checked by.

    Parameters
    ----------
    architecture : mapping
        As for `Critic` and `Generator`, with "n_chains" and "method".
    """

    #: What the training loop does not average with the weights.
    states = ("chains", "chain_labels", "step")

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape = architecture["shape"]
        self.scale = Scale(architecture["mean"], architecture["deviation"], shape)
        self.row = (shape[2], shape[0], shape[1]) if len(shape) == 3 else (shape[0],)
        self.n_columns, self.n_classes = math.prod(shape), architecture["n_classes"]
        self.energy = Critic(architecture)
        if architecture["method"] == "adversarial":
            self.n_codes = architecture["n_codes"]
            self.actor = Actor(architecture)
        self.register_buffer("chains", torch.randn(architecture["n_chains"], *self.row))
        labels = torch.randint(0, max(self.n_classes, 1), (architecture["n_chains"],))
        self.register_buffer("chain_labels", labels)
        self.register_buffer("step", torch.tensor(_FIRST_STEP / self.n_columns**0.25))
        self.to(getattr(torch, architecture["dtype"]))

    def forward(self, u: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """f of rows u."""
        f: torch.Tensor = self.energy(u, labels)
        return f

    def log_normal(self, u: torch.Tensor) -> torch.Tensor:
        """log N(u; 0, I)."""
        return -(u.flatten(1).square().sum(1) + self.n_columns * math.log(2 * math.pi)) / 2

    def noise(self, n: int) -> torch.Tensor:
        """n rows of standard normal noise."""
        size = (n, *self.row)
        return torch.randn(size, generator=generator(), device=self.chains.device, dtype=self.chains.dtype)


class Actor(nn.Module):  # type: ignore[misc]
    r"""A generator with noise, u = g(z, y) + s e, and q(z | u) = N(m(u, y), c), which bounds its entropy from below:

    H(u) >= H(u | z) + H(z) + E log q(z | u)
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.generator = Generator(architecture)
        self.recogniser = nn.ModuleList([Critic({**architecture, "spectral_norm": False}) for _ in range(1)])
        critic = self.recogniser[0]
        critic.last = nn.Linear(critic.last.in_features, 2 * architecture["n_codes"])
        self.log_noise = nn.Parameter(torch.tensor(-2.0))
        self.n_classes, self.n_codes = architecture["n_classes"], architecture["n_codes"]

    def draw(self, n: int, labels: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, their codes)."""
        weight = self.log_noise
        numbers = {"generator": generator(), "device": weight.device, "dtype": weight.dtype}
        z = torch.randn((n, self.n_codes), **numbers)
        mean = self.generator(z, labels)
        return mean + self.log_noise.exp() * torch.randn(mean.shape, **numbers), z

    def entropy(self, u: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """The bound, for every draw, up to a constant."""
        critic = self.recogniser[0]
        mean, log_scale = critic.last(critic.features(u)).chunk(2, dim=1)
        log_scale = log_scale.clamp(-7, 7)
        log_q = -((z - mean) / log_scale.exp()).square() / 2 - log_scale
        return self.log_noise * u[0].numel() + log_q.sum(1)
