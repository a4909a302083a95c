"""`discretize`: a system with continuous states as a decision process on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.continuous._grid import Grid
from epicycle.control.continuous._grid_solution import GridSolution
from epicycle.control.continuous._system import box_of, system_of
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._policy_iteration import modified_policy_iteration
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Real, check_parameter
from epicycle.core.estimator import in_catalogue

Array = np.ndarray
_MOST_POINTS, _MOST_AXES = 5_000_000, 6


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
