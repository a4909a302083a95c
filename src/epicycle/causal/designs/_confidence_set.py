"""`ConfidenceSet`: a union of intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class ConfidenceSet:
    """A union of intervals, which may be unbounded or empty.

    Attributes
    ----------
    intervals : array (k, 2)
        Ends of the intervals in order, -inf and inf where there is no end; no rows where the set is empty.
    confidence : float
        Probability with which the set covers the effect.
    """

    intervals: Array
    confidence: float

    @property
    def kind(self) -> str:
        """Form of the set: "interval", "two rays", "whole line", "empty", or "union of intervals"."""
        if len(self.intervals) == 0:
            return "empty"
        infinite = np.isinf(self.intervals)
        if len(self.intervals) == 1:
            return {0: "interval", 1: "ray", 2: "whole line"}[int(infinite.sum())]
        return "two rays" if len(self.intervals) == 2 and infinite.sum() == 2 else "union of intervals"

    def __contains__(self, value: float) -> bool:
        return bool(((self.intervals[:, 0] <= value) & (value <= self.intervals[:, 1])).any())

    def __str__(self) -> str:
        if len(self.intervals) == 0:
            return "empty: no effect is compatible with the instruments, which cannot all be valid"
        return " and ".join(f"({low:.4g}, {high:.4g})" for low, high in self.intervals)
