"""From measurements to statements: who is at equal quality, who is the best peer, how much faster is epicycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from benchmarks.task import Outcome, Quality

__all__ = ["best_peer", "count_quality", "median_of", "ratio", "speedup", "speedup_over_best_peer"]


def count_quality(outcome: Outcome, quality: Quality | None, tolerance: float) -> None:
    """Note the quality of an outcome; the first measure decides, and what was not measured does not count."""
    if outcome.failure:
        return
    outcome.quality = quality or {}
    decisive = next(iter(outcome.quality.values()), 0.0 if quality is None else math.nan)
    outcome.at_equal_quality = bool(decisive <= tolerance)


def best_peer(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The peer with the smallest median among those that reached the quality of the task."""
    counted = [o for o in outcomes if o.role == "peer" and o.at_equal_quality and math.isfinite(o.median)]
    return min(counted, key=lambda o: o.median, default=None)


def speedup(outcome: Outcome, best: Outcome | None) -> float:
    """Median of the best peer over the median of `outcome`: above 1 is faster than the best peer."""
    return math.nan if best is None or not outcome.at_equal_quality else best.median / outcome.median


def median_of(name: str) -> Callable[[Mapping[str, Outcome]], float]:
    """The median seconds of one implementation."""
    return lambda outcomes: outcomes[name].median


def ratio(numerator: str, denominator: str) -> Callable[[Mapping[str, Outcome]], float]:
    """Median of one implementation over the median of another."""
    return lambda outcomes: outcomes[numerator].median / outcomes[denominator].median


def speedup_over_best_peer(name: str = "epicycle", among: str = "") -> Callable[[Mapping[str, Outcome]], float]:
    """Speed of an implementation against the best peer at equal quality whose name begins with `among`."""
    return lambda outcomes: speedup(outcomes[name], best_peer(o for o in outcomes.values() if o.name.startswith(among)))
