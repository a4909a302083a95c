"""Decision processes to try planners on: grids, a gambler, a car rental, a tiger, and others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from scipy.stats import poisson

from epicycle.control.mdp._mdp import MDP
from epicycle.control.pomdp._worlds import WORLD_DOCS, machine_maintenance, noisy_grid, random_pomdp, tiger
from epicycle.core._checks import count, number
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._random import Seed, stream

__all__ = [
    "car_rental",
    "cliff_walk",
    "gambler",
    "grid_world",
    "inventory",
    "machine_maintenance",
    "noisy_grid",
    "random_mdp",
    "random_pomdp",
    "random_walk",
    "river_swim",
    "russell_norvig_grid",
    "tiger",
]

MOVES = {"N": (-1, 0), "E": (0, 1), "S": (1, 0), "W": (0, -1)}
_TURNS = {"N": "EW", "E": "SN", "S": "WE", "W": "NS"}  # to the right and to the left


@documented(WORLD_DOCS)
def grid_world(
    text: str,
    *,
    step_reward: float = -0.02,
    rewards: Mapping[str, float] | None = None,
    slip: float = 0.2,
    discount: float = 0.99,
) -> MDP:
    r"""Grid drawn as text: the four directions are actions, and now and then the step goes aside.

    Parameters
    ----------
    text : str
        One line for each row: ``#`` a wall, ``.`` or a space a free cell, ``+`` and ``-`` cells that end with a reward
        of 1 and -1, other characters as `rewards` names them.
    step_reward : float, default=-0.02
        Reward of a free cell.
    rewards : mapping, optional
        Rewards of further characters; the process ends there.
    slip : float, default=0.2
        Probability of going to the right or to the left of the chosen direction, half of it each. A step into a wall
        or over the edge stays.

    Returns
    -------
    MDP
        States are (row, column), actions N, E, S, W.

    Examples
    --------
    >>> from epicycle.control import value_iteration, worlds
    >>> mdp = worlds.grid_world("..+\n.#-\n...")
    >>> mdp.n_states
    8
    >>> value_iteration(mdp).policy[0]
    np.str_('E')
    """
    slip, step_reward = number("slip", slip, low=0, high=1), number("step_reward", step_reward)
    final = {"+": 1.0, "-": -1.0, **(rewards or {})}
    lines = text.strip("\n").split("\n")
    cells = {(i, j): c for i, line in enumerate(lines) for j, c in enumerate(line) if c != "#"}
    unknown = sorted(set(cells.values()) - set(final) - {".", " "})
    if unknown or not cells:
        raise DataError(f"text: got cells {unknown}; expected '#', '.', ' ' or one of {sorted(final)}")
    place = {cell: i for i, cell in enumerate(cells)}
    R = np.array([final.get(c, step_reward) for c in cells.values()])

    def moved(cell: tuple[int, int], direction: str) -> int:
        i, j = MOVES[direction]
        return place.get((cell[0] + i, cell[1] + j), place[cell])

    matrices = []
    for direction in MOVES:
        P = sp.lil_array((len(cells), len(cells)))
        for cell, s in place.items():
            for way, p in zip(direction + _TURNS[direction], (1 - slip, slip / 2, slip / 2), strict=True):
                P[s, moved(cell, way)] += p
        matrices.append(sp.csr_array(P))
    ends = np.array([c in final for c in cells.values()])
    return MDP(matrices, R, discount, terminal=ends, states=list(cells), actions=list(MOVES))


@documented(WORLD_DOCS)
def russell_norvig_grid(discount: float = 0.99, step_reward: float = -0.02) -> MDP:
    """Grid of 4 x 3 cells of the textbooks: +1 in one corner, -1 below it, a wall in the middle.

    Parameters
    ----------
    step_reward : float, default=-0.02
        Reward of the other cells.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> solution = policy_iteration(worlds.russell_norvig_grid())
    >>> solution.values.round(2).tolist()
    [0.86, 0.9, 0.93, 1.0, 0.82, 0.69, -1.0, 0.78, 0.75, 0.71, 0.49]
    """
    return grid_world("...+\n.#.-\n....", step_reward=step_reward, discount=discount)


def cliff_walk(rows: int = 4, columns: int = 12) -> MDP:
    """Walk along a cliff to the other end of its edge: each step costs 1, a fall 100 and back to the start.

    Parameters
    ----------
    rows, columns : int
        Size of the grid; the cliff is the last row between its two corners.

    Returns
    -------
    MDP
        Total reward, steps go where they should.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> walk = worlds.cliff_walk()
    >>> float(policy_iteration(walk).values[walk.states.tolist().index((3, 0))])
    -13.0
    """
    rows, columns = count("rows", rows, low=2), count("columns", columns, low=3)
    start, goal = (rows - 1, 0), (rows - 1, columns - 1)

    def step(cell: tuple[int, int], direction: str) -> list[tuple[float, tuple[int, int], float]]:
        i, j = MOVES[direction]
        after = min(max(cell[0] + i, 0), rows - 1), min(max(cell[1] + j, 0), columns - 1)
        fell = after[0] == rows - 1 and 0 < after[1] < columns - 1
        return [(1.0, start, -100.0)] if fell else [(1.0, after, -1.0)]

    cells = [(i, j) for i in range(rows) for j in range(columns) if i < rows - 1 or j in (0, columns - 1)]
    return MDP.from_function(step, cells, lambda c: [] if c == goal else list(MOVES), discount=1.0)


def gambler(goal: int = 100, p_heads: float = 0.4) -> MDP:
    """Gambler who stakes a part of the capital on heads until nothing is left or the goal is reached.

    Parameters
    ----------
    goal : int, default=100
        Capital to reach, which is worth 1.
    p_heads : float, default=0.4
        Probability of heads.

    Returns
    -------
    MDP
        States are capitals, actions are stakes, values the probability of success.

    Examples
    --------
    >>> from epicycle.control import value_iteration, worlds
    >>> float(value_iteration(worlds.gambler()).values[50].round(6))
    0.4
    """
    goal, p = count("goal", goal, low=2), number("p_heads", p_heads, low=0, high=1)

    def step(capital: int, stake: int) -> list[tuple[float, int, float]]:
        return [(p, capital + stake, float(capital + stake == goal)), (1 - p, capital - stake, 0.0)]

    stakes = lambda c: range(1, min(c, goal - c) + 1)  # noqa: E731
    return MDP.from_function(step, range(goal + 1), stakes, discount=1.0)


@documented(WORLD_DOCS)
def car_rental(
    max_cars: int = 20,
    max_moved: int = 5,
    *,
    requests: tuple[float, float] = (3.0, 4.0),
    returns: tuple[float, float] = (3.0, 2.0),
    rent: float = 10.0,
    cost: float = 2.0,
    discount: float = 0.9,
) -> MDP:
    """Car rental with two places: cars are moved overnight, requests and returns are Poisson.

    Parameters
    ----------
    max_cars : int, default=20
        Room at each place; more cars are sent back to the owner.
    max_moved : int, default=5
        Most cars that are moved in a night.
    requests, returns : pairs of float
        Means of a day at the two places.
    rent, cost : float
        Reward of a rented car, cost of a moved one.

    Returns
    -------
    MDP
        States are the cars at the two places in the evening, actions the cars moved from the first to the second.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> rental = worlds.car_rental(max_cars=5, max_moved=2)
    >>> rental.n_states
    36
    """
    n, moved = count("max_cars", max_cars, low=1), count("max_moved", max_moved)

    def day(asked: float, back: float) -> tuple[np.ndarray, np.ndarray]:
        """Cars in the evening given those in the morning, and the expected number that are rented."""
        P, rented = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
        returned = poisson.pmf(np.arange(n + 1), back)
        for cars in range(n + 1):
            out = poisson.pmf(np.arange(cars + 1), asked)
            out[-1] = poisson.sf(cars - 1, asked)
            rented[cars] = out @ np.arange(cars + 1)
            for k, p in enumerate(out):
                left = cars - k
                P[cars, left:n] += p * returned[: n - left]
                P[cars, n] += p * poisson.sf(n - left - 1, back)
        return P, rented

    (P1, rented1), (P2, rented2) = day(requests[0], returns[0]), day(requests[1], returns[1])
    after = np.kron(P1, P2)
    evening = [(a, b) for a in range(n + 1) for b in range(n + 1)]
    matrices, R = [], np.zeros((len(evening), 2 * moved + 1))
    for number_moved in range(-moved, moved + 1):
        P = np.zeros((len(evening), len(evening)))
        for s, (a, b) in enumerate(evening):
            if -b <= number_moved <= a:
                morning = min(a - number_moved, n), min(b + number_moved, n)
                P[s] = after[morning[0] * (n + 1) + morning[1]]
                income = rent * (rented1[morning[0]] + rented2[morning[1]])
                R[s, number_moved + moved] = income - cost * abs(number_moved)
        matrices.append(P)
    return MDP(matrices, R, discount, states=evening, actions=list(range(-moved, moved + 1)))


@documented(WORLD_DOCS)
def inventory(
    capacity: int = 50,
    *,
    demand: float = 10.0,
    price: float = 8.0,
    cost: float = 4.0,
    order_cost: float = 16.0,
    holding_cost: float = 0.5,
    discount: float = 0.97,
) -> MDP:
    """Stock that is filled up overnight at a fixed cost for each order, with Poisson demand by day.

    Parameters
    ----------
    capacity : int, default=50
        Largest stock.
    demand : float, default=10
        Mean demand of a day; what is not in stock is lost.
    price, cost : float
        Price of a sold piece, cost of an ordered one.
    order_cost, holding_cost : float
        Cost of an order, and of keeping a piece for a night.

    Returns
    -------
    MDP
        States are stocks, actions the pieces ordered. The best policy fills up to one level below another (s, S).

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> stock = worlds.inventory(20, demand=5.0)
    >>> int(policy_iteration(stock).policy[20])
    0
    """
    n = count("capacity", capacity, low=1)
    asked = poisson.pmf(np.arange(n + 1), demand)

    def step(stock: int, order: int) -> list[tuple[float, int, float]]:
        full = stock + order
        paid = cost * order + order_cost * (order > 0) + holding_cost * stock
        sold = [(float(asked[d]), full - d, price * d - paid) for d in range(full)]
        return [*sold, (float(poisson.sf(full - 1, demand)), 0, price * full - paid)]

    return MDP.from_function(step, range(n + 1), lambda s: range(n - s + 1), discount=discount)


@documented(WORLD_DOCS)
def river_swim(n_states: int = 6, *, discount: float = 0.95) -> MDP:
    """River with a small reward at its mouth and a large one at its spring, against the current (Strehl and Littman).

    Drifting always succeeds. A stroke up the river gains a place with probability 0.3, at the spring it stays there
    with 0.3, and it is carried back with probability 0.1, 0.7 at the spring.

    Parameters
    ----------
    n_states : int, default=6
        Places along the river.

    Returns
    -------
    MDP
        Action 0 drifts, action 1 swims; 0.005 for drifting at the mouth, 1 for swimming at the spring.

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> policy_iteration(worlds.river_swim()).policy.tolist()
    [1, 1, 1, 1, 1, 1]
    """
    n = count("n_states", n_states, low=3)
    P, R = np.zeros((n, 2, n)), np.zeros((n, 2))
    P[np.arange(n), 0, np.maximum(np.arange(n) - 1, 0)] = 1.0
    P[0, 1, :2] = 0.7, 0.3
    for s in range(1, n - 1):
        P[s, 1, s - 1 : s + 2] = 0.1, 0.6, 0.3
    P[n - 1, 1, n - 2 :] = 0.7, 0.3
    R[0, 0], R[n - 1, 1] = 0.005, 1.0
    return MDP(P, R, discount)


def random_walk(n_states: int = 5, *, discount: float = 1.0) -> MDP:
    """Walk on a line by the toss of a coin, until it ends on the left with 0 or on the right with 1.

    Parameters
    ----------
    n_states : int, default=5
        Places between the two ends.
    discount : float, default=1
        Discount.

    Returns
    -------
    MDP
        States 0 and n_states + 1 are the ends; there is one action. Values of place i are i / (n_states + 1).

    Examples
    --------
    >>> from epicycle.control import policy_iteration, worlds
    >>> policy_iteration(worlds.random_walk(4)).values.round(3).tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    n = count("n_states", n_states, low=1)
    P, R = np.zeros((n + 2, 1, n + 2)), np.zeros(n + 2)
    inside = np.arange(1, n + 1)
    P[inside, 0, inside - 1] = P[inside, 0, inside + 1] = 0.5
    R[n + 1] = 1.0
    return MDP(P, R, discount, terminal=[0, n + 1])


@documented(WORLD_DOCS)
def random_mdp(
    n_states: int, n_actions: int, *, n_successors: int = 10, discount: float = 0.95, random_state: Seed = None
) -> MDP:
    """Random process (Garnet): each action leads to a few states drawn at random.

    Parameters
    ----------
    n_states, n_actions : int
        Sizes.
    n_successors : int, default=10
        Number of draws of states that follow an action.

    Returns
    -------
    MDP
        Rewards are standard normal for each state and action.

    Examples
    --------
    >>> from epicycle.control import worlds
    >>> worlds.random_mdp(100, 3, random_state=0)
    MDP(100 states, 3 actions, 0 terminal, discounted, discount=0.95)
    """
    n, m = count("n_states", n_states, low=1), count("n_actions", n_actions, low=1)
    b = count("n_successors", n_successors, low=1)
    rng = stream(random_state, "garnet")
    matrices = []
    for _ in range(m):
        weight = rng.exponential(size=(n, b))
        data = (weight / weight.sum(axis=1, keepdims=True)).ravel()
        successors = rng.integers(n, size=n * b, dtype=np.int32)
        matrices.append(sp.csr_array((data, successors, np.arange(0, n * b + 1, b, dtype=np.int32)), shape=(n, n)))
    return MDP(matrices, rng.standard_normal((n, m)), discount)
