"""Simulators one step at a time, with the methods of Gymnasium, and as its environments where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.control.simulators._simulator import Simulator
from epicycle.core._checks import count, optional_import
from epicycle.core._exceptions import DataError
from epicycle.core._random import stream

Array = np.ndarray


class Environment:
    """Episodes of a simulator with the interface of Gymnasium.

    Parameters
    ----------
    simulator : Simulator
        The system. Where it has `actions`, an action is the number of one of them, otherwise a control.
    max_steps : int, optional
        Steps after which an episode is cut; by default `max_steps` of the simulator.

    Attributes
    ----------
    state : array (n,)
        Present state.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> environment = CartPole().environment()
    >>> state, info = environment.reset(seed=0)
    >>> state, reward, terminated, truncated, info = environment.step(1)
    >>> reward, terminated, truncated
    (1.0, False, False)
    """

    def __init__(self, simulator: Simulator, *, max_steps: int | None = None) -> None:
        self.simulator = simulator
        self.max_steps = simulator.max_steps if max_steps is None else count("max_steps", max_steps, low=1)
        self.state: Array | None = None
        self._rng = stream(None, "environment")
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed : int, optional
            Seed of this and of the following episodes; by default the stream goes on.
        options : dict, optional
            ``{"state": x}`` begins in a given state.

        Returns
        -------
        state, info : array (n,) and dict
        """
        if seed is not None:
            self._rng = stream(seed, "environment")
        given = (options or {}).get("state")
        self.state = self.simulator.reset(random_state=self._rng) if given is None else self.simulator._states(given)
        self._steps = 0
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Act once.

        Parameters
        ----------
        action : int or array (m,)
            Number of an action, or a control.

        Returns
        -------
        state, reward, terminated, truncated, info : array, float, bool, bool, dict
            An episode that is cut after `max_steps` is truncated, not terminated.
        """
        if self.state is None:
            raise DataError("step: no episode has begun; call reset first")
        u = np.clip(self._control(action), self.simulator.control_low, self.simulator.control_high)
        after = self.simulator.step(self.state, u)
        reward = self.simulator.reward(self.state, u, after)
        self.state = after
        self._steps += 1
        return after.copy(), float(reward), self.simulator.ended(after), self._steps >= self.max_steps, {"control": u}

    def _control(self, action: Any) -> Array:
        actions = self.simulator.actions
        if actions is None:
            return np.asarray(action, dtype=np.float64).reshape(self.simulator.n_controls)
        if not isinstance(action, int | np.integer | np.ndarray) or int(action) not in range(len(actions)):
            raise DataError(f"action={action!r}: expected an integer from 0 to {len(actions) - 1}")
        return np.asarray(actions[int(action)])

    def close(self) -> None:
        """End; there is nothing to give back."""


def gymnasium_environment(simulator: Simulator, *, max_steps: int | None = None) -> Any:
    """The environment as a subclass of ``gymnasium.Env``."""
    base: Any = optional_import("gymnasium", "an environment of Gymnasium").Env
    spaces = optional_import("gymnasium.spaces", "an environment of Gymnasium")

    class GymnasiumEnvironment(Environment, base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(simulator, max_steps=max_steps)
            self.observation_space = spaces.Box(-np.inf, np.inf, (simulator.n_states,), dtype=np.float64)
            if simulator.actions is None:
                self.action_space = spaces.Box(simulator.control_low, simulator.control_high, dtype=np.float64)
            else:
                self.action_space = spaces.Discrete(len(simulator.actions))

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            base.reset(self, seed=seed)  # seeds the generator that wrappers of Gymnasium expect
            return Environment.reset(self, seed=seed, options=options)

    return GymnasiumEnvironment()
