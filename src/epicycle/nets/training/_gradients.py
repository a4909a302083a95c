"""The gradient of the mean loss of a batch, whole or in parts that run one after another or side by side.

The parts, and the order in which their gradients are added, depend on the batch alone: with one thread each, the bits
are the same for any number of cores. Batch normalisation sees the rows of a part, and its running statistics are the
means over the parts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from epicycle.core._threads import n_threads
from epicycle.engine._ordered import in_order
from epicycle.nets.training._batches import MiniBatch
from epicycle.nets.training._options import TrainingOptions
from epicycle.nets.training._processes import n_processes, own_share, shared_module, summed
from epicycle.nets.training._randomness import drawing_from
from epicycle.nets.training._torch import one_thread_each

_MOST_PARTS = 1 << 16  # of a batch in one process: what processes draw is numbered beyond each other

#: (module, batch) -> the loss of every row.
RowLosses = Callable[[torch.nn.Module, MiniBatch], torch.Tensor]


class Gradients:
    """Computes gradients of one module.

    Parameters
    ----------
    module : torch.nn.Module
    row_losses : callable
        (module, batch) -> the loss of every row, of shape (n_rows,).
    options : TrainingOptions
    mean_weight : float
        Mean weight of all rows, so that batches of heavy and of light rows are on one scale.
    seed : int
        Of what the module draws.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        row_losses: RowLosses,
        options: TrainingOptions,
        *,
        mean_weight: float,
        seed: int,
        device: torch.device,
    ) -> None:
        self.module, self.row_losses, self.options = module, row_losses, options
        self.mean_weight, self.seed, self.device = mean_weight, seed, device
        self.trained = [p for p in module.parameters() if p.requires_grad]
        self.scaler = torch.amp.GradScaler(device.type) if options.precision == "float16" else None
        self.threads, self.processes = 1, n_processes()
        self.rank = torch.distributed.get_rank() if self.processes > 1 else 0
        self.called: Any = module
        if self.processes > 1:
            self.called = shared_module(torch.compile(module) if options.compile else module, device)
        elif options.compile:  # the loss with the module: of many classes it takes as long as a layer
            self.row_losses = torch.compile(row_losses)
        self.replicas: Sequence[torch.nn.Module] = [module]
        if options.parts > 1 and device.type == "cpu" and self.processes == 1 and not options.compile:
            # The same weights, and buffers (running means) of their own.
            shared = {id(p): p for p in module.parameters()}
            self.replicas = [module, *(copy.deepcopy(module, dict(shared)) for _ in range(options.parts - 1))]
            self.threads = min(options.parts, n_threads(math.inf))

    def __call__(self, batch: MiniBatch, step: int) -> torch.Tensor:
        """Set the gradient of the weighted mean loss of the batch; gives that loss, on the device of the module."""
        scale = 1.0 / (batch.n_rows * self.mean_weight)
        if self.processes > 1:
            batch, share = own_share(batch)
            scale *= share
        if len(self.replicas) > 1:
            return self._side_by_side(batch.parts(len(self.replicas)), scale, step)
        total: Any = None
        for weight in self.trained:
            weight.grad = None
        parts = batch.parts(self.options.accumulate)
        for i, part in enumerate(parts):
            # Processes exchange gradients once, after the last part.
            with self.called.no_sync() if self.processes > 1 and i < len(parts) - 1 else nullcontext():
                loss = self._loss(self.called, part, scale, step, i)
                (loss if self.scaler is None else self.scaler.scale(loss)).backward()
            total = loss.detach() if total is None else total + loss.detach()
        return summed(total) if self.processes > 1 else total

    def _loss(self, module: torch.nn.Module, part: MiniBatch, scale: float, step: int, i: int) -> torch.Tensor:
        with (
            drawing_from(self.seed, step, i + self.rank * _MOST_PARTS, self.device, compiled=self.options.compile),
            mixed_precision(self.options, self.device),
        ):
            losses = self.row_losses(module, part.to(self.device))
        if part.weight is not None:
            losses = losses * part.weight.to(losses)
        return losses.sum() * scale

    def _side_by_side(self, parts: list[MiniBatch], scale: float, step: int) -> torch.Tensor:
        replicas = self.replicas[: len(parts)]
        buffers = [dict(replica.named_buffers()) for replica in replicas]
        for other in buffers[1:]:
            for name, value in other.items():
                value.copy_(buffers[0][name])

        def one(i: int) -> tuple[torch.Tensor, Sequence[torch.Tensor | None]]:
            with one_thread_each():
                loss = self._loss(replicas[i], parts[i], scale, step, i)
                return loss.detach(), torch.autograd.grad(loss, self.trained, allow_unused=True)

        found: list[tuple[torch.Tensor, Sequence[torch.Tensor | None]]] = []
        in_order(iter(range(len(parts))), one, found.append, self.threads)
        total, gradient = found[0][0], list(found[0][1])
        for loss, more in found[1:]:
            total = total + loss
            gradient = [b if a is None else a if b is None else a.add_(b) for a, b in zip(gradient, more, strict=True)]
        for weight, g in zip(self.trained, gradient, strict=True):
            weight.grad = g
        for name, value in buffers[0].items():
            if value.is_floating_point():
                value.copy_(torch.stack([other[name] for other in buffers]).mean(0))
        return total


def mixed_precision(options: TrainingOptions, device: torch.device) -> Any:
    """The context in which products run in a shorter type."""
    if options.precision == "full":
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, options.precision))
