"""SARSA and expected SARSA: the values of the policy that acts."""

from __future__ import annotations

from typing import ClassVar, Unpack

from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl.tabular._table_agent import TABLE_DEFAULTS, TableArguments
from epicycle.rl.tabular._td_control import TemporalDifferenceAgent


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class SARSA(TemporalDifferenceAgent):
    r"""Values of the policy that acts, from the action that it takes next.

    .. math:: Q(s, a) \leftarrow Q(s, a) + \alpha \big(r + \gamma\, Q(s', a') - Q(s, a)\big)

    Because a' explores as well, the values know what exploring costs, and the policy keeps away from where it is dear.
    With `n_steps` the target is :math:`r_1 + \gamma r_2 + \ldots + \gamma^n Q(s_n, a_n)`, with `trace_decay` the mean
    of these over all n with weights :math:`(1 - \lambda) \lambda^{n - 1}`, by traces.

    See Also
    --------
    QLearning : Learns the best policy, whatever the exploration costs.

    Examples
    --------
    >>> from epicycle.control import MDPEnvironment, worlds
    >>> from epicycle.rl import SARSA
    >>> cliff = MDPEnvironment(worlds.cliff_walk(), start=(3, 0), max_steps=1000)
    >>> agent = SARSA(learning_rate=0.5, discount=1.0, random_state=0).learn(cliff, 50_000)
    >>> agent.evaluate(cliff, 10, seed=0).mean < -13  # not along the edge
    True
    """

    _target: ClassVar[str] = "sarsa"

    @stores_arguments(**TABLE_DEFAULTS)
    def __init__(
        self,
        *,
        n_steps: int = 1,
        trace_decay: float = 0.0,
        trace: str = "replacing",
        **shared: Unpack[TableArguments],
    ) -> None: ...


@in_catalogue("rl", "G9", certificate="loss of the greedy policy")
class ExpectedSARSA(TemporalDifferenceAgent):
    r"""Values of the policy that acts, from the mean over what it may do next.

    .. math:: Q(s, a) \leftarrow Q(s, a) + \alpha \Big(r + \gamma \sum_b \pi(b \mid s') Q(s', b) - Q(s, a)\Big)

    The same values as those of :class:`SARSA`, without the noise of the next action, so that larger learning rates can
    be used.

    Examples
    --------
    >>> from epicycle.control import worlds
    >>> from epicycle.rl import ExpectedSARSA
    >>> agent = ExpectedSARSA(discount=0.95, random_state=0).learn(worlds.river_swim(), 1000)
    >>> agent.q_.shape
    (6, 2)
    """

    _target: ClassVar[str] = "expected_sarsa"

    @stores_arguments(**TABLE_DEFAULTS)
    def __init__(
        self,
        *,
        n_steps: int = 1,
        **shared: Unpack[TableArguments],
    ) -> None: ...
