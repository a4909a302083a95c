"""`EffectSize`: the mean of a difference over units, with its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        mean = float(weight @ difference)
        return cls(mean, 0.0 if exact else float(np.sqrt(weight @ (difference - mean) ** 2 / len(difference))))
