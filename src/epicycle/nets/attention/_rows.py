"""Rows of several parts: images and questions, sources and targets, stories and questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from epicycle.nets.training._batches import IndexedRows, padded


class JointRows(IndexedRows):
    """Rows of columns that belong together; the module is called with all of them.

    Parameters
    ----------
    columns : sequence of ndarray, or of lists of ndarray
        Arrays are taken as they are; lists of arrays of different lengths are padded by 0, batch by batch.
    target, weight
        As for `IndexedRows`.
    """

    def __init__(
        self, columns: Sequence[Any], target: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> None:
        self.columns = tuple(columns)
        super().__init__(len(self.columns[0]), target, weight)

    def take(self, rows: np.ndarray | slice) -> tuple[torch.Tensor, ...]:
        numbers = np.arange(len(self.columns[0]))[rows]
        return tuple(torch.from_numpy(_rows_of_column(column, numbers)) for column in self.columns)


def _rows_of_column(column: Any, numbers: np.ndarray) -> np.ndarray:
    if isinstance(column, np.ndarray):
        return np.array(column[numbers])
    return padded([column[i] for i in numbers.tolist()], 0)
