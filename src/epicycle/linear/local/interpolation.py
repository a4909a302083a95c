"""Fits at a few places of a sorted column, and straight lines between them."""

from __future__ import annotations

import numpy as np

from epicycle.linear.local.smoothing import Answers

__all__ = ["anchors", "between_anchors"]


def anchors(x: np.ndarray, delta: float) -> np.ndarray:
    """Indices at which to fit: from each the last one within `delta`, or the next; ties take the fit of the first."""
    n, found, i = len(x), [], 0
    while True:
        found.append(i)
        last = int(np.searchsorted(x, x[i], side="right")) - 1  # the last of the points tied with i
        if last >= n - 1:
            return np.array(found)
        beyond = int(np.searchsorted(x, x[i] + delta, side="right"))  # the first point farther than delta
        # At the end of the data the walk stops one point early and then takes the last one.
        i = max((beyond if beyond < n else n - 1) - 1, last + 1)


def between_anchors(x: np.ndarray, at: np.ndarray, a: Answers) -> Answers:
    """Answers at all x from those at the anchors."""
    nearest = np.searchsorted(at, np.arange(len(x)), side="right") - 1
    value, own = np.interp(x, x[at], a.value), np.interp(x, x[at], a.own)
    return Answers(value, own, np.zeros(len(x)), a.error[nearest], a.status[nearest])
