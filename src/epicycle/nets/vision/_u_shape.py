"""U-shaped networks: from fine to coarse and back, with what each level saw on the way down added on the way up.

    d_0 = block(x),  d_l = block(pool(d_{l-1})),    u_L = d_L,  u_l = block([d_l, upsampled u_{l+1}])

A linear map of the channels of u_top follows, at 2^-top of the height and width of the image (Ronneberger, Fischer and
Brox 2015). Images of any size are padded to whole squares of the coarsest level, and the maps are cut again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.vision._module import Standardise, conv_norm


def _block(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(conv_norm(n_in, n_out, 3), nn.GELU(), conv_norm(n_out, n_out, 3), nn.GELU())


class UShape(nn.Module):  # type: ignore[misc]
    """Images (n, height, width, channels) to maps (n, n_outputs, height / 2^top, width / 2^top), rounded up."""

    def __init__(self, architecture: Mapping[str, Any]) -> None:
        super().__init__()
        levels, self.top = architecture["levels"], int(architecture["top"])
        self.standardise = Standardise(architecture["mean"], architecture["deviation"])
        self.down = nn.ModuleList(_block(a, b) for a, b in pairwise([len(architecture["mean"]), *levels]))
        self.up = nn.ModuleList(
            _block(levels[level] + levels[level + 1], levels[level])
            for level in reversed(range(self.top, len(levels) - 1))
        )
        self.head = nn.Sequential(conv_norm(levels[self.top], levels[self.top], 3), nn.GELU())
        self.last = nn.Conv2d(levels[self.top], architecture["n_outputs"], 1)
        with torch.no_grad():
            self.last.bias.copy_(torch.tensor(architecture["start"]))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The maps."""
        x = self.standardise(images)
        height, width = x.shape[2:]
        square, step = 2 ** (len(self.down) - 1), 2**self.top
        x = functional.pad(x, (0, -width % square, 0, -height % square), mode="replicate")
        seen: list[torch.Tensor] = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else functional.max_pool2d(x, 2))
            seen.append(x)
        for level, block in zip(reversed(range(self.top, len(seen) - 1)), self.up, strict=True):
            coarse = functional.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([seen[level], coarse], dim=1))
        maps = self.last(self.head(x))
        return maps[:, :, : -(-height // step), : -(-width // step)]
