"""The module of a GAN: the generator, the critic, and the scale of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from epicycle.generative._row_nets import Critic, Generator, spectral_vectors
from epicycle.generative._scale import Scale


class Adversaries(nn.Module):  # type: ignore[misc]
    """Both players of an architecture."""

    #: What the training loop does not average with the weights: beside these, vectors of the spectral norms.
    states: tuple[str, ...] = ("last_loss",)

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.n_codes = architecture["n_codes"]
        self.scale = Scale(architecture["mean"], architecture["deviation"], architecture["shape"])
        self.generator = Generator(architecture)
        self.critic = Critic(architecture)
        self.register_buffer("last_loss", torch.zeros(()))
        self.states += spectral_vectors(self)
        self.to(getattr(torch, architecture["dtype"]))
