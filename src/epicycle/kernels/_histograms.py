"""Kernels of histograms: rows of counts or shares, none of them negative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from epicycle import _native
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import Real
from epicycle.kernels._kernel import Domains, LeafKernel
from epicycle.kernels._prepared import Vectors, prepared_vectors

Array = np.ndarray
SMALLER, CHI_SQUARE = 4, 5


class _OfHistograms(LeafKernel):
    """A kernel that refuses negative entries."""

    def prepare(self, X: Any, like: Vectors | None = None) -> Vectors:
        rows = prepared_vectors(X, like)
        if rows.values.min(initial=0.0) < 0:  # there may be no row: transforms of nothing
            row, column = np.unravel_index(int(rows.values.argmin()), rows.values.shape)
            raise DataError(
                f"X: {type(self).__name__} compares histograms; row {row}, column {column} is "
                f"{rows.values[row, column]:g}, expected none below 0"
            )
        return rows


@dataclass(frozen=True, repr=False)
class ChiSquare(_OfHistograms):
    r"""The chi-square kernel :math:`\exp(-\gamma \sum_d (x_d - z_d)^2 / (x_d + z_d))` of histograms.

    Parameters
    ----------
    gamma : float, default=1.0
    bounds : mapping, "fixed" or None, default=None
        The interval of "gamma" for a search; default (1e-5, 1e5).
    """

    gamma: float = 1.0
    bounds: Any = None

    _searched: ClassVar[tuple[str, ...]] = ("gamma",)
    _domains: ClassVar[Domains] = {"gamma": Real(minimum=0, inclusive=False)}

    def _distances(self, A: Vectors, B: Vectors) -> Array:
        return _native.kernel.columns_block(A.values, np.ascontiguousarray(B.values.T), CHI_SQUARE, 0.0)

    def block(self, A: Vectors, B: Vectors) -> Array:
        D = self._distances(A, B)
        D *= -self.gamma
        return np.asarray(np.exp(D, out=D))

    def prepared_diagonal(self, A: Vectors) -> Array:
        return np.ones(A.n_rows)

    def _gradient(self, A: Vectors, name: str) -> Iterator[Array]:
        D = self.gamma * self._distances(A, A)
        yield -D * np.exp(-D)


@dataclass(frozen=True, repr=False)
class HistogramIntersection(_OfHistograms):
    r"""The histogram intersection kernel :math:`\sum_d \min(x_d, z_d)`.

    Examples
    --------
    >>> from epicycle.kernel import HistogramIntersection
    >>> HistogramIntersection()([[3.0, 1.0]], [[2.0, 5.0]])
    array([[3.]])
    """

    def block(self, A: Vectors, B: Vectors) -> Array:
        return _native.kernel.columns_block(A.values, np.ascontiguousarray(B.values.T), SMALLER, 0.0)

    def prepared_diagonal(self, A: Vectors) -> Array:
        return np.asarray(A.values.sum(axis=1))

    def features(self, A: Vectors, B: Vectors) -> tuple[Any, Any]:
        """Counts in unary: for every column as many zeros and ones as its largest count."""
        for values in (A.values, B.values):
            if (values != np.floor(values)).any():
                raise DataError("X: HistogramIntersection has finite features for whole numbers only")
        most = np.maximum(A.values.max(axis=0), B.values.max(axis=0)).astype(np.int64)
        ones = float(A.values.sum() + B.values.sum())
        require_memory(20.0 * ones, f"{int(ones):,} ones of a unary code", "use the kernel itself")
        return _unary(A.values, most), _unary(B.values, most)


def _unary(values: Array, most: Array) -> sp.csr_array:
    first = np.concatenate([[0], np.cumsum(most)])
    counts = values.astype(np.int64)
    places = np.concatenate([np.arange(c) for c in counts.ravel()]) if counts.size else np.empty(0, np.int64)
    columns = np.repeat(np.tile(first[:-1], len(values)), counts.ravel()) + places
    indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    return sp.csr_array((np.ones(len(columns)), columns, indptr), shape=(len(values), int(first[-1])))
