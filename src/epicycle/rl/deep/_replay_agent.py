"""The base of agents that learn from a memory of steps: act, keep, learn, again and again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import Domain, Integer
from epicycle.rl.deep._deep_agent import DEEP_DEFAULTS, DeepAgent, DeepArguments
from epicycle.rl.deep._replay import Batch, Priorities, Replay
from epicycle.rl.deep._worlds import Worlds

Array = np.ndarray


class ReplayArguments(DeepArguments, total=False):
    """Arguments of agents that learn from a memory."""

    buffer_size: int
    batch_size: int
    learning_starts: int
    train_every: int
    gradient_steps: int
    n_step: int
    clip_gradient: float | None


REPLAY_DEFAULTS: Mapping[str, Any] = {
    "activation": "relu",
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "gradient_steps": 1,
    "n_step": 1,
    **DEEP_DEFAULTS,
}


class ReplayAgent(DeepAgent):
    """Learns from steps that were made by earlier policies, in batches from a memory."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "buffer_size": Integer(minimum=2),
        "batch_size": Integer(minimum=1),
        "learning_starts": Integer(minimum=0),
        "train_every": Integer(minimum=1),
        "gradient_steps": Integer(minimum=1),
        "n_step": Integer(minimum=1),
    }
    _docs: ClassVar[dict[str, str]] = {
        "buffer_size": "buffer_size : int, default={default}\n    Steps that are kept, the last ones. A file has them "
        "only while a call of `learn` is not finished.",
        "batch_size": "batch_size : int, default={default}\n    Steps that are drawn for an update.",
        "learning_starts": "learning_starts : int, default={default}\n    Steps with random actions before the first "
        "update.",
        "train_every": "train_every : int, default={default}\n    Steps between updates.",
        "gradient_steps": "gradient_steps : int, default={default}\n    Updates that are made then.",
        "n_step": "n_step : int, default={default}\n    Rewards in a target before the value of what follows.",
    }

    buffer_size: int
    batch_size: int
    learning_starts: int
    train_every: int
    gradient_steps: int
    n_step: int
    _replay: Replay

    @abstractmethod
    def _update(self) -> None:
        """One step of learning from a batch."""

    @abstractmethod
    def _random_actions(self, n: int, rng: np.random.Generator) -> Array:
        """Actions before anything is learnt."""

    def _prepare(self, n: int) -> None:
        if getattr(self, "_replay", None) is None or self._replay.n != n:
            self._replay = Replay(self.buffer_size, n, self._spaces)
            if getattr(self, "prioritized", False):
                self._priorities = Priorities(self._replay.length * n)

    def _advance(self, worlds: Worlds, most: int) -> int:
        made, began = 0, self._progress["made"]
        while made < min(self.train_every, most):
            self._act_once(worlds)
            made += worlds.n
        if began + made > self.learning_starts and len(self._replay) >= min(self.batch_size, self.buffer_size // 2):
            for _ in range(self.gradient_steps):
                self._update()
        self._record()
        return made

    def _act_once(self, worlds: Worlds) -> None:
        before = worlds.observations
        x = self._normalized(before)
        warm = worlds.made < self.learning_starts
        actions = self._random_actions(worlds.n, self._rng) if warm else self._explore(x, self._rng)
        step = self._step(worlds, actions)
        if self.normalize_observations and before.dtype != np.uint8:
            self._moments.update(before)
        leaves = self._replay.add(
            before, actions, step.rewards, step.terminated, step.over, step.after, worlds.observations, step.counts
        )
        if getattr(self, "prioritized", False):
            tree = self._priorities
            there = leaves if step.counts is None else leaves[step.counts]
            tree.set((leaves + self._replay.n) % (self._replay.length * self._replay.n), 0.0)
            tree.set(leaves, 0.0)
            tree.set(there, tree.largest)

    def _batch(self) -> Batch:
        """Steps that are drawn evenly, normalised."""
        leaves = self._replay.draw(self._rng, self.batch_size)
        return self._replay.batch(leaves, self.n_step, self.discount, self._scaled)

    def _memory(self) -> dict[str, Any]:
        tree = {"tree": self._priorities.state()} if getattr(self, "prioritized", False) else {}
        return {"replay": self._replay.state(), "n": self._replay.n} | tree

    def _restore_memory(self, state: dict[str, Any]) -> None:
        n = int(state["n"])
        self._prepare(n)
        self._replay.restore(state["replay"])
        if "tree" in state:
            self._priorities.restore(state["tree"])
