"""Outputs of a module: batch by batch, on several threads where there are several batches and processors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from epicycle.core._threads import n_threads
from epicycle.data import Batch
from epicycle.engine._ordered import in_order
from epicycle.nets.training._batches import MiniBatch, Rows
from epicycle.nets.training._torch import device_of, one_thread_each

_DENSE_BYTES = 8 << 20  # of sparse rows that are made dense at a time


def outputs(
    module: torch.nn.Module,
    rows: Rows,
    batch_size: int,
    function: Callable[[MiniBatch], Any] | None = None,
) -> np.ndarray:
    """``module(*inputs)``, or `function` of a batch, for all rows in order, as one array."""
    device = device_of(module)

    def one(batch: MiniBatch) -> np.ndarray:
        with one_thread_each(), torch.no_grad():
            batch = batch.to(device)
            found = module(*batch.inputs) if function is None else function(batch)
            return np.asarray(found.float().cpu() if found.dtype == torch.bfloat16 else found.cpu())

    pieces: list[np.ndarray] = []
    threads = n_threads(math.inf) if device.type == "cpu" and rows.n_rows > batch_size else 1
    in_order(rows.in_order(batch_size), one, pieces.append, threads)
    return np.concatenate(pieces)


def table_outputs(batch: Batch, module: torch.nn.Module, dtype: str) -> np.ndarray:
    """Outputs of the module for a block of a table, for :func:`epicycle.engine.map`."""
    device, step = device_of(module), batch.n_rows
    if sp.issparse(batch.X):
        step = max(1, _DENSE_BYTES // (8 * batch.X.shape[1]))
    with one_thread_each(), torch.no_grad():
        found = [
            module(torch.from_numpy(_dense(batch.X[start : start + step], dtype)).to(device)).cpu().numpy()
            for start in range(0, batch.n_rows, step)
        ]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _dense(X: Any, dtype: str) -> np.ndarray:
    table = X.toarray() if sp.issparse(X) else X
    return np.array(table, dtype=dtype, order="C") if not table.flags.writeable else np.asarray(table, dtype, order="C")
