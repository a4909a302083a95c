r"""REINFORCE (Williams): the gradient of the expected return from the episodes of the policy itself.

    grad J = E sum_t discount^t grad log pi(a_t | x_t) (G_t - b_t),    G_t = r_t + discount r_t+1 + ...

b_t must not depend on a_t; here it is the mean of G_t over the other episodes of the batch, so that the estimate stays
unbiased. The step is Adam's (Kingma and Ba), upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._exceptions import NotFittedError
from epicycle.core._parameters import Choice, Domain, Integer, Real, check_parameter
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._adam import climb, climbing_tables
from epicycle.rl.policy_search._linear_policy import LinearPolicy
from epicycle.rl.policy_search._pathwise import differentiable, pathwise_gradients
from epicycle.rl.policy_search._policy_agent import PolicyAgent, returns_to_go

Array = np.ndarray
WEIGHTS = ("return", "reward_to_go", "baseline")


@in_catalogue("rl", "G8", certificate="none")
class Reinforce(PolicyAgent):
    r"""Policy gradient from whole episodes, for discrete and continuous actions.

    .. math:: \nabla J(\theta) = \mathrm{E} \sum_t \gamma^t\, \nabla \log \pi_\theta(a_t \mid x_t)\, (G_t - b_t)

    The policy is a softmax or a normal law with a mean that is linear in features. After each batch of episodes the
    parameters make one step of Adam up the estimated gradient.

    Parameters
    ----------
    weight : {"baseline", "reward_to_go", "return"}, default="baseline"
        What the scores are weighted by: the rewards that follow less their mean over the other episodes of the batch,
        the rewards that follow, or the return of the whole episode. All are unbiased; their variances differ.
    batch_size : int, default=10
        Episodes for a step.
    learning_rate : float, default=0.05
        Length of a step of Adam.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import Reinforce
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = Reinforce(random_state=0).learn(env, 10_000)
    >>> agent.evaluate(env, 10, seed=0).mean > 50
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "weight": Choice(*WEIGHTS),
        "batch_size": Integer(minimum=2),
        "learning_rate": Real(0, inclusive=False),
    }

    weight: str
    batch_size: int
    learning_rate: float

    @stores_arguments
    def __init__(
        self,
        features: Callable[[Array], Any] | None = None,
        *,
        weight: str = "baseline",
        batch_size: int = 10,
        learning_rate: float = 0.05,
        discount: float = 0.99,
        random_state: Seed = None,
    ) -> None: ...

    def _new_tables(self, policy: LinearPolicy) -> dict[str, Array]:
        return climbing_tables(policy.size)

    def _advance(self, world: Interaction, most: int) -> int:
        batch: list[tuple[Array, Array]] = []
        made, over = 0, True
        while len(batch) < self.batch_size and made < most and over:
            rewards, phis, actions, over = self._play(world, self.coef_, most - made, False)
            made += len(rewards)
            if over:  # nothing is learnt from an episode that the last step of the call cuts off
                scores = [self._policy.score(self.coef_, *pair) for pair in zip(phis, actions, strict=True)]
                batch.append((rewards, np.array(scores)))
                self._record(made, rewards, self.discount)
        if len(batch) > 1:
            climb(
                self._tables, np.mean(episode_gradients(batch, self.discount, self.weight), axis=0), self.learning_rate
            )
        self._progress["episode"] = world.episode
        return made


def episode_gradients(batch: list[tuple[Array, Array]], discount: float, weight: str) -> Array:
    """One estimate of the gradient from each episode: rewards (T,) and scores (T, p)."""
    ahead = [returns_to_go(rewards, discount) for rewards, _ in batch]
    longest = max(len(g) for g in ahead)
    table = np.zeros((len(batch), longest))  # an episode that is over earns nothing
    for row, g in zip(table, ahead, strict=True):
        row[: len(g)] = g
    others = (table.sum(axis=0) - table) / max(len(batch) - 1, 1)
    out = []
    for i, (rewards, scores) in enumerate(batch):
        fade = discount ** np.arange(len(rewards))
        if weight == "return":
            factor = np.full(len(rewards), ahead[i][0])
        elif weight == "reward_to_go":
            factor = fade * ahead[i]
        else:
            factor = fade * (ahead[i] - others[i, : len(rewards)])
        out.append(factor @ scores)
    return np.array(out)


@in_catalogue("rl", "G8", certificate="none")
def gradient_variance(
    agent: Reinforce, env: Any, episodes: int = 200, *, batch_size: int = 10, seed: int | None = None
) -> dict[str, dict[str, Any]]:
    """Compare estimators of the policy gradient on the same episodes of an agent that has learnt.

    Parameters
    ----------
    agent : Reinforce
        The agent, whose policy is looked at and not changed.
    env : MDP or environment
        As in `learn`.
    episodes : int, default=200
        Number of episodes.
    batch_size : int, default=10
        Episodes that share a baseline.
    seed : int, optional
        Seed; by default that of the agent.

    Returns
    -------
    dict
        For "return", "reward_to_go" and "baseline" the ``mean`` of the gradients of the episodes, its standard
        ``error``, and the ``variance`` of an episode's gradient, summed over the parameters. Where `env` is that of a
        simulator with continuous actions also for "pathwise", the gradient through the simulator's derivatives with the
        random numbers of the actions held (reparametrisation).

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import Reinforce, gradient_variance
    >>> env = CartPole().environment(max_steps=50)
    >>> agent = Reinforce(random_state=0).learn(env, 100)
    >>> found = gradient_variance(agent, env, 100)
    >>> found["baseline"]["variance"] < found["reward_to_go"]["variance"] < found["return"]["variance"]
    True
    """
    if not isinstance(agent, Reinforce) or not hasattr(agent, "certificate_"):
        raise NotFittedError("gradient_variance: expected a Reinforce agent that has learnt")
    check_parameter("gradient_variance", "episodes", episodes, Integer(minimum=2))
    check_parameter("gradient_variance", "batch_size", batch_size, Integer(minimum=2))
    other = Reinforce(agent.features, discount=agent.discount)
    other._tables, other._policy = agent._tables, agent._policy
    given = seed_of(agent.random_state) if seed is None else seed_of(seed)
    other._progress = {"seed": given, "made": 0, "goal": 0, "episode": 0}
    world, batches = Interaction(env, given), []
    for begin in range(0, episodes - 1, batch_size):
        batch = []
        for _ in range(min(batch_size, episodes - begin)):
            rewards, phis, actions, _ = other._play(world, agent.coef_, 1_000_000, False)
            scores = [agent._policy.score(agent.coef_, *pair) for pair in zip(phis, actions, strict=True)]
            batch.append((rewards, np.array(scores)))
        batches.append(batch)
    found = {}
    for weight in WEIGHTS:
        g = np.concatenate([episode_gradients(batch, agent.discount, weight) for batch in batches])
        found[weight] = _moments(g)
    simulator = differentiable(env)
    if simulator is not None and agent._policy.n_states is None:
        found["pathwise"] = _moments(_pathwise(agent, Interaction(env, given), simulator, episodes))
    return found


def _moments(g: Array) -> dict[str, Any]:
    """Of gradients (episodes, p)."""
    spread = g.var(axis=0, ddof=1)
    return {"mean": g.mean(axis=0), "error": np.sqrt(spread / len(g)), "variance": float(spread.sum())}


def _pathwise(agent: Reinforce, world: Interaction, simulator: Any, episodes: int) -> Array:
    """Gradients of the same episodes: an episode draws its noise from the stream of its number."""
    env: Any = world.env
    starts, noise = [], []
    for _ in range(episodes):
        rng = stream(world.seed, "agent", world.episode)
        noise.append(rng.standard_normal((int(env.max_steps), agent._policy.n_outputs)))
        starts.append(world.reset())
    given = agent._policy, agent.coef_, simulator, np.array(starts), np.array(noise), agent.discount
    return pathwise_gradients(*given)[1]
