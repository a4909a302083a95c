"""Location of rows: their mean, their sum of squares, and a bound on the distortion of any k centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import Batch, Data

#: Most features for which the spectral bound is computed: its matrix of squares costs as much as a few rounds.
_MOST_FEATURES = 256


@dataclass
class Spread:
    """Location of the rows: weight, mean, sum of squares about it, mean variance of a column, bound on J from below."""

    weight: float
    mean: np.ndarray
    total: float
    bound: float
    n_rows: int

    @property
    def variance(self) -> float:
        return self.total / (self.weight * len(self.mean)) if self.weight else 0.0

    def total_about(self, origin: np.ndarray) -> float:
        """The sum of squares about another point than the mean."""
        return self.total + self.weight * float(((self.mean - origin) ** 2).sum())


def spread_of(data: Data, n_jobs: int | None, k: int, *, bound: bool = True) -> Spread:
    """Mean and sum of squares of the rows, and a bound on J of any k centres where it is cheap."""
    head = data.head().X
    shift = np.zeros(data.n_features) if data.sparse else np.asarray(head.mean(axis=0, dtype=np.float64))
    full = bound and not data.sparse and data.n_features <= _MOST_FEATURES
    weight, sums, squares, n_rows = engine.sum(_spread_statistic, data, shift, full, n_jobs=n_jobs)
    if not (np.isfinite(squares).all() and np.isfinite(sums).all()):
        raise DataError("X: sums of squares of its columns overflow; scale them down")
    if not full:
        return Spread(weight, shift + sums / weight, _total(squares - sums * (sums / weight)), np.nan, n_rows)
    # The rows of any clustering lie in k - 1 dimensions about their mean, but for J (Zha et al. 2001).
    values = np.linalg.eigvalsh(squares - np.outer(sums / weight, sums)).clip(min=0)[::-1]
    total = float(values.sum())
    # What is below the rounding of the eigenvalues is no bound.
    least = max(float(values[k - 1 :].sum()) - 1e-12 * total, 0.0)
    return Spread(weight, shift + sums / weight, total, least, n_rows)


def _total(squares: np.ndarray) -> float:
    return float(squares.clip(min=0).sum())


def _spread_statistic(batch: Batch, shift: np.ndarray, full: bool) -> tuple[float, np.ndarray, np.ndarray, int]:
    """Weight of a batch, sums of x - shift, their squares or all their products, and how many rows have a weight."""
    weight = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    counted = int(np.count_nonzero(weight))
    if not isinstance(batch.X, np.ndarray):
        squares = np.asarray(batch.X.multiply(batch.X).T @ weight, dtype=np.float64)
        return float(weight.sum()), np.asarray(batch.X.T @ weight, dtype=np.float64), squares, counted
    rows = batch.X - shift
    weighted = rows if batch.weight is None else rows * weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = rows.T @ weighted if full else np.einsum("ij,ij->j", rows, weighted)
    return float(weight.sum()), weighted.sum(axis=0), squares, counted
