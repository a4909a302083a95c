"""Circles on circles: the one that explains most of what is left, again and again (boosting, matching pursuit).

For a single new circle the best radius is least squares, and the sum of squares falls by |S(w)|^2 / W with S the
spectrum of the residuals; the constant that comes with it and, for real targets, the sines and cosines that are not
orthogonal, are taken care of as in the floating-mean periodogram.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from epicycle.data import Data
from epicycle.linear.epicycles._orbit import Circles, Setting
from epicycle.linear.epicycles._spectrum import residual_spectrum, weight_spectrum
from epicycle.linear.epicycles._times import Grid

__all__ = ["Periodogram"]


@dataclass(frozen=True)
class Periodogram:
    """What one more circle at any frequency of a grid would explain.

    first, second : sums of w exp(-i w t) and w exp(-2 i w t); `total` is the sum of w.
    """

    grid: Grid
    first: np.ndarray
    second: np.ndarray | None
    total: float
    setting: Setting

    @classmethod
    def of(cls, data: Data, grid: Grid, origin: np.ndarray, total: float, setting: Setting) -> Periodogram:
        """One pass over the weights, two for real targets."""
        none = np.zeros(grid.count, complex)
        first = weight_spectrum(data, grid, origin, 1, setting.n_jobs) if setting.centre else none
        second = None if setting.plane else weight_spectrum(data, grid, origin, 2, setting.n_jobs)
        return cls(grid, first, second, total, setting)

    def power(self, data: Data, circles: Circles) -> np.ndarray:
        """The decrease of the sum of squares, at every frequency: one pass."""
        S = residual_spectrum(data, self.grid, circles, self.setting)
        W = self.total
        if self.setting.plane:
            left = W - np.abs(self.first) ** 2 / W
            power = np.divide(np.abs(S) ** 2, left, out=np.zeros(len(S)), where=left > 1e-4 * W)
        else:
            c, s = self.first.real, -self.first.imag  # sums of cos and sin
            cc = (W + self.second.real) / 2 - c * c / W
            ss = (W - self.second.real) / 2 - s * s / W
            cs = -self.second.imag / 2 - c * s / W
            determinant = cc * ss - cs * cs
            yc, ys = S.real, -S.imag
            numerator = ss * yc * yc - 2 * cs * yc * ys + cc * ys * ys
            power = np.divide(numerator, determinant, out=np.zeros(len(S)), where=determinant > 1e-6 * W * W)
            # Where only one of sine and cosine can be told from the rest, it alone counts.
            spread = np.maximum(cc, ss)
            alone = np.where(cc >= ss, yc, ys) ** 2
            single = np.divide(alone, spread, out=np.zeros(len(S)), where=spread > 1e-4 * W)
            power = np.where(determinant > 1e-6 * W * W, power, single)
        return np.where(self.grid.usable, power, 0.0)


def with_circle(circles: Circles, column: int, frequency: float) -> Circles:
    """One circle more, of radius zero."""
    return replace(
        circles,
        columns=np.append(circles.columns, column),
        frequencies=np.append(circles.frequencies, frequency),
        radii=np.append(circles.radii, 0.0),
    )
