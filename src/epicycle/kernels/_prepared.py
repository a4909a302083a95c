"""Rows for kernels: checked as users bring them, and prepared in the form in which kernels compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data._array_data import csr_rows
from epicycle.data._matrix import as_matrix

if TYPE_CHECKING:
    from epicycle.kernels._kernel import Kernel


class Prepared(ABC):
    """Rows that a kernel has prepared."""

    #: Rows of a tile in which a symmetric matrix is best computed: 256 by 256 entries stay in cache.
    tile: ClassVar[int] = 256

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """Some of the rows: a slice, or an array of indices."""


@dataclass(frozen=True)
class Vectors(Prepared):
    """Vectors in float64, about `shift` and in the units of the kernel, with their squared lengths."""

    values: Any
    squares: np.ndarray
    shift: np.ndarray | None

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1])

    def take(self, rows: Any) -> Vectors:
        if sp.issparse(self.values) and isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                return Vectors(csr_rows(self.values, start, max(start, stop)), self.squares[rows], self.shift)
        values = self.values[rows]
        if not sp.issparse(values):
            values = np.ascontiguousarray(values)
        return Vectors(values, self.squares[rows], self.shift)


@dataclass(frozen=True)
class Pair(Prepared):
    """The same rows, prepared for two kernels."""

    left: Prepared
    right: Prepared

    @property
    def n_rows(self) -> int:
        return self.left.n_rows

    @property
    def tile(self) -> int:  # type: ignore[override]  # depends on the parts
        return min(self.left.tile, self.right.tile)

    def take(self, rows: Any) -> Pair:
        return Pair(self.left.take(rows), self.right.take(rows))


def prepared_vectors(
    X: Any, like: Vectors | None, *, centre: bool = False, scale: np.ndarray | float | None = None
) -> Vectors:
    """Rows of X in float64, less the mean of the first rows where distances are asked for, in units of `scale`.

    Sparse rows are not moved, because most of their entries are zero, unless they are compared with dense ones.
    """
    if like is not None and like.n_columns != X.shape[1]:
        raise DataError(f"X: has {X.shape[1]} columns; expected {like.n_columns}, as the rows it is compared with")
    if isinstance(scale, np.ndarray) and scale.ndim and len(scale) != X.shape[1]:
        raise DataError(f"X: has {X.shape[1]} columns, but length_scale has {len(scale)} entries")
    shift = None
    if sp.issparse(X) and like is not None and like.shift is not None:
        X = X.toarray()
    if sp.issparse(X):
        values = X.astype(np.float64, copy=scale is not None)
        if scale is not None:
            values.data /= np.asarray(scale)[values.indices] if np.ndim(scale) else scale
    else:
        if centre:
            shift = np.asarray(X.mean(axis=0, dtype=np.float64)) if like is None else like.shift
        values = np.array(X, dtype=np.float64, order="C", copy=True if centre or scale is not None else None)
        if shift is not None:
            values -= shift
        if scale is not None:
            values /= scale
    return Vectors(values, squared_lengths(values), shift)


def squared_lengths(values: Any) -> np.ndarray:
    """|x_i|^2."""
    if sp.issparse(values):
        return np.asarray(values.multiply(values).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", values, values))


def inner_products(A: Vectors, B: Vectors) -> np.ndarray:
    """a_i'b_j, dense."""
    if sp.issparse(A.values) and sp.issparse(B.values):
        return np.ascontiguousarray((A.values @ B.values.T).toarray())
    if sp.issparse(B.values):
        return np.ascontiguousarray((B.values @ A.values.T).T)
    return np.ascontiguousarray(A.values @ B.values.T)


# ------------------------------------------------------------------------------------------- rows of users


def as_rows(X: Any, kernel: Kernel, name: str) -> Any:
    """A float32 or float64 array, a CSR matrix, or an object array of strings."""
    owner = type(kernel).__name__
    if kernel.takes == "strings":
        return as_texts(X, name, owner)
    try:
        matrix, _ = as_matrix(X, estimator_name=owner, accept_sparse=kernel.accepts_sparse)
    except DataError as error:
        if name == "X":
            raise
        raise type(error)(str(error).replace("X", name, 1)) from None
    return matrix


def as_texts(X: Any, name: str, owner: str) -> np.ndarray:
    """A sequence of str (a list, an array, a column of a frame) as an array of objects."""
    if isinstance(X, str | bytes) or not (isinstance(X, Sequence | np.ndarray) or hasattr(X, "__array__")):
        raise DataTypeError(f"{name}: {owner} expected a sequence of strings, got {type(X).__name__}")
    array = np.asarray(X, dtype=object) if not isinstance(X, np.ndarray) else X
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name}: {owner} expected one string for each row, got an array of shape {array.shape}")
    if not len(array):
        raise DataError(f"{name}: has no rows (0 sample(s)); at least one string is needed")
    items = array.tolist()
    wrong = next((i for i, item in enumerate(items) if not isinstance(item, str)), None)
    if wrong is not None:
        raise DataTypeError(f"{name}: row {wrong} is {items[wrong]!r:.60}; {owner} expected strings")
    texts = np.empty(len(items), dtype=object)
    texts[:] = [str(item) for item in items]
    return texts
