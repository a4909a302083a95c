"""Spread and centre of the rows of a machine before its fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data import ArrayData

Array = np.ndarray


def near_mean(rows: Array) -> Array:
    """A point near the mean of the rows, of so few digits that differences from it are exact for numbers of few."""
    mean = rows.mean(axis=0, dtype=np.float64)
    reach = np.abs(rows - mean).max(axis=0)
    unit = np.exp2(np.floor(np.log2(np.where(reach > 0, reach, 1.0))))
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(mean / unit) * unit
    return np.asarray(np.where((reach > 0) & np.isfinite(near), near, mean))


def variance(data: ArrayData) -> float:
    """The variance of all entries of X, rows counted by their weights."""
    X: Any = data.X
    weight = data.weight
    if sp.issparse(X):
        row = np.ones(X.shape[0]) if weight is None else weight
        size = float(row.sum()) * X.shape[1]
        counts = np.repeat(row, np.diff(X.indptr))
        values = X.data.astype(np.float64)
        mean = float(counts @ values) / size
        inside = float(counts @ (values - mean) ** 2)
        return float((inside + (size - float(counts.sum())) * mean * mean) / size)
    if weight is None:
        return float(X.var(dtype=np.float64))
    row = weight / weight.sum()
    mean = float(row @ X.mean(axis=1, dtype=np.float64))
    return float(row @ np.square(X - mean).mean(axis=1, dtype=np.float64))
