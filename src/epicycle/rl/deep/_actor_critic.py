r"""Actor-critic: the policy gradient, with the weights of actions from a second network.

    maximise  mean log pi(a | x) Psi + h mean H(pi(. | x)),    minimise  mean (critic - target)^2

    advantage    Psi = A_t                              critic v(x_t),         target A_t + v(x_t)
    td           Psi = delta_t                          critic v(x_t),         target r_t + discount v(x_t+1)
    q            Psi = q(x_t, a_t) - v(x_t)             critic q(x_t, a_t),    target A_t + v(x_t)

with delta_t = r_t + discount v(x_t+1) - v(x_t), A_t = sum_k (discount lambda)^k delta_t+k, and for q the mean over the
policy's actions v(x) = E q(x, a). Psi and the target are constants for the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Choice, Domain
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl.deep._rollout import Rollout, advantages
from epicycle.rl.deep._rollout_agent import ROLLOUT_DEFAULTS, RolloutAgent, RolloutArguments
from epicycle.rl.deep._spaces import Spaces

Array = np.ndarray
_TINY = 1e-8


@in_catalogue("rl", "G11", certificate="none")
class ActorCritic(RolloutAgent):
    r"""Policy gradient with a critic (A2C), for discrete and continuous actions.

    .. math:: \nabla_\theta \; \mathrm{E} \log \pi_\theta(a \mid x)\, \Psi

    After every stretch of `n_steps` in each environment one step is made up this gradient, and one of the critic
    towards its target. By `critic` the weight of an action is

    - "advantage": the generalised advantage :math:`\sum_k (\gamma \lambda)^k \delta_{t+k}` with
      :math:`\delta_t = r_t + \gamma v(x_{t+1}) - v(x_t)`; with :math:`\lambda = 1` all rewards of the stretch count.
    - "td": :math:`\delta_t` alone: least variance, and the bias of the critic.
    - "q": :math:`q(x_t, a_t)` less its mean over the policy's actions, by a critic of discrete actions. It follows the
      critic alone, and needs a large `entropy_weight` at first, so that all actions are tried until it knows them.

    Parameters
    ----------
    critic : {"advantage", "td", "q"}, default="advantage"
        See above.

    Attributes
    ----------
    history_ : History
        Beside the columns of all agents "policy_loss", "value_loss" and "entropy", means over the updates since the
        episode before.

    See Also
    --------
    PPO : Goes several times through a stretch, which needs fewer steps.
    Reinforce : The policy gradient without a critic.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import ActorCritic
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = ActorCritic(n_envs=8, learning_rate=3e-3, random_state=0).learn(env, 8000)
    >>> agent.evaluate(env, 10, seed=0).mean > 50
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"critic": Choice("advantage", "td", "q")}
    _columns = (*RolloutAgent._columns, "policy_loss", "value_loss", "entropy")

    @stores_arguments(learning_rate=1e-3, trace_decay=1.0, n_steps=8, **ROLLOUT_DEFAULTS)
    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        *,
        critic: str = "advantage",
        **shared: Unpack[RolloutArguments],
    ) -> None: ...

    critic: str

    def _check_spaces(self, spaces: Spaces) -> None:
        if self.critic == "q" and not spaces.discrete:
            raise DataError("env.action_space: critic='q' needs a discrete space; 'advantage' and 'td' take both kinds")

    def _make_critic(self, spaces: Spaces) -> Any:
        if self.critic != "q":
            return super()._make_critic(spaces)
        from epicycle.rl.deep._networks import Dueling, feed_forward

        def critic(outputs: int, gain: float) -> Any:
            return feed_forward(spaces.shape, self.hidden, outputs, self.activation, last_gain=gain)

        # What all actions have in common is learnt by one output: else the action that was taken would look better
        # than the others for as long as the critic rises to the level of the returns.
        return Dueling(critic(1, 1.0), critic(spaces.n_outputs, 0.01))

    def _values_of(self, x: Array) -> Array:
        if self.critic != "q":
            return super()._values_of(x)
        out = self._actor_forward(x)
        p = np.exp(out - out.max(axis=1, keepdims=True))
        return np.asarray((p * self._critic_forward(x)).sum(axis=1) / p.sum(axis=1))

    def _update(self, rollout: Rollout) -> None:
        x, a = self._tensor(rollout.rows(rollout.observations)), self._tensor(rollout.rows(rollout.actions))
        actor, law, k, h = self._actor, self._law, self.value_weight, self._rate("entropy_weight")

        values, after = self._rollout_values(rollout)
        decay = 0.0 if self.critic == "td" else self.trace_decay
        A = advantages(rollout.rewards, values, after, rollout.over, self.discount, decay)
        target = self._tensor(rollout.rows(A + values))
        if self.critic == "q":
            found = self._critic(x).gather(1, a[:, None])[:, 0]
            psi = found.detach() - self._tensor(rollout.rows(values))
        else:
            found = self._critic(x)[:, 0]
            psi = self._tensor(rollout.rows(A))
        if self.normalize_advantages and len(psi) > 1:
            psi = (psi - psi.mean()) / (psi.std() + _TINY)

        out = actor(x)
        policy_loss = -(law.log_density(actor, out, a) * psi).mean()
        value_loss = (found - target).square().mean()
        entropy = law.entropy(actor, out).mean()
        self._nets["both"].descend(policy_loss + k * value_loss - h * entropy, self._rate(), self.clip_gradient)

        self._spread = law.spread(actor, out.detach().cpu().numpy())
        losses = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        self._note_losses(**{name: float(loss.detach()) for name, loss in losses.items()})
