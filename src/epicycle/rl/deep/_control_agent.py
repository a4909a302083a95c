"""Base of agents for continuous actions that learn values of actions: two critics, and slow copies of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Domain, NoneOr, Real
from epicycle.rl.deep._replay_agent import REPLAY_DEFAULTS, ReplayAgent, ReplayArguments
from epicycle.rl.deep._spaces import Spaces

if TYPE_CHECKING:
    from epicycle.rl.deep._networks import Net

Array = np.ndarray


class ControlArguments(ReplayArguments, total=False):
    """Arguments of agents for continuous actions."""

    target_rate: float


CONTROL_DEFAULTS: Mapping[str, Any] = {
    "target_rate": 0.005,
    "batch_size": 256,
    "train_every": 1,
    "clip_gradient": None,
    **REPLAY_DEFAULTS,
}


class ControlAgent(ReplayAgent):
    """A policy network (actor) that climbs the values of two networks (critics), of which the smaller value counts."""

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "target_rate": Real(0, 1, inclusive=(False, True)),
        "clip_gradient": NoneOr(Real(0, inclusive=False)),
    }
    _docs: ClassVar[dict[str, str]] = {
        "target_rate": "target_rate : float, default={default}\n    Share by which the targets' weights move to those "
        "of the networks in each update.",
        "clip_gradient": "clip_gradient : float or None, default={default}\n    Largest norm of each gradient.",
    }
    _columns = (*ReplayAgent._columns, "critic_loss", "actor_loss", "q")

    target_rate: float
    clip_gradient: float | None

    def _check_spaces(self, spaces: Spaces) -> None:
        name = type(self).__name__
        if spaces.discrete:
            raise DataError(f"env.action_space: {name} needs continuous actions; DQN, PPO and ActorCritic take numbers")
        if not np.isfinite([spaces.low, spaces.high]).all():
            raise DataError(
                f"env.action_space: {name} needs finite bounds, got {spaces.low.tolist()} to {spaces.high.tolist()}"
            )

    def _make_critics(self, spaces: Spaces) -> Net:
        from epicycle.rl.deep._networks import Net, TwinCritics

        return Net(TwinCritics(spaces.shape, spaces.n_controls, self.hidden, self.activation), self._torch_device)

    def _values_of(self, x: Array) -> Array:
        import torch

        with torch.inference_mode():
            actions = self._tensor(np.asarray(self._best(x), dtype=np.float32))
            q = self._nets["critics"](self._tensor(np.ascontiguousarray(x)), actions)
        return np.asarray(q.amin(dim=0).cpu().numpy())

    def _random_actions(self, n: int, rng: np.random.Generator) -> Array:
        return rng.uniform(-1.0, 1.0, size=(n, self._spaces.n_controls)).astype(np.float32)
