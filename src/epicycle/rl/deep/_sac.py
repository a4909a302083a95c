r"""Soft actor-critic (Haarnoja et al. 2018): rewards and entropy together, on steps drawn from a memory.

critics      minimise  mean (y - q_j(x, a))^2, j = 1, 2
             y = r_1 + ... + discount^m (min_j q_j-(x', a') - t log pi(a' | x')),    a' ~ pi(. | x')
actor        minimise  mean t log pi(a | x) - min_j q_j(x, a),    a = tanh(mu(x) + sigma(x) e),  e ~ N(0, 1)
temperature  minimise  mean -log t (log pi(a | x) + h):  t falls while the entropy is above h, and rises below

q- follow q slowly. With z = mu + sigma e,  log pi = log N(z; mu, sigma) - sum log(1 - tanh(z)^2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import AnyOf, Choice, Domain, NoneOr, Real
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl.deep._control_agent import CONTROL_DEFAULTS, ControlAgent, ControlArguments
from epicycle.rl.deep._spaces import Spaces

Array = np.ndarray
#: Bounds of the logarithm of a standard deviation.
LOG_SD = (-20.0, 2.0)


@in_catalogue("rl", "G11", certificate="none")
class SAC(ControlAgent):
    r"""Soft actor-critic, for continuous actions with bounds.

    .. math:: \max_\pi \; \mathrm{E} \sum_k \gamma^k \big(r_k + t\, H(\pi(\cdot \mid x_k))\big)

    The policy is a normal law with mean and standard deviation by the network, pressed into the bounds by tanh. It
    climbs the smaller one of two values of actions, which are fitted to steps from a memory. The temperature t says
    what a unit of entropy is worth; by default it is learnt too, so that the policy keeps a given entropy.

    Parameters
    ----------
    temperature : float or "auto", default="auto"
        t; "auto" learns it, from 1 on.
    target_entropy : float, optional
        Entropy that the learnt temperature keeps, in a scale in which bounds are -1 and 1; by default minus the number
        of entries of an action.

    Attributes
    ----------
    history_ : History
        Beside the columns of all agents "critic_loss", "actor_loss", "q" (mean value of the drawn actions), "entropy"
        and "temperature", means over the updates since the episode before.

    Examples
    --------
    >>> from epicycle.control import InvertedPendulum
    >>> from epicycle.rl import SAC
    >>> env = InvertedPendulum().environment(max_steps=50)
    >>> agent = SAC((16,), learning_starts=100, batch_size=32, random_state=0).learn(env, 200)
    >>> agent.act(env.reset(seed=0)[0]).shape
    (1,)
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "temperature": AnyOf(Choice("auto"), Real(0)),
        "target_entropy": NoneOr(Real()),
    }
    _columns = (*ControlAgent._columns, "entropy", "temperature")

    @stores_arguments(learning_rate=3e-4, **CONTROL_DEFAULTS)
    def __init__(
        self,
        hidden: tuple[int, ...] = (256, 256),
        *,
        temperature: float | str = "auto",
        target_entropy: float | None = None,
        **shared: Unpack[ControlArguments],
    ) -> None: ...

    temperature: float | str
    target_entropy: float | None

    def _make_nets(self, spaces: Spaces) -> dict[str, Any]:
        from epicycle.rl.deep._networks import Net, Number, feed_forward

        actor = Net(feed_forward(spaces.shape, self.hidden, 2 * spaces.n_controls, self.activation), self._torch_device)
        critics = self._make_critics(spaces)
        nets = {"actor": actor, "critics": critics, "slow_critics": critics.frozen()}
        if self.temperature == "auto":
            nets["log_temperature"] = Net(Number(0.0), self._torch_device)
        return nets

    def _connect(self) -> None:
        from epicycle.rl.deep._networks import forward_of

        self._forward = forward_of(self._nets["actor"].module, self._torch_device)
        self._spread = float("nan")

    def _best(self, x: Array) -> Array:
        return np.asarray(np.tanh(self._forward(x)[:, : self._spaces.n_controls]))

    def _explore(self, x: Array, rng: np.random.Generator) -> Array:
        mean, log_sd = np.split(self._forward(x), 2, axis=1)
        e = rng.standard_normal(mean.shape, dtype=np.float32)
        return np.asarray(np.tanh(mean + np.exp(np.clip(log_sd, *LOG_SD)) * e))

    @property
    def _exploration(self) -> float:
        """Mean standard deviation before the tanh."""
        return self._spread

    def _draw(self, x: Any) -> tuple[Any, Any, Any]:
        """Actions of the policy, log pi of them, and the standard deviations before the tanh."""
        from torch.nn import functional

        mean, log_sd = self._nets["actor"](x).chunk(2, dim=1)
        log_sd = log_sd.clamp(*LOG_SD)
        sd = log_sd.exp()
        e = self._tensor(self._rng.standard_normal(tuple(mean.shape), dtype=np.float32))
        z = mean + sd * e
        # log(1 - tanh(z)^2) = 2 (log 2 - z - softplus(-2z)), which does not overflow
        squash = 2 * (math.log(2.0) - z - functional.softplus(-2 * z))
        log_pi = (-0.5 * e.square() - log_sd - squash).sum(dim=1) - 0.5 * math.log(2 * math.pi) * mean.shape[1]
        return z.tanh(), log_pi, sd

    def _update(self) -> None:
        import torch

        actor, critics, slow = self._nets["actor"], self._nets["critics"], self._nets["slow_critics"]
        log_t = self._nets.get("log_temperature")
        t = float(self.temperature) if log_t is None else math.exp(float(log_t.flat[0]))
        rate, batch = self._rate(), self._batch()
        x, x_next = (self._tensor(self._normalized(part)) for part in (batch.observations, batch.successors))
        a, r, factor = (self._tensor(p) for p in (batch.actions, batch.rewards, batch.factors))

        with torch.no_grad():
            a_next, log_pi_next, _ = self._draw(x_next)
            y = r + factor * (slow(x_next, a_next).amin(dim=0) - t * log_pi_next)
        q = critics(x, a)
        critic_loss = (q - y).square().mean(dim=1).sum() / 2
        critics.descend(critic_loss, rate, self.clip_gradient)

        drawn, log_pi, sd = self._draw(x)
        with critics.held():
            actor_loss = (t * log_pi - critics(x, drawn).amin(dim=0)).mean()
        actor.descend(actor_loss, rate, self.clip_gradient)

        entropy = -float(log_pi.detach().mean())
        if log_t is not None:
            aim = -float(self._spaces.n_controls) if self.target_entropy is None else self.target_entropy
            log_t.gradient.fill_(entropy - aim)  # the derivative of the mean by log t
            log_t.step(rate)
        slow.follow(critics, self.target_rate)

        self._spread = float(sd.detach().mean())
        self._note_losses(
            critic_loss=float(critic_loss.detach()),
            actor_loss=float(actor_loss.detach()),
            q=float(q.detach().mean()),
            entropy=entropy,
            temperature=t,
        )
