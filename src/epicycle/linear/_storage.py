"""Certificates of coefficients as they are stored: what their rounding adds to the distance from the minimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate


def after_rounding(found: Certificate, before: float, dtype: np.dtype[Any]) -> Certificate:
    """The certificate of stored coefficients, with a word where they are worse than `before` rounding."""
    if not found.value > found.tolerance >= before:
        return found
    words = f"; the rounding of coefficients stored as {dtype.name} makes {found.value - before:.1e} of it"
    # float32 was asked for, and allows no less than what its rounding adds to a solved problem.
    allowed = found.value if dtype == np.float32 else found.tolerance
    return replace(found, tolerance=allowed, meaning=found.meaning + words)
