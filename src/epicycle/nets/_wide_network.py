"""Fully connected networks whose limit of width exists: every layer is divided by the root of its inputs."""

from __future__ import annotations

import math

import torch
from torch import nn


class ScaledLinear(nn.Module):  # type: ignore[misc]
    """sqrt(w / n_in) W x + sqrt(b) c, with W and c standard normal."""

    def __init__(self, n_in: int, n_out: int, weight_variance: float, bias_variance: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in, dtype=torch.float64))
        self.bias = nn.Parameter(torch.randn(n_out, dtype=torch.float64)) if bias_variance > 0 else None
        self.scale, self.shift = math.sqrt(weight_variance / n_in), math.sqrt(bias_variance)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer."""
        found = self.scale * (x @ self.weight.T)
        return found if self.bias is None else found + self.shift * self.bias


def wide_module(
    n_in: int, width: int, depth: int, n_out: int, weight_variance: float, bias_variance: float
) -> nn.Sequential:
    """Hidden layers of rectified units, drawn from torch's generator."""
    sizes = [n_in, *[width] * depth, n_out]
    layers: list[nn.Module] = []
    for i in range(depth + 1):
        layers.append(ScaledLinear(sizes[i], sizes[i + 1], weight_variance, bias_variance))
        if i < depth:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)
