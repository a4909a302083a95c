r"""The module of a normalizing flow:  log p(x | y) = log p_0(f(u(x), y) | y) + log |det df/du| + log |det du/dx|.

u are standardised entries. Where the entries of rows are whole numbers ("quantised") that stand for an interval of
length one each, x is drawn from it, so that there is a density (Uria et al. 2013); bytes become logits of their
place among 256 (Dinh et al. 2017),

    u = logit(a + (1 - 2 a) (x + e) / 256),   e ~ U(0, 1),   a = 0.05 .
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from epicycle.generative.flows._bases import Mixture, Normal, StudentT
from epicycle.generative.flows._layers import (
    Affine,
    Autoregressive,
    Coupling,
    Linear,
    Moved,
    Shuffled,
    Spline,
    orders,
)
from epicycle.nets.training._randomness import generator

#: Where the logits of bytes end: at a and 1 - a.
_EDGE = 0.05
#: Rows whose moments are added up at once.
_ROWS = 8192


class Entries(nn.Module):  # type: ignore[misc]
    """Rows (n, ...) to standardised entries (n, d), and back."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        self.shape, self.quantised = architecture["shape"], architecture["quantised"]
        self.register_buffer("mean", torch.tensor(architecture["mean"], dtype=torch.float64), persistent=False)
        self.register_buffer(
            "deviation", torch.tensor(architecture["deviation"], dtype=torch.float64), persistent=False
        )
        self.log_volume = float(np.log(architecture["deviation"]).sum())

    def forward(self, x: torch.Tensor, *, noise: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """(u, log |det du/dx|); entries that are whole numbers are drawn from their intervals, or in the middle."""
        x = x.flatten(1).to(self.mean)
        if noise and self.quantised:
            x = x + torch.rand(x.shape, generator=generator(), device=x.device, dtype=x.dtype) - 0.5
        x, log_slope = spread(x, self.quantised)
        return (x - self.mean) / self.deviation, log_slope - self.log_volume

    def inverse(self, u: torch.Tensor) -> torch.Tensor:
        """Rows in their own units and layout, those of bytes between -0.5 and 255.5."""
        x = u * self.deviation + self.mean
        if self.quantised == "bytes":
            x = 256 * ((torch.sigmoid(x) - _EDGE) / (1 - 2 * _EDGE)).clamp(0, 1) - 0.5
        return x.unflatten(1, self.shape)


def spread(x: torch.Tensor, quantised: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Entries, logits of them where they are bytes, and the logarithm of the change of volume of every row."""
    if quantised != "bytes":
        return x, x.new_zeros(len(x))
    v = _EDGE + (1 - 2 * _EDGE) * (x + 0.5) / 256
    log_slope = -(v.log() + (-v).log1p()).sum(1) + x.shape[1] * math.log((1 - 2 * _EDGE) / 256)
    return torch.logit(v), log_slope


def moments_of(rows: Any, quantised: str | None) -> tuple[list[float], list[float]]:
    """Weighted means and deviations of the entries that a flow sees; a deviation is 1 where all are equal."""

    def sums(term: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        total = torch.zeros(1, dtype=torch.float64)
        for batch in rows.in_order(_ROWS):
            x = batch.inputs[0].flatten(1).double()
            v = torch.ones(len(x), dtype=torch.float64) if batch.weight is None else batch.weight.double()
            total = total + v @ term(x)
        return total

    weight = sums(lambda x: torch.ones(len(x), 1, dtype=torch.float64))
    mean = sums(lambda x: spread(x, quantised)[0]) / weight
    variance = sums(lambda x: (spread(x, quantised)[0] - mean).square()) / weight
    deviation = variance.sqrt()
    deviation[deviation <= 1e-7 * mean.abs()] = 0.0  # a spread that is the rounding of the mean
    if quantised:  # draws from intervals of a width h add h^2 / 12
        inner = sums(lambda x: (spread(x + 0.5, quantised)[0] - spread(x - 0.5, quantised)[0]).square() / 12) / weight
        deviation = (deviation.square() + inner).sqrt()
    return mean.tolist(), torch.where(deviation > 0, deviation, 1.0).tolist()


class FlowModule(nn.Module):  # type: ignore[misc]
    """Entries, layers and base of a normalizing flow.

    Parameters
    ----------
    architecture : mapping
        With "shape", "dtype", "n_classes", "mean", "deviation", "quantised", "kind", "n_layers", "hidden", "n_bins",
        "bound", "mixing", "base" and "n_components".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        p, n_classes = math.prod(architecture["shape"]), architecture["n_classes"]
        kind = architecture["kind"]
        g = Spline(architecture["n_bins"], architecture["bound"]) if "spline" in kind else Affine()
        step = Autoregressive if "autoregressive" in kind else Coupling
        layers: list[nn.Module] = []
        for order in orders(p, architecture["n_layers"]):
            layers.append(step(p, n_classes, architecture["hidden"], g))
            layers.append(Linear(order) if architecture["mixing"] == "linear" else Shuffled(order))
        self.layers = nn.ModuleList(layers)
        if architecture["base"] == "mixture":
            self.base: Normal = Mixture(p, architecture["n_components"], n_classes)
        else:
            self.base = {"normal": Normal, "student_t": StudentT}[architecture["base"]](p)
        self.to(getattr(torch, architecture["dtype"]))
        self.entries = Entries(architecture).to(getattr(torch, architecture["dtype"]))

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """log p(x | y) of every row; where entries stand for intervals, at a point that is drawn within them."""
        z, log_slope = self.to_base(x, labels, noise=True)
        return self.base.log_density(z, labels) + log_slope

    def to_base(self, x: torch.Tensor, labels: torch.Tensor | None, *, noise: bool = False) -> Moved:
        """(z, log |det dz/dx|) of rows x, given the codes of their classes."""
        u, log_volume = self.entries(x, noise=noise)
        z, log_slope = self.moved(u, labels)
        return z, log_slope + log_volume

    def from_base(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """Rows of z, in the units and the layout of x."""
        found: torch.Tensor = self.entries.inverse(self.back(z, labels))
        return found

    def moved(self, u: torch.Tensor, labels: torch.Tensor | None) -> Moved:
        """(f(u), log |det df/du|) of standardised entries u."""
        total = u.new_zeros(len(u))
        for layer in self.layers:
            u, log_slope = layer(u, labels)
            total = total + log_slope
        return u, total

    def back(self, z: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """f^-1(z)."""
        for layer in reversed(self.layers):
            z, _ = layer.inverse(z, labels)
        return z
