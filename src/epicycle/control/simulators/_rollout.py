"""`Rollout`: trajectories of a system with their controls and rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._exceptions import DataError

Array = np.ndarray


@dataclass(frozen=True)
class Rollout:
    """Trajectories of a simulator; with one starting state the first axis is missing everywhere.

    Attributes
    ----------
    states : array (rows, T + 1, n)
        States. A trajectory that has ended stays where it was.
    controls : array (rows, T, m)
        Controls as they were applied, within their limits.
    rewards : array (rows, T)
        Rewards; zero after the end.
    lengths : array (rows,)
        Number of steps that were made before the end, at most T.
    """

    states: Array = field(repr=False)
    controls: Array = field(repr=False)
    rewards: Array = field(repr=False)
    lengths: Any

    @property
    def total_reward(self) -> Any:
        """Sum of the rewards of each trajectory."""
        return self.rewards.sum(axis=-1)

    def transitions(self) -> tuple[Array, Array, Array]:
        """States, controls and next states of all steps that were made, one row each.

        Returns
        -------
        tuple of arrays (steps, n), (steps, m), (steps, n)
        """
        X = self.states.reshape(-1, *self.states.shape[-2:])
        U = self.controls.reshape(-1, *self.controls.shape[-2:])
        made = np.arange(U.shape[1]) < np.reshape(self.lengths, (-1, 1))
        return X[:, :-1][made], U[made], X[:, 1:][made]


def follow(
    step: Callable[[Array, Array], Array],
    policy: Any,
    X: Array,
    steps: int,
    n_controls: int | None = None,
    limits: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """States (rows, T + 1, n) and controls (rows, T, m) of all rows under a policy, one step after the other.

    The number of controls is that of the first ones, where it is not given.
    """
    choose = _by_time(policy)
    states = np.empty((len(X), steps + 1, X.shape[1]))
    applied = np.zeros((len(X), steps, n_controls or 0))
    states[:, 0] = X
    for t in range(steps):
        now = states[:, t]
        u = np.asarray(choose(now.copy(), t), dtype=np.float64).reshape(len(X), n_controls or -1)
        if n_controls is None:
            n_controls = u.shape[1]
            applied = np.zeros((len(X), steps, n_controls))
        applied[:, t] = u if limits is None else np.clip(u, *limits)
        states[:, t + 1] = step(now, applied[:, t])
    return states, applied


def _by_time(policy: Any) -> Callable[[Array, int], Any]:
    """A policy as a function of states and time."""
    if hasattr(policy, "control"):
        return lambda X, t: policy.control(X, time=t)
    if callable(policy):
        return lambda X, _: policy(X)
    raise DataError(f"policy: got {type(policy).__name__}; expected gain and offset, a method control, or a function")
