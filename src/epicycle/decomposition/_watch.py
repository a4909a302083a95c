"""The end of fits in mini-batches."""

from __future__ import annotations

from typing import Any

import numpy as np


class Watch:
    """When mini-batches are at their end: little changes, or the smoothed cost has not fallen for some steps.

    The first `ignored` steps, in which the start is felt, do not count.
    """

    def __init__(self, weight: float, tol: float, patience: int | None, ignored: int = 1) -> None:
        self.weight, self.tol, self.patience, self.ignored = weight, tol, patience, ignored
        self.smoothed, self.first, self.best, self.change, self.idle, self.steps = 0.0, 0.0, np.inf, np.inf, 0, 0

    def numbers(self) -> list[float]:
        """All that `resume` needs."""
        return [self.smoothed, self.first, self.best, self.change, float(self.idle), float(self.steps)]

    def resume(self, numbers: Any) -> None:
        """Go on from these numbers."""
        self.smoothed, self.first, self.best, self.change = (float(x) for x in numbers[:4])
        self.idle, self.steps = int(numbers[4]), int(numbers[5])

    def __call__(self, cost: float, weight: float, change: float) -> bool:
        self.steps += 1
        self.first = cost if self.steps == 1 else self.first
        if self.steps <= self.ignored:
            self.smoothed = cost
            return False
        share = min(weight / (self.weight + 1), 1.0)
        self.smoothed = cost if self.steps == self.ignored + 1 else self.smoothed * (1 - share) + cost * share
        self.change = change
        if self.tol > 0 and self.change <= self.tol:
            return True
        self.idle = 0 if self.smoothed < self.best else self.idle + 1
        self.best = min(self.best, self.smoothed)
        return self.patience is not None and self.idle >= self.patience
