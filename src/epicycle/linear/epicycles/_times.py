"""When the data were taken, and the frequencies that they can tell apart.

Over a span T, frequencies less than 2 pi / T apart are nearly the same function; n times resolve frequencies up to
about pi n / T. The default grid is a few times finer than the first, and ends at the second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft

from epicycle import engine
from epicycle.data import Batch, Data

__all__ = ["Grid", "Times", "default_grid", "times_of"]

#: Distinct times beyond this number are not listed one by one.
LISTED = 1 << 20


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
            values = values if len(values) <= LISTED else None
        return Times(min(self.low, other.low), max(self.high, other.high), values)

    @property
    def span(self) -> float:
        return self.high - self.low

    @property
    def count(self) -> int:
        return LISTED if self.values is None else len(self.values)

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
    return (Times(float(values[0]), float(values[-1]), values if len(values) <= LISTED else None),)


def times_of(data: Data, column: int, n_jobs: int | None) -> Times:
    """One pass."""
    (times,) = engine.sum(times_statistic, data, column, n_jobs=n_jobs)
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
        """Which of the frequencies are no constants."""
        return np.abs(self.frequencies) > self.skip


def default_grid(times: Times, column: int, *, oversampling: int, most: int, plane: bool) -> Grid | None:
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
    if (2 * highest + 1 if plane else highest) > most:
        highest = max(most // 2 if plane else most, 1)
    first = -highest if plane else 1
    return Grid(column, first * spacing, spacing, highest - first + 1, spacing / 2, step=step, length=length)
