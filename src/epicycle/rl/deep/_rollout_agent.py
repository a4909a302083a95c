"""The base of agents that learn from steps of their present policy: a stretch of steps, then an update."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import Boolean, Domain, Integer, NoneOr, Real
from epicycle.rl.deep._deep_agent import DEEP_DEFAULTS, SCHEDULE, DeepAgent, DeepArguments
from epicycle.rl.deep._policy_laws import NormalLaw, SoftmaxLaw
from epicycle.rl.deep._rollout import Rollout
from epicycle.rl.deep._spaces import Spaces
from epicycle.rl.deep._worlds import Worlds

Array = np.ndarray


class RolloutArguments(DeepArguments, total=False):
    """Arguments of agents that learn from their present policy."""

    trace_decay: float
    n_steps: int
    entropy_weight: Any
    value_weight: float
    normalize_advantages: bool
    clip_gradient: float | None
    log_sd: float


ROLLOUT_DEFAULTS: Mapping[str, Any] = {
    "activation": "tanh",
    "entropy_weight": 0.0,
    "value_weight": 0.5,
    "normalize_advantages": True,
    "clip_gradient": 0.5,
    "log_sd": 0.0,
    **DEEP_DEFAULTS,
}


class RolloutAgent(DeepAgent):
    """A policy network (actor) and a network of values (critic), with one optimiser."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "n_steps": Integer(minimum=1),
        "trace_decay": Real(0, 1),
        "entropy_weight": SCHEDULE,
        "value_weight": Real(0),
        "normalize_advantages": Boolean(),
        "clip_gradient": NoneOr(Real(0, inclusive=False)),
        "log_sd": Real(),
    }
    _docs: ClassVar[dict[str, str]] = {
        "n_steps": "n_steps : int, default={default}\n    Steps in each environment between updates. The steps of "
        "`learn` are rounded up to a multiple of the number of\n    environments.",
        "trace_decay": "trace_decay : float, default={default}\n    :math:`\\lambda` of the advantages: 0 trusts the "
        "critic, 1 the rewards.",
        "entropy_weight": "entropy_weight : float, LinearDecay or ExponentialDecay, default={default}\n    Weight of "
        "the policy's entropy, which is to be large.",
        "value_weight": "value_weight : float, default={default}\n    Weight of the critic's loss.",
        "normalize_advantages": "normalize_advantages : bool, default={default}\n    Whether advantages of an update "
        "are brought to mean 0 and variance 1.",
        "clip_gradient": "clip_gradient : float or None, default={default}\n    Largest norm of the gradient.",
        "log_sd": "log_sd : float, default={default}\n    Logarithm of the standard deviation of continuous actions at "
        "first, in a scale in which bounds are -1 and 1.",
    }

    n_steps: int
    trace_decay: float
    entropy_weight: Any
    value_weight: float
    normalize_advantages: bool
    clip_gradient: float | None
    log_sd: float
    _law: SoftmaxLaw | NormalLaw

    @abstractmethod
    def _update(self, rollout: Rollout) -> None:
        """Learn from a stretch of steps."""

    def _make_critic(self, spaces: Spaces) -> Any:
        """A network of values of states."""
        from epicycle.rl.deep._networks import feed_forward

        return feed_forward(spaces.shape, self.hidden, 1, self.activation, last_gain=1.0)

    def _make_nets(self, spaces: Spaces) -> dict[str, Any]:
        from torch import nn

        from epicycle.rl.deep._networks import GaussianPolicy, Net, feed_forward

        actor: Any = feed_forward(spaces.shape, self.hidden, spaces.n_outputs, self.activation, last_gain=0.01)
        if not spaces.discrete:
            actor = GaussianPolicy(actor, spaces.n_controls, self.log_sd)
        modules = nn.ModuleDict({"actor": actor, "critic": self._make_critic(spaces)})
        return {"both": Net(modules, self._torch_device)}

    def _connect(self) -> None:
        from epicycle.rl.deep._networks import forward_of

        both = self._nets["both"].module
        self._actor, self._critic = both["actor"], both["critic"]
        self._actor_forward = forward_of(self._actor, self._torch_device)
        self._critic_forward = forward_of(self._critic, self._torch_device)
        self._law = SoftmaxLaw() if self._spaces.discrete else NormalLaw()
        self._spread = float("nan")

    def _values_of(self, x: Array) -> Array:
        return self._critic_forward(x)[:, 0]

    def _explore(self, x: Array, rng: np.random.Generator) -> Array:
        return self._law.draw(self._actor, self._actor_forward(x), rng)

    def _best(self, x: Array) -> Array:
        return self._law.best(self._actor_forward(x))

    @property
    def _exploration(self) -> float:
        return self._spread

    def _advance(self, worlds: Worlds, most: int) -> int:
        T, n = min(self.n_steps, -(-most // worlds.n)), worlds.n
        seen = np.empty((T, *worlds.observations.shape), dtype=worlds.observations.dtype)
        rewards, terminated, over = np.zeros((T, n)), np.zeros((T, n), dtype=bool), np.zeros((T, n), dtype=bool)
        actions, cut, cut_observations, counts = [], [], [], np.ones((T, n), dtype=bool)
        for t in range(T):
            seen[t] = worlds.observations
            actions.append(self._explore(self._normalized(seen[t]), self._rng))
            step = self._step(worlds, actions[t])
            rewards[t], terminated[t], over[t] = step.rewards, step.terminated, step.over
            if step.counts is not None:
                counts[t] = step.counts
            for i in np.flatnonzero(step.over & ~step.terminated):
                cut.append((t, int(i)))
                cut_observations.append(step.after[i])
        rollout = Rollout(
            self._normalized(seen),
            np.array(actions),
            self._scaled(rewards),
            terminated,
            over,
            self._normalized(worlds.observations),
            tuple(cut),
            self._normalized(np.array(cut_observations, dtype=seen.dtype).reshape(-1, *seen.shape[2:])),
            None if counts.all() else counts,
        )
        self._update(rollout)
        if self.normalize_observations and seen.dtype != np.uint8:
            self._moments.update(seen.reshape(-1, *seen.shape[2:]))  # what is drawn meets the moments it was drawn by
        self._record()
        return T * n

    def _rollout_values(self, rollout: Rollout) -> tuple[Array, Array]:
        """Values (T, n) of the observations, and of what follows each step."""
        v = self._values_of(_flat(rollout.observations))
        v = v.reshape(rollout.rewards.shape)
        cut = self._values_of(rollout.cut_observations) if rollout.cut else np.zeros(0)
        return v, rollout.values_after(v, self._values_of(rollout.last), cut)


def _flat(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])
