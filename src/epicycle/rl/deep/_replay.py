r"""Memory of steps, from which batches are drawn: evenly, or in proportion to priorities (Schaul et al. 2016).

A draw of n steps gives  r_1 + discount r_2 + ... + discount^(m-1) r_m  and the observation after the m-th, with m = n,
or fewer where the episode is over or the newest step is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle.core._memory import require_memory
from epicycle.rl.deep._spaces import Spaces

Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Batch:
    """Steps that were drawn."""

    observations: Array  # (rows, ...)
    actions: Array  # (rows,) or (rows, m)
    rewards: Array  # (rows,) discounted sums of up to n rewards
    factors: Array  # (rows,) what the value of the successor counts: discount^m, or 0 after an end
    successors: Array  # (rows, ...)
    weights: Array  # (rows,) of the importance of a draw; ones for even draws
    leaves: Array  # (rows,) places in the memory


class Replay:
    """The last steps of n environments, in the order in which they were made.

    An observation is kept once: the successor of a step is the observation of the next, but for episodes that were
    cut off, whose last observation is kept apart.

    Parameters
    ----------
    capacity : int
        Steps that are kept, of all environments together.
    n : int
        Number of environments.
    spaces : Spaces
        Their observations and actions.
    """

    def __init__(self, capacity: int, n: int, spaces: Spaces) -> None:
        self.length, self.n = max(capacity // n, 2) + 1, n  # one place holds what is observed now
        places = (self.length, n)
        size = np.dtype(spaces.dtype).itemsize * float(np.prod(spaces.shape))
        require_memory(
            places[0] * n * (size + 16),
            f"A memory of {capacity:,} steps with observations of shape {spaces.shape}",
            "take a smaller buffer_size",
        )
        self.observations = np.zeros((*places, *spaces.shape), dtype=spaces.dtype)
        action = (np.int64, ()) if spaces.discrete else (np.float32, (spaces.n_controls,))
        self.actions = np.zeros((*places, *action[1]), dtype=action[0])
        self.rewards = np.zeros(places, dtype=np.float32)
        self.terminated, self.over, self.absent = (np.zeros(places, dtype=bool) for _ in range(3))
        self.cut: dict[int, Array] = {}  # the last observations of episodes that were cut off, by place
        self.head = self.filled = 0

    def __len__(self) -> int:
        return self.filled * self.n

    def add(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        terminated: Array,
        over: Array,
        after: Array,
        now: Array,
        counts: Array | None = None,
    ) -> Array:
        """Take a step of each environment, and what is observed `now`; its places."""
        h = self.head
        if self.over[h].any():
            for i in range(self.n):
                self.cut.pop(h * self.n + i, None)
        self.observations[h], self.actions[h] = observations, actions
        with np.errstate(over="ignore"):  # an infinite loss ends the run
            self.rewards[h] = rewards
        self.terminated[h], self.over[h] = terminated, over
        self.absent[h] = False if counts is None else ~counts
        if over.any():
            for i in np.flatnonzero(over & ~terminated).tolist():
                self.cut[h * self.n + i] = after[i].copy()
        self.head = (h + 1) % self.length
        self.filled = min(self.filled + 1, self.length - 1)
        self.observations[self.head] = now
        return np.arange(h * self.n, (h + 1) * self.n)

    def draw(self, rng: np.random.Generator, rows: int) -> Array:
        """Places of steps, each with the same probability."""
        while True:
            age = rng.integers(1, self.filled + 1, size=rows)
            leaves = ((self.head - age) % self.length) * self.n
            if self.n > 1:
                leaves += rng.integers(self.n, size=rows)
            absent = self.absent.reshape(-1)[leaves]
            if not absent.any():
                return leaves
            leaves = leaves[~absent]
            if len(leaves):  # few are absent: what is there is drawn from again
                return leaves[rng.integers(len(leaves), size=rows)]

    def batch(
        self,
        leaves: Array,
        n_step: int,
        discount: float,
        scaled: Callable[[Array], Array],
        weights: Array | None = None,
    ) -> Batch:
        """The steps at these places."""
        slot, env = np.divmod(leaves, self.n)
        terminated, over = self.terminated.reshape(-1), self.over.reshape(-1)
        rewards, last = scaled(self.rewards.reshape(-1)[leaves]), leaves
        factors = np.full(len(leaves), discount)
        if n_step > 1:
            newest = (self.head - 1) % self.length
            rewards = rewards.astype(np.float64)
            going = ~over[leaves] & (slot != newest)
            for _ in range(1, n_step):
                if not going.any():
                    break
                slot = np.where(going, (slot + 1) % self.length, slot)
                last = slot * self.n + env
                rewards += np.where(going, factors * scaled(self.rewards.reshape(-1)[last]), 0.0)
                factors = np.where(going, factors * discount, factors)
                going &= ~over[last] & (slot != newest)
        successors = self.observations[(slot + 1) % self.length, env]
        ended = terminated[last]
        for row in np.flatnonzero(over[last] & ~ended):
            successors[row] = self.cut[int(last[row])]
        return Batch(
            self.observations.reshape(-1, *self.observations.shape[2:])[leaves],
            self.actions.reshape(-1, *self.actions.shape[2:])[leaves],
            rewards.astype(np.float32),
            np.where(ended, 0.0, factors).astype(np.float32),
            successors,
            np.ones(len(leaves), dtype=np.float32) if weights is None else weights,
            leaves,
        )

    _ARRAYS = ("observations", "actions", "rewards", "terminated", "over", "absent")

    def state(self) -> dict[str, Any]:
        """The content of a file: what is filled."""
        used = self.length if self.filled == self.length - 1 else self.filled + 1
        found: dict[str, Any] = {name: getattr(self, name)[:used] for name in self._ARRAYS}
        found["cut"] = np.array(list(self.cut), dtype=np.int64)
        found["cut_observations"] = np.array(list(self.cut.values()), dtype=self.observations.dtype)
        return found | {"head": self.head, "filled": self.filled}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content of a file."""
        for name in self._ARRAYS:
            getattr(self, name)[: len(state[name])] = state[name]
        self.cut = dict(zip(state["cut"].tolist(), np.array(state["cut_observations"]), strict=True))
        self.head, self.filled = int(state["head"]), int(state["filled"])


class Priorities:
    """A tree of sums over priorities: drawing and changing them takes as many steps as it has levels.

    Parameters
    ----------
    size : int
        Number of priorities.
    """

    def __init__(self, size: int) -> None:
        self.levels = max(int(size - 1).bit_length(), 1)
        self.first = 1 << self.levels
        self.sums = np.zeros(2 * self.first)
        self.largest = 1.0

    def set(self, leaves: Array, priorities: Array | float) -> None:
        """Change priorities, and the sums above them."""
        at = leaves + self.first
        self.sums[at] = priorities
        for _ in range(self.levels):
            at = at >> 1
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1]

    def draw(self, rng: np.random.Generator, rows: int) -> Array:
        """Leaves in proportion to their priorities, one from each of `rows` parts of equal weight."""
        u = (np.arange(rows) + rng.random(rows)) * (self.sums[1] / rows)
        at = np.ones(rows, dtype=np.int64)
        for _ in range(self.levels):
            left = self.sums[2 * at]
            right = (u >= left) & (self.sums[2 * at + 1] > 0)  # never to a leaf without weight, whatever the rounding
            u -= np.where(right, left, 0.0)
            at = 2 * at + right
        return at - self.first

    def probabilities(self, leaves: Array) -> Array:
        """Probability of each leaf in a draw."""
        return np.asarray(self.sums[leaves + self.first] / self.sums[1])

    def state(self) -> dict[str, Any]:
        """The content of a file."""
        return {"leaves": self.sums[self.first :], "largest": self.largest}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the content of a file."""
        self.sums[self.first :] = state["leaves"]
        for level in range(self.levels - 1, -1, -1):
            at = np.arange(1 << level, 2 << level)
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1]
        self.largest = float(state["largest"])
