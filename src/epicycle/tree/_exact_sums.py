"""Sums that do not depend on how the rows are divided: whole multiples of a unit, added as integers."""

from __future__ import annotations

import numpy as np

__all__ = ["exact_sum", "exact_total", "power_above"]

_BITS = 30  # of each of two pieces; their sums over 2**32 rows fit 64 bits


def power_above(largest: float) -> float:
    """A power of two about as large, with room on both sides; 1 for zero."""
    return float(np.ldexp(1.0, min(max(int(np.frexp(largest)[1]), -900), 1000))) if largest > 0 else 1.0


def exact_sum(x: np.ndarray, scale: float) -> int:
    """The sum of x in units of 2**-60 of `scale`, the power of two for all of them: each is rounded, nothing else."""
    scaled = x * (2.0**_BITS / scale)
    high = np.rint(scaled)
    low = np.rint((scaled - high) * 2.0**_BITS)
    return (int(high.sum(dtype=np.int64)) << _BITS) + int(low.sum(dtype=np.int64))


def exact_total(total: int, scale: float) -> float:
    """A sum of :func:`exact_sum` as a number."""
    return total / 2 ** (2 * _BITS) * scale
