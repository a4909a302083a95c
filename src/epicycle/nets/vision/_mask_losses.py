"""Losses of images whose pixels have classes: cross-entropy with factors of the classes, and Dice's overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from epicycle.nets.training._losses import loss_of_rows
from epicycle.optim import Loss


def mask_losses(kind: str, loss: Loss, factors: np.ndarray) -> Callable[[Any, Any], torch.Tensor]:
    """(module, batch) -> the loss of every image, from scores (n, K, height, width) and codes; -1 is ignored."""
    of_pixels = loss_of_rows(loss)
    plain = bool((factors == 1).all())

    def cross_entropy(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        pixels = scores.movedim(1, -1)
        losses = of_pixels(pixels.reshape(-1, pixels.shape[-1]), target.reshape(-1)).view(len(target), -1)
        if not plain:
            weight = torch.from_numpy(factors).to(losses)
            losses = losses * weight[target.clamp(min=0)].view(len(target), -1)
        return losses.sum(1) / (target >= 0).flatten(1).sum(1).clamp(min=1)

    def losses(module: Any, batch: Any) -> torch.Tensor:
        scores, target = module(*batch.inputs), batch.target
        if kind == "cross_entropy":
            return cross_entropy(scores, target)
        overlap = dice(scores, target)
        return overlap if kind == "dice" else overlap + cross_entropy(scores, target)

    return losses


def dice(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1 minus Dice's overlap of each image, the mean over the classes in it; one pixel is added to both sides."""
    known = (target >= 0)[:, None]
    truth = functional.one_hot(target.clamp(min=0), scores.shape[1]).movedim(-1, 1).to(scores.dtype) * known
    share = scores.softmax(dim=1) * known
    area = truth.sum((2, 3))
    overlap = (2 * (truth * share).sum((2, 3)) + 1) / (area + share.sum((2, 3)) + 1)
    present = (area > 0).to(overlap.dtype)
    return 1 - (overlap * present).sum(1) / present.sum(1).clamp(min=1)
