r"""Whether the density of the running variable jumps at the cutoff, which it does where units choose their side.

The empirical distribution function is smoothed by a cubic on each side; its slope at the cutoff is the density there
(Cattaneo, Jansson and Ma 2020). The distribution function is a mean over rows, so that the slope is linear in the rows'
indicators, and its variance is that of  psi_j = G^{-1} (1/n) sum_i r_i w_i (1{x_j <= x_i} - F(x_i)).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._local_polynomial import PILOT, kernel_weights
from epicycle.core._exceptions import DataError

Array = np.ndarray


def density_test(x: Array, bandwidth: float | None = None, order: int = 3) -> tuple[HypothesisTest, Array]:
    """The test, and the densities left and right of the cutoff, which lies at 0."""
    x = np.sort(x)
    n = len(x)
    if bandwidth is None:
        q = np.percentile(x, [25, 75])
        spread = min(float(x.std(ddof=1)), float(q[1] - q[0]) / 1.349)
        bandwidth = PILOT["triangular"] * spread * n**-0.2
    F = np.searchsorted(x, x, side="right") / n
    slopes, influences = [], []
    for side in (x < 0, x >= 0):
        w = kernel_weights("triangular", x, bandwidth) * side
        if np.count_nonzero(w) <= order + 1:
            raise DataError(f"bandwidth: {bandwidth:.4g} leaves {np.count_nonzero(w)} rows on a side for the density")
        R = (x[:, None] / bandwidth) ** np.arange(order + 1)
        WR = R * w[:, None]
        row = np.linalg.solve(WR.T @ R, WR.T)[1] / bandwidth  # of the slope
        slopes.append(float(row @ F))
        # sum_i row_i 1{x_j <= x_i}: sums from the end, equal values together.
        above = np.concatenate([np.cumsum(row[::-1])[::-1], [0.0]])
        influences.append(above[np.searchsorted(x, x, side="left")] - row @ F)
    jump = slopes[1] - slopes[0]
    error = float(np.sqrt(np.mean((influences[1] - influences[0]) ** 2) / n))
    z = jump / error
    hypothesis = "the density of the running variable does not jump at the cutoff"
    return HypothesisTest("density test", z, float(2 * ndtr(-abs(z))), hypothesis), np.array(slopes)
