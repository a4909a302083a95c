"""Columns in memory, dense or CSC, and responses, as the lasso needs them; nothing is copied or centred.

A design holds the weighted means and lengths of the columns and computes correlations and residuals about the mean.
Row weights v sum to one. Long loops come back from compiled code every tenth of a second or so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import _native

#: Multiply-adds between two returns to Python: about a tenth of a second, so that interrupts are seen.
WORK_PER_CALL = 2e8
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Response:
    """One target about its mean: y itself, |y|^2 and X'y."""

    y: np.ndarray
    yy: float
    xy: np.ndarray
    mean: float


class Columns(ABC):
    """The columns of X with row weights v (None: all equal), about their means where `centre` is set."""

    def __init__(self, X: Any, weight: np.ndarray | None, *, centre: bool, threads: int) -> None:
        self.X, self.centre, self.threads = X, centre, threads
        self.n, self.p = (int(size) for size in X.shape)
        self.v = None if weight is None else weight / weight.sum()
        self.mean, self.square = np.empty(self.p), np.empty(self.p)
        self._measured = False

    @property
    def norm(self) -> np.ndarray:
        """|x_j| of every column."""
        return np.sqrt(self.square)

    def response(self, y: np.ndarray) -> Response:
        """A target, with its products with all columns."""
        mean = (float(y.mean()) if self.v is None else float(self.v @ y)) if self.centre else 0.0
        yc = y - mean
        u, xy = self.weighted(yc), np.empty(self.p)
        if not self._measured:
            for first, last in self._pieces(self.p):
                _native.linear.lasso_columns(
                    self.X, self.v, u, self.centre, first, last, self.mean, self.square, xy, threads=self.threads
                )
            # A column whose spread is nothing but the rounding of its mean is constant.
            flat = np.isfinite(self.square) & (self.norm <= 8 * EPS * np.abs(self.mean))
            self.square[flat] = 0.0
            self._measured = True
            xy[flat] = 0.0
        else:
            self.correlations(u, None, xy)
        return Response(yc, float(u @ yc), xy, mean)

    def weighted(self, r: np.ndarray) -> np.ndarray:
        """V r."""
        return r / self.n if self.v is None else self.v * r

    def correlations(self, u: np.ndarray, columns: np.ndarray | None, out: np.ndarray) -> None:
        """out_j = sum_i (x_ij - mean_j) u_i for the given columns, or for all; also for rows of u and out at once."""
        for first, last in self._pieces(self.p if columns is None else len(columns)):
            _native.linear.lasso_correlations(self.X, u, self.mean, columns, first, last, out, self.threads)

    def subtract(self, columns: np.ndarray, coef: np.ndarray, r: np.ndarray) -> None:
        """r -= sum_j coef_j (x_j - mean_j)."""
        for first, last in self._pieces(len(columns)):
            _native.linear.lasso_residual(self.X, self.mean, columns[first:last], coef[first:last], r)

    def _pieces(self, count: int) -> list[tuple[int, int]]:
        step = max(1, int(WORK_PER_CALL / max(self.cost, 1.0)))
        return [(first, min(first + step, count)) for first in range(0, count, step)]

    @property
    @abstractmethod
    def cost(self) -> float:
        """Stored entries of a column, on average."""

    @abstractmethod
    def gram(self, columns: np.ndarray) -> np.ndarray:
        """<x_i, x_j> of a few columns."""


class DenseColumns(Columns):
    """An array of any memory order."""

    @property
    def cost(self) -> float:
        return float(self.n)

    @property
    def column_major(self) -> bool:
        return self.X.strides[0] == self.X.itemsize or self.n <= 1

    def correlations(self, u: np.ndarray, columns: np.ndarray | None, out: np.ndarray) -> None:
        if columns is not None and not self.column_major and 4 * len(columns) > self.p:
            columns = None  # along rows it is quicker to read all of them
        super().correlations(u, columns, out)

    def gathered(self, columns: np.ndarray, out: np.ndarray) -> None:
        """sqrt(v) (x_j - mean_j) of the given columns into `out`, which is in Fortran order."""
        for first, last in self._pieces(len(columns)):
            _native.linear.lasso_gather(self.X, self.v, self.mean, columns[first:last], out[:, first:last])

    def gram(self, columns: np.ndarray) -> np.ndarray:
        A = np.empty((self.n, len(columns)), order="F")
        self.gathered(columns, A)
        return A.T @ A


class SparseColumns(Columns):
    """A CSC matrix; the means are subtracted without filling the zeros in."""

    @property
    def cost(self) -> float:
        return float(self.X.nnz / self.p + 4.0)

    def gram(self, columns: np.ndarray) -> np.ndarray:
        A = self.X[:, columns].astype(np.float64)
        V = sp.diags_array(np.full(self.n, 1 / self.n) if self.v is None else self.v)
        m = self.mean[columns]
        return np.asarray((A.T @ V @ A).toarray() - np.outer(m, m))


def columns_of(X: Any, weight: np.ndarray | None, *, centre: bool, threads: int) -> Columns:
    """The design of a matrix in memory; CSR is converted to CSC."""
    if not sp.issparse(X):
        return DenseColumns(X, weight, centre=centre, threads=threads)
    return SparseColumns(X.tocsc(), weight, centre=centre, threads=threads)
