"""What the families that come with the library share: they are known by their mean.

The dispersion phi scales the variance, Var(y) = phi V(mu) / w for a row of weight w; it is known (1) for the binomial,
Poisson, exponential and negative binomial families.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from epicycle.core._exceptions import DataError
from epicycle.stats._family import Family

__all__ = ["LOG_2PI", "StandardFamily"]

Array = NDArray[np.float64]
LOG_2PI = float(np.log(2 * np.pi))


class StandardFamily(Family):
    """A family that is known by its mean: variance V(mu) with derivative, deviance and likelihood in closed form."""

    #: The open interval of means.
    mean_range: tuple[float, float] = (-np.inf, np.inf)
    #: Whether the response may be at the lower, upper end of `support`.
    closed: tuple[bool, bool] = (True, True)
    #: Name of the link that is used unless another is asked for, and of the canonical one where that has a name.
    default_link: str = "identity"
    canonical_link: str = "identity"
    dispersion: float | None = None
    #: Whether the saturated likelihood of single trials is the weight times a function of y.
    weighs_likelihood: bool = False

    @abstractmethod
    def variance_slope(self, mu: Array) -> Array:
        """V'(mu)."""

    @abstractmethod
    def log_likelihood_saturated(self, y: Array, weight: Array, phi: float, trials: Array | None) -> Array:
        """log p(y; mu = y, phi / weight) for each row; half the deviance over phi less is the likelihood at any mu."""

    @abstractmethod
    def distribution(self, y: Array, mu: Array, phi: Array, trials: Array) -> tuple[Array, Array]:
        """P(Y < y) and P(Y <= y), for quantile residuals."""

    @abstractmethod
    def anscombe(self, y: Array, mu: Array) -> Array:
        """(A(y) - A(mu)) / V(mu)^(1/6) with A the integral of V^(-1/3)."""

    def check_target(self, y: Array, first_row: int = 0) -> None:
        low, high = self.support
        bad = (y < low) | (y > high)
        bad |= ((y == low) & (not self.closed[0])) | ((y == high) & (not self.closed[1]))
        if bad.any():
            row = int(bad.argmax())
            left, right = "[" if self.closed[0] and np.isfinite(low) else "(", "]" if np.isfinite(high) else ")"
            raise DataError(
                f"y: family={self.name!r} expects responses in {left}{low:g}, {high:g}{right}; row {first_row + row} "
                f"has {y[row]:g}"
            )
