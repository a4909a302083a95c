"""A batch: the rows that one call of a statistic sees. The mathematics meets data in this form only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

__all__ = ["Batch", "Matrix"]

#: A dense array of any memory order, or CSR with 32- or 64-bit indices; float32 or float64.
Matrix: TypeAlias = "np.ndarray | sp.csr_array | sp.csr_matrix"


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a data set.

    Parameters
    ----------
    X : Matrix of shape (n, p)
        Features; never written to.
    y : ndarray of shape (n,) or (n, k), or None
        Targets: float64 numbers, or integer class codes after :meth:`Data.encode_target`.
    weight : ndarray of shape (n,), or None
        Non-negative float64 weights; None means ones.
    start : int
        Index of the first row in the whole data set.
    """

    X: Matrix
    y: np.ndarray | None = None
    weight: np.ndarray | None = None
    start: int = 0

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else self.weight.sum())
