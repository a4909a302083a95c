"""Batches, and data sets that come in batches.

A batch is the rows that one call of a statistic sees; the mathematics meets data in this form only. A data set knows
where its rows are (in memory, in files, on a cluster), not what is computed from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: A dense array of any memory order, or CSR with 32- or 64-bit indices; float32 or float64. SciPy has no stubs: a union
#: with its classes would only refuse their attributes.
Matrix: TypeAlias = Any


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
    # An array wherever targets were asked for; that is checked when the data is opened, not again by every statistic.
    y: Any = None
    weight: np.ndarray | None = None
    start: int = 0

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def total_weight(self) -> float:
        return float(self.n_rows if self.weight is None else self.weight.sum())


#: Turns the targets of a batch into what the model computes with (class codes, say); one row per row.
TargetEncoder = Callable[[np.ndarray], np.ndarray]


class Data(ABC):
    """Rows that come in batches, wherever they are: in memory, in files, on a cluster.

    Attributes
    ----------
    n_features : int
        Number of columns of X.
    feature_names : tuple of str, or None
        Names of the columns, where the input has them.
    dtype : numpy.dtype
        float32 or float64, the type of X in every batch.
    sparse : bool
        Whether batches hold CSR matrices.
    n_rows : int or None
        Number of rows; None where only a pass can tell.
    has_weight : bool
        Whether batches carry weights.
    n_targets : int
        Columns of y: 0 without a target, 1 for a vector.
    target_is_vector : bool
        Whether y in a batch is one-dimensional.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    dtype: np.dtype[np.floating]
    sparse: bool
    n_rows: int | None
    has_weight: bool
    n_targets: int
    target_is_vector: bool

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All rows in order; each call is a new pass."""

    @abstractmethod
    def encode_target(self, function: TargetEncoder, n_columns: int | None = None) -> Data:
        """The same rows with y replaced by ``function(y)``, batch by batch where y is not in memory.

        `n_columns` is for a function that makes a matrix of a vector: the number of its columns.
        """

    @abstractmethod
    def head(self) -> Batch:
        """The first rows, a bounded number that is cheap to get."""

    def __repr__(self) -> str:
        rows = "unknown" if self.n_rows is None else f"{self.n_rows:,}"
        kind = "sparse " if self.sparse else ""
        return f"{type(self).__name__}({rows} rows x {self.n_features} {kind}{self.dtype} features)"
