"""Sums  S(w) = sum_i w_i q_i exp(-i w t_i)  over a grid of frequencies, for q the residuals of an orbit, or ones.

On evenly spaced frequencies first + (m + B l) spacing the exponentials factor, so that the sum is a product of two
matrices of n x B and n x A instead of n x AB exponentials. Where the times lie on a lattice too, and in memory, it is a
fast Fourier transform.
"""

from __future__ import annotations

import numpy as np
import scipy.fft

from epicycle import engine
from epicycle.data import ArrayData, Batch, Data
from epicycle.linear.epicycles._orbit import Circles, Setting, pieces, plane_of, weights_of
from epicycle.linear.epicycles._times import Grid

__all__ = ["residual_spectrum", "weight_spectrum"]


def _quantity(batch: Batch, part: slice, circles: Circles | None, plane: bool) -> np.ndarray:
    """w (z - f), or w alone without circles."""
    w = weights_of(batch, part)
    if circles is None:
        return w.astype(np.complex128)
    e = plane_of(batch.y[part]) - circles.position(batch.X[part])
    return w * (e if plane else e.real)


def spectrum_statistic(
    batch: Batch, grid: Grid, origin: np.ndarray, circles: Circles | None, plane: bool, factor: float
) -> tuple[np.ndarray]:
    t_all = np.asarray(batch.X[:, grid.column], dtype=np.float64) - origin[grid.column]
    if grid.given is not None:
        out = np.zeros(grid.count, dtype=np.complex128)
        for part in pieces(batch, 2 * grid.count):
            q = _quantity(batch, part, circles, plane)
            out += np.exp(-1j * factor * np.outer(grid.given, t_all[part])) @ q
        return (out,)
    inner = int(np.ceil(np.sqrt(grid.count)))
    outer = -(-grid.count // inner)
    total = np.zeros((outer, inner), dtype=np.complex128)
    spacing = factor * grid.spacing
    for part in pieces(batch, 8 * (inner + outer)):
        t = t_all[part]
        q = _quantity(batch, part, circles, plane) * np.exp(-1j * factor * grid.first * t)
        left = np.exp(-1j * inner * spacing * np.outer(np.arange(outer), t)) * q
        right = np.exp(-1j * spacing * np.outer(t, np.arange(inner)))
        total += left @ right
    return (total.ravel()[: grid.count],)


def _by_fft(
    data: ArrayData, grid: Grid, origin: float, circles: Circles | None, plane: bool, factor: int
) -> np.ndarray:
    low = float(data.X[:, grid.column].min() if data.weight is None else data.X[data.weight > 0, grid.column].min())
    line = np.zeros(grid.length, dtype=np.complex128)
    for batch in data.batches():
        for part in pieces(batch, 8):
            q = _quantity(batch, part, circles, plane)
            t = np.asarray(batch.X[part, grid.column], dtype=np.float64)
            place = np.round((t - low) / grid.step).astype(np.int64) % grid.length  # rows of no weight may lie anywhere
            line += np.bincount(place, q.real, grid.length) + 1j * np.bincount(place, q.imag, grid.length)
    m = np.round(grid.first / grid.spacing).astype(np.int64) + np.arange(grid.count)
    values = scipy.fft.fft(line)[(factor * m) % grid.length]
    return np.asarray(values * np.exp(-1j * factor * grid.frequencies * (low - origin)))


def _spectrum(
    data: Data, grid: Grid, origin: np.ndarray, circles: Circles | None, plane: bool, factor: int, n_jobs: int | None
) -> np.ndarray:
    if isinstance(data, ArrayData) and grid.length:
        return _by_fft(data, grid, float(origin[grid.column]), circles, plane, factor)
    (out,) = engine.sum(spectrum_statistic, data, grid, origin, circles, plane, factor, n_jobs=n_jobs)
    return out


def residual_spectrum(data: Data, grid: Grid, circles: Circles, setting: Setting) -> np.ndarray:
    """S(w) of the residuals: one pass."""
    return _spectrum(data, grid, circles.origin, circles, setting.plane, 1, setting.n_jobs)


def weight_spectrum(data: Data, grid: Grid, origin: np.ndarray, factor: int, n_jobs: int | None) -> np.ndarray:
    """sum_i w_i exp(-i factor w t_i): one pass."""
    return _spectrum(data, grid, origin, None, True, factor, n_jobs)
