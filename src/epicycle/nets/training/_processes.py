"""Several processes that train one module: each computes a share of every batch, and gradients are averaged.

The processes are started by the caller (``torchrun --nproc-per-node 2 train.py``), who calls
``torch.distributed.init_process_group`` in each and fits the same estimator to the same data with the same
`random_state`. All of them end with the same weights; callbacks and checkpoints run in each, so that a file is best
written by rank 0 alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

from epicycle.nets.training._batches import MiniBatch


def n_processes() -> int:
    """Number of processes that train together; 1 without a process group."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def shared_module(module: torch.nn.Module, device: torch.device) -> Any:
    """The module in DistributedDataParallel, which adds up the gradients of all processes while they are computed."""
    where = None if device.type == "cpu" else [device]
    return torch.nn.parallel.DistributedDataParallel(module, device_ids=where)


def own_share(batch: MiniBatch) -> tuple[MiniBatch, float]:
    """(the rows of this process, what its sum of losses counts for): gradients of the processes are averaged."""
    n = n_processes()
    if batch.n_rows < n:  # too few for everyone: all compute all of it
        return batch, 1.0
    return batch.parts(n)[distributed.get_rank()], float(n)


def summed(value: torch.Tensor) -> torch.Tensor:
    """The mean of a number over all processes."""
    total = value.clone()
    distributed.all_reduce(total)
    return total / n_processes()
