"""`CausalEstimate`: the value of an identified effect in data, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from epicycle.causal.identification._contrast import Contrast
from epicycle.core._exceptions import ParameterError

Array = np.ndarray


@dataclass(frozen=True)
class CausalEstimate:
    r"""Means of the outcome under intervention, one for each value of the treatment (and of what is given).

    Parameters
    ----------
    query : str
        The question.
    method : str
        ``"tables"``, ``"regression"`` or ``"weighting"``.
    interval : str
        ``"influence"``, ``"bootstrap"`` or ``"posterior"``.
    levels : list
        Values of the treatment; tuples where several nodes are set or given, in the order of the diagram.
    mean : array (K,)
        :math:`E[y \mid do(x)]` for each of them.
    covariance : array (K, K)
        Of the means.
    confidence : float
        Of the intervals.
    outcomes : array (L,) or None
        Values of the outcome, by tables.
    distribution : array (K, L) or None
        :math:`P(y \mid do(x))`, by tables.
    draws : array (B, K) or None
        Means of resamples or posterior draws.
    adjusted_for : tuple of str or None
        The adjustment set, or the mediators of the front door, where these were used.
    """

    query: str
    method: str
    interval: str
    levels: list[Any]
    mean: Array
    covariance: Array
    confidence: float
    outcomes: Array | None = None
    distribution: Array | None = None
    draws: Array | None = field(default=None, repr=False)
    adjusted_for: tuple[str, ...] | None = None

    @property
    def intervals(self) -> Array:
        """Ends of the intervals of the means, (K, 2)."""
        return np.array([self._interval(row) for row in np.eye(len(self.mean))])

    def effect(self, treated: Any, control: Any) -> Contrast:
        """Difference of the means under two values of the treatment.

        Parameters
        ----------
        treated, control : object
            Two of `levels`.

        Returns
        -------
        Contrast
        """
        weight = np.zeros(len(self.mean))
        for value, sign in ((treated, 1.0), (control, -1.0)):
            if value not in self.levels:
                raise ParameterError(f"effect: {value!r} is no level of the treatment; expected one of {self.levels}")
            weight[self.levels.index(value)] += sign
        error = float(np.sqrt(max(weight @ self.covariance @ weight, 0.0)))
        low, high = self._interval(weight)
        return Contrast(float(weight @ self.mean), error, low, high)

    def _interval(self, weight: Array) -> tuple[float, float]:
        tail = (1 - self.confidence) / 2
        if self.draws is not None:
            low, high = np.quantile(self.draws @ weight, [tail, 1 - tail])
            return float(low), float(high)
        half = -ndtri(tail) * np.sqrt(max(weight @ self.covariance @ weight, 0.0))
        return float(weight @ self.mean - half), float(weight @ self.mean + half)

    def __str__(self) -> str:
        name = self.query.replace("P(", "E(", 1)
        rows = [
            f"  {level}: {m:.6g} [{low:.6g}, {high:.6g}]"
            for level, m, (low, high) in zip(self.levels, self.mean, self.intervals, strict=True)
        ]
        return "\n".join([f"{name} by {self.method}, {100 * self.confidence:g}% {self.interval} intervals", *rows])
