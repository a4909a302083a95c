"""Common parts of costs of trajectories: their total, and their derivatives along a trajectory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle.core._docs import documented

Array = np.ndarray


@dataclass(frozen=True)
class Expansion:
    """Gradients and Hessians of the costs of all steps, and of the last state."""

    lx: Array
    lu: Array
    lxx: Array
    luu: Array
    lux: Array
    final_x: Array
    final_xx: Array


@documented({})
class TrajectoryCost(ABC):
    """Base of the costs of trajectories."""

    _docs: ClassVar = {
        "time": "time : int, default={default}\n    Time of the first state, where the target changes with time."
    }

    @abstractmethod
    def _total(self, X: Array, U: Array, time: int) -> Any:
        """Cost of trajectories as arrays."""

    @abstractmethod
    def _expand(self, X: Array, U: Array, time: int) -> Expansion:
        """Derivatives along a trajectory of arrays."""

    def total(self, states: Any, controls: Any, *, time: int = 0) -> Any:
        """Cost of a trajectory, or of several.

        Parameters
        ----------
        states : array (..., T + 1, n)
            States.
        controls : array (..., T, m)
            Controls.

        Returns
        -------
        float or array (...)
        """
        return self._total(np.asarray(states, dtype=np.float64), np.asarray(controls, dtype=np.float64), time)

    def expand(self, states: Any, controls: Any, *, time: int = 0) -> Expansion:
        """Gradients and Hessians along a trajectory.

        Parameters
        ----------
        states : array (T + 1, n)
            States.
        controls : array (T, m)
            Controls.
        """
        return self._expand(np.asarray(states, dtype=np.float64), np.asarray(controls, dtype=np.float64), time)
