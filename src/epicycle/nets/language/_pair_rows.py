"""Pairs of sequences as rows: a source and a target, each batch padded to its longest ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from epicycle.nets.training._batches import IndexedRows, padded


class PairRows(IndexedRows):
    """Inputs (sources, their lengths, targets); targets are padded by -1.

    Parameters
    ----------
    sources, targets : sequence of ndarray of int
    weight : ndarray of shape (n_rows,), optional
    """

    def __init__(
        self,
        sources: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        weight: np.ndarray | None = None,
    ) -> None:
        self.sources, self.goals = sources, targets
        super().__init__(len(sources), None, weight)

    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        numbers = np.arange(len(self.sources))[rows].tolist()
        sources, targets = [self.sources[i] for i in numbers], [self.goals[i] for i in numbers]
        lengths = np.array([len(s) for s in sources], dtype=np.int64)
        tables = padded(sources, 0).astype(np.int64), padded(targets, -1).astype(np.int64)
        return torch.from_numpy(tables[0]), torch.from_numpy(lengths), torch.from_numpy(tables[1])
