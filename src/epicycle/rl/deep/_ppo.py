r"""Proximal policy optimisation (Schulman et al. 2017): several passes over a stretch of steps, but not far from it.

maximise  mean min(rho A, clip(rho, 1 - c, 1 + c) A) - k mean (v(x) - R)^2 + h mean H(pi(. | x)),
rho = pi(a | x) / pi_old(a | x),    R = A + v_old(x)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

import numpy as np

from epicycle.core._parameters import Domain, Integer, NoneOr, Real
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._schedules import Schedule
from epicycle.rl.deep._deep_agent import SCHEDULE
from epicycle.rl.deep._rollout import Rollout, advantages
from epicycle.rl.deep._rollout_agent import ROLLOUT_DEFAULTS, RolloutAgent, RolloutArguments

Array = np.ndarray
_TINY = 1e-8


@in_catalogue("rl", "G11", certificate="none")
class PPO(RolloutAgent):
    r"""Proximal policy optimisation, for discrete and continuous actions.

    .. math:: \max_\theta \; \mathrm{E} \min\big(\rho A,\; \mathrm{clip}(\rho, 1 - c, 1 + c)\, A\big), \qquad
              \rho = \frac{\pi_\theta(a \mid x)}{\pi_{\text{old}}(a \mid x)}

    Each stretch of `n_steps` in every environment is gone through `n_epochs` times in small batches; the clip takes
    away what would be gained by moving an action's probability by more than the factor 1 + c. Policies are softmax, or
    normal with a mean by the network; continuous actions are scaled so that their bounds are -1 and 1, and cut there.

    Parameters
    ----------
    clip : float, LinearDecay or ExponentialDecay, default=0.2
        c.
    batch_size : int, default=64
        Steps of a small batch.
    n_epochs : int, default=10
        Passes over a stretch.
    largest_kl : float or None, default=None
        Divergence from the policy of the stretch at which its passes end early.

    Attributes
    ----------
    history_ : History
        Beside the columns of all agents "policy_loss", "value_loss", "entropy", "kl" and "clipped" (share of steps),
        means over the updates since the episode before.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import PPO
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = PPO(n_steps=256, n_envs=4, n_epochs=5, random_state=0).learn(env, 6000)
    >>> agent.evaluate(env, 10, seed=0).mean > 50
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "clip": SCHEDULE,
        "batch_size": Integer(minimum=2),
        "n_epochs": Integer(minimum=1),
        "largest_kl": NoneOr(Real(0, inclusive=False)),
    }
    _columns = (*RolloutAgent._columns, "policy_loss", "value_loss", "entropy", "kl", "clipped")

    @stores_arguments(learning_rate=3e-4, trace_decay=0.95, n_steps=2048, **ROLLOUT_DEFAULTS)
    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        *,
        batch_size: int = 64,
        n_epochs: int = 10,
        clip: Schedule = 0.2,
        largest_kl: float | None = None,
        **shared: Unpack[RolloutArguments],
    ) -> None: ...

    batch_size: int
    n_epochs: int
    clip: Schedule
    largest_kl: float | None

    def _update(self, rollout: Rollout) -> None:
        import torch

        values, after = self._rollout_values(rollout)
        A = advantages(rollout.rewards, values, after, rollout.over, self.discount, self.trace_decay)
        x, a = self._tensor(rollout.rows(rollout.observations)), self._tensor(rollout.rows(rollout.actions))
        gain = self._tensor(rollout.rows(A))
        target = self._tensor(rollout.rows(A + values))
        actor, critic, law = self._actor, self._critic, self._law
        with torch.no_grad():
            out = actor(x)
            old = law.log_density(actor, out, a)
        self._spread = law.spread(actor, out.cpu().numpy())

        rate, clip, h = self._rate(), self._rate("clip"), self._rate("entropy_weight")
        seen = np.zeros(5)
        updates, far = 0, False
        for _ in range(self.n_epochs):
            order = torch.from_numpy(self._rng.permutation(len(x))).to(x.device)
            for part in order.split(self.batch_size):
                if len(part) < 2:
                    continue
                adv = gain[part]
                if self.normalize_advantages:
                    adv = (adv - adv.mean()) / (adv.std() + _TINY)
                out = actor(x[part])
                log_ratio = law.log_density(actor, out, a[part]) - old[part]
                ratio = log_ratio.exp()
                policy_loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
                value_loss = (critic(x[part])[:, 0] - target[part]).square().mean()
                entropy = law.entropy(actor, out).mean()
                loss = policy_loss + self.value_weight * value_loss - h * entropy

                with torch.no_grad():
                    kl = (ratio - 1 - log_ratio).mean()
                    clipped = ((ratio - 1).abs() > clip).float().mean()
                    row = torch.stack([policy_loss.detach(), value_loss.detach(), entropy.detach(), kl, clipped])
                    row = row.cpu().numpy()
                if self.largest_kl is not None and row[3] > 1.5 * self.largest_kl:
                    far = True
                    break
                self._nets["both"].descend(loss, rate, self.clip_gradient)
                seen, updates = seen + row, updates + 1
            if far:
                break
        if updates:
            names = ("policy_loss", "value_loss", "entropy", "kl", "clipped")
            self._note_losses(**{name: float(value) for name, value in zip(names, seen / updates, strict=True)})
