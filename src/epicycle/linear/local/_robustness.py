"""Weights that let outliers count for nothing (Cleveland 1979): bisquare of residuals over six times their median."""

from __future__ import annotations

import numpy as np

__all__ = ["bisquare_weights", "weighted_median"]


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
    return (1 - scaled**2) ** 2
