"""The scale of rows: means and deviations of columns or of channels, and the layer that takes them off and back on.

Rows come as a table (n, p) or as images (n, height, width, channels); inside a module images have their channels first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

#: Rows that are added up at once.
_ROWS = 8192


class Scale(nn.Module):  # type: ignore[misc]
    """u = (x - mean) / deviation of each column or channel, and back.

    Parameters
    ----------
    mean, deviation : list of float
        One for each column, or for each channel of images.
    shape : list of int
        Of a row: (p,) or (height, width, channels).
    """

    def __init__(self, mean: list[float], deviation: list[float], shape: list[int]) -> None:
        super().__init__()
        self.images = len(shape) == 3
        side = (slice(None), None, None) if self.images else slice(None)
        self.register_buffer("mean", torch.tensor(mean)[side], persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation)[side], persistent=False)
        times = math.prod(shape) // len(deviation)
        #: log |du/dx|^-1: what the log-density of u exceeds that of x by.
        self.log_volume = times * float(np.sum(np.log(deviation)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Standardised rows, of the floating type of the module."""
        x = x.to(self.mean)
        return ((x.permute(0, 3, 1, 2) if self.images else x) - self.mean) / self.deviation

    def inverse(self, u: torch.Tensor) -> torch.Tensor:
        """Rows in their own units and layout."""
        x = u * self.deviation + self.mean
        return x.permute(0, 2, 3, 1) if self.images else x


def scale_of(rows: Any, *, common: bool = False) -> tuple[list[float], list[float]]:
    """Weighted means and standard deviations of the columns, or of the channels of images; 1 where all are equal.

    With `common` the deviation of all is the root of their mean variance: squared errors then weigh as in X itself.
    """
    weight, total, spread = 0.0, 0.0, 0.0
    for batch in rows.in_order(_ROWS):
        x, v = _numbers(batch)
        weight, total = weight + float(v.sum()), total + v @ x.mean(axis=1)
    mean = total / weight
    for batch in rows.in_order(_ROWS):
        x, v = _numbers(batch)
        spread = spread + v @ ((x - mean) ** 2).mean(axis=1)
    deviation = np.sqrt(spread / weight)
    constant = deviation <= 1e-7 * np.abs(mean)  # a spread that is the rounding of the mean
    if common and not constant.all():
        varying = np.where(constant, 0.0, deviation)
        deviation, constant = np.full_like(deviation, np.sqrt(np.mean(varying**2))), np.zeros_like(constant)
    return np.asarray(mean).tolist(), np.where(constant, 1.0, deviation).tolist()


def bounds_of(rows: Any) -> tuple[list[float], list[float]]:
    """Middles and half widths of the ranges of the columns, or of the channels of images; 1 where all are equal."""
    low, high = math.inf, -math.inf
    for batch in rows.in_order(_ROWS):
        x, _ = _numbers(batch)
        low, high = np.minimum(low, x.min(axis=(0, 1))), np.maximum(high, x.max(axis=(0, 1)))
    half = np.subtract(high, low) / 2
    return np.asarray(low + half).tolist(), np.where(half > 0, half, 1.0).tolist()


def _numbers(batch: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values of shape (n, pixels, channels), weights) of a batch; a table has one pixel."""
    x = batch.inputs[0].numpy().astype(np.float64)
    v = np.ones(len(x)) if batch.weight is None else batch.weight.numpy().astype(np.float64)
    return x.reshape(len(x), -1, x.shape[-1]), v
