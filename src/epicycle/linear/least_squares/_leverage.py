"""Leverages, the hat matrix, and how much every row moves a fit.

H = Z B Z'W with z = (x - mean, 1) and B the inverse of the penalised second moments maps y to its fitted values. Its
diagonal h needs B alone, so it is computed block by block, wherever the rows are; all of H only where n x n fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.core._memory import require_memory
from epicycle.data import ArrayData, Batch, Data
from epicycle.linear.least_squares._covariances import Frame

__all__ = ["Influence", "hat_matrix_of", "influence_of", "leverages_of"]


def leverage_batch(batch: Batch, frame: Frame) -> np.ndarray:
    h = frame.leverages(batch)
    return h if batch.weight is None else h * batch.weight


def leverages_of(data: Data, frame: Frame, n_jobs: int | None) -> Any:
    """h_i of every row."""
    return engine.map(leverage_batch, data, frame, n_jobs=n_jobs)


def rotated_batch(batch: Batch, frame: Frame) -> np.ndarray:
    """A'z of every row, with B = A A'."""
    Z = frame.rotated(batch)
    return np.column_stack([Z, np.full(len(Z), 1 / np.sqrt(frame.weight))]) if frame.intercept else Z


def hat_matrix_of(data: Data, frame: Frame, n_jobs: int | None) -> np.ndarray:
    """H, for rows in memory."""
    if not isinstance(data, ArrayData):
        raise DataError("X: the hat matrix has a row and a column for each row of X, which has to be in memory")
    n = data.n_rows
    require_memory(8.0 * n * (n + len(frame.mean)), f"the {n} x {n} hat matrix", "leverage(X) gives its diagonal")
    Z = engine.map(rotated_batch, data, frame, n_jobs=n_jobs)
    H = Z @ Z.T
    if data.weight is not None:
        H *= data.weight
    return H


@dataclass(frozen=True)
class Influence:
    """One number for each row of a least-squares fit.

    leverage : diagonal of the hat matrix.
    residual : y minus its fitted value.
    studentized_residual : residual over its standard error, the noise estimated from all rows.
    deleted_residual : the same with the noise estimated without the row; Student's t with one degree of freedom less.
    cooks_distance : how far all fitted values move when the row is left out, relative to their uncertainty.
    dffits : how far the row's own fitted value moves, in standard errors.
    """

    leverage: Any
    residual: Any
    studentized_residual: Any
    deleted_residual: Any
    cooks_distance: Any
    dffits: Any


def residual_batch(batch: Batch, frame: Frame, target: int) -> np.ndarray:
    """(leverage, residual, residual times the root of its weight)."""
    r = frame.residual(batch, target)
    h = leverage_batch(batch, frame)
    return np.column_stack([h, r, r if batch.weight is None else r * np.sqrt(batch.weight)])


def influence_of(
    data: Data, frame: Frame, target: int, residual_squares: float, freedom: int, n_jobs: int | None
) -> Influence:
    """All of it in one pass."""
    table = engine.map(residual_batch, data, frame, target, n_jobs=n_jobs)
    h, r, weighted = table[:, 0], table[:, 1], table[:, 2]
    d = frame.root.shape[1] + int(frame.intercept)
    variance = residual_squares / freedom
    free = 1 - h
    studentized = weighted / np.sqrt(variance * free)
    without = (residual_squares - weighted**2 / free) / (freedom - 1) if freedom > 1 else np.nan
    deleted = weighted / np.sqrt(without * free)
    return Influence(h, r, studentized, deleted, studentized**2 * h / free / d, deleted * np.sqrt(h / free))
