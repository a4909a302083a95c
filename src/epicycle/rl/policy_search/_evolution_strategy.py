r"""Evolution strategy (Salimans et al. 2017): the gradient of the return of policies around the present one.

J_s(theta) = E J(theta + s e),  e ~ N(0, I),        grad J_s = E (J(theta + s e) - J(theta - s e)) e / (2 s)

estimated by pairs +e, -e, each in the same scenario, and climbed by Adam's steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import Boolean, Domain, Integer, Real
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._adam import climb, climbing_tables
from epicycle.rl.policy_search._linear_policy import LinearPolicy
from epicycle.rl.policy_search._policy_agent import PolicyAgent

Array = np.ndarray


@in_catalogue("rl", "G8", certificate="none")
class EvolutionStrategy(PolicyAgent):
    r"""Policy search by differences: the policy moves to where its neighbours earn more.

    .. math:: \nabla J_\sigma(\theta) \approx \frac{1}{2 n \sigma} \sum_{i=1}^n
              \big(J(\theta + \sigma \varepsilon_i) - J(\theta - \sigma \varepsilon_i)\big)\, \varepsilon_i

    Both policies of a pair meet the same scenario, so that their difference is due to them. With `ranks` returns are
    replaced by their ranks, and single lucky episodes do not lead. Policies are linear in features and draw nothing.

    Parameters
    ----------
    pairs : int, default=10
        n, pairs of episodes for a step.
    spread : float, default=0.5
        :math:`\sigma`.
    ranks : bool, default=True
        Whether returns of a round count by their ranks, from -1/2 to 1/2.
    learning_rate : float, default=0.1
        Length of a step of Adam.
    discount : float, default=1
        Discount of the return by which policies are compared.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import EvolutionStrategy
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = EvolutionStrategy(random_state=0).learn(env, 12_000)
    >>> agent.evaluate(env, 10, seed=0).mean > 80
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "pairs": Integer(minimum=1),
        "spread": Real(0, inclusive=False),
        "ranks": Boolean(),
        "learning_rate": Real(0, inclusive=False),
    }

    pairs: int
    spread: float
    ranks: bool
    learning_rate: float

    @stores_arguments
    def __init__(
        self,
        features: Callable[[Array], Any] | None = None,
        *,
        pairs: int = 10,
        spread: float = 0.5,
        ranks: bool = True,
        learning_rate: float = 0.1,
        discount: float = 1.0,
        random_state: Seed = None,
    ) -> None: ...

    def _new_tables(self, policy: LinearPolicy) -> dict[str, Array]:
        return climbing_tables(policy.size)

    def _advance(self, world: Interaction, most: int) -> int:
        theta, first, made = self._tables["theta"], world.episode, 0
        e = stream(self._progress["seed"], "directions", first).standard_normal((self.pairs, len(theta)))
        values: list[float] = []
        for i in range(2 * self.pairs):
            world.episode = first + i // 2  # of a pair both meet the same
            given = theta + (1 - 2 * (i % 2)) * self.spread * e[i // 2]
            rewards, _, _, over = self._play(world, given, most - made, True)
            made += len(rewards)
            if not over:  # a round that the last step of the call cuts off changes nothing
                break
            values.append(float(rewards @ self.discount ** np.arange(len(rewards))))
            self._record(made, rewards, self.discount)
            if made >= most:
                break
        if len(values) == 2 * self.pairs:
            climb(self._tables, pair_gradient(np.array(values), e, self.spread, self.ranks), self.learning_rate)
        self._progress["episode"] = world.episode
        return made


def pair_gradient(values: Array, e: Array, spread: float, ranks: bool) -> Array:
    """Gradient from returns (2n,) of theta + spread e_i and theta - spread e_i in turn."""
    if ranks:
        order = np.unique(values, return_inverse=True)[1]  # equal returns have equal ranks
        values = order / max(int(order.max()), 1) - 0.5
    return np.asarray((values[::2] - values[1::2]) @ e / (2 * len(e) * spread))
