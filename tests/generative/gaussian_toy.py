"""The smallest generative network: independent normal variables, whose mean and deviation each class has."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from epicycle.core.estimator import MethodCard, stores_arguments
from epicycle.generative._density_net import DensityNet
from epicycle.generative._generative_net import GENERATIVE_DEFAULTS
from epicycle.generative._latent_net import LatentNet
from epicycle.generative._scale import Scale


class Normals(nn.Module):
    def __init__(self, architecture: Mapping[str, Any]):
        super().__init__()
        self.scale = Scale(architecture["mean"], architecture["deviation"], architecture["shape"])
        n_classes, (p, *_) = max(architecture["n_classes"], 1), architecture["shape"]
        if len(architecture["shape"]) == 3:
            p = architecture["shape"][2], *architecture["shape"][:2]
        size = p if isinstance(p, tuple) else (p,)
        self.location = nn.Parameter(torch.zeros(n_classes, *size))
        self.spread = nn.Parameter(torch.zeros(n_classes, *size))

    def of(self, labels, n):
        k = torch.zeros(n, dtype=torch.long) if labels is None else labels.long()
        return self.location[k], self.spread[k]

    def log_density(self, x, labels):
        location, spread = self.of(labels, len(x))
        u = (self.scale(x) - location) * torch.exp(-spread)
        entries = -0.5 * u.square() - spread - 0.5 * torch.log(torch.tensor(2 * torch.pi))
        return entries.flatten(1).sum(1) - self.scale.log_volume

    def decode(self, z, labels):
        location, spread = self.of(labels, len(z))
        return self.scale.inverse(location + torch.exp(spread) * z.view_as(location))


class NormalToy(LatentNet, DensityNet):
    """Independent normal variables, a network of one layer for the tests of what all share."""

    _card = MethodCard("generative", ("F9",), ("memory",), "none")
    _parameters: ClassVar[Mapping[str, Any]] = DensityNet._parameters

    @stores_arguments(**{**GENERATIVE_DEFAULTS, "learning_rate_init": 0.02, "learning_rate": "cosine"})
    def __init__(self, **shared): ...

    @staticmethod
    def _build_module(architecture):
        return Normals(architecture).to(getattr(torch, architecture["dtype"]))

    def _architecture(self, rows):
        return self._common_architecture(rows)

    def _row_losses(self):
        return lambda module, batch: -module.log_density(batch.inputs[0], batch.target)

    def _log_densities(self, module, batch):
        return module.log_density(batch.inputs[0], batch.target)

    def _n_codes(self):
        return int(torch.tensor(self.architecture_["shape"]).prod())

    def _decoded(self, module, z, labels):
        return module.decode(z, labels)
