"""Distances of the rows that are clustered: some rows to all, chosen pairs, or all pairs in condensed form."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.spatial._metric import CHEBYSHEV, COSINE, EUCLIDEAN, MANHATTAN
from epicycle.spatial._metrics import is_precomputed, resolve, takes_sparse
from epicycle.spatial._search import distance_block

#: Metrics whose distances the native code computes, and SciPy's names of them.
_NATIVE = {EUCLIDEAN: ("euclidean", "euclidean"), MANHATTAN: ("manhattan", "cityblock"), CHEBYSHEV: ("chebyshev",) * 2}
#: Numbers of pairs that are computed at once, and binary exponents from which squares could leave the range.
_PAIRS, _EXPONENT = 1 << 20, 300


class Distances(ABC):
    """Distances of n rows."""

    n: int
    #: Distances are those of the rows times this power of two.
    exponent: int = 0

    @abstractmethod
    def block(self, rows: np.ndarray) -> np.ndarray:
        """Distances of these rows to all: shape (len(rows), n)."""

    @abstractmethod
    def condensed(self, threads: int) -> np.ndarray:
        """Distances of all pairs i < j, as in SciPy; the caller may write to them."""

    def pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Distances of chosen pairs."""
        found = np.empty(len(first))
        order = np.argsort(first, kind="stable")
        step = max(1, _PAIRS // self.n)
        rows = np.unique(first)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            at = order[slice(*np.searchsorted(first[order], [part[0], part[-1] + 1]))]
            found[at] = self.block(part)[np.searchsorted(part, first[at]), second[at]]
        return found


class GivenDistances(Distances):
    """Distances in condensed form, which are never written to."""

    def __init__(self, condensed: np.ndarray, n: int) -> None:
        self.given, self.n = condensed, n

    def block(self, rows: np.ndarray) -> np.ndarray:
        i, j = np.asarray(rows, dtype=np.int64)[:, None], np.arange(self.n)
        low, high = np.minimum(i, j), np.maximum(i, j)
        at = low * (2 * self.n - low - 1) // 2 + high - low - 1
        return np.where(low == high, 0.0, self.given[np.where(low == high, 0, at)])

    def condensed(self, threads: int) -> np.ndarray:
        return self.given.copy()


class RowDistances(Distances):
    """Distances of rows, computed when they are asked for."""

    def __init__(self, X: Any, metric: Any, metric_params: Mapping[str, Any] | None) -> None:
        self.use = resolve(2.0, metric, metric_params)
        if sp.issparse(X) and not takes_sparse(self.use):
            raise ParameterError(f"metric={metric!r} has no distances of sparse rows; expected X to be dense")
        self.X = self.use.scaled(X)
        self.n, self.metric = int(X.shape[0]), metric
        kind = None if self.use.native is None else self.use.native.kind
        if kind == COSINE and _has_zero_row(self.X):
            raise DataError("Cosine affinity cannot be used when X contains zero vectors")
        dense = not sp.issparse(X)
        self.X = np.ascontiguousarray(self.X, dtype=np.float64) if dense else sp.csr_array(self.X, dtype=np.float64)
        if kind is not None and kind != COSINE:
            values = self.X if dense else self.X.data
            largest = float(np.abs(values).max(initial=0.0))
            exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
            if abs(exponent) > _EXPONENT:
                scaled = np.ldexp(values, -exponent)
                self.exponent = exponent
                self.X = scaled if dense else sp.csr_array((scaled, self.X.indices, self.X.indptr), shape=self.X.shape)
        known = _NATIVE.get(kind) if dense and kind is not None else None
        #: The name of the native kernel for these rows, or None.
        self.kernel: str | None = None if known is None else known[0]
        self._peer: str | None = None if known is None else known[1]

    @property
    def euclidean(self) -> bool:
        """Whether clusters have means, from which the native code can compute distances."""
        return self.kernel == "euclidean"

    def block(self, rows: np.ndarray) -> np.ndarray:
        return self._between(self.X[rows], self.X)

    def _between(self, Q: Any, X: Any) -> np.ndarray:
        if self._peer is not None:
            return np.asarray(cdist(Q, X, self._peer))
        if self.use.native is not None:
            D = np.asarray(distance_block(self.use.native, Q, X), dtype=np.float64)
        else:
            assert self.use.blocks is not None
            D = self.use.blocks.block(Q, X)
        if not np.isfinite(D).all():
            raise DataError(f"metric={self.metric!r}: some distances are infinite or not defined; expected finite ones")
        return np.maximum(D, 0.0)

    def pairs(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if self._peer is None:
            return super().pairs(first, second)
        found = np.empty(len(first))
        step = max(1, _PAIRS // max(self.X.shape[1], 1))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            difference = np.abs(self.X[first[part]] - self.X[second[part]])
            if self.kernel == "euclidean":
                found[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
            else:
                found[part] = difference.sum(axis=1) if self.kernel == "manhattan" else difference.max(axis=1)
        return found

    def condensed(self, threads: int) -> np.ndarray:
        n = self.n
        size = n * (n - 1) // 2
        require_memory(8 * size, f"Distances of {n} rows", "linkage='single', 'ward' or 'centroid', or fewer rows")
        out = np.empty(size)
        if self.kernel is not None:
            _native.cluster.condensed_distances(self.X, self.kernel, out, threads)
            return out
        step = max(1, _PAIRS // n)
        at = 0
        for start in range(0, n, step):
            stop = min(start + step, n)
            D = self._between(self.X[start:stop], self.X[start:])
            for i in range(stop - start):
                row = D[i, i + 1 :]
                out[at : at + len(row)] = row
                at += len(row)
        return out


def _has_zero_row(X: Any) -> bool:
    if sp.issparse(X):
        return bool((np.asarray(abs(X).sum(axis=1)).ravel() == 0).any())
    return bool((~np.any(X, axis=1)).any())


def distances_of(X: Any, metric: Any, metric_params: Mapping[str, Any] | None) -> Distances:
    """The distances of rows X by a metric; "precomputed" for a square matrix of distances."""
    if is_precomputed(metric):
        return GivenDistances(condensed_of(X), int(X.shape[0]))
    if callable(metric) and takes_all_rows(metric):
        D = np.asarray(metric(X), dtype=np.float64)
        if D.shape != (X.shape[0], X.shape[0]):
            raise DataError(
                f"metric: the function returned an array of shape {D.shape}; expected all distances, "
                f"{(X.shape[0], X.shape[0])}"
            )
        return GivenDistances(condensed_of(D), len(D))
    return RowDistances(X, metric, metric_params)


def takes_all_rows(function: Any) -> bool:
    """Whether a function of X returns all distances, as scikit-learn's do; otherwise it is one of two rows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a compiled function without a signature
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in places) == 1


def condensed_of(D: Any) -> np.ndarray:
    """The condensed form of a square matrix of distances, checked."""
    D = np.asarray(D.toarray() if sp.issparse(D) else D, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise DataError(f"Distance matrix should be square, got matrix of shape {D.shape}")
    if not np.isfinite(D).all() or (D < 0).any():
        raise DataError("X: holds negative or infinite values; metric='precomputed' expected distances")
    step = max(1, _PAIRS // max(len(D), 1))
    largest = float(D.max(initial=0.0))
    for start in range(0, len(D), step):
        if not np.allclose(D[start : start + step], D[:, start : start + step].T, rtol=1e-5, atol=1e-8 * largest):
            raise DataError("X: is not symmetric; metric='precomputed' expected the distance of i and j twice")
    n = len(D)
    out = np.empty(n * (n - 1) // 2)
    at = 0
    for i in range(n - 1):
        out[at : at + n - 1 - i] = D[i, i + 1 :]
        at += n - 1 - i
    return out


def square_of(condensed: Any) -> np.ndarray:
    """The square matrix of distances in condensed form."""
    given = np.asarray(condensed, dtype=np.float64)
    n = round((1 + np.sqrt(1 + 8 * len(given))) / 2)
    if n * (n - 1) // 2 != len(given):
        raise DataError(f"X: {len(given)} distances; expected n (n - 1) / 2 of them for n rows")
    D = np.zeros((n, n))
    D[np.triu_indices(n, 1)] = given
    return D + D.T
