"""Sums  S(w) = sum_i w_i q_i exp(-i w t_i)  over a grid of frequencies, for q the residuals of an orbit, or ones.

On evenly spaced frequencies first + (m + B l) spacing the exponentials factor, so that the sum is a product of two
matrices of n x B and n x A instead of n x AB exponentials. Where the times lie on a lattice too, and in memory, it is a
fast Fourier transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft

from epicycle import engine
from epicycle.data import ArrayData, Batch, Data
from epicycle.linear.epicycles._orbit import Circles, Setting, pieces, plane_of, weights_of

# --------------------------------------------------------------------------------------------------------------------
# When the data were taken, and the frequencies that they can tell apart.
#
# Over a span T, frequencies less than 2 pi / T apart are nearly the same function; n times resolve frequencies up to
# about pi n / T. The default grid is a few times finer than the first, and ends at the second.


#: Distinct times beyond this number are not listed one by one.
MAX_LISTED = 1 << 20


@dataclass(frozen=True)
class Times:
    """The range of a column over rows of positive weight, and its distinct values, unless there are too many."""

    low: float
    high: float
    values: np.ndarray | None

    def __add__(self, other: Times) -> Times:
        values = None
        if self.values is not None and other.values is not None:
            values = np.union1d(self.values, other.values)
            values = values if len(values) <= MAX_LISTED else None
        return Times(min(self.low, other.low), max(self.high, other.high), values)

    @property
    def span(self) -> float:
        return self.high - self.low

    @property
    def count(self) -> int:
        return MAX_LISTED if self.values is None else len(self.values)

    def step(self) -> float | None:
        """The step of the lattice on which all times lie, gaps allowed; None where there is none."""
        if self.values is None or len(self.values) < 4:
            return None
        steps = np.diff(self.values)
        smallest = float(steps.min())
        n = round(self.span / smallest)
        if n > 16 * len(self.values):
            return None
        step = self.span / n
        places = (self.values - self.low) / step
        return step if np.abs(places - np.round(places)).max() < 1e-6 else None


def times_statistic(batch: Batch, column: int) -> tuple[Times]:
    t = np.asarray(batch.X[:, column], dtype=np.float64)
    if batch.weight is not None:
        t = t[batch.weight > 0]
    if not len(t):
        return (Times(np.inf, -np.inf, np.empty(0)),)
    values = np.unique(t)
    return (Times(float(values[0]), float(values[-1]), values if len(values) <= MAX_LISTED else None),)


def times_of(data: Data, column: int, n_jobs: int | None) -> Times:
    """One pass."""
    times: Times = engine.sum(times_statistic, data, column, n_jobs=n_jobs)[0]
    return times


@dataclass(frozen=True)
class Grid:
    """Frequencies to look at in one column of X: `first` + m `spacing`, m = 0 ... count - 1, or as they are given.

    step : of the lattice of times, where the grid is that of a Fourier transform of length `length`.
    skip : frequencies nearer to zero than this are constants.
    """

    column: int
    first: float
    spacing: float
    count: int
    skip: float
    given: np.ndarray | None = None
    step: float | None = None
    length: int = 0

    @property
    def frequencies(self) -> np.ndarray:
        return self.first + self.spacing * np.arange(self.count) if self.given is None else self.given

    @property
    def usable(self) -> np.ndarray:
        """Mask of the frequencies that are no constants."""
        return np.asarray(np.abs(self.frequencies) > self.skip)


def default_grid(times: Times, column: int, *, oversampling: int, max_frequencies: int, plane: bool) -> Grid | None:
    """The grid of a column; of a real target only frequencies above zero. None where the column does not vary."""
    if not times.span > 0:
        return None
    step = times.step()
    if step is not None:
        places = round(times.span / step) + 1
        length = scipy.fft.next_fast_len(oversampling * places)
        spacing = 2 * np.pi / (length * step)
        highest = length // 2
    else:
        length = 0
        spacing = 2 * np.pi / (oversampling * times.span)
        highest = max(oversampling * (times.count - 1) // 2, oversampling)
    if (2 * highest + 1 if plane else highest) > max_frequencies:
        highest = max(max_frequencies // 2 if plane else max_frequencies, 1)
    first = -highest if plane else 1
    return Grid(column, first * spacing, spacing, highest - first + 1, spacing / 2, step=step, length=length)


def _quantity(batch: Batch, part: slice, circles: Circles | None, plane: bool) -> np.ndarray:
    """w (z - f), or w alone without circles."""
    w = weights_of(batch, part)
    if circles is None:
        return w.astype(np.complex128)
    e = plane_of(batch.y[part]) - circles.position(batch.X[part])
    return np.asarray(w * (e if plane else e.real))


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
    step: Any = grid.step  # a lattice has one
    for batch in data.batches():
        for part in pieces(batch, 8):
            q = _quantity(batch, part, circles, plane)
            t = np.asarray(batch.X[part, grid.column], dtype=np.float64)
            place = np.round((t - low) / step).astype(np.int64) % grid.length  # rows of no weight may lie anywhere
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
    return np.asarray(out)


def residual_spectrum(data: Data, grid: Grid, circles: Circles, setting: Setting) -> np.ndarray:
    """S(w) of the residuals: one pass."""
    return _spectrum(data, grid, circles.origin, circles, setting.plane, 1, setting.n_jobs)


def weight_spectrum(data: Data, grid: Grid, origin: np.ndarray, factor: int, n_jobs: int | None) -> np.ndarray:
    """sum_i w_i exp(-i factor w t_i): one pass."""
    return _spectrum(data, grid, origin, None, True, factor, n_jobs)
