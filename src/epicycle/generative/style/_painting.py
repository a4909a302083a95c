r"""The function that is minimised over the pixels u of an image, with maps F_l(u) of a fixed network:

    F(u) = |F_c(u) - F_c(x)|^2 / |F_c(x)|^2 + w 1/L sum_l |G_l(u) - S_l|^2 / |S_l|^2 + s 1/p sum |differences of u|^2

G_l(u) = F_l F_l' / pixels are the Gram matrices: which maps are active together, wherever that is. S_l are those of the
style. A term without x, w or s is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from epicycle.generative.style._stages import Stages

_TINY = 1e-12


def gram(maps: torch.Tensor) -> torch.Tensor:
    """Mean products of the maps of each image, of shape (n, channels, channels)."""
    flat = maps.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[2]


def grams(stages: Stages, image: torch.Tensor, layers: tuple[int, ...]) -> list[torch.Tensor]:
    """The Gram matrices of one image (height, width, channels), layer by layer."""
    found = stages.maps(image[None], set(layers))
    return [gram(found[layer])[0] for layer in layers]


@dataclass
class Painting:
    """The objective for one image, as a function of its pixels in units of `deviation` around `mean`.

    Attributes
    ----------
    stages : Stages
    styles : list of Tensor
        Gram matrices of the style.
    layers : tuple of int
        Their layers.
    content : Tensor of shape (height, width, channels) or None
        The image whose content is kept.
    content_layer : int
    style_weight, smoothness : float
    mean, deviation : Tensor of shape (channels,)
    """

    stages: Stages
    styles: list[torch.Tensor]
    layers: tuple[int, ...]
    content: torch.Tensor | None
    content_layer: int
    style_weight: float
    smoothness: float
    mean: torch.Tensor
    deviation: torch.Tensor

    def __post_init__(self) -> None:
        self.kept: torch.Tensor | None = None
        if self.content is not None:
            with torch.no_grad():
                self.kept = self.stages.maps(self.content[None], {self.content_layer})[self.content_layer]

    def terms(self, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(content, style, roughness) of an image in standard units, without their factors."""
        wanted = set(self.layers) | ({self.content_layer} if self.kept is not None else set())
        maps = self.stages.maps((u * self.deviation + self.mean)[None], wanted)
        zero = u.new_zeros(())
        content = zero
        if self.kept is not None:
            content = (maps[self.content_layer] - self.kept).square().sum() / (self.kept.square().sum() + _TINY)
        style = zero
        for layer, wanted_gram in zip(self.layers, self.styles, strict=True):
            apart = (gram(maps[layer])[0] - wanted_gram).square().sum()
            style = style + apart / (wanted_gram.square().sum() + _TINY) / len(self.layers)
        rough = zero
        if self.smoothness:
            rough = (u.diff(dim=0).square().sum() + u.diff(dim=1).square().sum()) / u.numel()
        return content, style, rough

    def value_and_gradient(self, flat: np.ndarray, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """F and its gradient at pixels in a row."""
        u = torch.from_numpy(flat.reshape(shape).copy()).to(self.mean).requires_grad_(True)
        content, style, rough = self.terms(u)
        total = content + self.style_weight * style + self.smoothness * rough
        (slope,) = torch.autograd.grad(total, u)
        return float(total.detach()), slope.cpu().numpy().ravel().astype(np.float64)
