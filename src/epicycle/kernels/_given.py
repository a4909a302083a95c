"""Kernels that users bring: a matrix that is there already, or a Python function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Callable, Choice, check_parameter
from epicycle.kernels._kernel import LeafKernel
from epicycle.kernels._prepared import Prepared

Array = np.ndarray
_ROUNDING = 1e-6  # of the largest entry: what two computations of the same value may differ by


@dataclass(frozen=True)
class Entries(Prepared):
    """Rows of a matrix that is there already, and which column of it each row is."""

    matrix: Array | None
    column: Array

    @property
    def n_rows(self) -> int:
        return len(self.column) if self.matrix is None else len(self.matrix)

    def take(self, rows: Any) -> Entries:
        return Entries(None if self.matrix is None else self.matrix[rows], self.column[rows])


@dataclass(frozen=True, repr=False)
class Precomputed(LeafKernel):
    """The matrix of kernel values comes as X: k(x_i, x_j) to fit, k(x_new, x_j) to predict."""

    takes = "precomputed"

    mercer: ClassVar[bool] = False

    def prepare(self, X: Any, like: Entries | None = None) -> Entries:
        n, m = X.shape
        if like is not None:
            if m < len(like.column):
                raise DataError(f"X: has {m} columns; expected {len(like.column)}, one for each row of the fit")
            return Entries(np.asarray(X, dtype=np.float64), np.zeros(n, dtype=np.intp))
        if n != m:
            raise DataError(f"X: has shape {X.shape}; kernel='precomputed' expected a square matrix of kernel values")
        i, j, worst = asymmetry(X)
        if worst > _ROUNDING * float(max(X.max(), -X.min())):
            raise DataError(
                f"X: is no kernel matrix, because it is not symmetric: X[{i}, {j}] is {X[i, j]:g}, X[{j}, {i}] is "
                f"{X[j, i]:g}"
            )
        return Entries(np.asarray(X, dtype=np.float64), np.arange(n))

    def block(self, A: Entries, B: Entries) -> Array:
        if A.matrix is None:
            raise DataError("X: the kernel matrix of the rows of the fit was not kept")
        return np.array(A.matrix[:, B.column], dtype=np.float64, order="C")

    def prepared_diagonal(self, A: Entries) -> Array:
        if A.matrix is None:
            raise DataError("X: the kernel matrix of the rows of the fit was not kept")
        return np.asarray(A.matrix[np.arange(len(A.matrix)), A.column])


def asymmetry(K: Array) -> tuple[int, int, float]:
    """(i, j, |K_ij - K_ji|) where it is largest, with no copy of the matrix."""
    found, rows = (0, 0, 0.0), 256
    for start in range(0, len(K), rows):
        part = np.abs(K[start : start + rows] - K[:, start : start + rows].T)
        i, j = np.unravel_index(int(part.argmax()), part.shape)
        if float(part[i, j]) > found[2]:
            found = (start + int(i), int(j), float(part[i, j]))
    return found


@dataclass(frozen=True)
class PlainRows(Prepared):
    """Rows as they came."""

    rows: Any

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    def take(self, rows: Any) -> PlainRows:
        return PlainRows(self.rows[rows])


@dataclass(frozen=True, repr=False)
class FunctionKernel(LeafKernel):
    """A Python function as a kernel.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` gives the matrix of shape (n, m) for rows X (n, p) and Z (m, p), which are sparse matrices
        where the rows of the fit were.
    pairwise : bool, default=False
        Whether the function takes two single rows (or strings) instead and gives a number.
    rows : {"vectors", "strings"}, default="vectors"
        What it takes.

    Examples
    --------
    >>> from epicycle.kernel import FunctionKernel
    >>> same_length = FunctionKernel(lambda s, t: float(len(s) == len(t)), pairwise=True, rows="strings")
    >>> same_length(["a", "b", "cd"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    function: Any
    pairwise: bool = False
    rows: Literal["vectors", "strings"] = "vectors"

    def __post_init__(self) -> None:
        check_parameter("FunctionKernel", "function", self.function, Callable())
        check_parameter("FunctionKernel", "pairwise", self.pairwise, Boolean())
        check_parameter("FunctionKernel", "rows", self.rows, Choice("vectors", "strings"))

    @property
    def takes(self) -> Literal["vectors", "strings", "precomputed"]:  # type: ignore[override]
        return self.rows

    mercer: ClassVar[bool] = False

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.rows == "vectors"

    def prepare(self, X: Any, like: PlainRows | None = None) -> PlainRows:
        if like is not None and X.shape[1:] != like.rows.shape[1:]:
            raise DataError(f"X: has {X.shape[1]} columns; expected {like.rows.shape[1]}, as the rows compared with")
        if self.pairwise and sp.issparse(X):
            return PlainRows(X.toarray())
        # A function of two matrices gets both of one kind: that of the rows it was fitted to.
        if like is not None and sp.issparse(X) != sp.issparse(like.rows):
            return PlainRows(X.toarray() if sp.issparse(X) else type(like.rows)(X))
        return PlainRows(X)

    def block(self, A: PlainRows, B: PlainRows) -> Array:
        n, m = A.n_rows, B.n_rows
        if self.pairwise:
            values = [[self.function(x, z) for z in B.rows] for x in A.rows]
        else:
            values = self.function(A.rows, B.rows)
            values = values.toarray() if sp.issparse(values) else values
        try:
            K = np.array(values, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise DataError(f"kernel: {self.function!r:.60} gave no numbers, but {type(values).__name__}") from None
        if K.shape != (n, m):
            raise DataError(f"kernel: {self.function!r:.60} gave shape {K.shape}; expected ({n}, {m})")
        if not np.isfinite(K).all():
            raise DataError(f"kernel: {self.function!r:.60} gave NaN or infinity")
        if A is B:  # rows with themselves, of which half would do if the function were symmetric
            i, j, worst = asymmetry(K)
            if worst > _ROUNDING * float(np.abs(K).max()):
                raise DataError(
                    f"kernel: {self.function!r:.60} is not symmetric: k(x, z) is {K[i, j]:g} and k(z, x) {K[j, i]:g}"
                )
        return K

    def prepared_diagonal(self, A: PlainRows) -> Array:
        rows = (A.take(slice(i, i + 1)) for i in range(A.n_rows))
        return np.array([self.block(row, row)[0, 0] for row in rows])


def settled_function(kernel: FunctionKernel, rows: Any) -> FunctionKernel:
    """A user's function of matrices, or of pairs of rows where it gives a number for matrices, or refuses them."""
    if kernel.rows != "vectors" or not rows.shape[0]:
        return kernel
    dense = rows[:2].toarray() if sp.issparse(rows) else rows[:2]
    try:
        if np.ndim(kernel.function(dense, dense[:1])):
            return kernel
    except Exception:
        pass
    try:
        number = np.ndim(kernel.function(dense[0], dense[0])) == 0
    except Exception:
        return kernel
    return replace(kernel, pairwise=True) if number else kernel
