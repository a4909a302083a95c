r"""Columns brought to a common scale and towards normality, in sums over rows.

Column x becomes z = (x - centre) / scale, which lies in [-1, 1] for the rows of the fit, then t = T(z + shift) with T
the identity, a logarithm (log(x + c)) or a power (x^c), and then y = (t - mean) / deviation.

The transform of a column is the one of the largest likelihood under a normal distribution (Box and Cox, 1964),

    l(T) = -n/2 log var(t) + sum_i log T'(z_i + shift),

where another than the identity has to gain log n. Below half of the least argument seen in the fit, T goes on along its
tangent: there is a value for every number, and values out of reach are as unusual as they look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle import engine
from epicycle.core._exceptions import DataError
from epicycle.data import Batch, Data

#: Exponents that are tried; 0 stands for the logarithm, 1 for the identity.
EXPONENTS = (0.0, 0.25, 1.0 / 3.0, 0.5, 2.0)
#: Distances of the least argument from zero that are tried, in standard deviations.
SHIFTS = (0.003, 0.03, 0.3)
_FARTHEST = 1e75  # |z| beyond it counts as this: squares and their sums stay numbers
_LEAST_VARIANCE = 1e-12  # of a column without spread, in units of its range


@dataclass(frozen=True)
class Columns:
    """Centres, scales and transforms of all columns, and means and deviations after them; all of shape (p,)."""

    centre: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    exponent: np.ndarray
    least: np.ndarray  # argument below which T goes on along its tangent
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def untransformed(cls, centre: np.ndarray, scale: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> Columns:
        """Columns whose transform is the identity."""
        p = len(centre)
        return cls(centre, scale, np.zeros(p), np.ones(p), np.full(p, -np.inf), mean, deviation)

    def relative_widths(self) -> np.ndarray:
        """Standard deviations of the columns before they are scaled, relative to the root of their mean square."""
        scale = np.where(self.deviation**2 > _LEAST_VARIANCE, self.scale, 0.0)  # of columns with any spread
        if not scale.any():
            return np.ones(len(scale))
        width = self.deviation * (scale / scale.max())
        return np.asarray(width / np.sqrt(np.mean(width**2)))

    def standardised(self, X: Any) -> np.ndarray:
        """y of rows X."""
        return np.asarray((self.transformed(self.scaled(X)) - self.mean) / self.deviation)

    def scaled(self, X: Any) -> np.ndarray:
        """z of rows X."""
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
        with np.errstate(over="ignore"):
            # halves first: a difference of two numbers at the ends of the range is none
            return np.asarray(np.clip(2.0 * (X / 2 / self.scale - self.centre / 2 / self.scale), -_FARTHEST, _FARTHEST))

    def transformed(self, Z: np.ndarray) -> np.ndarray:
        """t of scaled rows."""
        out = Z.copy()
        for j in np.flatnonzero(self.exponent != 1.0):
            out[:, j] = bent(Z[:, j] + self.shift[j], float(self.exponent[j]), float(self.least[j]))
        return out

    def words(self, names: list[str]) -> dict[str, str]:
        """The transforms in words, by column; those that stay as they are are left out."""
        found = {}
        for j in np.flatnonzero(self.exponent != 1.0):
            c = self.shift[j] * self.scale[j] - self.centre[j]
            inner = names[j] if abs(c) < 1e-12 * self.scale[j] else f"{names[j]} {'+' if c > 0 else '-'} {abs(c):.3g}"
            power = float(self.exponent[j])
            found[names[j]] = f"log({inner})" if power == 0.0 else f"({inner})^{power:.3g}"
        return found


def bent(u: np.ndarray, exponent: float, least: float) -> np.ndarray:
    """log(u) or u^exponent, and the tangent at `least` below that."""
    inside = np.maximum(u, least)
    if exponent == 0.0:
        return np.asarray(np.log(inside) + np.minimum(u - least, 0.0) / least)
    slope = exponent * least ** (exponent - 1)
    return np.asarray(inside**exponent + slope * np.minimum(u - least, 0.0))


def log_slope(u: np.ndarray, exponent: float) -> np.ndarray:
    """log T'(u)."""
    return np.asarray(-np.log(u) if exponent == 0.0 else np.log(exponent) + (exponent - 1) * np.log(u))


# ------------------------------------------------------------------------------------------------ passes


class Extent:
    """Least and largest value of every column; extents add up."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high

    def __add__(self, other: Extent) -> Extent:
        return Extent(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def _rows(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    X = np.asarray(batch.X.toarray() if sp.issparse(batch.X) else batch.X, dtype=np.float64)
    w = np.ones(len(X)) if batch.weight is None else batch.weight
    return (X, w) if batch.weight is None else (X[w > 0], w[w > 0])


def _extent(batch: Batch) -> tuple[Extent, float]:
    X, w = _rows(batch)
    inf = np.full(X.shape[1], np.inf)
    return Extent(np.min(X, axis=0, initial=np.inf) if len(X) else inf, X.max(axis=0) if len(X) else -inf), float(
        w.sum()
    )


def _moments(batch: Batch, columns: Columns, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X, w = _rows(batch)
    T = columns.transformed(columns.scaled(X)) - shift
    return w @ T, w @ T**2


def _products(batch: Batch, columns: Columns) -> tuple[np.ndarray]:
    X, w = _rows(batch)
    Y = columns.standardised(X)
    return ((Y * w[:, None]).T @ Y,)


def _likelihoods(batch: Batch, columns: Columns, candidates: list[tuple[float, float]]) -> tuple[np.ndarray]:
    """Sums of t, t^2 and log T' (3, K, p) for every candidate."""
    X, w = _rows(batch)
    Z = columns.scaled(X)
    out = np.zeros((3, len(candidates), Z.shape[1]))
    for k, (exponent, distance) in enumerate(candidates):
        U = Z + 1.0 + distance * columns.deviation
        middle = 1.0 + distance * columns.deviation + columns.mean
        with np.errstate(over="ignore"):
            T = (np.log(U) if exponent == 0.0 else U**exponent) - (
                np.log(middle) if exponent == 0.0 else middle**exponent
            )
            out[:, k] = w @ T, w @ T**2, w @ log_slope(U, exponent)
    return (out,)


def fit_columns(data: Data, *, transform: bool, n_jobs: int | None) -> tuple[Columns, float]:
    """(columns of all rows, their weight): two passes, and one more where transforms are chosen."""
    extent, weight = engine.sum(_extent, data, n_jobs=n_jobs)
    if not weight > 0:
        raise DataError("sample_weight: no row of positive weight is left to learn from")
    low, high = extent.low, extent.high
    centre, scale = low / 2 + high / 2, high / 2 - low / 2
    scale = np.where(scale > 0, scale, np.maximum(np.abs(centre), 1.0))
    scale = np.maximum(scale, 1e-290)  # halves of quotients by it stay numbers
    p = len(centre)
    plain = Columns.untransformed(centre, scale, np.zeros(p), np.ones(p))
    columns = _with_moments(plain, data, weight, n_jobs)
    if transform:
        columns = _with_moments(_with_transforms(columns, data, weight, n_jobs), data, weight, n_jobs)
    return columns, float(weight)


def _with_moments(columns: Columns, data: Data, weight: float, n_jobs: int | None) -> Columns:
    p = len(columns.centre)
    head = np.asarray(data.head().X[:256].toarray() if data.sparse else data.head().X[:256], dtype=np.float64)
    shift = columns.transformed(columns.scaled(head)).mean(axis=0) if len(head) else np.zeros(p)
    first, second = engine.sum(_moments, data, columns, shift, n_jobs=n_jobs)
    mean = first / weight
    variance = np.maximum(second / weight - mean**2, _LEAST_VARIANCE)
    return Columns(
        columns.centre, columns.scale, columns.shift, columns.exponent, columns.least, mean + shift, np.sqrt(variance)
    )


def _with_transforms(columns: Columns, data: Data, weight: float, n_jobs: int | None) -> Columns:
    candidates = [(exponent, distance) for exponent in EXPONENTS for distance in SHIFTS]
    (sums,) = engine.sum(_likelihoods, data, columns, candidates, n_jobs=n_jobs)
    first, second, slopes = sums / weight
    variance = np.maximum(second - first**2, np.finfo(np.float64).tiny)
    gain = weight * (slopes - np.log(variance) / 2 + np.log(columns.deviation))  # over the identity
    best = gain.argmax(axis=0)
    chosen = np.take_along_axis(gain, best[None], axis=0)[0] > max(np.log(weight), 1.0)
    chosen &= columns.deviation**2 > _LEAST_VARIANCE
    exponent, distance = np.array(candidates).T[:, best]
    least = distance * columns.deviation
    return Columns(
        columns.centre,
        columns.scale,
        np.where(chosen, 1.0 + least, 0.0),
        np.where(chosen, exponent, 1.0),
        np.where(chosen, least / 2, -np.inf),
        columns.mean,
        columns.deviation,
    )


def correlation(data: Data, columns: Columns, weight: float, n_jobs: int | None) -> np.ndarray:
    """The correlation matrix of the transformed columns, one pass; columns without spread have none with others."""
    (products,) = engine.sum(_products, data, columns, n_jobs=n_jobs)
    R = products / weight
    size = np.sqrt(np.diagonal(R).clip(min=np.finfo(np.float64).tiny))
    R = R / np.outer(size, size)
    np.fill_diagonal(R, 1.0)
    return np.asarray((R + R.T) / 2)
