"""The module of a multi-layer perceptron:  z_0 = x,  z_l = a(W_l z_{l-1} + b_l),  output W_L z_{L-1} + b_L."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from epicycle.nets.training._randomness import Dropout

ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
}


class Added(nn.Module):  # type: ignore[misc]
    """x + a(W x + b), with dropout."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        return x + self.layers(x)


def multi_layer_perceptron(architecture: Mapping[str, Any]) -> nn.Module:
    """Linear layers with an activation between them; every weight starts uniform within sqrt(6 / (in + out))."""
    sizes, dtype = architecture["layers"], getattr(torch, architecture["dtype"])
    layers: list[nn.Module] = []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        linear = nn.Linear(n_in, n_out, dtype=torch.float64)  # the same start in single and in double precision
        bound = math.sqrt(6 / (n_in + n_out))
        nn.init.uniform_(linear.weight, -bound, bound)
        nn.init.uniform_(linear.bias, -bound, bound)
        if layer == len(sizes) - 2:
            layers.append(linear)
            continue
        block = [linear, ACTIVATIONS[architecture["activation"]]()]
        if architecture["dropout"] > 0:
            block.append(Dropout(architecture["dropout"]))
        # Not the first layer: what it is given are features, not units.
        layers += [Added(*block)] if architecture.get("residual") and layer > 0 and n_in == n_out else block
    return nn.Sequential(*layers).to(dtype)
