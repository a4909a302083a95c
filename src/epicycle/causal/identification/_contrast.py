"""`Contrast`: the difference of two means with its interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contrast:
    """The difference of two means under intervention.

    Parameters
    ----------
    value, error, low, high : float
        The difference, its standard error, and the ends of its interval.
    """

    value: float
    error: float
    low: float
    high: float
