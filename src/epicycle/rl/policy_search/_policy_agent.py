"""The base of agents that search among policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import SHARED_PARAMETERS, Callable as CallableDomain, Domain, NoneOr, Real
from epicycle.core._random import stream
from epicycle.rl._agent import Agent
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._linear_policy import LinearPolicy, linear_policy

Array = np.ndarray


class PolicyAgent(Agent):
    """Parameters of a linear policy, improved after whole episodes.

    An episode has a random stream of its own, so that nothing but the arrays of `_tables` is needed to go on.
    """

    _docs: ClassVar[dict[str, str]] = {
        "features": "features : callable, optional\n    Features of a state; by default the state and a one, and for "
        "numbered states one feature for each. A file does\n    not keep it: give it to the agent that was loaded "
        "by ``agent.features = ...``.",
        "coef_": "coef_ : array (parameters,)\n    Weights of the features for each action, and for continuous actions "
        "the logarithms of the standard deviations.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("coef_",)
    _parameters: ClassVar[Mapping[str, Domain]] = {
        "features": NoneOr(CallableDomain()),
        "discount": Real(0, 1),
        "random_state": SHARED_PARAMETERS["random_state"],
    }
    features: Callable[[Array], Any] | None
    discount: float
    _tables: dict[str, Array]

    @property
    def coef_(self) -> Array:
        """Parameters of the policy."""
        return self._tables["theta"]

    def _enter(self, world: Interaction) -> Interaction:
        policy = linear_policy(Interaction(world.env, world.seed), self.features)
        if not hasattr(self, "_tables"):
            self._tables = self._new_tables(policy)
        elif len(self.coef_) != policy.size:
            raise DataError(f"env: asks for {policy.size} parameters; expected {len(self.coef_)}, as in the first call")
        self._policy = policy
        return world

    def _new_tables(self, policy: LinearPolicy) -> dict[str, Array]:
        return {"theta": np.zeros(policy.size)}

    def _play(
        self, world: Interaction, theta: Array, most: int, deterministic: bool
    ) -> tuple[Array, list[Array], list[Any], bool]:
        """An episode of at most so many steps: rewards, features, actions, whether it came to its end or cut."""
        rng = stream(self._progress["seed"], "agent", world.episode)
        observation, over = world.reset(), False
        rewards: list[float] = []
        phis: list[Array] = []
        actions: list[Any] = []
        while not over and len(rewards) < most:
            phi = self._policy.phi(observation)
            action = self._policy.best(theta, phi) if deterministic else self._policy.draw(theta, phi, rng)
            observation, reward, terminated, truncated = world.step(action)
            rewards.append(reward)
            phis.append(phi)
            actions.append(action)
            over = terminated or truncated
        return np.array(rewards), phis, actions, over

    def _record(self, made: int, rewards: Array, discount: float) -> None:
        returns = returns_to_go(rewards, discount)
        row = [self._progress["made"] + made, rewards.sum(), len(rewards), returns[0], np.nan, np.nan]
        self._log.extend(np.array([row]))

    def act(self, observation: Any, deterministic: bool = True) -> Any:
        """Action in a state.

        Parameters
        ----------
        deterministic : bool, default=True
            Whether to take the most probable action, or the mean; otherwise one is drawn.
        """
        self._require_learnt()
        phi = self._policy.phi(observation)
        if len(phi) != self._policy.n_features:
            raise DataError(f"observation: has {len(phi)} features; expected {self._policy.n_features}")
        if deterministic:
            return self._policy.best(self.coef_, phi)
        return self._policy.draw(self.coef_, phi, self._drawing())

    def _saved_argument(self, name: str) -> Any:
        return None if name == "features" else super()._saved_argument(name)

    def _learnt(self) -> dict[str, Any]:
        p = self._policy
        return {"tables": self._tables, "sizes": [p.n_outputs, p.n_features, int(p.discrete), p.n_states or 0]}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        self._tables = {name: np.array(table) for name, table in state["tables"].items()}
        outputs, features, discrete, states = (int(n) for n in state["sizes"])
        self._policy = LinearPolicy(outputs, features, bool(discrete), states or None, None)


def returns_to_go(rewards: Array, discount: float) -> Array:
    """Discounted sums of the rewards from each step on."""
    out, total = np.empty(len(rewards)), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        total = rewards[t] + discount * total
        out[t] = total
    return out
