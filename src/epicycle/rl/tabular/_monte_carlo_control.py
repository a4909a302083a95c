"""Monte Carlo control: values are means of returns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle._native import rl as native
from epicycle.core._exceptions import ConvergenceWarning, ParameterError
from epicycle.core._parameters import Boolean, Choice, Domain
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._schedules import EpsilonGreedy, VisitDecay, exploration_of
from epicycle.rl.tabular._table_agent import TABLE_DEFAULTS, TableAgent, TableArguments
from epicycle.rl.tabular._table_world import TableWorld

Array = np.ndarray


class MonteCarloAgent(TableAgent):
    """A table that moves at the ends of episodes."""

    _docs: ClassVar[dict[str, str]] = {
        "visits": 'visits : {"first", "every"}, default={default}\n'
        "    Whether the return after the first visit of an episode counts, or those after all.",
    }
    _parameters: ClassVar[Mapping[str, Domain]] = {"visits": Choice("first", "every")}

    visits: str
    off_policy: bool = False

    def _new_tables(self, n_states: int, n_actions: int) -> dict[str, Array]:
        tables = super()._new_tables(n_states, n_actions)
        if self.off_policy:
            tables["second"] = np.zeros(len(tables["q"]))
        return tables

    def _learn_steps(self, kernel: Any, steps: int, most: int, rows: Array) -> tuple[int, int]:
        first = self.visits == "first" and not self.off_policy
        return native.monte_carlo(kernel, *self._at_work(), first, self.off_policy, steps, most, rows)

    def _finish(self, world: TableWorld) -> None:
        super()._finish(world)
        if not self._log.n_episodes:
            warnings.warn(
                f"{type(self).__name__}.learn: no episode ended within {self._progress['made']:,} steps, and nothing "
                "was learnt, since returns are known at the end; make more steps, or cut episodes off with max_steps",
                ConvergenceWarning,
                stacklevel=5,
            )


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class MonteCarloControl(MonteCarloAgent):
    r"""Values of actions as means of the returns that followed them.

    At the end of an episode every visited pair moves to its return
    :math:`G_t = r_{t+1} + \gamma r_{t+2} + \gamma^2 r_{t+3} + \ldots`, with the default learning rate 1/n to the mean
    of all of them. No value of another state enters, except where an episode was cut off.

    On the policy, values are those of the policy that explores. *Off the policy* they are those of the greedy one:
    returns are weighted by :math:`\prod 1 / b(a_k \mid s_k)` over the steps that follow, where b is the policy that
    acts and all these steps were greedy (weighted importance sampling).

    Parameters
    ----------
    off_policy : bool, default=False
        Whether to learn the values of the greedy policy; always from every visit.
    learning_rate : float, LinearDecay, ExponentialDecay or VisitDecay, default=VisitDecay()
        Share of the way to a return; not used off the policy.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import MonteCarloControl
    >>> grid = MDPEnvironment(worlds.grid_world("...+\n.#.-\n...."), start=(2, 0), max_steps=100)
    >>> agent = MonteCarloControl(random_state=0).learn(grid, 100_000)
    >>> agent.evaluate(grid, 200, seed=0).mean > 0.5
    True
    """

    _target: ClassVar[str] = "q_learning"
    _parameters: ClassVar[Mapping[str, Domain]] = {"off_policy": Boolean()}

    @stores_arguments(**{**TABLE_DEFAULTS, "learning_rate": VisitDecay()})
    def __init__(
        self,
        *,
        visits: str = "first",
        off_policy: bool = False,
        **shared: Unpack[TableArguments],
    ) -> None: ...

    def _settings(self) -> tuple[Any, ...]:
        ways = exploration_of("MonteCarloControl: exploration", self.exploration)
        if self.off_policy and not isinstance(ways, EpsilonGreedy):
            raise ParameterError(
                f"MonteCarloControl: exploration={ways!r} with off_policy=True; expected EpsilonGreedy, under which "
                "every action has a probability above zero"
            )
        return super()._settings()
