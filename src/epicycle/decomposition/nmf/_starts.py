"""Statistics of the rows before the fit, and its start.

NNDSVD (Boutsidis and Gallopoulos 2008) takes each pair of singular vectors u, v of the rows, splits both into their
positive and negative parts, and keeps the pair of parts with the larger product of lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._random import stream
from epicycle.data import Batch, Data
from epicycle.decomposition.pca._spectrum import by_products
from epicycle.stats._moments import refuse_non_finite

_LARGEST = 1e70  # entries beyond this, or all below its inverse: squares and products of factors leave floating point
_HEAVIEST = 1e30  # sums of weights beyond this, or below its inverse, likewise
_LEAST = 1e-6  # entries of NNDSVD below this share of the largest are zero
_RESIDUAL, _PRODUCTS = 1e-4, 4  # how far products go for singular vectors that are only a start


@dataclass(frozen=True)
class Extent:
    """Facts of the rows: their number and weight, and mean, extremes and squares of the entries."""

    n_rows: int
    weight: float
    total: float
    squares: float
    least: float
    largest: float
    n_features: int

    @property
    def mean(self) -> float:
        return self.total / (self.weight * self.n_features)


class _Extremes(tuple[float, float]):
    """(least, largest) entry; the sum of two is that of all their entries."""

    def __add__(self, other: Any) -> _Extremes:
        return _Extremes((min(self[0], other[0]), max(self[1], other[1])))


def extent_of(data: Data, who: str, n_jobs: int | None) -> Extent:
    """One pass; negative entries, and those whose products leave floating point, are refused."""
    refuse_non_finite(data)
    extremes, n, weight, total, squares = engine.sum(_facts, data, n_jobs=n_jobs)
    least, largest = extremes
    if least < 0:
        raise DataError(f"Negative values in data passed to {who}: X has {least:g}; expected none below 0")
    require_extent(weight, largest)
    return Extent(n, weight, total, squares, least, largest, data.n_features)


def require_extent(weight: float, largest: float) -> None:
    """Refuse sizes whose squares leave floating point."""
    if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
        raise DataError(f"X: a largest entry of {largest:g}; expected one between {1 / _LARGEST:g} and {_LARGEST:g}")
    if not 1 / _HEAVIEST <= weight <= _HEAVIEST:
        raise DataError(
            f"sample_weight: a sum of {weight:g}; expected one between {1 / _HEAVIEST:g} and {_HEAVIEST:g}: multiply "
            "all by a common factor"
        )


def _facts(batch: Batch) -> tuple[Any, ...]:
    X, v = batch.X, batch.weight
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            values = np.asarray(X.data, dtype=np.float64)
            v_of = None if v is None else np.repeat(v, np.diff(X.indptr))
            gaps = len(values) < X.shape[0] * X.shape[1]
        else:
            values = np.asarray(X, dtype=np.float64)
            v_of, gaps = None if v is None else v[:, None], False
        ends = [values.min(initial=np.inf), values.max(initial=-np.inf)]
        if gaps:
            ends = [min(ends[0], 0.0), max(ends[1], 0.0)]
        counted = values if v_of is None else values * v_of
        total, squares = float(counted.sum()), float((counted * values).sum())
    weight = float(batch.n_rows if v is None else v.sum())
    return _Extremes((float(ends[0]), float(ends[1]))), batch.n_rows, weight, total, squares


def starting_factors(
    data: Data, extent: Extent, k: int, init: str | None, seed: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(W of shape (n, k), H' of shape (p, k)) to start from."""
    n, p = extent.n_rows, extent.n_features
    if init not in (None, "random") and k > min(n, p):
        raise ParameterError(
            f"init = '{init}' can only be used when n_components <= min(n_samples, n_features); got {k} and {min(n, p)}"
        )
    require_memory(8.0 * k * (n + p), f"the factors of {k} components", "lower n_components")
    if init == "random" or (init is None and k > min(n, p)):
        scale = np.sqrt(extent.mean / k)
        Ht = scale * np.abs(stream(seed, "nmf", "columns").standard_normal((p, k)))
        return scale * np.abs(stream(seed, "nmf", "rows").standard_normal((n, k))), Ht
    W, Ht = _from_singular_vectors(data, k, seed, n_jobs)
    if init in (None, "nndsvda"):
        W[W == 0], Ht[Ht == 0] = extent.mean, extent.mean
    elif init == "nndsvdar":
        rng = stream(seed, "nmf", "zeros")
        for A in (Ht, W):
            zero = A == 0
            A[zero] = np.abs(extent.mean * rng.standard_normal(int(zero.sum())) / 100)
    return W, Ht


def balanced(data: Data, W: np.ndarray, Ht: np.ndarray, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Both factors times a number, so that WH has the size that fits best, and they have equal norms.

    Gradients at the start, which later ones are measured by, then say something about the problem: those of factors
    ten times too large are a thousand times too large.
    """
    cross, A = engine.sum(_products, data, W, Ht, n_jobs=n_jobs)
    square = float(np.vdot(A, Ht.T @ Ht))
    if not (cross > 0 and square > 0 and np.isfinite(square)):
        return W, Ht
    size = cross / square
    ratio = np.sqrt(float(np.trace(A)) / float(np.vdot(Ht, Ht)) / size)
    root = np.sqrt(ratio) if ratio > 0 else 1.0
    return W * (np.sqrt(size) / root), Ht * (np.sqrt(size) * root)


def _products(batch: Batch, W: np.ndarray, Ht: np.ndarray) -> tuple[float, np.ndarray]:
    """(sum of v_i x_i'H'w_i, W'VW)."""
    rows = W[batch.start : batch.start + batch.n_rows]
    vW = rows if batch.weight is None else batch.weight[:, None] * rows
    return float(np.vdot(np.asarray(batch.X @ Ht, dtype=np.float64), vW)), rows.T @ vW


def _from_singular_vectors(data: Data, k: int, seed: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    found = by_products(
        data,
        k,
        stream(seed, "nmf", "singular vectors"),
        tol=_RESIDUAL,
        max_products=_PRODUCTS,
        n_more=10,
        centred=False,
        n_jobs=n_jobs,
    )
    s = np.sqrt(found.values[:k])
    known = s > 1e-7 * s[0]  # the others are the rounding of squares
    axes = found.axes[:k] * known[:, None]
    projected = engine.map(_project, data, (axes / np.where(known, s, 1.0)[:, None]).T, n_jobs=n_jobs)
    if hasattr(projected, "compute"):  # of a cluster
        projected = projected.compute()
    U, v = projected[:, :k], projected[:, k]
    W, Ht = np.zeros((len(U), k)), np.zeros((axes.shape[1], k))
    for j in np.flatnonzero(known):
        best = max((_parts(U[:, j] * sign, axes[j] * sign, v) for sign in (1.0, -1.0)), key=lambda part: part[0])
        if best[0] > 0:
            size, u, a = best
            W[:, j], Ht[:, j] = np.sqrt(s[j] * size) * u, np.sqrt(s[j] * size) * a
    W[_LEAST * W.max(initial=0.0) > W] = 0.0
    Ht[Ht < _LEAST * Ht.max(initial=0.0)] = 0.0
    return W, Ht


def _parts(u: np.ndarray, a: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """(product of lengths, positive parts of unit length); rows count by their weights v."""
    u, a = np.maximum(u, 0.0), np.maximum(a, 0.0)
    lengths = float(np.sqrt(v @ u**2)), float(np.linalg.norm(a))
    return lengths[0] * lengths[1], u / (lengths[0] or 1.0), a / (lengths[1] or 1.0)


def _project(batch: Batch, axes: np.ndarray) -> np.ndarray:
    """Coordinates of the rows, and their weights as the last column."""
    v = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return np.column_stack([np.asarray(batch.X @ axes), v])
