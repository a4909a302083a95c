"""Sums and quantiles of targets that do not depend on the order or the partition of the rows."""

from __future__ import annotations

import numpy as np

# Bits of each of the two integers that a number is split into; their sums over 2**32 rows fit 64 bits.
_BITS = 30


def power_above(largest: float) -> float:
    """The power of two just above a number, within the exponents that scaling leaves finite; 1 for zero."""
    return float(np.ldexp(1.0, min(max(int(np.frexp(largest)[1]), -900), 1000))) if largest > 0 else 1.0


def exact_sum(x: np.ndarray, scale: float) -> int:
    """The sum of x in units of 2**-60 of `scale`: an integer, which does not depend on the partition of the rows."""
    # x = (high 2^-30 + low 2^-60) scale: both integers are exact, so only the last digit of low is rounded.
    scaled = x * (2.0**_BITS / scale)
    high = np.rint(scaled)
    low = np.rint((scaled - high) * 2.0**_BITS)
    return (int(high.sum(dtype=np.int64)) << _BITS) + int(low.sum(dtype=np.int64))


def exact_total(total: int, scale: float) -> float:
    """A sum of :func:`exact_sum` as a number."""
    return float(total / 2 ** (2 * _BITS) * scale)


def total_of(x: np.ndarray, which: np.ndarray | None = None) -> float:
    """The sum of x, independent of the order and the partition of the rows."""
    scale = power_above(float(np.abs(x).max(initial=0.0)))
    return exact_total(exact_sum(x if which is None else x[which], scale), scale)


def weighted_quantile(x: np.ndarray, weight: np.ndarray | None, tau: float) -> float:
    """The middle of the numbers that minimise the weighted quantile loss of x."""
    # Slack of 1e-9 rows: tau n that is an integer up to rounding has the interval between two rows as minimisers.
    if weight is None:
        below = int(np.ceil(tau * len(x) - 1e-9)) - 1
        above = int(np.floor(tau * len(x) + 1e-9))
        low, high = max(below, 0), min(above, len(x) - 1)
        part = np.partition(x, (low, high))
        return float(part[low] + (part[high] - part[low]) / 2)
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order])
    target = tau * cumulative[-1]
    slack = 1e-9 * cumulative[-1] / len(x)
    low = int(np.searchsorted(cumulative, target - slack))
    high = int(np.searchsorted(cumulative, target + slack, side="right"))
    last = len(x) - 1
    a, b = x[order[min(low, last)]], x[order[min(high, last)]]
    return float(a + (b - a) / 2)
