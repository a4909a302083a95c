"""`GridSolution`: policy and values between the points of a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.control.continuous._action_policy import ActionPolicy
from epicycle.control.continuous._grid import Grid
from epicycle.control.continuous._system import System, states_of
from epicycle.control.mdp._planning_solution import PlanningSolution
from epicycle.core._certificate import Certificate
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._plot_style import Axes, axes_of, styled

Array = np.ndarray


@documented({})
@dataclass(frozen=True)
class GridSolution(ActionPolicy):
    """Policy and values between the points of a grid; actions are found by looking one step ahead.

    Attributes
    ----------
    solution : PlanningSolution
        Solution of the decision process on the grid.
    error : float or None
        Largest difference between the values at the points and those on a grid with half the distances, relative to the
        largest value: how far the grid itself may be from the continuous system. An estimate, no bound; None where it
        was not asked for.
    mean_error : float or None
        The mean of these differences.
    certificate : Certificate
        That of `solution`: it is about the process on the grid.
    """

    system: System = field(repr=False)
    grid: Grid = field(repr=False)
    discount: float
    solution: PlanningSolution = field(repr=False)
    error: float | None
    mean_error: float | None

    @property
    def certificate(self) -> Certificate:
        """Loss of the policy on the grid."""
        return self.solution.certificate

    @property
    def history(self) -> History:
        """One row for each iteration on the grid."""
        return self.solution.history

    def value(self, x: Any) -> Any:
        """Values of states, interpolated.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State, or several; those outside of the box count as on its edge.
        """
        X, one = states_of("x", x, len(self.grid.shape))
        values = self.grid.weights(X) @ self.solution.values
        return float(values[0]) if one else values

    def _q(self, X: Array) -> Array:
        values = self.solution.values
        return self.system.lookahead(X, lambda Z: self.grid.weights(Z) @ values, self.discount)

    def _controls(self) -> Array:
        return self.system.actions

    def _n_entries(self) -> int:
        return len(self.grid.shape)

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the values of a system with two entries of the state, with lines where the action changes."""
        if len(self.grid.shape) != 2:
            raise DataError(f"plot: got states with {len(self.grid.shape)} entries; expected 2")
        ax = axes_of(ax)
        x, y = self.grid.axes
        values = self.solution.values.reshape(self.grid.shape)
        image = ax.pcolormesh(x, y, values.T, cmap="cividis", shading="nearest")
        acts = self.solution.choice >= 0
        action = np.where(acts, self.solution.mdp.pair_action_[self.solution.choice], np.nan).reshape(self.grid.shape)
        levels = np.arange(len(self.system.actions) - 1) + 0.5
        if len(levels):
            ax.contour(x, y, action.T, levels=levels, colors="white", linewidths=0.6)
        ax.figure.colorbar(image, ax=ax, label="value")
        ax.set_xlabel("first entry of the state")
        ax.set_ylabel("second entry of the state")
        ax.grid(False)
        return ax
