"""Cross-entropy method: draw policies from a normal law, keep the best, fit the law to them, again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from epicycle.core._parameters import Domain, Integer, Real
from epicycle.core._random import Seed, stream
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._linear_policy import LinearPolicy
from epicycle.rl.policy_search._policy_agent import PolicyAgent

Array = np.ndarray


@in_catalogue("rl", "G8", certificate="none")
class CrossEntropyMethod(PolicyAgent):
    r"""Policy search without gradients: policies are drawn, and the law they are drawn from moves to the best.

    In each round `population` parameter vectors are drawn from :math:`N(\mu, \mathrm{diag}(\sigma^2))` and tried for
    one episode each; :math:`\mu` and :math:`\sigma` become mean and standard deviation of the best of them. Noise that
    is added to :math:`\sigma^2` and falls with the rounds keeps it from closing too early (Szita and Lorincz). Policies
    are linear in features and draw nothing.

    Parameters
    ----------
    population : int, default=40
        Policies of a round.
    elite : float, default=0.2
        Share of them that is kept.
    spread : float, default=1
        Standard deviation at first.
    noise : float, default=0.2
        Variance that is added, less by a tenth in each round.
    discount : float, default=1
        Discount of the return by which policies are compared.

    Examples
    --------
    >>> from epicycle.control import CartPole
    >>> from epicycle.rl import CrossEntropyMethod
    >>> env = CartPole().environment(max_steps=100)
    >>> agent = CrossEntropyMethod(random_state=0).learn(env, 12_000)
    >>> agent.evaluate(env, 10, seed=0).mean > 80
    True
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        "population": Integer(minimum=4),
        "elite": Real(0, 1, inclusive=False),
        "spread": Real(0, inclusive=False),
        "noise": Real(0),
    }

    population: int
    elite: float
    spread: float
    noise: float

    @stores_arguments
    def __init__(
        self,
        features: Callable[[Array], Any] | None = None,
        *,
        population: int = 40,
        elite: float = 0.2,
        spread: float = 1.0,
        noise: float = 0.2,
        discount: float = 1.0,
        random_state: Seed = None,
    ) -> None: ...

    def _new_tables(self, policy: LinearPolicy) -> dict[str, Array]:
        sd = np.full(policy.size, float(self.spread))
        return {"theta": np.zeros(policy.size), "sd": sd, "rounds": np.zeros(1, dtype=int)}

    def _advance(self, world: Interaction, most: int) -> int:
        t, made, over = self._tables, 0, True
        n = int(t["rounds"][0])
        rng = stream(self._progress["seed"], "population", n)
        drawn = t["theta"] + t["sd"] * rng.standard_normal((self.population, len(t["theta"])))
        values: list[float] = []
        for theta in drawn:
            if made >= most or not over:
                break
            rewards, _, _, over = self._play(world, theta, most - made, True)
            made += len(rewards)
            if over:
                values.append(float(rewards @ self.discount ** np.arange(len(rewards))))
                self._record(made, rewards, self.discount)
        if len(values) == self.population:  # a round that was cut off changes nothing
            best = drawn[np.argsort(values, kind="stable")[::-1][: max(round(self.elite * self.population), 2)]]
            t["theta"][:] = best.mean(axis=0)
            t["sd"][:] = np.sqrt(best.var(axis=0) + self.noise * 0.9**n)
            t["rounds"] += 1
        self._progress["episode"] = world.episode
        return made
