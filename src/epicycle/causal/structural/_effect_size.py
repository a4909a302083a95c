"""`EffectSize`: the mean of a difference over units, with its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class EffectSize:
    """A mean difference.

    Parameters
    ----------
    value : float
        The mean over units.
    error : float
        Its standard error from the draws; zero where all values of the noise were listed.
    """

    value: float
    error: float

    @classmethod
    def of(cls, difference: Array, weight: Array, exact: bool) -> EffectSize:
        """Mean of the differences of units."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(weight @ difference)
            largest = float(np.abs(difference - mean).max(initial=np.finfo(float).tiny))  # squares stay numbers
            spread = float(np.sqrt(weight @ ((difference - mean) / largest) ** 2 / len(difference))) * largest
        if not np.isfinite([mean, spread]).all():
            raise DataError(f"the effect is {mean:g} with error {spread:g}; expected values with finite differences")
        return cls(mean, 0.0 if exact else spread)
