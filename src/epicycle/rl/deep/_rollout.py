r"""Stretches of steps by the present policy, and the advantages of their actions.

    A_t = delta_t + (discount lambda) delta_{t+1} + ...,    delta_t = r_t + discount v(x_{t+1}) - v(x_t)

until the episode is over (Schulman et al. 2016). After an end v counts as 0, after a cut it is that of the last
observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Rollout:
    """T steps in each of n environments."""

    observations: Array  # (T, n, ...) as the networks take them
    actions: Array  # (T, n) or (T, n, m)
    rewards: Array  # (T, n)
    terminated: Array  # (T, n)
    over: Array  # (T, n)
    last: Array  # (n, ...) what is observed at the end
    cut: tuple[tuple[int, int], ...]  # steps (t, i) at which an episode was cut off
    cut_observations: Array  # (number of those, ...) what was observed there last
    counts: Array | None  # (T, n) what was a step at all; None where all were

    def successors(self) -> Array:
        """Observations (T, n, ...) after each step; any after an end."""
        after = np.concatenate([self.observations[1:], self.last[None]])
        for (t, i), x in zip(self.cut, self.cut_observations, strict=True):
            after[t, i] = x
        return after

    def values_after(self, values: Array, last: Array, cut: Array) -> Array:
        """Values (T, n) of what follows each step, from those of observations, of `last` and of `cut_observations`."""
        after = np.concatenate([values[1:], last[None]])
        for (t, i), value in zip(self.cut, cut, strict=True):
            after[t, i] = value
        return np.asarray(np.where(self.terminated, 0.0, after))

    def rows(self, table: Array) -> Array:
        """Entries (T, n, ...) in rows, without what was no step."""
        flat = table.reshape(-1, *table.shape[2:])
        return flat if self.counts is None else flat[self.counts.reshape(-1)]


def advantages(rewards: Array, values: Array, after: Array, over: Array, discount: float, decay: float) -> Array:
    """Generalised advantages (T, n)."""
    delta = rewards + discount * after - values
    fade = discount * decay * ~over
    found: Array = np.empty_like(delta)
    running: Any = np.zeros(delta.shape[1:])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + fade[t] * running
        found[t] = running
    return found
