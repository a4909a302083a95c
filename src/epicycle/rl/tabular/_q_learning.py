"""Q-learning and double Q-learning: the values of the best policy, whatever acts."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl.tabular._table_agent import TABLE_DEFAULTS, TableArguments
from epicycle.rl.tabular._td_control import TemporalDifferenceAgent


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class QLearning(TemporalDifferenceAgent):
    r"""Values of the best policy, learnt while another one acts (Watkins).

    .. math:: Q(s, a) \leftarrow Q(s, a) + \alpha \big(r + \gamma \max_b Q(s', b) - Q(s, a)\big)

    With learning rates such as ``VisitDecay(0.8)``, and if every action is tried again and again, Q converges to the
    values of the best policy. With `trace_decay` earlier steps learn too, back to the last action that was not greedy.

    On a decision process the steps are drawn and learnt from in compiled code, millions in a second; other environments
    are asked step by step.

    See Also
    --------
    DoubleQLearning : Without the bias of the maximum.
    SARSA : Learns what its own exploration costs.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import QLearning
    >>> cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
    >>> agent = QLearning(learning_rate=0.5, discount=1.0, random_state=0).learn(cliff, 50_000)
    >>> agent.evaluate(cliff, 10, seed=0).mean  # along the edge
    -13.0
    >>> agent.certificate_.holds
    True
    """

    _target: ClassVar[str] = "q_learning"

    @stores_arguments(**TABLE_DEFAULTS)
    def __init__(
        self,
        *,
        trace_decay: float = 0.0,
        trace: str = "replacing",
        **shared: Unpack[TableArguments],
    ) -> None: ...


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class DoubleQLearning(TemporalDifferenceAgent):
    r"""Values of the best policy from two tables, one that chooses and one that judges (van Hasselt).

    The maximum of noisy values is too large on average. So at each step a coin names one of two tables, which moves to

    .. math:: r + \gamma\, Q_2\big(s', \arg\max_b Q_1(s', b)\big),

    and actions are chosen by the sum of both.

    Examples
    --------
    >>> from epicycle.control import worlds
    >>> from epicycle.rl import DoubleQLearning
    >>> agent = DoubleQLearning(discount=0.95, random_state=0).learn(worlds.river_swim(), 1000)
    >>> agent.q_.shape
    (6, 2)
    """

    _target: ClassVar[str] = "double_q_learning"

    @stores_arguments(**TABLE_DEFAULTS)
    def __init__(
        self,
        **shared: Unpack[TableArguments],
    ) -> None: ...

    def _table(self) -> np.ndarray:
        return np.asarray((self._tables["q"] + self._tables["second"]).reshape(self._allowed.shape) / 2)
