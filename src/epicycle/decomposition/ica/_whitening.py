"""Whitening:  z = K (x - m)  with mean 0 and covariance I, along the principal axes of the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import ArrayData, Batch, Data
from epicycle.decomposition.pca._spectrum import Spectrum, by_covariance, by_factor
from epicycle.linalg._signs import oriented

#: Variances above this share of the largest are as good from the covariance as from the rows.
_CLEAR = 1e-7
#: Variances below this share of the largest are zero but for rounding.
_NOTHING = {"eigh": 1e-14, "svd": 1e-26}


@dataclass(frozen=True)
class Whitening:
    """K as `matrix` (k, p), its pseudo-inverse as `inverse` (p, k), and the mean of the rows."""

    mean: np.ndarray
    matrix: np.ndarray
    inverse: np.ndarray
    weight: float

    @property
    def log_volume(self) -> float:
        """The log of what K multiplies volumes with, in the space of its rows."""
        return -float(np.log(np.linalg.norm(self.inverse, axis=0)).sum())


def whitening_of(data: Data, n_components: int | None, solver: str, n_jobs: int | None) -> Whitening:
    """The first principal axes over their standard deviations; those without variance are left out."""
    found = by_covariance(data, n_jobs)
    if found is None:
        raise DataError("Input X contains NaN or infinity, or sums of squares overflow; expected finite numbers")
    largest = float(found.values.max(initial=0.0))
    if solver == "svd" and len(found.values) and found.values[-1] < _CLEAR * largest:
        found = by_factor(data, n_jobs)  # small variances from the rows themselves
    return _along_axes(found, n_components, solver, data.n_features)


def _along_axes(found: Spectrum, n_components: int | None, solver: str, p: int) -> Whitening:
    values = found.values * (1.0 - 1.0 / found.weight)  # sums over the weight, not over one less
    most = min(len(values), p)
    k = most if n_components is None else int(n_components)
    if k > most:
        warnings.warn(f"n_components is too large: it will be set to {most}", UserWarning, stacklevel=5)
        k = most
    rank = int((values > max(_NOTHING[solver] * float(values.max(initial=0.0)), 1e-307)).sum())
    if not rank:
        raise DataError("X: all columns are constant; expected rows that differ")
    if k > rank and n_components is None and solver == "svd":
        k = rank
    if k > rank:
        warnings.warn(
            f"There are some small singular values: rows of X differ in {rank} directions only, and n_components is "
            f"set to {rank}",
            UserWarning,
            stacklevel=5,
        )
        k = rank
    axes, spread = oriented(found.axes[:k].T).T, np.sqrt(values[:k])
    return Whitening(found.mean, axes / spread[:, None], axes.T * spread, found.weight)


def white_rows(batch: Batch, white: Whitening | None) -> np.ndarray:
    """The whitened rows of a batch; those of one that is white already are its rows."""
    X = batch.X
    if white is None:
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if sp.issparse(X):  # never centred themselves
        return np.asarray(X @ white.matrix.T - white.matrix @ white.mean)
    return np.asarray((np.asarray(X, dtype=np.float64) - white.mean) @ white.matrix.T)


def whitened(data: Data, white: Whitening | None, n_jobs: int | None) -> tuple[Data, Whitening | None]:
    """Rows in memory are whitened once; files and partitions in every pass, so that no copy of them is held."""
    if not isinstance(data, ArrayData):
        return data, white
    return ArrayData(engine.map(white_rows, data, white, n_jobs=n_jobs), weight=data.weight), None
