"""The convolutional part of a fitted network as stages, each of which makes maps of those before it.

Maps that are compared are those after an activation, a residual or an Inception block: what a layer has found.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from epicycle.core._exceptions import ParameterError
from epicycle.nets.vision._module import Inception, Residual
from epicycle.nets.vision._u_shape import UShape

_FOUND = (nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU, nn.LeakyReLU, Residual, Inception)


@dataclass(frozen=True)
class Stages:
    """Modules that are applied one after the other, and the numbers of those whose maps are compared."""

    modules: tuple[nn.Module, ...]
    compared: tuple[int, ...]

    def maps(self, images: torch.Tensor, wanted: set[int]) -> dict[int, torch.Tensor]:
        """The maps with these numbers, counted among those that are compared, of images with their channels last."""
        found: dict[int, torch.Tensor] = {}
        x, last = images, self.compared[max(wanted)]
        for i, module in enumerate(self.modules[: last + 1]):
            x = module(x)
            if i in self.compared and self.compared.index(i) in wanted:
                found[self.compared.index(i)] = x
        return found


def stages_of(network: Any, device: torch.device, dtype: torch.dtype = torch.float32) -> Stages:
    """The stages of a fitted network for images, with weights that stay as they are."""
    module = copy.deepcopy(network.module_).to(device, dtype).eval()
    for weight in module.parameters():
        weight.requires_grad_(False)
    if isinstance(module, UShape):
        parts: list[nn.Module] = [module.standardise]
        for level, block in enumerate(module.down):
            parts += [nn.MaxPool2d(2), *block] if level else [*block]
    elif isinstance(module, nn.Sequential):
        parts = list(module)
    else:  # of auto-encoders and the like
        encoder = getattr(module, "encoder", None)
        scale = getattr(module, "scale", None)
        parts = [scale, *getattr(encoder, "convolutions", ())] if scale is not None else []
    flat = (nn.Flatten, nn.Linear, nn.AdaptiveAvgPool2d)
    ends = next((i for i, part in enumerate(parts) if isinstance(part, flat)), len(parts))
    compared = tuple(i for i, part in enumerate(parts[:ends]) if isinstance(part, _FOUND))
    if not compared:
        raise ParameterError(
            f"network: {type(network).__name__} has no convolutions with activations; expected a network of images "
            "that has some"
        )
    return Stages(tuple(parts[:ends]), compared)
