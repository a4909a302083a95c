"""What a basis of functions is: a map from the columns of X to more columns, computed block by block.

Nothing here is ever as long as the data: a batch is expanded a few thousand rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from epicycle.data import Batch

__all__ = ["Basis", "expanded_pieces", "predict_batch"]

_PIECE_BYTES = 1 << 20


class Basis(ABC):
    """Functions phi_1 ... phi_d of a row x; the constant is not among them."""

    @property
    @abstractmethod
    def n_functions(self) -> int:
        """d."""

    @abstractmethod
    def expand(self, X: np.ndarray) -> np.ndarray:
        """phi(x) of every row, of shape (n, d), in float64."""

    @abstractmethod
    def derivative(self, X: np.ndarray, column: int, order: int) -> np.ndarray:
        """The derivative of that order of phi with respect to one column of X, of shape (n, d)."""

    @abstractmethod
    def names(self, features: list[str]) -> list[str]:
        """What the functions are called."""


def expanded_pieces(batch: Batch, basis: Basis) -> Iterator[tuple[slice, np.ndarray]]:
    """(rows of the batch, phi of these rows), in order, about a mebibyte at a time."""
    rows = max(_PIECE_BYTES // (8 * max(basis.n_functions, 1)), 2 * basis.n_functions, 512)
    for start in range(0, batch.n_rows, rows):
        part = slice(start, min(start + rows, batch.n_rows))
        yield part, basis.expand(np.asarray(batch.X[part], dtype=np.float64))


def predict_batch(batch: Batch, basis: Basis, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """b + W phi(x) for every row, in the type of X: coef has shape (d, k), intercept (k,)."""
    out = np.empty((batch.n_rows, coef.shape[1]), dtype=batch.X.dtype)
    for part, phi in expanded_pieces(batch, basis):
        out[part] = phi @ coef + intercept
    return out
