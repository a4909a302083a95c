"""Counts of what followed states and actions, and the models that they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.mdp._mdp import MDP
from epicycle.core._exceptions import DataError

Array = np.ndarray
_MOST = 50_000_000  # counts in memory


class Experience:
    """Transitions after each state and action: counts of successors, the last of them the end, and sums of rewards."""

    def __init__(self, n_states: int, n_actions: int) -> None:
        size = n_states * n_actions * (n_states + 1)
        if size > _MOST:
            raise DataError(
                f"env: {n_states} states and {n_actions} actions need {size:,} counts; expected at most {_MOST:,}"
            )
        self.counts = np.zeros((n_states, n_actions, n_states + 1))
        self.visits = np.zeros((n_states, n_actions))
        self.reward_sum = np.zeros((n_states, n_actions))
        self.reward_square = np.zeros((n_states, n_actions))
        self.allowed = np.ones((n_states, n_actions), dtype=bool)
        self.starts = np.zeros(n_states)
        self.lowest, self.highest = np.inf, -np.inf

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.visits.sum())

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.counts.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.counts.shape[1])

    def enter(self, reset: tuple[Any, Any], first: int) -> int:
        """State in which an episode begins, from what ``reset`` returned; `first` is the number of the first state."""
        observation, info = reset
        state = int(observation) - first
        self.starts[state] += 1
        return self.see(state, info)

    def see(self, state: int, info: Any) -> int:
        """Take the actions that are available in a state from what an environment tells."""
        mask = info.get("action_mask") if isinstance(info, dict) else None
        if mask is not None:
            self.allowed[state] = np.asarray(mask) > 0
            if not self.allowed[state].any():
                raise DataError(f"env: no action is available in state {state}; expected one, or the end")
        return state

    def add(self, state: int, action: int, reward: float, after: int, before: Array) -> bool:
        """Count a step; `after` is the number of states where the process ended. Has the pair as many visits again?"""
        self.counts[state, action, after] += 1
        self.visits[state, action] += 1
        self.reward_sum[state, action] += reward
        self.reward_square[state, action] += reward * reward
        self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
        known = before[state, action]
        return bool(self.visits[state, action] - known >= max(known, 1))

    def state(self) -> dict[str, Any]:
        """The content of a file: counts by place, since most are zero."""
        places = np.flatnonzero(self.counts)
        names = ("reward_sum", "reward_square", "allowed", "starts", "lowest", "highest")
        return {
            "places": places,
            "numbers": self.counts.ravel()[places],
            **{name: getattr(self, name) for name in names},
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Experience:
        """The experience that a file holds."""
        known = cls(*state["allowed"].shape)
        known.counts.ravel()[state.pop("places")] = state.pop("numbers")
        known.visits = known.counts.sum(axis=2)
        for name, value in state.items():
            setattr(known, name, value)
        return known

    def pairs(self) -> tuple[Array, Array]:
        """States and actions that are available, in the order of an `MDP`."""
        state, action = np.nonzero(self.allowed)
        return state, action

    def frequencies(self) -> tuple[Array, Array, Array]:
        """For each available pair: visits, frequencies of the successors (zero without visits), mean reward."""
        state, action = self.pairs()
        counts = self.counts[state, action]
        visits = self.visits[state, action]
        n = np.maximum(visits, 1)
        return visits, counts / n[:, None], self.reward_sum[state, action] / n

    def optimistic(self, bonus: float, highest: float, discount: float) -> MDP:
        """Frequencies, with a bonus for each pair that falls with its visits; those never tried are worth the most."""
        visits, P, r = self.frequencies()
        rewards = np.where(visits > 0, r + bonus / np.sqrt(np.maximum(visits, 1)), highest + bonus)
        return self._process(P, rewards, discount)

    def mean(self, lowest: float, discount: float) -> MDP:
        """Frequencies; what was never tried is worth the least."""
        visits, P, r = self.frequencies()
        return self._process(P, np.where(visits > 0, r, lowest), discount)

    def draw(self, prior: float, reward_range: tuple[float, float], discount: float, rng: np.random.Generator) -> MDP:
        """A process from its posterior: Dirichlet for successors, normal for mean rewards.

        The prior of rewards is one observation in the middle of their range with half of it as its deviation.
        """
        state, action = self.pairs()
        counts = self.counts[state, action]
        n = self.visits[state, action]
        outcomes = self.n_states + (1 if self.counts[..., -1].any() else 0)  # an end is expected once one was seen
        weight = counts + np.where(np.arange(self.n_states + 1) < outcomes, prior / outcomes, 0.0)
        P = rng.standard_gamma(weight)
        P /= np.maximum(P.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        low, high = reward_range
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        mean = (self.reward_sum[state, action] + middle) / (n + 1)
        centre = self.reward_sum[state, action] / np.maximum(n, 1)
        spread = np.maximum(self.reward_square[state, action] - n * centre**2, 0.0)
        deviation = np.sqrt((spread + half**2) / (n + 1)) / np.sqrt(n + 1)
        return self._process(P, mean + deviation * rng.standard_normal(len(mean)), discount)

    def _process(self, P: Array, rewards: Array, discount: float) -> MDP:
        """Process over the states and an end; a pair without successors leads back to its state."""
        state, action = self.pairs()
        missing = np.flatnonzero(P.sum(axis=1) == 0)
        P[missing, state[missing]] = 1.0
        n = self.n_states
        start = np.concatenate([[0], np.cumsum(self.allowed.sum(axis=1)), [len(state)]]).astype(np.int64)
        process = MDP.__new__(MDP)
        process._set(
            sp.csr_array(P),
            rewards,
            start,
            action,
            np.zeros(n + 1),
            discount,
            "discounted",
            np.arange(n + 1),
            np.arange(self.n_actions),
        )
        return process
