"""`Counterfactual`: what would have been, as values with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Counterfactual:
    """Values of all variables in a world that did not happen, given what was seen in the one that did.

    Parameters
    ----------
    values : dict of arrays (units, particles)
        Values by variable; one particle where the evidence determines the noise.
    weights : array (units, particles)
        Posterior probabilities of the particles.
    exact : bool
        Whether nothing was drawn: the noise was read off from the evidence, or all its values were listed.
    """

    values: dict[str, Array]
    weights: Array
    exact: bool

    @property
    def effective_size(self) -> Array:
        """Number of equally weighted particles that would be as good, for each unit."""
        return np.asarray(1.0 / (self.weights**2).sum(axis=1))

    def mean(self, name: str) -> Array:
        """Posterior mean of a variable, for each unit; a number for one unit."""
        return self._shaped((self.weights * self.values[name].astype(np.float64)).sum(axis=1))

    def probability(self, name: str, value: Any) -> Array:
        """Posterior probability that a variable has a value, for each unit; a number for one unit."""
        return self._shaped((self.weights * (self.values[name] == value)).sum(axis=1))

    def standard_deviation(self, name: str) -> Array:
        """Posterior standard deviation of a variable, for each unit; a number for one unit."""
        x = self.values[name].astype(np.float64)
        centre = (self.weights * x).sum(axis=1, keepdims=True)
        return self._shaped(np.sqrt((self.weights * (x - centre) ** 2).sum(axis=1)))

    @staticmethod
    def _shaped(found: Array) -> Array:
        return np.asarray(found[0]) if len(found) == 1 else np.asarray(found)
