"""`discretize`: a system with continuous states as a decision process on a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.continuous._grid import Grid
from epicycle.control.continuous._system import System, box_of, states_of, system_of
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import PlanningSolution
from epicycle.control.mdp._policy_iteration import modified_policy_iteration
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Real, check_parameter
from epicycle.core._plot_style import Axes, axes_of, styled
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_MOST_POINTS, _MOST_AXES = 5_000_000, 6


@dataclass(frozen=True)
class GridSolution:
    """Policy and values between the points of a grid.

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

        Returns
        -------
        float or array (rows,)
        """
        X, one = states_of("x", x, len(self.grid.shape))
        values = self.grid.weights(X) @ self.solution.values
        return float(values[0]) if one else values

    def action(self, x: Any) -> Any:
        """Number of the best action in a state: that whose reward and interpolated value after it are largest.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State, or several.

        Returns
        -------
        int or array (rows,)
        """
        X, one = states_of("x", x, len(self.grid.shape))
        values = self.solution.values
        best = self.system.lookahead(X, lambda Z: self.grid.weights(Z) @ values, self.discount).argmax(axis=1)
        return int(best[0]) if one else best

    def control(self, x: Any, time: int = 0) -> Array:
        """Control of the best action, for ``rollout(x, policy=...)`` of simulators.

        Parameters
        ----------
        x : array (n,) or (rows, n)
            State, or several.
        time : int, default=0
            Not used: the policy is the same at all times.

        Returns
        -------
        array (m,) or (rows, m)
        """
        return np.asarray(self.system.actions[self.action(x)])

    @styled
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the values of a system with two entries of the state, with lines where the action changes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib Axes
        """
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


@in_catalogue("control", "G3", certificate="loss of the policy")
class discretize:  # noqa: N801 - called like a function, and holds what it made
    r"""Decision process of a continuous system on the points of a grid.

    A step from a grid point ends between others; its probability is split among the corners of the cell around it by
    multilinear interpolation, so that values between the points are those of the interpolated function,

    .. math:: V(x) = \max_a \Big\{ R(x, a) + \gamma \sum_i w_i(f(x, a)) \, V(x_i) \Big\} .

    Parameters
    ----------
    system : Simulator or callable
        Simulator, or a function ``step(X, U)`` that gives the next states of all rows.
    low, high : arrays (n,)
        Corners of the box that the grid covers; states that leave it are put back on its edge.
    shape : sequence of n int
        Number of points along each axis, at least 2.
    actions : array (A, m), optional
        Controls to choose from; by default those of the simulator.
    discount : float, default=0.99
        Discount; 1 for total rewards of systems that end.
    periodic : sequence of int, default=()
        Axes that close to a circle, such as angles from -pi to pi.
    reward, ended : callables, optional
        ``reward(X, U, X_next)`` and ``ended(X)`` of all rows; by default those of the simulator.

    Attributes
    ----------
    mdp : MDP
        The process; states are the numbers of the grid points in C order, actions the rows of `actions`.
    grid : Grid
        The points.

    Examples
    --------
    >>> from epicycle.control import MountainCar, discretize
    >>> car = MountainCar()
    >>> hill = discretize(car, [-1.2, -0.07], [0.5, 0.07], (35, 35), discount=1.0)
    >>> plan = hill.solve()
    >>> bool(car.rollout([-0.5, 0.0], policy=plan, n_steps=200).lengths < 200)  # it leaves the valley
    True
    """

    def __init__(
        self,
        system: Any,
        low: Any,
        high: Any,
        shape: Any,
        *,
        actions: Any = None,
        discount: float = 0.99,
        periodic: Any = (),
        reward: Any = None,
        ended: Any = None,
    ) -> None:
        check_parameter("discretize", "discount", discount, Real(0, 1))
        self.system = system_of(system, actions, reward, ended)
        corners = box_of(low, high)
        self.discount = float(discount)
        self.grid = Grid(*corners, *_checked_shape(shape, periodic, len(corners[0])))
        self.mdp = self._process(self.grid)

    def __repr__(self) -> str:
        return f"discretize({' x '.join(map(str, self.grid.shape))} points, {len(self.system.actions)} actions)"

    def solve(self, *, tol: float = 1e-6, check: bool = False, max_iter: int = 10_000) -> GridSolution:
        """Best policy on the grid.

        Parameters
        ----------
        tol : float, default=1e-6
            Loss of the policy on the grid, relative to the largest value, that is good enough.
        check : bool, default=False
            Whether to solve a grid with half the distances too, and to report the difference as `error`.
        max_iter : int, default=10000
            Largest number of iterations.

        Returns
        -------
        GridSolution
        """
        check_parameter("discretize.solve", "check", check, Boolean())
        solution = modified_policy_iteration(self.mdp, tol=tol, max_iter=max_iter)
        error = mean = None
        if check:
            grid = self.grid.finer()
            other = modified_policy_iteration(
                self._process(grid),
                tol=tol,
                max_iter=max_iter,
                initial_values=self.grid.weights(grid.points()) @ solution.values,
            )
            apart = np.abs(other.values[self.grid.coarse_places()] - solution.values)
            size = np.abs(other.values).max() or 1.0
            error, mean = float(apart.max() / size), float(apart.mean() / size)
        return GridSolution(self.system, self.grid, self.discount, solution, error, mean)

    def _process(self, grid: Grid) -> MDP:
        if grid.n_points > _MOST_POINTS:
            raise DataError(f"shape: {grid.n_points:,} points; expected at most {_MOST_POINTS:,}")
        X, A = grid.points(), len(self.system.actions)
        ends = self.system.ended(X)
        inside, n = np.flatnonzero(~ends), grid.n_points
        if not len(inside):
            raise DataError("ended: every point of the grid is an end; expected some that are not")
        matrices, rewards = [], np.empty((len(inside), A))
        for a in range(A):
            after, rewards[:, a], ended = self.system.follow(X[inside], a)
            W = grid.weights(after)
            keep = sp.dia_array(((~ended).astype(float)[None], [0]), shape=(len(inside), len(inside)))
            matrices.append(sp.csr_array(keep @ W))
        order = (np.arange(len(inside))[:, None] + len(inside) * np.arange(A)).ravel()  # state, then action
        P = sp.csr_array(sp.vstack(matrices, format="csr"))[order]
        P.eliminate_zeros()
        start = np.concatenate([[0], np.cumsum(np.where(ends, 0, A))]).astype(np.int64)
        mdp = MDP.__new__(MDP)
        labels = np.arange(n), np.arange(A)
        pair_action = np.tile(np.arange(A), len(inside))
        mdp._set(P, rewards.ravel(), start, pair_action, np.zeros(n), self.discount, None, *labels)
        return mdp


def _checked_shape(shape: Any, periodic: Any, d: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.shape != (d,) or sizes.dtype.kind not in "iu" or (sizes < 2).any() or d > _MOST_AXES:
        raise DataError(f"shape={shape!r:.60}: expected {d} whole numbers from 2 on, for at most {_MOST_AXES} axes")
    closed = {int(j) for j in np.atleast_1d(np.asarray(periodic, dtype=np.int64))}
    if not closed <= set(range(d)):
        raise DataError(f"periodic={periodic!r:.60}: expected numbers of axes from 0 to {d - 1}")
    return tuple(int(k) for k in sizes), tuple(j in closed for j in range(d))
