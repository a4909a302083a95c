"""The box that features of continuous states are made for."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray


def checked_bounds(low: Any, high: Any) -> tuple[Array, Array]:
    """Finite bounds of the same length, low below high."""
    a, b = (np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (low, high))
    if a.ndim != 1 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all() and (a < b).all()):
        raise DataError(f"low={low!r:.60}, high={high!r:.60}: expected finite numbers (d,), each low below its high")
    return a, b


def scaled(x: Array, low: Array, high: Array) -> Array:
    """A state in the unit box."""
    if x.shape[-1:] != low.shape:
        raise DataError(f"a state has shape {x.shape}; the features are made for {len(low)} coordinates")
    return np.asarray(np.clip((x - low) / (high - low), 0.0, 1.0))
