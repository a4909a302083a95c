"""The one place where agents meet environments: what these return is checked, what they raise is put into words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from epicycle.control import MDP, Environment, MDPEnvironment
from epicycle.core._exceptions import DataError, EpicycleError, ParameterTypeError
from epicycle.core._random import stream

Array = np.ndarray


class Interaction:
    """Episodes of an environment with Gymnasium's interface; a decision process becomes one.

    Every episode begins with a seed of its own, which depends on the seed of the whole and on the number of the
    episode: so learning can go on in a new process after any episode, with the same bits.

    Parameters
    ----------
    env : MDP or environment
        With ``reset``, ``step`` and, where it has them, ``observation_space`` and ``action_space``.
    seed : int
        Seed.
    episode : int
        Number of the next episode.
    """

    def __init__(self, env: Any, seed: int, episode: int = 0) -> None:
        self.env = MDPEnvironment(env) if isinstance(env, MDP) else env
        for name in ("reset", "step"):
            if not callable(getattr(self.env, name, None)):
                raise ParameterTypeError(
                    f"env={env!r:.80}: expected an MDP or an environment with Gymnasium's reset and step; it has no "
                    f"{name}"
                )
        self.seed, self.episode, self.steps = seed, episode, 0
        self.n_states = _size(self.env, "observation_space")
        self.n_actions = _size(self.env, "action_space")
        spaces = (getattr(self.env, name, None) for name in ("observation_space", "action_space"))
        self._first_state, self._first_action = (int(getattr(space, "start", 0)) for space in spaces)
        self._shape: tuple[int, ...] | None = None
        #: Called with a state and a mask of its actions, where the environment tells which are available.
        self.on_mask: Callable[[int, Array], None] | None = None

    @property
    def discrete(self) -> bool:
        """Whether states are numbers."""
        return self.n_states is not None

    def reset(self) -> Any:
        """Begin an episode."""
        seed = int(stream(self.seed, "environment", self.episode).integers(2**31))
        got = self._call("reset", lambda: self.env.reset(seed=seed))
        self.episode += 1
        if not isinstance(got, tuple) or len(got) != 2:
            raise DataError(f"env: reset returned {got!r:.80}; expected an observation and a dict of information")
        return self._observed("reset", *got)

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        """Act: observation, reward, whether the episode ended, whether it was cut off."""
        if self.n_actions is not None:
            action = int(action) + self._first_action
        got = self._call("step", lambda: self.env.step(action))
        self.steps += 1
        if not isinstance(got, tuple) or len(got) != 5:
            raise DataError(
                f"env: step returned {got!r:.80}; expected observation, reward, terminated, truncated, information"
            )
        observation, reward, terminated, truncated, info = got
        try:
            r = float(reward)
        except (TypeError, ValueError):
            r = math.nan
        if not math.isfinite(r):
            raise DataError(
                f"env: the reward of step {self.steps} (episode {self.episode}) is {reward!r:.40}; expected a finite "
                "number"
            )
        return self._observed("step", observation, {} if terminated else info), r, bool(terminated), bool(truncated)

    def _call(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except EpicycleError:
            raise
        except Exception as error:
            raise DataError(
                f"env: {what} raised {type(error).__name__}: {error} (episode {self.episode}, after {self.steps} steps)"
            ) from error

    def _observed(self, what: str, observation: Any, info: Any) -> Any:
        if self.n_states is not None:
            try:
                state = int(observation) - self._first_state
            except (TypeError, ValueError):
                state = -1
            if not 0 <= state < self.n_states or state + self._first_state != observation:
                last = self._first_state + self.n_states - 1
                raise DataError(
                    f"env: {what} returned the observation {observation!r:.60}; expected an integer from "
                    f"{self._first_state} to {last}"
                )
            mask = info.get("action_mask") if isinstance(info, dict) else None
            if mask is not None and self.on_mask is not None:
                self.on_mask(state, np.asarray(mask) > 0)
            return state
        try:
            x = np.asarray(observation, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"env: {what} returned the observation {observation!r:.60}; expected numbers") from None
        if self._shape is None:
            self._shape = x.shape
        if x.shape != self._shape:
            raise DataError(f"env: {what} returned an observation of shape {x.shape}; expected {self._shape}")
        if not np.isfinite(x).all():
            raise DataError(f"env: {what} returned the observation {x.tolist()!r:.80}; expected finite numbers")
        return x


def _size(env: Any, name: str) -> int | None:
    """Number of elements of a discrete space, None for others."""
    if isinstance(env, Environment) and name == "action_space" and not hasattr(env, name):
        return None if env.simulator.actions is None else len(env.simulator.actions)
    n = getattr(getattr(env, name, None), "n", None)
    return int(n) if isinstance(n, int | np.integer) else None
