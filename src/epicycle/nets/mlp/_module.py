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


def multi_layer_perceptron(architecture: Mapping[str, Any]) -> nn.Module:
    """Linear layers with an activation between them; every weight starts uniform within sqrt(6 / (in + out))."""
    sizes, dtype = architecture["layers"], getattr(torch, architecture["dtype"])
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        if layers:
            layers.append(ACTIVATIONS[architecture["activation"]]())
            if architecture["dropout"] > 0:
                layers.append(Dropout(architecture["dropout"]))
        linear = nn.Linear(n_in, n_out, dtype=torch.float64)  # the same start in single and in double precision
        bound = math.sqrt(6 / (n_in + n_out))
        nn.init.uniform_(linear.weight, -bound, bound)
        nn.init.uniform_(linear.bias, -bound, bound)
        layers.append(linear)
    return nn.Sequential(*layers).to(dtype)
