"""How much time there is, what was spent on what, and how long a fit will take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Budget", "Durations"]


class Budget:
    """Seconds that may be used; a part of them is kept for what comes after the search."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.seconds = float(seconds)
        self.began = clock()

    def spent(self) -> float:
        return self._clock() - self.began

    def left(self, keep: float = 0.0) -> float:
        """Seconds that are left before `keep` of them have to be there for something else."""
        return self.seconds - self.spent() - keep


@dataclass
class Durations:
    """Seconds of fits by the number of rows, and what they say about other numbers: t = c rows^grows."""

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
        smaller = [(n, t) for n, t in self.seen if n < 0.6 * largest]
        if smaller:
            n, t = max(smaller)
            # What was measured, within reason: small fits are all overhead and grow slower at first.
            growth = float(
                np.clip(np.log(max(there, 1e-4) / max(t, 1e-4)) / np.log(largest / n), 0.7 * growth, 1.6 * growth)
            )
            growth = max(growth, 0.9 * self.grows)
        return there * (rows / largest) ** growth
