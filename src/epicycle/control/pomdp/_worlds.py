"""Partially observed processes to try planners on: a tiger, a machine that wears out, grids with noisy sensors."""

from __future__ import annotations

from itertools import product

import numpy as np

from epicycle.control.pomdp._pomdp import POMDP
from epicycle.core._checks import count, number
from epicycle.core._docs import documented
from epicycle.core._random import Seed, stream

#: Entries of docstrings that the processes share.
WORLD_DOCS = {
    "discount": "discount : float, default={default}\n    Discount.",
    "random_state": "random_state : int, Generator, RandomState or None\n    Seed.",
}
#: Ten by ten cells with walls, a reward in one corner and a penalty on the way.
_ROOMS = """\
..........
.##.####..
.#......#.
.#.####.#.
...#..#...
.#.#..#.#.
.#......#.
.##.-##...
....#..#..
.......#.+"""


@documented(WORLD_DOCS)
def tiger(discount: float = 0.95, *, accuracy: float = 0.85) -> POMDP:
    """Tiger behind one of two doors: listen for 1, open the right door for 10, or the wrong one for -100.

    Parameters
    ----------
    accuracy : float, default=0.85
        Probability that the tiger is heard where it is.

    Returns
    -------
    POMDP
        After a door was opened the tiger is put behind one of them again.

    Examples
    --------
    >>> from epicycle.control import incremental_pruning, worlds
    >>> tiger = worlds.tiger()
    >>> round(incremental_pruning(tiger).value(tiger.start), 2)
    19.37
    """
    p = number("accuracy", accuracy, low=0, high=1)
    again = np.full((2, 2), 0.5)
    return POMDP(
        [np.eye(2), again, again],
        [np.array([[p, 1 - p], [1 - p, p]]), again, again],
        [[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]],
        discount,
        states=["left", "right"],
        actions=["listen", "open left", "open right"],
        observation_labels=["hear left", "hear right"],
    )


@documented(WORLD_DOCS)
def machine_maintenance(n_levels: int = 4, *, discount: float = 0.95, wear: float = 0.15) -> POMDP:
    """Machine that wears out unseen: produce, inspect what it made, or replace it.

    Parameters
    ----------
    n_levels : int, default=4
        Levels of wear; the last makes nothing but defects.
    wear : float, default=0.15
        Probability that production brings the machine to the next level.

    Returns
    -------
    POMDP
        A good piece earns 1, a defective one costs 1; inspection costs 0.25 and tells good from defective for the
        piece that was made, a replacement costs 5 and a turn.

    Examples
    --------
    >>> from epicycle.control import heuristic_search_value_iteration, worlds
    >>> machine = worlds.machine_maintenance()
    >>> solution = heuristic_search_value_iteration(machine)
    >>> solution.action([1.0, 0.0, 0.0, 0.0]), solution.action([0.0, 0.0, 0.0, 1.0])
    ('produce', 'replace')
    """
    n, p = count("n_levels", n_levels, low=2), number("wear", wear, low=0, high=1)
    good = np.linspace(0.98, 0.0, n)
    worn = (1 - p) * np.eye(n) + p * np.eye(n, k=1)
    worn[-1, -1] = 1.0
    new = np.tile(np.eye(n)[0], (n, 1))
    nothing = np.tile([1.0, 0.0, 0.0], (n, 1))
    quality = np.column_stack([np.zeros(n), good, 1 - good])
    income = 2 * good - 1
    return POMDP(
        [worn, worn, new],
        [nothing, quality, nothing],
        np.column_stack([income, income - 0.25, np.full(n, -5.0)]),
        discount,
        start=np.eye(n)[0],
        states=[f"level {i}" for i in range(n)],
        actions=["produce", "inspect", "replace"],
        observation_labels=["nothing", "good", "defect"],
    )


def noisy_grid(
    text: str | None = None,
    *,
    error: float = 0.1,
    step_reward: float = -0.02,
    slip: float = 0.2,
    discount: float = 0.95,
) -> POMDP:
    r"""Grid whose cell is not seen: four sensors tell, with errors, on which sides there is a wall.

    Parameters
    ----------
    text : str, optional
        As for :func:`grid_world`; by default ten by ten cells with some walls.
    error : float, default=0.1
        Probability that a sensor is wrong, each on its own.
    step_reward, slip, discount : float
        As for :func:`grid_world`.

    Returns
    -------
    POMDP
        It starts in any of the cells that do not end it, and observations are the sides with a wall, such as "NE".

    Examples
    --------
    The grid of four by three cells:

    >>> from epicycle.control import worlds
    >>> worlds.noisy_grid("...+\n.#.-\n....")
    POMDP(11 states, 4 actions, 16 observations, discount=0.95)
    """
    from epicycle.control.worlds import MOVES, grid_world

    q = number("error", error, low=0, high=1)
    grid = grid_world(_ROOMS if text is None else text, step_reward=step_reward, slip=slip, discount=discount)
    cells, n = grid.states.tolist(), grid.n_states
    here = set(cells)
    wall = np.array([[(i + di, j + dj) not in here for di, dj in MOVES.values()] for i, j in cells])
    told = np.array(list(product([False, True], repeat=4)))
    O = np.where(wall[:, None] == told[None], 1 - q, q).prod(axis=2)  # noqa: E741
    P = np.zeros((n, 4, n))
    owner = grid._pair_state()
    P[owner, grid.pair_action_] = grid.transitions_.toarray()
    rewards = np.where(grid.is_terminal, grid.terminal_values_, step_reward)
    start = np.where(grid.is_terminal, 0.0, 1.0) / (~grid.is_terminal).sum()
    names = ["".join(d for d, w in zip(MOVES, row, strict=True) if w) or "free" for row in told]
    return POMDP(
        P,
        O,
        rewards,
        discount,
        start=start,
        terminal=grid.is_terminal,
        states=cells,
        actions=list(MOVES),
        observation_labels=names,
    )


@documented(WORLD_DOCS)
def random_pomdp(
    n_states: int, n_actions: int, n_observations: int, *, discount: float = 0.9, random_state: Seed = None
) -> POMDP:
    """Random process: all probabilities uniform on their simplex, rewards standard normal.

    Parameters
    ----------
    n_states, n_actions, n_observations : int
        Sizes.

    Examples
    --------
    >>> from epicycle.control import worlds
    >>> worlds.random_pomdp(5, 3, 2, random_state=0)
    POMDP(5 states, 3 actions, 2 observations, discount=0.9)
    """
    n, m = count("n_states", n_states, low=1), count("n_actions", n_actions, low=1)
    k = count("n_observations", n_observations, low=1)
    rng = stream(random_state, "pomdp")
    P, O = rng.dirichlet(np.ones(n), size=(n, m)), rng.dirichlet(np.ones(k), size=(n, m))  # noqa: E741
    return POMDP(P, O, rng.standard_normal((n, m)), discount, start=rng.dirichlet(np.ones(n)))
