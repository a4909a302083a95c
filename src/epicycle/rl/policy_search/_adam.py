"""Steps of Adam (Kingma and Ba) upwards, on the tables of an agent."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
_MEAN, _SQUARE, _TINY = 0.9, 0.999, 1e-8  # Adam's constants


def climbing_tables(size: int) -> dict[str, Array]:
    """Parameters at zero, and the memory of the steps."""
    zero = np.zeros(size)
    return {"theta": zero.copy(), "mean": zero.copy(), "square": zero.copy(), "updates": np.zeros(1, dtype=int)}


def climb(tables: dict[str, Array], gradient: Array, learning_rate: float) -> None:
    """One step up the gradient."""
    t = tables
    t["updates"] += 1
    n = int(t["updates"][0])
    t["mean"] += (1 - _MEAN) * (gradient - t["mean"])
    t["square"] += (1 - _SQUARE) * (gradient**2 - t["square"])
    spread = np.sqrt(t["square"] / (1 - _SQUARE**n)) + _TINY
    t["theta"] += learning_rate * t["mean"] / (1 - _MEAN**n) / spread
