"""The weight K(d) that a point at distance d, in units of the bandwidth, has in a local fit."""

from __future__ import annotations

__all__ = ["KERNELS"]

#: Names in the order in which the compiled code numbers them. All but the Gaussian, exp(-d^2 / 2), end at d = 1:
#: (1 - d^3)^3, 1 - d^2, (1 - d^2)^2, (1 - d^2)^3, 1 - d, and 1.
KERNELS = ("tricube", "epanechnikov", "biweight", "triweight", "triangular", "uniform", "gaussian")
