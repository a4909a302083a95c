r"""Twin delayed deterministic policy gradient (Fujimoto et al. 2018).

critics   minimise  mean (y - q_j(x, a))^2, j = 1, 2,    y = r_1 + ... + discount^m min_j q_j-(x', pi-(x') + e)
actor     maximise  mean q_1(x, pi(x)),  once in `policy_every` updates

e is normal noise cut at `target_cut`: actions nearby are to have values nearby. q- and pi- follow q and pi slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Domain, Integer, Real
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._schedules import Schedule
from epicycle.rl.deep._control_agent import CONTROL_DEFAULTS, ControlAgent, ControlArguments
from epicycle.rl.deep._deep_agent import SCHEDULE
from epicycle.rl.deep._spaces import Spaces

Array = np.ndarray


@in_catalogue("rl", "G11", certificate="none")
class TD3(ControlAgent):
    r"""Twin delayed deterministic policy gradient, for continuous actions with bounds.

    .. math:: \max_\theta \; \mathrm{E}\, q_1(x, \pi_\theta(x)), \qquad
              q_j(x, a) \approx r + \gamma \min_k q_k^-(x', \pi^-(x') + \varepsilon)

    over steps (x, a, r, x') from a memory. Values of actions that were never tried err, and a policy that climbs them
    finds the errors that are too large; so the smaller one of two values counts, the values are made smooth by the
    noise :math:`\varepsilon`, and the policy moves less often than they do.

    Parameters
    ----------
    noise : float, LinearDecay or ExponentialDecay, default=0.1
        Standard deviation of the normal noise on actions while learning, in a scale in which bounds are -1 and 1.
    target_noise : float, default=0.2
        That of the noise on actions in targets.
    target_cut : float, default=0.5
        Where this noise is cut.
    policy_every : int, default=2
        Updates of the critics for one of the policy and of the targets.

    Attributes
    ----------
    history_ : History
        Beside the columns of all agents "critic_loss", "actor_loss" and "q" (mean value of the drawn actions), means
        over the updates since the episode before.

    Examples
    --------
    >>> from epicycle.control import InvertedPendulum
    >>> from epicycle.rl import TD3
    >>> env = InvertedPendulum().environment(max_steps=50)
    >>> agent = TD3((16,), learning_starts=100, batch_size=32, random_state=0).learn(env, 200)
    >>> agent.act(env.reset(seed=0)[0]).shape
    (1,)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "noise": SCHEDULE,
        "target_noise": Real(0),
        "target_cut": Real(0),
        "policy_every": Integer(minimum=1),
    }

    @stores_arguments(learning_rate=1e-3, **CONTROL_DEFAULTS)
    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 256),
        *,
        noise: Schedule = 0.1,
        target_noise: float = 0.2,
        target_cut: float = 0.5,
        policy_every: int = 2,
        **shared: Unpack[ControlArguments],
    ) -> None: ...

    noise: Schedule
    target_noise: float
    target_cut: float
    policy_every: int

    def _make_nets(self, spaces: Spaces) -> dict[str, Any]:
        from epicycle.rl.deep._networks import Net, feed_forward

        actor = Net(feed_forward(spaces.shape, self.hidden, spaces.n_controls, self.activation), self._torch_device)
        critics = self._make_critics(spaces)
        return {"actor": actor, "critics": critics, "slow_actor": actor.frozen(), "slow_critics": critics.frozen()}

    def _connect(self) -> None:
        from epicycle.rl.deep._networks import forward_of

        self._forward = forward_of(self._nets["actor"].module, self._torch_device)

    def _best(self, x: Array) -> Array:
        return np.asarray(np.tanh(self._forward(x)))

    def _explore(self, x: Array, rng: np.random.Generator) -> Array:
        best = self._best(x)
        drawn = best + self._rate("noise") * rng.standard_normal(best.shape, dtype=np.float32)
        return np.asarray(np.clip(drawn, -1.0, 1.0), dtype=np.float32)

    @property
    def _exploration(self) -> float:
        return 1.0 if self._now <= self.learning_starts else self._rate("noise")

    def _update(self) -> None:
        import torch

        actor, critics = self._nets["actor"], self._nets["critics"]
        slow_actor, slow_critics = self._nets["slow_actor"], self._nets["slow_critics"]
        rate, batch = self._rate(), self._batch()
        x, x_next = (self._tensor(self._normalized(part)) for part in (batch.observations, batch.successors))
        a, r, factor = (self._tensor(p) for p in (batch.actions, batch.rewards, batch.factors))

        with torch.no_grad():
            e = self._tensor(self._rng.standard_normal(batch.actions.shape, dtype=np.float32))
            e = (self.target_noise * e).clamp_(-self.target_cut, self.target_cut)
            a_next = (slow_actor(x_next).tanh() + e).clamp_(-1.0, 1.0)
            y = r + factor * slow_critics(x_next, a_next).amin(dim=0)
        q = critics(x, a)
        critic_loss = (q - y).square().mean(dim=1).sum()
        critics.descend(critic_loss, rate, self.clip_gradient)
        self._note_losses(critic_loss=float(critic_loss.detach()), q=float(q.detach().mean()))

        if critics.steps % self.policy_every == 0:
            with critics.held():
                actor_loss = -critics(x, actor(x).tanh())[0].mean()
            actor.descend(actor_loss, rate, self.clip_gradient)
            slow_actor.follow(actor, self.target_rate)
            slow_critics.follow(critics, self.target_rate)
            self._note_losses(actor_loss=float(actor_loss.detach()))
