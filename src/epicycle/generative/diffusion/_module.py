r"""Networks that see a row with noise and its level, (x_t, t), and say what is noise:

    v = F(x_t, t, y),    e = sqrt(1 - a_t) x_t + sqrt(a_t) v,    x_0 = sqrt(a_t) x_t - sqrt(1 - a_t) v

(Salimans and Ho 2022): with F = 0, where it starts, this is the best estimate for rows that are standard normal. F is
for tables a residual perceptron, for images a U-shaped network; the level enters every block as waves of t / T.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.generative._scale import Scale
from epicycle.generative.diffusion._noise import signal
from epicycle.nets.training._randomness import generator

#: Length of the code of a level, and the longest wave's number of levels.
_WAVES, _LONGEST = 64, 1e4
#: Waves of the columns beside themselves, in radians for each deviation: networks find slow changes first, and the
#: gradient of a density changes within the width of its modes.
_RATES = (1.0, 2.0, 4.0, 8.0)


class Denoiser(nn.Module):  # type: ignore[misc]
    """Scale, noise and network of an architecture.

    Parameters
    ----------
    architecture : mapping
        With "shape", "n_classes", "mean", "deviation", "schedule", "n_steps", "hidden" and "channels".
    """

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        shape, dtype = architecture["shape"], getattr(torch, architecture["dtype"])
        self.n_classes, self.n_steps = architecture["n_classes"], architecture["n_steps"]
        self.images = len(shape) == 3
        self.row = (shape[2], shape[0], shape[1]) if self.images else (shape[0],)
        self.scale = Scale(architecture["mean"], architecture["deviation"], shape)
        self.a = signal(architecture["schedule"], self.n_steps)
        width = architecture["width"]
        self.level = nn.Sequential(nn.Linear(_WAVES, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        for layer in self.level[::2]:
            nn.init.kaiming_normal_(layer.weight)  # the level has to be heard from the first step on
        if self.n_classes:  # and one more, which stands for any class
            self.classes = nn.Embedding(self.n_classes + 1, width)
        if architecture["channels"]:
            self.network: nn.Module = UNet(shape[2], architecture["channels"], width)
        else:
            self.network = ResidualNet(math.prod(shape), architecture["hidden"], width)
        self.to(dtype)
        self.register_buffer("signal", torch.tensor(self.a, dtype=dtype), persistent=False)

    def forward(self, x: torch.Tensor, t: torch.Tensor, labels: torch.Tensor | None) -> torch.Tensor:
        """v of rows x at levels t, given the codes of their classes; `n_classes` stands for any."""
        h = self.level(_waves(t / self.n_steps, x.dtype))
        if self.n_classes:
            if labels is None:
                labels = torch.full_like(t, self.n_classes)
            h = h + self.classes(labels.long())
        v: torch.Tensor = self.network(x, h)
        return v

    def roots(self, t: torch.Tensor, ndim: int) -> tuple[torch.Tensor, torch.Tensor]:
        """sqrt(a_t) and sqrt(1 - a_t), to be multiplied with rows."""
        a = self.signal[t].view(-1, *[1] * (ndim - 1))
        return a.sqrt(), (1 - a).sqrt()

    def noise(self, n: int) -> torch.Tensor:
        """n rows of standard normal noise."""
        return torch.randn((n, *self.row), generator=generator(), device=self.signal.device, dtype=self.signal.dtype)

    def noise_errors(
        self,
        called: Any,
        x: torch.Tensor,
        t: torch.Tensor,
        labels: torch.Tensor | None,
        e: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """|e - e(x_t, t)|^2 of rows x at levels t, for noise e, which is drawn by default."""
        e = self.noise(len(x)) if e is None else e
        signal_, noise = self.roots(t, x.ndim)
        x_t = signal_ * x + noise * e
        v = called(x_t, t, labels)
        return (e - noise * x_t - signal_ * v).flatten(1).square().sum(1)


def _waves(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Sines and cosines of 1000 t at wave lengths that grow in proportion."""
    rates = torch.exp(torch.arange(_WAVES // 2, device=t.device) * (-math.log(_LONGEST) / (_WAVES // 2)))
    phases = 1000 * t[:, None] * rates
    return torch.cat([phases.sin(), phases.cos()], dim=1).to(dtype)


class ResidualNet(nn.Module):  # type: ignore[misc]
    """Rows of a table, and waves of their columns, through blocks  h + W a((1 + S level) V a(h) + U level)."""

    def __init__(self, n_columns: int, hidden: list[int], width: int) -> None:
        super().__init__()
        sizes = [hidden[0], *hidden]
        self.register_buffer("rates", torch.tensor(_RATES), persistent=False)
        self.first = nn.Linear((1 + 2 * len(_RATES)) * n_columns, hidden[0])
        self.levels = nn.ModuleList(nn.Linear(width, 2 * b) for b in sizes[1:])
        self.into = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.out = nn.ModuleList(nn.Linear(b, b) for b in sizes[1:])
        self.kept = nn.ModuleList(nn.Identity() if a == b else nn.Linear(a, b) for a, b in pairwise(sizes))
        self.last = _zero(nn.Linear(sizes[-1], n_columns))

    def forward(self, x: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """As many columns as x has, in its shape."""
        u = x.flatten(1)
        phases = (u[:, :, None] * self.rates).flatten(1)
        h = self.first(torch.cat([u, phases.sin(), phases.cos()], dim=1))
        for into, out, at, kept in zip(self.into, self.out, self.levels, self.kept, strict=True):
            scale, shift = at(level).chunk(2, dim=1)
            h = kept(h) + out(functional.silu((1 + scale) * into(functional.silu(h)) + shift))
        found: torch.Tensor = self.last(functional.silu(h)).view_as(x)
        return found


class _Block(nn.Module):  # type: ignore[misc]
    """Two 3 x 3 convolutions with group norm around a shortcut, and the level added between them."""

    def __init__(self, n_in: int, n_out: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(math.gcd(8, n), n) for n in (n_in, n_out))
        self.first, self.second = nn.Conv2d(n_in, n_out, 3, 1, 1), _zero(nn.Conv2d(n_out, n_out, 3, 1, 1))
        self.at = nn.Linear(width, n_out)
        self.shortcut = nn.Identity() if n_in == n_out else nn.Conv2d(n_in, n_out, 1)

    def forward(self, x: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        h = self.first(functional.silu(self.norms[0](x))) + self.at(level)[:, :, None, None]
        found: torch.Tensor = self.shortcut(x) + self.second(functional.silu(self.norms[1](h)))
        return found


class UNet(nn.Module):  # type: ignore[misc]
    """Images from fine to coarse and back; what each level saw on the way down is joined on the way up."""

    def __init__(self, n_channels: int, channels: list[int], width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_channels, channels[0], 3, 1, 1)
        self.down = nn.ModuleList(_Block(a, b, width) for a, b in pairwise([channels[0], *channels]))
        self.middle = _Block(channels[-1], channels[-1], width)
        self.up = nn.ModuleList(_Block(2 * b, a, width) for a, b in reversed(list(pairwise([channels[0], *channels]))))
        self.norm = nn.GroupNorm(math.gcd(8, channels[0]), channels[0])
        self.last = _zero(nn.Conv2d(channels[0], n_channels, 3, 1, 1))

    def forward(self, x: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Images of the shape of x."""
        height, width = x.shape[2:]
        square = 2 ** (len(self.down) - 1)
        h = self.first(functional.pad(x, (0, -width % square, 0, -height % square)))
        seen: list[torch.Tensor] = []
        for i, block in enumerate(self.down):
            h = block(h if i == 0 else functional.avg_pool2d(h, 2), level)
            seen.append(h)
        h = self.middle(h, level)
        for i, block in enumerate(self.up):
            if i > 0:
                h = functional.interpolate(h, scale_factor=2, mode="nearest")
            h = block(torch.cat([h, seen[-1 - i]], dim=1), level)
        found: torch.Tensor = self.last(functional.silu(self.norm(h)))
        return found[:, :, :height, :width]


def _zero(layer: Any) -> Any:
    """A layer that gives zeros until it is trained."""
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
