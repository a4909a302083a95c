"""Losses of `epicycle.optim` for tensors: the same objects, differentiated by torch.

`loss_of_rows(loss)` is a function (z, y) -> one number for each row. Losses that networks are mostly trained with have
a formula in torch, equal to their own in value and gradient; any other is called as it is, with its own gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from epicycle.nets.training._batches import MiniBatch
from epicycle.optim import Logistic, Loss, Multinomial
from epicycle.optim._likelihoods import Poisson
from epicycle.optim._losses import Absolute, Huber, Quantile, Squared

RowLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def loss_of_rows(loss: Loss, label_smoothing: float = 0.0) -> RowLoss:
    """The loss as a function of z of shape (n, ...) and y that gives (n,): summed over further axes of the target.

    With `label_smoothing` s a class counts for 1 - s, and all K classes share s evenly (of two, by one logistic
    output, likewise).
    """
    if isinstance(loss, Multinomial):

        def multinomial(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            # rows of a sequence, (n, T, K), give a loss for each element; -1 marks padding
            found = functional.cross_entropy(
                z.flatten(0, -2),
                y.long().flatten(),
                ignore_index=-1,
                reduction="none",
                label_smoothing=label_smoothing,
            )
            return _rows(found.view(y.shape))

        return multinomial
    if isinstance(loss, Logistic):

        def logistic(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            y = y.to(z.dtype)
            smooth = y if label_smoothing == 0 else y * (1 - label_smoothing) + label_smoothing / 2
            return _rows(functional.binary_cross_entropy_with_logits(_like(z, y), smooth, reduction="none"))

        return logistic
    formula = _FORMULAS.get(type(loss))
    if formula is not None:
        return lambda z, y: _rows(formula(loss, _like(z, y), y.to(z.dtype)))
    return lambda z, y: _rows(_Called.apply(_like(z, y), y, loss))


def mean_over_targets(loss: Loss) -> Callable[[torch.nn.Module, MiniBatch], torch.Tensor]:
    """(module, batch) -> the mean loss of each row over its targets that are there, the others being -1."""
    of_rows = loss_of_rows(loss)

    def losses(module: torch.nn.Module, batch: MiniBatch) -> torch.Tensor:
        assert batch.target is not None
        return of_rows(module(*batch.inputs), batch.target) / (batch.target >= 0).sum(1).clamp(min=1)

    return losses


def _like(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """z without its last axis where that has one entry and y has none."""
    return z.squeeze(-1) if z.ndim == y.ndim + 1 and z.shape[-1] == 1 else z


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values if values.ndim == 1 else values.flatten(1).sum(1)


_FORMULAS: dict[type[Loss], Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    Squared: lambda _loss, z, y: 0.5 * (z - y).square(),
    Absolute: lambda _loss, z, y: (z - y).abs(),
    Huber: lambda loss, z, y: functional.huber_loss(z, y, reduction="none", delta=loss.delta),
    Quantile: lambda loss, z, y: torch.maximum(loss.tau * (y - z), (1 - loss.tau) * (z - y)),
    Poisson: lambda _loss, z, y: torch.exp(z) - y * z,
}


class _Called(torch.autograd.Function):  # type: ignore[misc]
    """A loss called as it is, in float64 on the CPU."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, y: torch.Tensor, loss: Loss) -> torch.Tensor:
        a, b = (np.asarray(t.detach().cpu().numpy(), dtype=np.float64) for t in (z, y))
        ctx.save_for_backward(torch.from_numpy(np.array(loss.gradient(a, b))).to(z))
        return torch.from_numpy(np.array(loss.value(a, b))).to(z)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream.reshape(*upstream.shape, *[1] * (gradient.ndim - upstream.ndim)) * gradient, None, None
