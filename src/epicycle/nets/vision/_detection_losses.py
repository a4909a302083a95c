"""The loss of images whose objects are points of heat maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


def detection_losses(n_classes: int) -> Callable[[Any, Any], torch.Tensor]:
    """(module, batch) -> the loss of every image, for targets as `_heat_maps.Boxes` gives them.

    The heat has the focal loss of Law and Deng (2018), for each object; boxes the distance of the four numbers in the
    cells near their centres.
    """
    K = n_classes

    def losses(module: Any, batch: Any) -> torch.Tensor:
        found, target = module(*batch.inputs), batch.target
        heat, truth = found[:, :K], target[:, :K].to(found.dtype)
        log_p, log_q = functional.logsigmoid(heat), functional.logsigmoid(-heat)
        centre = truth == 1
        focal = torch.where(
            centre,
            -torch.exp(2 * log_q) * log_p,
            -((1 - truth.clamp(min=0)) ** 4) * torch.exp(2 * log_p) * log_q,
        )
        focal = (focal * (truth >= 0)).sum((1, 2, 3)) / centre.sum((1, 2, 3)).clamp(min=1)
        weight = target[:, -1].to(found.dtype)
        distance = (found[:, K:] - target[:, K:-1].to(found.dtype)).abs().sum(1)
        boxes = (weight * distance).sum((1, 2)) / weight.sum((1, 2)).clamp(min=1e-6)
        return focal + boxes

    return losses
