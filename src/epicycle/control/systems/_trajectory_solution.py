"""`TrajectorySolution`: a trajectory that was optimised, with the feedback around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History

Array = np.ndarray


@dataclass(frozen=True)
class TrajectorySolution:
    r"""Trajectory with the feedback :math:`u = \mathrm{clip}(u_t + K_t (x - x_t))` around it.

    Attributes
    ----------
    states : array (T + 1, n)
        States :math:`x_t`.
    controls : array (T, m)
        Controls :math:`u_t`.
    gain : array (T, m, n)
        :math:`K_t`; rows of controls that are held at a limit are zero.
    cost : float
        Cost of the trajectory.
    n_iter : int
        Number of accepted steps.
    history : History
        Cost, relative size of the gradient, length of the step and regularisation after each; the cost never rises.
    certificate : Certificate
        Largest entry of the projected gradient, relative to the terms that cancel in it.
    """

    states: Array = field(repr=False)
    controls: Array = field(repr=False)
    gain: Array = field(repr=False)
    control_low: Array = field(repr=False)
    control_high: Array = field(repr=False)
    cost: float
    n_iter: int
    history: History = field(repr=False)
    certificate: Certificate

    def control(self, x: Any, time: int = 0) -> Array:
        """Control in a state near the trajectory.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State, or several.
        time : int, default=0
            Time, below T.

        Returns
        -------
        array (m,) or (rows, m)
        """
        if not 0 <= time < len(self.controls):
            raise DataError(f"time={time}: expected 0 to {len(self.controls) - 1}, the times of the trajectory")
        u = self.controls[time] + (np.asarray(x) - self.states[time]) @ self.gain[time].T
        return np.asarray(np.clip(u, self.control_low, self.control_high))
