r"""Dyna-Q and prioritised sweeping: a model is counted on the way, and after each step values learn from it, too.

n(s, a, s') counts what followed; the target of a value under the model is

    T(s, a) = sum_s' n(s, a, s') / n(s, a) (r(s, a, s') + discount max_b Q(s', b)),   r the mean reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle._native import rl as native
from epicycle.core._parameters import Domain, Integer, Real
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl.tabular._table_agent import TABLE_DEFAULTS, TableAgent, TableArguments

Array = np.ndarray
_COLUMNS = ("pair", "next", "ended", "count", "reward")  # of an outcome


class PlanningAgent(TableAgent):
    """A table that learns from steps and from a model of them."""

    _docs: ClassVar[dict[str, str]] = {
        "planning_steps": "planning_steps : int, default={default}\n"
        "    Updates from the model after each step, at most.",
        "visits_": "visits_ : array (S, A)\n    Number of steps that were made from each state by each action.",
        "model_": "model_ : dict of arrays\n    What followed the pairs that were tried: state, action, next state, "
        "end, how often, mean reward.",
        "n_updates_": "n_updates_ : int\n    Updates of values, after steps and from the model.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ("model_", "n_updates_")
    _target: ClassVar[str] = "q_learning"
    _parameters: ClassVar[Mapping[str, Domain]] = {"planning_steps": Integer(minimum=0)}

    planning_steps: int
    threshold: float = 0.0
    _sweeping: ClassVar[bool] = False
    _model: Any

    def _new_tables(self, n_states: int, n_actions: int) -> dict[str, Array]:
        tables = super()._new_tables(n_states, n_actions)
        tables["priority"] = np.zeros(n_states * n_actions if self._sweeping else 0)
        tables["updates"] = np.zeros(1, dtype=np.int64)
        self._model = native.TransitionModel(n_states, n_actions)
        return tables

    def _learn_steps(self, kernel: Any, steps: int, most: int, rows: Array) -> tuple[int, int]:
        # A step comes with updates: fewer of them between two looks at the clock.
        chunk = max(min(steps, steps // (1 + self.planning_steps)), min(steps, 64))
        return native.plan(
            kernel,
            *self._at_work(),
            self._model,
            self._tables["priority"],
            self._tables["updates"],
            int(self.planning_steps),
            float(self.threshold),
            chunk,
            rows,
        )

    @property
    def n_updates_(self) -> int:
        """Updates of values, after steps and from the model."""
        self._require_learnt()
        return int(self._tables["updates"][0])

    @property
    def model_(self) -> dict[str, Array]:
        """Outcomes of the pairs that were tried: state, action, next state, end, how often, mean reward."""
        self._require_learnt()
        pair, after, ended, count, reward = self._model.outcomes()
        state, action = np.divmod(pair, self._allowed.shape[1])
        return {
            "state": state,
            "action": action,
            "next_state": after,
            "terminated": ended.astype(bool),
            "count": count.astype(np.int64),
            "mean_reward": reward / count,
        }

    def _learnt(self) -> dict[str, Any]:
        outcomes = dict(zip(_COLUMNS, self._model.outcomes(), strict=True))
        return {**super()._learnt(), **{f"model_{name}": array for name, array in outcomes.items()}}

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        super()._restore_learnt({name: table for name, table in state.items() if not name.startswith("model_")})
        self._model = native.TransitionModel(*self._allowed.shape)
        pair, after, ended, count, reward = (np.asarray(state[f"model_{name}"]) for name in _COLUMNS)
        self._model.see(pair, after, ended.astype(bool), count, reward)


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class DynaQ(PlanningAgent):
    r"""Q-learning from steps and from remembered steps (Sutton).

    What follows each state and action is counted. After every step, `planning_steps` pairs that were tried before are
    drawn, each with an outcome in proportion to its counts, and learnt from as if they had happened again,

    .. math:: Q(s, a) \leftarrow Q(s, a) + \alpha \big(r + \gamma \max_b Q(s', b) - Q(s, a)\big),

    so that far fewer steps in the environment are needed than by Q-learning, which is `planning_steps` of 0.

    See Also
    --------
    PrioritizedSweeping : Chooses the updates by their size.
    epicycle.control.ModelBasedAgent : Solves the model that it has learnt.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import DynaQ
    >>> cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
    >>> agent = DynaQ(planning_steps=20, learning_rate=0.5, discount=1.0, random_state=0).learn(cliff, 3_000)
    >>> agent.evaluate(cliff, 10, seed=0).mean
    -13.0
    """

    @stores_arguments(**TABLE_DEFAULTS)
    def __init__(
        self,
        *,
        planning_steps: int = 10,
        **shared: Unpack[TableArguments],
    ) -> None: ...


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class PrioritizedSweeping(PlanningAgent):
    r"""Updates from a learnt model, the largest first (Moore and Atkeson; Peng and Williams).

    The model gives every pair that was tried its target

    .. math:: T(s, a) = \sum_{s'} \hat{P}(s' \mid s, a) \big(\hat{r} + \gamma \max_b Q(s', b)\big).

    After each step up to `planning_steps` values take over their targets, those with the largest change first; a state
    that has a new value brings up the pairs that lead to it.

    Parameters
    ----------
    threshold : float, default=1e-4
        Size of a change that is worth an update.

    See Also
    --------
    DynaQ : Draws the pairs that it updates.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import PrioritizedSweeping
    >>> cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
    >>> agent = PrioritizedSweeping(discount=1.0, random_state=0).learn(cliff, 2_000)
    >>> agent.evaluate(cliff, 10, seed=0).mean
    -13.0
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"threshold": Real(0)}
    _sweeping = True
    learning_rate = 1.0  # values take over their targets

    @stores_arguments(exploration=0.1, discount=0.99, initial_value=0.0, random_state=None)
    def __init__(
        self,
        *,
        planning_steps: int = 10,
        threshold: float = 1e-4,
        **shared: Unpack[TableArguments],
    ) -> None: ...
