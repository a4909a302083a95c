"""Which pixels a score depends on: by gradients, by gradients of the last maps, or by covering parts of the image.

Gradient:   max_c |d s / d x_c|                                          (Simonyan, Vedaldi and Zisserman 2014)
Grad-CAM:   max(0, sum_k w_k A_k),  w_k the mean over pixels of ds/dA_k   (Selvaraju et al. 2017)
Occlusion:  the mean fall of s over the squares that cover a pixel        (Zeiler and Fergus 2014)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from epicycle.nets.training._torch import device_of

#: (module, images, sign and column of the score of each image) -> (n, height, width)
Explanation = Callable[[nn.Sequential, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _scores(outputs: torch.Tensor, column: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    return sign * outputs.gather(1, column[:, None])[:, 0]


def gradient(module: nn.Sequential, images: torch.Tensor, column: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """The size of the gradient of the score, largest channel."""
    x = images.float().requires_grad_(True)
    (g,) = torch.autograd.grad(_scores(module(x), column, sign).sum(), x)
    return g.abs().amax(dim=3)


def grad_cam(module: nn.Sequential, images: torch.Tensor, column: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """The last maps that are images, weighted by the mean gradient of the score."""
    x = images
    maps: torch.Tensor | None = None
    after = 0
    with torch.no_grad():
        for i, layer in enumerate(module):
            x = layer(x)
            if x.ndim == 4 and x.shape[2] * x.shape[3] > 1:
                maps, after = x, i + 1
    assert maps is not None  # the standardised image itself is one
    A = maps.detach().requires_grad_(True)
    (g,) = torch.autograd.grad(_scores(module[after:](A), column, sign).sum(), A)
    weighted = torch.relu((g.mean(dim=(2, 3), keepdim=True) * A).sum(dim=1, keepdim=True)).detach()
    return functional.interpolate(weighted, size=images.shape[1:3], mode="bilinear", align_corners=False)[:, 0]


def occlusion(module: nn.Sequential, images: torch.Tensor, column: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """The fall of the score where a square of a fifth of the image is covered by its mean colour."""
    n, height, width, _ = images.shape
    side = max(1, min(height, width) // 5)
    step = max(1, side // 2)
    x = images.float()
    mean = x.mean(dim=(1, 2), keepdim=True)
    fall, covered = torch.zeros(n, height, width), torch.zeros(height, width)
    with torch.no_grad():
        whole = _scores(module(x), column, sign)
        for top in _starts(height, side, step):
            for left in _starts(width, side, step):
                hidden = x.clone()
                hidden[:, top : top + side, left : left + side] = mean
                less = (whole - _scores(module(hidden), column, sign)).cpu()
                fall[:, top : top + side, left : left + side] += less[:, None, None]
                covered[top : top + side, left : left + side] += 1
    return fall / covered


def _starts(length: int, side: int, step: int) -> list[int]:
    """Positions at which squares begin, so that the last one ends with the image."""
    return sorted({*range(0, length - side, step), length - side})


EXPLANATIONS: dict[str, Explanation] = {"gradient": gradient, "grad_cam": grad_cam, "occlusion": occlusion}


def explained(
    method: str, module: nn.Sequential, images: np.ndarray, classes: np.ndarray, n_outputs: int, batch_size: int
) -> np.ndarray:
    """Maps of shape (n, height, width) for the scores of these classes, by number."""
    device = device_of(module)
    found = []
    for i in range(0, len(images), batch_size):
        x = torch.from_numpy(np.array(images[i : i + batch_size])).to(device)
        label = torch.from_numpy(np.array(classes[i : i + batch_size], dtype=np.int64)).to(device)
        # Of two classes there is one output: its score is that of the second, and the first has its negative.
        sign = (2.0 * label - 1.0) if n_outputs == 1 else torch.ones(len(label), device=device)
        column = torch.zeros_like(label) if n_outputs == 1 else label
        found.append(EXPLANATIONS[method](module, x, column, sign).cpu().numpy())
    return np.concatenate(found)
