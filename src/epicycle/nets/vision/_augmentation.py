"""Training images moved, turned, scaled and mirrored at random: one affine map for each image and epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional


@dataclass(frozen=True)
class RandomAffine:
    """Maps each image by a draw of its own; what comes in from outside repeats the border.

    shift : pixels at most, in each direction.
    rotation : degrees at most.
    zoom : scaled by 1 - zoom to 1 + zoom.
    flip : mirrored with probability 1/2.
    """

    shift: float
    rotation: float
    zoom: float
    flip: bool

    def __call__(self, inputs: tuple[torch.Tensor, ...], rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        (images,) = inputs
        n, height, width, _ = images.shape
        angle = np.deg2rad(rng.uniform(-self.rotation, self.rotation, n))
        scale = rng.uniform(1 - self.zoom, 1 + self.zoom, n)
        down, right = rng.uniform(-self.shift, self.shift, (2, n))
        mirror = np.where(rng.random(n) < 0.5, -1.0, 1.0) if self.flip else np.ones(n)
        if self.rotation == 0 and self.zoom == 0:  # whole pixels: nothing is interpolated
            down, right = np.round(down), np.round(right)
        # The place (x, y) in [-1, 1]^2 of the new image shows the place M (x, y) + t of the old one.
        aspect = height / width
        cos, sin = np.cos(angle) / scale, np.sin(angle) / scale
        maps = np.empty((n, 2, 3))
        maps[:, 0] = np.column_stack([mirror * cos, -sin * aspect, -2 * right / width])
        maps[:, 1] = np.column_stack([mirror * sin / aspect, cos, -2 * down / height])
        grid = functional.affine_grid(torch.from_numpy(maps).float(), [n, 1, height, width], align_corners=False)
        planes = images.permute(0, 3, 1, 2).float()
        moved = functional.grid_sample(planes, grid, padding_mode="border", align_corners=False).permute(0, 2, 3, 1)
        return ((moved.round() if not images.is_floating_point() else moved).to(images.dtype).contiguous(),)
