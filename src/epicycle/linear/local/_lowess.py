"""Weights that let outliers count for nothing (Cleveland 1979): bisquare of residuals over six times their median."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.linear.local._smoother import Answers


def weighted_median(x: np.ndarray, weight: np.ndarray) -> float:
    """The median, where every x counts as often as its weight says; halfway between two where the middle is between."""
    if weight.min() == weight.max():  # the usual case, without a sort
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    upto = np.cumsum(weight[order])
    half = upto[-1] / 2
    lower = np.searchsorted(upto, half * (1 - 1e-14))
    upper = np.searchsorted(upto, half * (1 + 1e-14), side="right")
    return float((x[order[lower]] + x[order[min(upper, len(x) - 1)]]) / 2)


def bisquare_weights(residual: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(1 - (r / 6 median|r|)^2)^2, zero beyond; where most residuals are zero, all others get none."""
    size = np.abs(residual)
    median = weighted_median(size, weight)
    scaled = np.minimum(size / (6 * median), 1.0) if median > 0 else (size > 0).astype(np.float64)
    return np.asarray((1 - scaled**2) ** 2)


# --------------------------------------------------------------------------------------------------------------------
# Fits at a few places of a sorted column, and straight lines between them.


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


@dataclass(frozen=True)
class Between:
    """The place of every point between the anchors: the anchor on its left, and the share of the way to the next."""

    at: np.ndarray
    left: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, delta: float) -> Between:
        """The anchors of a sorted column."""
        at = anchors(x, delta)
        left = np.repeat(np.arange(len(at)), np.diff(np.append(at, len(x))))
        gap = np.append(np.diff(x[at]), 0.0)[left]
        share = np.divide(x - x[at[left]], gap, out=np.zeros(len(x)), where=gap > 0)
        return cls(at, left, share)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values at all points from those at the anchors."""
        right = np.minimum(self.left + 1, len(self.at) - 1)
        return np.asarray(self.share * values[right] + (1 - self.share) * values[self.left])

    def answers(self, a: Answers) -> Answers:
        """Answers at all points; their sums of squares are not known."""
        left = self.left
        return Answers(self.spread(a.value), self.spread(a.own), np.zeros(len(left)), a.error[left], a.status[left])
