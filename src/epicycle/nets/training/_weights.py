"""Weights of a module by name: parameters and buffers alike."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from epicycle.core._exceptions import ModelFormatError

Weights = dict[str, torch.Tensor]


def weights_of(module: torch.nn.Module) -> Weights:
    """The weights and buffers of a module, not copied."""
    return {name: value.detach() for name, value in module.state_dict().items()}


def load_weights(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Copy weights into a module of the same architecture."""
    own = weights_of(module)
    if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
        strange = [name for name in own if name not in weights or own[name].shape != weights[name].shape]
        raise ModelFormatError(
            f"the weights are those of another architecture: {strange or sorted(set(weights) - set(own))} do not fit; "
            "expected those of a module with the same layers"
        )
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(weights[name])
