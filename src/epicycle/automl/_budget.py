"""Budgets of time and memory of a training run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from epicycle.core import _memory


class PartlySpent(float):
    """Seconds of a time limit, of which a part is spent already: a command counts those in which it started.

    On a busy machine the imports alone take many; at least half of the time is left for the work.
    """

    spent = 0.0

    @classmethod
    def since(cls, began: float, seconds: float) -> PartlySpent:
        """A limit of so many seconds from `began` of :func:`time.perf_counter` on."""
        found = cls(seconds)
        found.spent = min(time.perf_counter() - began, 0.5 * seconds)
        return found


class Budget:
    """A time limit in seconds, and how much of it is spent."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds = self._end = float(seconds)
        self.began = clock() - (seconds.spent if isinstance(seconds, PartlySpent) else 0.0)

    def spent(self) -> float:
        return self._clock() - self.began

    def left(self, keep: float = 0.0) -> float:
        """Seconds that are left when `keep` of them are reserved for later steps."""
        return self._end - self.spent() - keep

    def resume(self, spent: float) -> None:
        """Go on from a time at which so many seconds were spent, unless more are."""
        self.began = min(self.began, self._clock() - spent)

    def end_within(self, seconds: float) -> None:
        """Let at most so many seconds be left."""
        self._end = min(self._end, self.spent() + seconds)


@dataclass
class Durations:
    """Seconds of fits by the number of rows, extrapolated by the power law t = c rows^grows."""

    grows: float = 1.0
    seen: list[tuple[int, float]] = field(default_factory=list)

    def add(self, rows: int, seconds: float) -> None:
        self.seen.append((rows, seconds))

    def expected(self, rows: int) -> float | None:
        """Seconds of a fit to so many rows, on the safe side; None while nothing is known."""
        if not self.seen:
            return None
        largest = max(n for n, _ in self.seen)
        there = float(np.mean([t for n, t in self.seen if n == largest]))
        if rows <= largest:
            return there
        growth = self.grows
        # The exponent needs two clearly different sizes.
        smaller = [(n, t) for n, t in self.seen if n < 0.6 * largest]
        if smaller:
            n, t = max(smaller)
            # The measured exponent within bounds around the known one: small fits are mostly overhead, which makes the
            # growth look slower than it is.
            growth = float(
                np.clip(np.log(max(there, 1e-4) / max(t, 1e-4)) / np.log(largest / n), 0.7 * growth, 1.6 * growth)
            )
            growth = max(growth, 0.9 * self.grows)
        return float(there * (rows / largest) ** growth)


def keep_no_freed_memory() -> None:
    """Return freed memory to the system at once, for the rest of the process.

    A search makes and drops many parts of the data and many models: kept by Arrow, by the C library or in a heap for
    each thread they would add up to a multiple of the data.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    _memory.keep_no_freed_memory()


def return_freed_memory() -> None:
    """Return free memory to the system now."""
    pa.default_memory_pool().release_unused()
    _memory.return_freed_memory()
