"""Bounds on the rate of an event from its number among n independent trials (Clopper and Pearson 1934)."""

from __future__ import annotations

from scipy.special import betaincinv


def largest_rate(events: int, n: int, delta: float) -> float:
    """The rate under which so few events, or fewer, have probability delta."""
    return 1.0 if events == n else float(betaincinv(events + 1, n - events, 1 - delta))


def smallest_rate(events: int, n: int, delta: float) -> float:
    """The rate under which so many events, or more, have probability delta."""
    return 0.0 if events == 0 else float(betaincinv(events, n - events + 1, delta))
