"""`Episodes`: steps that were recorded while something acted, for learners and estimates that do not act themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Integer, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.rl._interaction import Interaction

Array = np.ndarray


@dataclass(frozen=True)
class Episodes:
    """Steps of recorded episodes, one episode after the other.

    An episode ends with a step that is marked as `terminated` or `truncated`; the last step of all is marked as
    truncated where it has no mark.

    Parameters
    ----------
    observations, next_observations : arrays (n, ...)
        States before and after each step; numbers of states, or vectors.
    actions : array (n,) or (n, m)
        What was done: numbers of actions, or controls.
    rewards : array (n,)
        Rewards.
    terminated : array (n,) of bool
        Whether the episode ended with the step.
    truncated : array (n,) of bool, optional
        Whether it was cut off there; by default nowhere.
    probabilities : array (n,), optional
        With which the policy that acted took its actions.

    Examples
    --------
    >>> from epicycle.rl import Episodes
    >>> steps = Episodes([0, 1, 0], [1, 1, 0], [0.0, 1.0, 2.0], [1, 2, 2], [False, True, True])
    >>> steps
    Episodes(2 episodes, 3 steps)
    >>> steps.returns(0.5).tolist()
    [0.5, 2.0]
    """

    observations: Array
    actions: Array
    rewards: Array
    next_observations: Array
    terminated: Array
    truncated: Array = None  # type: ignore[assignment]  # an array, once the object is made
    probabilities: Array | None = field(default=None)

    def __post_init__(self) -> None:
        put = object.__setattr__
        try:
            rewards = np.asarray(self.rewards, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("rewards: expected numbers (n,)") from None
        if rewards.ndim != 1 or not len(rewards) or not np.isfinite(rewards).all():
            raise DataError(f"rewards: got shape {rewards.shape}; expected finite numbers (n,), at least one")
        n = len(rewards)
        put(self, "rewards", rewards)
        for name in ("observations", "actions", "next_observations"):
            given = np.asarray(getattr(self, name))
            if given.ndim == 0 or len(given) != n or given.dtype.kind not in "iufb" or not np.isfinite(given).all():
                raise DataError(f"{name}: got shape {given.shape}; expected finite numbers in {n} rows, as in rewards")
            put(self, name, given)
        if self.observations.shape != self.next_observations.shape:
            shapes = self.observations.shape, self.next_observations.shape
            raise DataError(f"next_observations: got shape {shapes[1]}; expected {shapes[0]}, as in observations")
        for name in ("terminated", "truncated"):
            given = getattr(self, name)
            flags = np.zeros(n, dtype=bool) if given is None else np.array(given, dtype=bool)
            if flags.shape != (n,):
                raise DataError(f"{name}: got shape {flags.shape}; expected ({n},)")
            put(self, name, flags)
        self.truncated[-1] |= not self.terminated[-1]
        if self.probabilities is not None:
            p = np.asarray(self.probabilities, dtype=np.float64)
            if p.shape != (n,) or not ((p > 0) & (p <= 1)).all():
                raise DataError(
                    f"probabilities: expected {n} numbers above 0 and up to 1, of the actions that were taken"
                )
            put(self, "probabilities", p)

    def __repr__(self) -> str:
        return f"Episodes({self.n_episodes} episodes, {len(self)} steps)"

    def __len__(self) -> int:
        return len(self.rewards)

    @cached_property
    def starts(self) -> Array:
        """Number of the first step of each episode, and of the step after the last (n_episodes + 1,)."""
        return np.append(0, np.flatnonzero(self.terminated | self.truncated) + 1)

    @property
    def n_episodes(self) -> int:
        """Number of episodes."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Array:
        """Steps of each episode."""
        return np.diff(self.starts)

    @property
    def times(self) -> Array:
        """Steps that were made in its episode before each step (n,)."""
        return np.asarray(np.arange(len(self)) - np.repeat(self.starts[:-1], self.lengths))

    def returns(self, discount: float = 1.0) -> Array:
        """Discounted sum of the rewards of each episode.

        Parameters
        ----------
        discount : float, default=1
            Discount.

        Returns
        -------
        array (n_episodes,)
        """
        return np.asarray(np.add.reduceat(self.rewards * discount**self.times, self.starts[:-1]))


def record_episodes(
    policy: Any,
    env: Any,
    episodes: int = 100,
    *,
    seed: Seed = None,
    deterministic: bool = False,
    max_steps: int = 100_000,
) -> Episodes:
    """Let a policy act and keep what happened.

    Parameters
    ----------
    policy : array (S,) or (S, A), or agent
        Number of the action in each state, probabilities of the actions, or anything with ``act(observation)``.
    env : MDP or environment
        As agents take it.
    episodes : int, default=100
        Number of episodes.
    seed : int, optional
        Seed.
    deterministic : bool, default=False
        Whether an agent takes its best actions, or those of learning.
    max_steps : int, default=100000
        Steps after which an episode is cut off.

    Returns
    -------
    Episodes
        With the probabilities of the actions where they are known: for arrays, for agents with tables, and for agents
        that act deterministically.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import record_episodes
    >>> walk = MDPEnvironment(worlds.river_swim(), start=0, max_steps=20)
    >>> record_episodes(np.full((6, 2), 0.5), walk, 3, seed=0)
    Episodes(3 episodes, 60 steps)
    """
    owner = "record_episodes"
    check_parameter(owner, "episodes", episodes, Integer(minimum=1))
    check_parameter(owner, "deterministic", deterministic, Boolean())
    check_parameter(owner, "max_steps", max_steps, Integer(minimum=1))
    world = Interaction(env, seed_of(seed))
    choose = _chooser(policy, world, deterministic)
    rows: list[tuple[Any, ...]] = []
    for _ in range(episodes):
        observation, over, length = world.reset(), False, 0
        while not over:
            action, p = choose(observation)
            after, reward, terminated, truncated = world.step(action)
            length += 1
            truncated = not terminated and (truncated or length >= max_steps)
            rows.append((observation, action, reward, after, terminated, truncated, p))
            observation, over = after, terminated or truncated
    x, a, r, after, ends, cuts, p = (np.array(column) for column in zip(*rows, strict=True))
    return Episodes(x, a, r, after, ends, cuts, p if np.isfinite(p).all() else None)


def _chooser(policy: Any, world: Interaction, deterministic: bool) -> Any:
    """A function of an observation: the action, and its probability or NaN."""
    if callable(getattr(policy, "act", None)):
        known = getattr(policy, "_probabilities", None)

        def by_agent(observation: Any) -> tuple[Any, float]:
            action = policy.act(observation, deterministic)
            if deterministic:
                return action, 1.0
            return action, float(known(observation)[action]) if known is not None else np.nan

        return by_agent
    table = policy_table(policy, world.n_states, world.n_actions)
    sums, rng = np.cumsum(table, axis=1), stream(world.seed, "policy")

    def by_table(observation: Any) -> tuple[Any, float]:
        action = min(int(np.searchsorted(sums[observation], rng.random(), side="right")), table.shape[1] - 1)
        return action, float(table[observation, action])

    return by_table


def policy_table(policy: Any, n_states: int | None, n_actions: int | None, name: str = "policy") -> Array:
    """Probabilities of actions (S, A) of a policy that is given by numbers of actions or by such probabilities."""
    if n_states is None or n_actions is None:
        raise DataError(f"{name}: an array, but states or actions are not numbered; expected an object with act")
    try:
        table = np.asarray(policy)
        table = table if table.ndim == 1 and table.dtype.kind in "iu" else table.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name}={policy!r:.60}: expected an array (S,) or (S, A), or an object with act") from None
    if table.shape == (n_states,) and table.dtype.kind in "iu":
        if not ((table >= 0) & (table < n_actions)).all():
            raise DataError(f"{name}: expected numbers of actions, from 0 to {n_actions - 1}")
        return np.asarray(np.eye(n_actions)[table])
    if table.shape != (n_states, n_actions):
        raise DataError(f"{name}: got shape {table.shape}; expected ({n_states},) or ({n_states}, {n_actions})")
    if not (np.isfinite(table).all() and (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-9)):
        raise DataError(f"{name}: expected probabilities, none below 0, that add up to 1 in each state")
    return table
