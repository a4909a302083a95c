"""Several environments side by side: what they show is one array, and ends of episodes are told from cuts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.control import MDP, MDPEnvironment
from epicycle.core._exceptions import DataError
from epicycle.rl._interaction import Interaction
from epicycle.rl.deep._spaces import Spaces, probe

Array = np.ndarray
#: Steps of an episode up to which its actions are kept, to play them again when learning goes on in a new process.
LONGEST_REPLAY = 200_000


@dataclass(frozen=True, slots=True)
class Step:
    """One step in each of n environments."""

    rewards: Array  # (n,)
    terminated: Array  # (n,) the episode ended: nothing is earned after it
    over: Array  # (n,) it ended or was cut off
    after: Array  # (n, ...) what was observed after the step, before a new episode began
    counts: Array | None = None  # (n,) whether this was a step at all; None where all were


class Worlds:
    """Environments that are stepped in turn; an episode that is over is followed by the next one.

    Episodes are numbered in the order in which they begin, and each begins with a seed of its own. The actions of the
    running ones are kept, so that they can be played again in another process: there learning goes on with the same
    bits, if the environments repeat themselves when they are seeded.

    Parameters
    ----------
    worlds : list of Interaction
        The environments.
    seed : int
        Seed of the whole.
    episode : int
        Number of the next episode.
    """

    def __init__(self, worlds: list[Interaction], seed: int, episode: int) -> None:
        self.worlds, self.seed, self.episode = worlds, seed, episode
        self.n, self.made = len(worlds), 0
        #: Rows (steps, return, length, discounted return, first value) of episodes that came to their end.
        self.finished: list[list[float]] = []
        self.observations: Array

    def spaces(self) -> Spaces:
        """Spaces of observations and actions; the same for all environments."""
        found = [probe(world) for world in self.worlds]
        for i, other in enumerate(found):
            if not found[0].same(other):
                raise DataError(f"env: number 0 has {found[0]}, number {i} has {other}; expected the same for all")
        return found[0]

    def start(
        self,
        spaces: Spaces,
        *,
        made: int,
        discount: float,
        episode_limit: int | None,
        value_of: Callable[[Array], Array],
        running: dict[str, Any] | None = None,
    ) -> bool:
        """Begin an episode in each environment, or play the running ones of a file again; whether that was possible."""
        self._spaces, self.made, self.discount, self.limit = spaces, made, discount, episode_limit
        self._value_of = value_of
        self.totals, self.discounted, self.factors = np.zeros(self.n), np.zeros(self.n), np.ones(self.n)
        self.lengths, self.first_values = np.zeros(self.n, dtype=np.int64), np.zeros(self.n)
        self.numbers = np.zeros(self.n, dtype=np.int64)  # of the running episodes
        self.actions: list[list[Any]] = [[] for _ in range(self.n)]
        self.observations = np.zeros((self.n, *spaces.shape), dtype=spaces.dtype)
        known = running is not None and len(running["numbers"]) == self.n
        again = [running is not None and known and self._play_again(i, running) for i in range(self.n)]
        new = [i for i in range(self.n) if not again[i]]
        for i in new:
            self.observations[i] = self._begin(i)
        if new:
            self.first_values[new] = value_of(self.observations[new])
        return running is None or all(again)

    def _play_again(self, i: int, running: dict[str, Any]) -> bool:
        """Play the running episode of a file; whether it came out as it was."""
        actions, next_episode = np.asarray(running["actions"][i]), self.episode
        if len(actions) != int(running["lengths"][i]):
            return False
        self.episode = int(running["numbers"][i])
        self.observations[i], over = self._begin(i), False
        self.episode = next_episode
        for action in actions:
            self.observations[i], _, _, over = self._one(i, action)
            if over:
                return False
        self.first_values[i] = running["first_values"][i]
        return bool(np.array_equal(self.observations[i], running["observations"][i]))

    def _begin(self, i: int) -> Array:
        world = self.worlds[i]
        world.episode = self.numbers[i] = self.episode
        self.episode += 1
        self.totals[i] = self.discounted[i] = 0.0
        self.factors[i], self.lengths[i] = 1.0, 0
        self.actions[i] = []
        return self._spaces.encode(world.reset())

    def _one(self, i: int, action: Any) -> tuple[Array, float, bool, bool]:
        """Act in one of them, and keep the sums of its episode."""
        observation, reward, terminated, truncated = self.worlds[i].step(action)
        self.totals[i] += reward
        self.discounted[i] += self.factors[i] * reward
        self.factors[i] *= self.discount
        self.lengths[i] += 1
        if self.lengths[i] <= LONGEST_REPLAY:
            self.actions[i].append(action)
        long = self.limit is not None and self.lengths[i] >= self.limit
        return self._spaces.encode(observation), reward, terminated, terminated or truncated or long

    def step(self, actions: Array) -> Step:
        """Act in each of them."""
        after = np.empty_like(self.observations)
        rewards, terminated, over = np.zeros(self.n), np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=bool)
        for i in range(self.n):
            after[i], rewards[i], terminated[i], over[i] = self._one(i, actions[i])
            self.made += 1
        self.observations = after
        if over.any():
            self.observations = after.copy()
            for i in np.flatnonzero(over).tolist():
                self._finish(i)
                self.observations[i] = self._begin(i)
                self.first_values[i] = self._value_of(self.observations[i : i + 1])[0]
        return Step(rewards, terminated, over, after)

    def _finish(self, i: int) -> None:
        sums = self.totals[i], self.lengths[i], self.discounted[i], self.first_values[i]
        self.finished.append([self.made - self.n + i + 1, *(float(s) for s in sums)])

    # ------------------------------------------------------------------------------------------------ files

    @property
    def exact(self) -> bool:
        """Whether learning can go on from a file to the same bits."""
        return bool((self.lengths <= LONGEST_REPLAY).all())

    def state(self) -> dict[str, Any]:
        """The running episodes, as a file keeps them."""
        return {
            "numbers": self.numbers,
            "lengths": self.lengths,
            "actions": [np.asarray(given) for given in self.actions],
            "first_values": self.first_values,
            "observations": self.observations,
        }


def worlds_of(env: Any, n_envs: int, seed: int, episode: int) -> Worlds:
    """The environments of an argument `env`: one of them, of which copies are made, a list, or Gymnasium's vector."""
    if hasattr(env, "num_envs") and hasattr(env, "single_action_space"):
        from epicycle.rl.deep._vector_worlds import VectorWorlds, sub_environments

        inner = sub_environments(env)
        return VectorWorlds(env, seed, episode) if inner is None else worlds_of(inner, 1, seed, episode)
    if isinstance(env, list | tuple):
        if not env or len({id(one) for one in env}) != len(env):
            raise DataError(f"env: got a list of {len(env)} environments; expected at least one, and no one twice")
        given = list(env)
    else:
        given = [MDPEnvironment(env) if isinstance(env, MDP) else env]
        try:
            given += [copy.deepcopy(given[0]) for _ in range(n_envs - 1)]
        except Exception as error:
            raise DataError(
                f"env: could not be copied for n_envs={n_envs} ({type(error).__name__}: {error}); expected a list of "
                "environments"
            ) from error
    return Worlds([Interaction(one, seed) for one in given], seed, episode)
