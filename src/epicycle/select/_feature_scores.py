"""How informative every feature is about the target, by itself.

The correlation of a feature with labels is the root of the share of its variance that lies between the classes, which
for two classes is the absolute correlation with a 0/1 code. The mutual information is that of a table of counts:
columns and targets of few distinct values count by value, others are cut at their quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.core._exceptions import DataError, ParameterTypeError

__all__ = ["correlations", "mutual_informations", "score_features"]

_BY_VALUE, _BINS = 20, 10


def score_features(
    score: str | Callable[..., Any], X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool
) -> np.ndarray:
    """One number a feature, larger is more informative; NaN (a constant column, say) counts as none."""
    if callable(score):
        found = score(X, y)
        values = np.asarray(found[0] if isinstance(found, tuple) else found, dtype=np.float64)
        if values.shape != (X.shape[1],):
            raise ParameterTypeError(f"score: gave shape {values.shape}; expected one number for each of {X.shape[1]}")
    else:
        measure = {"correlation": correlations, "mutual_information": mutual_informations}[score]
        values = measure(X, y, weight, labels=labels)
    if not np.isfinite(values).any() and X.shape[1]:
        values = np.zeros_like(values)
    return np.where(np.isfinite(values), values, -np.inf)


def correlations(X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """Absolute correlations with a numeric target, correlation ratios with labels; zero for constant columns."""
    w = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    if labels:
        codes = np.unique(y, return_inverse=True)[1]
        T = np.zeros((len(y), int(codes.max()) + 1))
        T[np.arange(len(y)), codes] = 1.0
    else:
        T = (y.astype(np.float64) - w @ y)[:, None]
    mean = np.asarray(w @ X, dtype=np.float64).ravel()
    if sp.issparse(X):
        square = np.asarray(w @ X.multiply(X), dtype=np.float64).ravel() - mean**2
        cross = np.asarray(X.T @ (w[:, None] * T), dtype=np.float64) - np.outer(mean, w @ T)
    else:
        Z = np.asarray(X, dtype=np.float64) - mean
        square = w @ Z**2
        cross = Z.T @ (w[:, None] * T)
    square = np.where(square > 1e-14 * (mean**2 + np.abs(square)), square, 0.0)
    if labels:  # between the classes: sum over classes of p_c (mean_c - mean)^2
        shares = w @ T
        between = (cross**2 / np.where(shares > 0, shares, 1.0)).sum(axis=1)
        explained = np.divide(between, square, out=np.zeros_like(square), where=square > 0)
        return np.sqrt(np.clip(explained, 0.0, 1.0))
    spread = float(w @ T[:, 0] ** 2)
    scale = np.sqrt(square * spread)
    return np.minimum(np.abs(np.divide(cross[:, 0], scale, out=np.zeros_like(square), where=scale > 0)), 1.0)


def mutual_informations(X: Any, y: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> np.ndarray:
    """Mutual information of every column with the target in nats, less the bias of a sample of this size."""
    n, p = X.shape
    w = np.ones(n) if weight is None else weight
    if w.sum() <= 0:
        raise DataError("sample_weight: all rows have weight zero")
    target = np.unique(y, return_inverse=True)[1] if labels else _binned(y.astype(np.float64), w)
    columns = X.tocsc() if sp.issparse(X) else X
    out = np.zeros(p)
    for j in range(p):
        x = np.asarray(columns[:, [j]].todense()).ravel() if sp.issparse(columns) else np.asarray(columns[:, j])
        out[j] = _information(_binned(x.astype(np.float64), w), target, w)
    return out


def _binned(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Codes of the values: by value where few differ, else by weighted quantiles; missing values have their own."""
    missing = np.isnan(x)
    values, codes = np.unique(np.where(missing, 0.0, x), return_inverse=True)
    if len(values) > _BY_VALUE:
        mass = np.bincount(codes, weights=np.where(missing, 0.0, w), minlength=len(values))
        if mass.sum() > 0:
            middle = (np.cumsum(mass) - mass / 2) / mass.sum()
            codes = np.minimum((middle * _BINS).astype(np.int64), _BINS - 1)[codes]
    return np.where(missing, codes.max() + 1, codes)


def _information(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> float:
    k = int(b.max()) + 1
    table = np.bincount(a * k + b, weights=w, minlength=(int(a.max()) + 1) * k).reshape(-1, k)
    total = table.sum()
    joint = table / total
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    plug_in = float((joint[there] * np.log(joint[there] / outer[there])).sum())
    occupied = np.count_nonzero(there), np.count_nonzero(joint.sum(axis=1)), np.count_nonzero(joint.sum(axis=0))
    return plug_in - (occupied[0] - occupied[1] - occupied[2] + 1) / (2 * float(total))
