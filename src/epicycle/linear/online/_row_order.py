"""Which row is shown when.

A row of weight v counts as v rows: it is shown as often as its weight says, and a last time for the fraction that is
left. Shuffled, the order of an epoch depends on the seed, the epoch and what is in the rows, never on how they are
stored. So a fit is the same for rows in another order, for rows that are repeated instead of weighted, and for rows of
weight zero that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._random import stream
from epicycle.data import ArrayData, Batch, Data, Matrix
from epicycle.engine._row_order import content_order, repeated
from epicycle.linear.online._learner import csr_parts

__all__ = ["Piece", "Presentations", "row_batches", "row_squares"]


@dataclass(frozen=True)
class Piece:
    """Rows in memory and the order in which they are shown."""

    X: Matrix
    y: np.ndarray
    order: np.ndarray | None
    fraction: np.ndarray | None
    start: int = 0

    @property
    def n_shown(self) -> int:
        """How many presentations they are."""
        return len(self.y) if self.order is None else len(self.order)

    @property
    def total(self) -> float:
        """How many rows they count for."""
        if self.fraction is not None:
            return float(self.fraction.sum())
        return float(self.n_shown)


class Presentations:
    """The rows of a data set, epoch after epoch.

    Parameters
    ----------
    data : Data
        With float64 targets, or codes of labels.
    shuffle : bool
        In memory all rows are shuffled, from files those of each block.
    seed : int
    factors : ndarray, optional
        A factor on the weight of each class.
    keep : ndarray of bool, optional
        The rows to learn from, for data in memory.
    """

    def __init__(
        self, data: Data, *, shuffle: bool, seed: int, factors: np.ndarray | None = None, keep: np.ndarray | None = None
    ) -> None:
        self.data, self.shuffle, self.seed, self.factors = data, shuffle, seed, factors
        self.memory: Piece | None = None
        if isinstance(data, ArrayData):
            y = np.ascontiguousarray(data.y, dtype=np.float64)
            weight = self._weight(data.weight, y)
            rows = content_order(data.X, y, weight) if shuffle else None
            if keep is not None:
                rows = np.flatnonzero(keep) if rows is None else rows[keep[rows]]
            self.memory = Piece(data.X, y, *repeated(weight, rows))

    def epoch(self, number: int) -> Iterator[Piece]:
        """The rows of one epoch, in pieces."""
        rng = stream(self.seed, "epoch", number)
        if self.memory is not None:
            yield _shuffled(self.memory, rng) if self.shuffle else self.memory
            return
        for batch in row_batches(self.data):
            y = np.asarray(batch.y, dtype=np.float64)
            piece = Piece(batch.X, y, *repeated(self._weight(batch.weight, y)), batch.start)
            yield _shuffled(piece, rng) if self.shuffle else piece

    def counts(self) -> np.ndarray:
        """For data in memory, how many rows each row counts for in an epoch; 1 for those that are not shown."""
        shown = np.zeros(len(self.memory.y))
        if self.memory.order is None:
            return np.ones(len(shown))
        np.add.at(shown, self.memory.order, 1.0 if self.memory.fraction is None else self.memory.fraction)
        return np.where(shown > 0, shown, 1.0)

    def _weight(self, weight: np.ndarray | None, y: np.ndarray) -> np.ndarray | None:
        if self.factors is None:
            return weight
        factors = self.factors[y.astype(np.intp)]
        return factors if weight is None else factors * weight


def _shuffled(piece: Piece, rng: np.random.Generator) -> Piece:
    shown = np.arange(len(piece.y)) if piece.order is None else piece.order
    permutation = rng.permutation(len(shown))
    fraction = None if piece.fraction is None else piece.fraction[permutation]
    return Piece(piece.X, piece.y, shown[permutation], fraction, piece.start)


def row_batches(data: Data) -> Iterator[Batch]:
    """All rows in order: from memory as one batch, from files block by block with rows that lie together."""
    if isinstance(data, ArrayData):
        yield data.rows(0, data.n_rows)
        return
    for batch in data.batches():
        X = batch.X if sp.issparse(batch.X) else np.ascontiguousarray(batch.X)
        yield Batch(X, batch.y, batch.weight, batch.start)


def row_squares(X: Matrix) -> np.ndarray:
    """|x_i|^2."""
    if sp.issparse(X):
        return _native.csr_row_squares(*csr_parts(X))
    return _native.row_squares(X)
