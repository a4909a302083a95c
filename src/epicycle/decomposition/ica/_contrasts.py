"""Contrast functions F of independent component analysis, and what they sum up to over rows.

With whitened rows z and signals y = W z, one pass over the rows gives

    values  sum_i w_i F(y_ij),     products  sum_i w_i g(y_i) z_i',     slopes  sum_i w_i g'(y_ij),     g = F',

and for second derivatives  sum_i w_i g'(y_ia) y_ib^2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.core._exceptions import DataError, DataTypeError
from epicycle.data import Batch, Data
from epicycle.decomposition.ica._whitening import Whitening, white_rows

#: Kernels by the name of their function.
KINDS = {"logcosh": 0, "exp": 1, "cube": 2, "logistic": 3, "laplace": 4}
_PIECE = 1 << 16  # numbers in a piece of the signals: it stays in the second-level cache between the products


@dataclass(frozen=True)
class Contrast:
    """A function by name with its parameter, or a callable that gives (g, g') of signals as rows."""

    kind: str | Callable[..., Any]
    parameter: float = 1.0
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sums:
    """Sums of a pass, divided by the sum of the weights."""

    values: np.ndarray
    products: np.ndarray
    slopes: np.ndarray
    squares: np.ndarray


def sums_of(
    data: Data,
    white: Whitening | None,
    W: np.ndarray,
    contrast: Contrast,
    *,
    values: bool = False,
    squares: bool = False,
    n_jobs: int | None = None,
) -> Sums:
    """Means over all rows; `white` is None where the rows are white already."""
    *found, weight = engine.sum(_of_batch, data, white, W, contrast, values, squares, n_jobs=n_jobs)
    if not all(np.isfinite(part).all() for part in found):
        raise DataError(f"X: sums of fun={contrast.kind!r} over its rows overflow; scale its columns down, or whiten")
    return Sums(*(part / weight for part in found))


def batch_product(batch: Batch, white: Whitening | None, W: np.ndarray, contrast: Contrast) -> np.ndarray:
    """The mean of g(y) z' over one batch."""
    return _of_batch(batch, white, W, contrast, False, False)[1] / batch.total_weight


def _of_batch(
    batch: Batch, white: Whitening | None, W: np.ndarray, contrast: Contrast, values: bool, squares: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    Z = white_rows(batch, white)
    k, n = len(W), len(Z)
    step = n if callable(contrast.kind) else max(256, _PIECE // max(k, 1))  # a callable may average over what it sees
    value, product, slope = np.zeros(k), np.zeros((k, Z.shape[1])), np.zeros(k)
    square = np.zeros((k, k) if squares else (0, 0))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, step):
            piece = Z[start : start + step]
            weight = None if batch.weight is None else batch.weight[start : start + step]
            Y = np.ascontiguousarray(W @ piece.T)
            if callable(contrast.kind):
                g, d = _called(contrast, Y, weight)
                slope += d
            else:
                kind, y_squared = KINDS[contrast.kind], np.square(Y) if squares else None
                rows = np.empty_like(Y) if squares else None
                v, d = _native.decomposition.contrast(Y, weight, kind, contrast.parameter, values, rows)
                g, value, slope = Y, value + v, slope + d
                if y_squared is not None and rows is not None:
                    square += rows @ y_squared.T
            product += g @ piece
    return value, product, slope, square, batch.total_weight


def _called(contrast: Contrast, Y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(w g as rows, sums of w g') by a function of the user, which may give means of g' over the rows."""
    assert callable(contrast.kind)
    k, n = Y.shape
    alone = k == 1  # deflation has one signal at a time, a vector
    found = contrast.kind(Y[0] if alone else Y, **contrast.arguments)
    if not isinstance(found, tuple) or len(found) != 2:
        raise DataTypeError("fun: expected a callable that returns a tuple, g(y) and its derivative")
    g, d = (np.asarray(part, dtype=np.float64) for part in found)
    if g.shape != ((n,) if alone else (k, n)):
        raise DataError(f"fun: g has shape {g.shape}; expected that of y, {(n,) if alone else (k, n)}")
    g = g.reshape(k, n)
    if d.shape in ((k, n), (n,) if alone else (k, n)):
        d = d.reshape(k, n)
        if weight is None:
            return g, d.sum(axis=1)
        return g * weight, d @ weight
    if d.shape != (() if alone else (k,)) and d.shape != (k,):
        raise DataError(f"fun: g' has shape {d.shape}; expected that of y, {Y.shape}, or its means over the last axis")
    if weight is not None:
        raise DataError("sample_weight: fun returns means of g'; with weights it has to return g' for every entry")
    return g, d.reshape(k) * n
