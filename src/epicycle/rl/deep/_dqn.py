r"""Deep Q-learning (Mnih et al. 2015): a network is fitted to targets of a frozen copy, on steps drawn from a memory.

    minimise  mean_i w_i huber(y_i - q(x_i, a_i)),    y = r_1 + ... + discount^(m-1) r_m + discount^m q-(x', b)

with b = argmax q-(x', .), or with `double` argmax q(x', .). q- is q of some hundred steps before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Boolean, Choice, Domain, Integer, NoneOr, Real
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._schedules import LinearDecay, Schedule
from epicycle.rl.deep._deep_agent import SCHEDULE
from epicycle.rl.deep._replay_agent import REPLAY_DEFAULTS, ReplayAgent, ReplayArguments
from epicycle.rl.deep._spaces import Spaces

Array = np.ndarray
_LEAST_PRIORITY = 1e-6


@in_catalogue("rl", "G10", certificate="none")
class DQN(ReplayAgent):
    r"""Deep Q-learning for discrete actions, on numbers or images.

    .. math:: \min_w \; \mathrm{E}\, \big(r + \gamma \max_b q_{w^-}(x', b) - q_w(x, a)\big)^2

    over steps (x, a, r, x') from a memory, by Adam. The target's weights :math:`w^-` are those of some time ago.

    Parameters
    ----------
    epsilon : float, LinearDecay or ExponentialDecay, default=LinearDecay(1.0, 0.05, 10_000)
        Probability of any action while learning, by steps.
    target_every : int, default=500
        Steps after which the target becomes a copy of the network.
    double : bool, default=True
        Whether the network chooses the best next action, and the target only values it (van Hasselt et al.).
    dueling : bool, default=False
        Whether values are computed as the value of the state and what the action adds (Wang et al.).
    prioritized : bool, default=False
        Whether steps are drawn in proportion to their last errors to the power `priority_power` (Schaul et al.).
    priority_power : float, default=0.6
        0 draws evenly.
    correction : float, LinearDecay or ExponentialDecay, default=LinearDecay(0.4, 1.0, 100_000)
        Power of the weights that correct for uneven draws.
    loss : {"huber", "squared"}, default="huber"
        Of the errors. With "huber" those above 1 count by their size, so that no step pulls with more than that; where
        chance decides much, values are then nearer to medians than to means.
    clip_rewards : bool, default=False
        Whether rewards are cut to [-1, 1] for learning.
    clip_gradient : float or None, default=10
        Largest norm of the gradient.

    Attributes
    ----------
    history_ : History
        Beside the columns of all agents "loss" and "q", means over updates since the episode before.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import DQN, LinearDecay
    >>> env = CartPole().environment(max_steps=100)
    >>> epsilon = LinearDecay(1.0, 0.05, 1500)
    >>> agent = DQN((64,), epsilon=epsilon, learning_starts=200, train_every=1, target_every=100, random_state=0)
    >>> agent.learn(env, 3000).act([0.0, 0.0, 0.15, 1.5])
    1
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "epsilon": SCHEDULE,
        "target_every": Integer(minimum=1),
        "double": Boolean(),
        "dueling": Boolean(),
        "prioritized": Boolean(),
        "priority_power": Real(0),
        "correction": SCHEDULE,
        "loss": Choice("huber", "squared"),
        "clip_rewards": Boolean(),
        "clip_gradient": NoneOr(Real(0, inclusive=False)),
    }
    _columns = (*ReplayAgent._columns, "loss", "q")

    @stores_arguments(learning_rate=1e-3, batch_size=64, train_every=4, clip_gradient=10.0, **REPLAY_DEFAULTS)
    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        *,
        epsilon: Schedule = LinearDecay(1.0, 0.05, 10_000),  # noqa: B008 - frozen
        target_every: int = 500,
        double: bool = True,
        dueling: bool = False,
        prioritized: bool = False,
        priority_power: float = 0.6,
        correction: Schedule = LinearDecay(0.4, 1.0, 100_000),  # noqa: B008
        loss: str = "huber",
        clip_rewards: bool = False,
        **shared: Unpack[ReplayArguments],
    ) -> None: ...

    epsilon: Schedule
    target_every: int
    double: bool
    dueling: bool
    prioritized: bool
    priority_power: float
    correction: Schedule
    loss: str
    clip_rewards: bool
    clip_gradient: float | None

    def _check_spaces(self, spaces: Spaces) -> None:
        if not spaces.discrete:
            raise DataError("env.action_space: DQN needs a discrete space; PPO and ActorCritic take continuous actions")

    def _make_nets(self, spaces: Spaces) -> dict[str, Any]:
        from epicycle.rl.deep._networks import Dueling, Net, feed_forward

        def streams(outputs: int) -> Any:
            return feed_forward(spaces.shape, self.hidden, outputs, self.activation)

        module = Dueling(streams(1), streams(spaces.n_outputs)) if self.dueling else streams(spaces.n_outputs)
        q = Net(module, self._torch_device)
        return {"q": q, "target": q.frozen()}

    def _connect(self) -> None:
        from epicycle.rl.deep._networks import forward_of

        self._forward = forward_of(self._nets["q"].module, self._torch_device)

    def _values_of(self, x: Array) -> Array:
        return np.asarray(self._forward(x).max(axis=1))

    def _best(self, x: Array) -> Array:
        return np.asarray(self._forward(x).argmax(axis=1))

    def _explore(self, x: Array, rng: np.random.Generator) -> Array:
        anyhow = rng.random(len(x)) < self._rate("epsilon")
        if anyhow.all():
            return self._random_actions(len(x), rng)
        best = self._best(x)
        return np.where(anyhow, self._random_actions(len(x), rng), best) if anyhow.any() else best

    def _random_actions(self, n: int, rng: np.random.Generator) -> Array:
        return rng.integers(self._spaces.n_outputs, size=n)

    @property
    def _exploration(self) -> float:
        return 1.0 if self._progress["made"] < self.learning_starts else self._rate("epsilon")

    def _scaled(self, rewards: Array) -> Array:
        rewards = super()._scaled(rewards)
        return np.clip(rewards, -1.0, 1.0) if self.clip_rewards else rewards

    def _draw(self) -> Any:
        """A batch, evenly or by priorities with the weights that correct for them."""
        if not self.prioritized:
            return self._batch()
        leaves = self._priorities.draw(self._rng, self.batch_size)
        weights = (len(self._replay) * self._priorities.probabilities(leaves)) ** -self._rate("correction")
        weights = (weights / weights.max()).astype(np.float32)
        return self._replay.batch(leaves, self.n_step, self.discount, self._scaled, weights)

    def _update(self) -> None:
        import torch
        from torch.nn import functional

        q, target = self._nets["q"], self._nets["target"]
        if self._now - target.steps >= self.target_every:
            target.follow(q)
            target.steps = self._now
        batch = self._draw()
        x, x_next = (self._tensor(self._normalized(part)) for part in (batch.observations, batch.successors))
        a, r, factor, w = (self._tensor(p) for p in (batch.actions, batch.rewards, batch.factors, batch.weights))

        with torch.no_grad():
            after = target(x_next)
            best = q(x_next).argmax(dim=1) if self.double else after.argmax(dim=1)
            y = r + factor * after.gather(1, best[:, None])[:, 0]
        chosen = q(x).gather(1, a[:, None])[:, 0]
        error = y - chosen
        loss = (
            w * (functional.huber_loss(chosen, y, reduction="none") if self.loss == "huber" else error**2 / 2)
        ).mean()
        q.descend(loss, self._rate(), self.clip_gradient)

        if self.prioritized:
            size = error.detach().abs().cpu().numpy().astype(np.float64)
            priorities = (size + _LEAST_PRIORITY) ** self.priority_power
            self._priorities.largest = max(self._priorities.largest, float(priorities.max()))
            self._priorities.set(batch.leaves, priorities)
        self._note_losses(loss=float(loss.detach()), q=float(chosen.detach().mean()))
