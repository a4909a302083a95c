"""Validation sets of boosting: their loss after every round."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from epicycle import _native
from epicycle.tree._ensemble import GrownTree
from epicycle.tree.boosting._losses import BoostingLoss


class Validation(ABC):
    """The validation set, in memory or in partitions, and its mean loss after the last round."""

    loss_now: float

    @abstractmethod
    def add(self, trees: list[tuple[GrownTree, np.ndarray]]) -> float:
        """Add the trees of one round, and return the mean loss after it."""


class MemoryValidation(Validation):
    """A validation set in memory: binned rows (n, p) with targets and weights, and their scores (K, n)."""

    which: np.ndarray  # the rows, of those of the fit

    def __init__(self, rows: np.ndarray, y: np.ndarray, weight: np.ndarray | None, loss: BoostingLoss) -> None:
        self.rows, self.y, self.weight, self.loss = np.ascontiguousarray(rows), np.ascontiguousarray(y), weight, loss
        self.score = np.empty((loss.n_outputs, len(y)))

    def begin(self, score: np.ndarray) -> None:
        """Set the scores before the first round."""
        self.score[:] = score.reshape(len(self.score), -1)
        self.loss_now = self._mean()

    def _mean(self) -> float:
        total = float(len(self.y) if self.weight is None else self.weight.sum())
        return self.loss.evaluate(self.y, self.weight, self.score, None, 1).loss / max(total, np.finfo(float).tiny)

    def add(self, trees: list[tuple[GrownTree, np.ndarray]]) -> float:
        for k, (tree, value) in enumerate(trees):
            _native.tree.predict_bins(
                self.rows, tree.feature, tree.left, tree.sides.reshape(-1, 4), value, self.score[k], 1
            )
        self.loss_now = self._mean()
        return self.loss_now
