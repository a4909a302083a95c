"""Coefficients as they are stored: their type, and what their rounding adds to the distance from the minimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError


def stored_type(dtype: np.dtype[Any], *values: Any) -> np.dtype[Any]:
    """The type of X for coefficients that follow from it, or float64 where it does not hold them."""
    largest = float(np.abs(np.concatenate([*map(np.ravel, values)])).max(initial=0.0))
    if not np.isfinite(largest):
        raise DataError("X, y: coefficients overflow; bring the columns of X, and y, to scales that are nearer to one")
    return dtype if largest <= float(np.finfo(dtype).max) else np.dtype(np.float64)


def after_rounding(found: Certificate, before: float, dtype: np.dtype[Any]) -> Certificate:
    """The certificate of stored coefficients, with a word where they are worse than `before` rounding."""
    if not found.value > found.tolerance >= before:
        return found
    words = f"; the rounding of coefficients stored as {dtype.name} makes {found.value - before:.1e} of it"
    # float32 was asked for, and allows no less than what its rounding adds to a solved problem.
    allowed = found.value if dtype == np.float32 else found.tolerance
    return replace(found, tolerance=allowed, meaning=found.meaning + words)
