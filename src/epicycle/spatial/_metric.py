"""The metrics that have a native search, as native code numbers them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

METRICS = ("minkowski", "euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "cosine")
EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, COSINE = range(5)  # as the native code numbers them
#: Powers of ten that floating point holds.
RANGE = 290.0


@dataclass(frozen=True)
class Metric:
    """A metric: its number, and the power of Minkowski's."""

    kind: int
    power: float

    def to_native(self, distance: float) -> float:
        """A distance as native code compares it, without the last root."""
        if self.kind not in (EUCLIDEAN, MINKOWSKI):
            return distance
        with np.errstate(over="ignore"):  # a radius whose power is beyond all numbers holds everything
            return min(float(np.float64(distance) ** self.power), float(np.finfo(np.float64).max))

    def from_native(self, values: np.ndarray) -> np.ndarray:
        """Distances from the values of native code, which leaves out the last root."""
        if self.kind == EUCLIDEAN:
            return np.asarray(np.sqrt(values))
        if self.kind != MINKOWSKI:
            return values
        with np.errstate(over="ignore"):  # roots of tiny p: what is beyond all numbers is as far as the largest
            return np.minimum(values ** (1 / self.power), np.finfo(values.dtype).max)


def metric_by_name(metric: str, p: Any) -> Metric:
    """The metric of this name; `p` is for "minkowski"."""
    if metric == "minkowski":
        p = float(p)
        known = {1.0: MANHATTAN, 2.0: EUCLIDEAN, math.inf: CHEBYSHEV}
        return Metric(known.get(p, MINKOWSKI), 1.0 if math.isinf(p) else p)
    kinds = {"manhattan": MANHATTAN, "cityblock": MANHATTAN, "l1": MANHATTAN, "chebyshev": CHEBYSHEV, "cosine": COSINE}
    return Metric(kinds.get(metric, EUCLIDEAN), 2.0)
