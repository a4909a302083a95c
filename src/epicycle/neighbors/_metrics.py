"""Distances by name, as the native code numbers them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["NAMES", "Distance", "distance"]

NAMES = ("minkowski", "euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "cosine")
EUCLIDEAN, MANHATTAN, CHEBYSHEV, MINKOWSKI, COSINE = range(5)


@dataclass(frozen=True)
class Distance:
    """A metric: its number, and the power of Minkowski's."""

    kind: int
    power: float

    def from_native(self, values: np.ndarray) -> np.ndarray:
        """What native code gives, which leaves out the last root, as distances."""
        if self.kind == EUCLIDEAN:
            return np.sqrt(values)
        return values ** (1 / self.power) if self.kind == MINKOWSKI else values


def distance(metric: str, p: Any) -> Distance:
    """The metric of this name; `p` is for "minkowski"."""
    if metric == "minkowski":
        p = float(p)
        known = {1.0: MANHATTAN, 2.0: EUCLIDEAN, math.inf: CHEBYSHEV}
        return Distance(known.get(p, MINKOWSKI), 1.0 if math.isinf(p) else p)
    kinds = {"manhattan": MANHATTAN, "cityblock": MANHATTAN, "l1": MANHATTAN, "chebyshev": CHEBYSHEV, "cosine": COSINE}
    return Distance(kinds.get(metric, EUCLIDEAN), 2.0)
