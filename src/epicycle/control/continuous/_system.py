"""A system with continuous states and finitely many actions as planners see it: steps, rewards, ends of many rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.control.simulators._simulator import Simulator
from epicycle.core._exceptions import DataError, ParameterTypeError

Array = np.ndarray


@dataclass(frozen=True)
class System:
    """Functions of all rows at once; `actions` has one control in each row."""

    step_of: Callable[[Array, Array], Any]
    reward_of: Callable[[Array, Array, Array], Any]
    ended_of: Callable[[Array], Any] | None
    actions: Array

    def follow(self, X: Array, action: int) -> tuple[Array, Array, Array]:
        """States, rewards and ends after one action in every row; each is checked."""
        U = np.repeat(self.actions[action : action + 1], len(X), axis=0)
        after = np.asarray(self.step_of(X, U), dtype=np.float64)
        if after.shape != X.shape or not np.isfinite(after).all():
            raise DataError(f"system: step gave shape {after.shape}; expected finite numbers of shape {X.shape}")
        rewards = np.asarray(self.reward_of(X, U, after), dtype=np.float64)
        if rewards.shape != (len(X),) or not np.isfinite(rewards).all():
            raise DataError(f"reward: got shape {rewards.shape}; expected {len(X)} finite numbers")
        return after, rewards, self.ended(after)

    def ended(self, X: Array) -> Array:
        """Whether an episode ends in a state."""
        if self.ended_of is None:
            return np.zeros(len(X), dtype=bool)
        out = np.asarray(self.ended_of(X))
        if out.shape != (len(X),):
            raise DataError(f"ended: got shape {out.shape}; expected ({len(X)},)")
        return out.astype(bool)

    def lookahead(self, X: Array, value: Callable[[Array], Array], discount: float) -> Array:
        """Value of each action in each row: its reward and the discounted value of where it leads."""
        q = np.empty((len(X), len(self.actions)))
        for a in range(len(self.actions)):
            after, rewards, ended = self.follow(X, a)
            q[:, a] = rewards
            if not ended.all():
                q[~ended, a] += discount * value(after[~ended])
        return q


def system_of(system: Any, actions: Any, reward: Any, ended: Any) -> System:
    """The system that a user gives, as one object."""
    simulated = isinstance(system, Simulator)
    step = system.step if simulated else system
    if not callable(step):
        raise ParameterTypeError(
            f"system={system!r:.60}: expected a simulator or a function step(X, U) of all states and controls"
        )
    reward = system.reward if reward is None and simulated else reward
    if not callable(reward):
        raise ParameterTypeError(f"reward={reward!r:.60}: expected a function reward(X, U, X_next) of all rows")
    ended = system.ended if ended is None and simulated else ended
    if ended is not None and not callable(ended):
        raise ParameterTypeError(f"ended={ended!r:.60}: expected a function ended(X) of all rows, or None")
    given = system.actions if actions is None and simulated else actions
    if given is None:
        raise DataError("actions=None; expected the controls to choose from, one in each row")
    U = np.asarray(given, dtype=np.float64)
    U = U[:, None] if U.ndim == 1 else U
    if U.ndim != 2 or not len(U) or not np.isfinite(U).all():
        raise DataError(f"actions: got shape {np.shape(given)}; expected finite controls, one in each row")
    return System(step, reward, ended, U)


def box_of(low: Any, high: Any) -> tuple[Array, Array]:
    """Corners of a box."""
    a, b = (np.atleast_1d(np.asarray(corner, dtype=np.float64)) for corner in (low, high))
    if a.ndim != 1 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all() and (a < b).all()):
        raise DataError(f"low={low!r:.60}, high={high!r:.60}: expected two corners of a box, low below high")
    return a, b


def states_of(name: str, given: Any, width: int) -> tuple[Array, bool]:
    """Rows of states, and whether a single one was given."""
    X = np.asarray(given, dtype=np.float64)
    one = X.ndim == 1
    X = np.atleast_2d(X)
    if X.ndim != 2 or X.shape[1] != width or not np.isfinite(X).all():
        raise DataError(f"{name}: got shape {np.shape(given)}; expected finite numbers ({width},) or (rows, {width})")
    return X, one
