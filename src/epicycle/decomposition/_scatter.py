"""The covariance S of rows, in the form that costs least: itself, or with more columns than rows a factor of it.

Both are found in one pass over memory, files or partitions; sparse rows stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from epicycle import _native, engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, Data
from epicycle.linalg._spectra import some_eigenvectors
from epicycle.stats._moments import refuse_non_finite, shift_of

#: From this share of all eigenvalues on, all are computed: LAPACK is faster then.
_MANY = 0.3
#: Noise variances are kept above this share of the variance: below, log-likelihoods lose their digits.
FLOOR = 1e-6
#: And above this, so that their inverses, and sums of these, are numbers.
LEAST = 1e-300
#: Eigenvalues below this share of the largest are zero but for rounding.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Scatter:
    """Mean and covariance (sums divided by the weight): `S` of shape (p, p), or `F` of shape (r, p) with S = F'F."""

    mean: np.ndarray
    weight: float
    n_rows: int
    S: np.ndarray | None = None
    F: np.ndarray | None = None

    @property
    def variance(self) -> np.ndarray:
        if self.S is not None:
            return np.diagonal(self.S).copy()
        assert self.F is not None
        return np.asarray(np.einsum("ij,ij->j", self.F, self.F))

    @property
    def floor(self) -> np.ndarray:
        """The least noise variance of each column; of a constant one it goes by the others."""
        variance = self.variance
        return np.maximum(FLOOR * np.where(variance > 0, variance, variance.mean()), LEAST)

    @property
    def shared_floor(self) -> float:
        """The least noise variance of all columns together, which has no digits below the rounding of their sum."""
        return max(float(self.floor.min()), float(np.finfo(np.float64).eps) * float(self.variance.sum()))

    def axes(self, k: int, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k largest eigenvalues, falling; eigenvectors as rows) of S with row and column j divided by scale_j."""
        if not k:
            return np.zeros(0), np.zeros((0, len(scale)))
        if self.S is not None:
            values, vectors = _largest(self.S / np.outer(scale, scale), k)
            return values, vectors.T
        assert self.F is not None
        G = self.F / scale
        values, U = _largest(G @ G.T, min(k, len(G)))
        # An axis without variance cannot be told from rounding, and none is needed.
        values = np.where(values > _NOTHING * values[0], values, 0.0)
        root = np.sqrt(np.where(values > 0, values, np.inf))
        rows = (U.T @ G) / root[:, None]
        more = k - len(values)  # of more components than rows the rest has no variance
        return np.pad(values, (0, more)), np.pad(rows, ((0, more), (0, 0)))

    def rank(self) -> int:
        """The number of directions in which rows differ."""
        p = len(self.mean)
        values, _ = self.axes(p if self.F is None else len(self.F), np.ones(p))
        return int((values > 100 * _NOTHING * values[0]).sum())


def _largest(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    p = len(A)
    if k > _MANY * p:
        values, vectors = scipy.linalg.eigh(A, check_finite=False)
    else:
        values, vectors = some_eigenvectors(A, p - k, p - 1)
    return values[::-1][:k].clip(min=0), vectors[:, ::-1][:, :k]


def _moments(batch: Batch, shift: np.ndarray) -> tuple[np.ndarray, int]:
    M = _native.core.moments(batch.X, np.empty((batch.n_rows, 0)), batch.weight, shift)
    return M, batch.n_rows if batch.weight is None else int(np.count_nonzero(batch.weight))


def scatter_of(data: Data, n_jobs: int | None, *, as_factor: bool = True) -> Scatter | None:
    """Mean and covariance of all rows; None where entries are missing.

    `as_factor`: whether fewer rows than columns are kept as a factor, and rows that do not differ are refused.
    """
    n, p = data.n_rows, data.n_features
    if as_factor and isinstance(data, ArrayData) and not data.sparse and n is not None and n < p:
        return _rows_as_factor(data)
    require_memory(8.0 * p * p * 4, f"the covariance of {p} columns", "take fewer columns, or rows in memory, n < p")
    shift = np.nan_to_num(shift_of(data, targets=False), posinf=0.0, neginf=0.0)
    M, counted = engine.sum(_moments, data, shift, n_jobs=n_jobs)
    if not np.isfinite(M).all():
        if data.sparse:
            refuse_non_finite(data)
            raise DataError("X: sums of squares of its columns overflow; scale them down")
        return None
    weight, s = float(M[-1, -1]), M[-1, :-1] / float(M[-1, -1])
    S = M[:-1, :-1] / weight - np.outer(s, s)
    lost = np.diagonal(S) <= (64 * np.finfo(float).eps) ** 2 * ((shift + s) ** 2 + s**2)
    if lost.any():  # constant but for rounding
        S[lost], S[:, lost] = 0.0, 0.0
    found = Scatter(shift + s, weight, counted, S=(S + S.T) / 2)
    return _required(found) if as_factor else found


def _rows_as_factor(data: ArrayData) -> Scatter | None:
    X = np.asarray(data.X, dtype=np.float64)
    w = np.ones(len(X)) if data.weight is None else data.weight
    with np.errstate(over="ignore", invalid="ignore"):
        mean = w @ X / w.sum()
        F = (X - mean) * np.sqrt(w / w.sum())[:, None]
        square = np.einsum("ij,ij->j", F, F)
    if not np.isfinite(square).all():
        return None
    F[:, square <= (64 * np.finfo(float).eps * mean) ** 2] = 0.0
    return _required(Scatter(mean, float(w.sum()), int(np.count_nonzero(w)), F=F))


def _required(found: Scatter) -> Scatter:
    if found.n_rows < 2:
        raise DataError(f"n_samples={found.n_rows}: a covariance needs at least two rows")
    if not (found.variance > 0).any():
        raise DataError("X: all columns are constant; expected rows that differ")
    return found


def refuse_infinite(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """(entries that are there, sums of them) by column, for rows with missing entries."""
    X = np.asarray(batch.X, dtype=np.float64)
    if np.isinf(X).any():
        raise DataError("Input X contains infinity; expected finite numbers, or NaN where a value is missing")
    there = ~np.isnan(X)
    w = np.ones(len(X)) if batch.weight is None else batch.weight
    return w @ there, w @ np.where(there, X, 0.0)


def filled_scatter(data: Data, n_jobs: int | None) -> Scatter:
    """The covariance with missing entries taken as the mean of their column: where EM can start."""
    weight, total = engine.sum(refuse_infinite, data, n_jobs=n_jobs)
    if (weight == 0).any():
        raise DataError(
            f"X: column {int(np.argmin(weight))} has no value at all; drop it, nothing can be learnt from it"
        )
    mean = total / weight
    squares, counted, size = engine.sum(_filled_products, data, mean, n_jobs=n_jobs)
    if not np.isfinite(squares).all():
        raise DataError("X: sums of squares of its columns overflow; scale them down")
    return _required(Scatter(mean, float(size), int(counted), S=squares / size))


def _filled_products(batch: Batch, mean: np.ndarray) -> tuple[np.ndarray, int, float]:
    X = np.asarray(batch.X, dtype=np.float64)
    D = np.where(np.isnan(X), 0.0, X - mean)
    w = np.ones(len(X)) if batch.weight is None else batch.weight
    with np.errstate(over="ignore", invalid="ignore"):
        return (D * w[:, None]).T @ D, int(np.count_nonzero(w)), float(w.sum())
