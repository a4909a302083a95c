"""Values of the states of a policy that is given: temporal differences and Monte Carlo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._exceptions import DataError
from epicycle.core._parameters import ArrayLike, Boolean, Domain, NoneOr
from epicycle.core.estimator import in_catalogue
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.rl._evaluation import state_number
from epicycle.rl._schedules import VisitDecay, numbers_of
from epicycle.rl.tabular._monte_carlo_control import MonteCarloAgent
from epicycle.rl.tabular._table_agent import GIVEN_POLICY, TARGETS, TableAgent, TableArguments
from epicycle.rl.tabular._table_certificate import error_of_values
from epicycle.rl.tabular._table_world import TableWorld
from epicycle.rl.tabular._td_control import TemporalDifferenceAgent

Array = np.ndarray


class Prediction(TableAgent):
    """Values of states under a policy that does not change."""

    _target: ClassVar[str] = "state_values"
    _parameters: ClassVar[Mapping[str, Domain]] = {"policy": NoneOr(ArrayLike())}
    _docs: ClassVar[dict[str, str]] = {
        "policy": "policy : array (S,) or (S, A), optional\n"
        "    Number of the action in each state, or probabilities of all actions; by default all that are available "
        "alike.",
        "values_": "values_ : array (S,)\n    Values of the states.",
        "visits_": "visits_ : array (S,)\n    Number of updates of each value.",
        "policy_": "policy_ : array (S, A)\n    Probabilities of the actions.",
    }
    _documented_attributes: ClassVar[tuple[str, ...]] = ()

    policy: Any

    def _settings(self) -> tuple[Any, ...]:
        rate = numbers_of(f"{type(self).__name__}: learning_rate", self.learning_rate, high=1.0)
        return float(self.discount), TARGETS[self._target], GIVEN_POLICY, rate, (0.0, 0.0, 0.0, 1.0)

    def _prepare_tables(self) -> None:
        self.policy_ = policy_probabilities(self.policy, self._allowed)
        cumulated = np.cumsum(self.policy_, axis=1)
        last = self.policy_.shape[1] - 1 - np.argmax(self.policy_[:, ::-1] > 0, axis=1)
        for row, at in zip(cumulated, last, strict=True):
            row[at:] = 1.0  # rounding
        self._tables["policy"] = cumulated.ravel()

    def _read_tables(self) -> None:
        self.values_, self.visits_ = self._tables["q"].copy(), self._tables["visits"].copy()

    def _conclude(self, world: TableWorld) -> None:
        self._read_tables()
        found = error_of_values(world.interaction.env, self.discount, self.values_, self.policy_)
        if found is not None:
            self.certificate_ = found

    def act(self, observation: Any, deterministic: bool = True) -> int:
        """Action of the policy in a state.

        Parameters
        ----------
        deterministic : bool, default=True
            Whether to take the most probable action; otherwise one is drawn.
        """
        self._require_learnt()
        p = self.policy_[state_number(observation, len(self.policy_))]
        return int(p.argmax()) if deterministic else self._drawn(p)

    def _restore_learnt(self, state: dict[str, Any]) -> None:
        super()._restore_learnt(state)
        self._prepare_tables()


def policy_probabilities(policy: Any, allowed: Array) -> Array:
    """A policy as probabilities (S, A)."""
    n, m = allowed.shape
    if policy is None:
        return np.asarray(allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1), dtype=np.float64)
    given = np.asarray(policy)
    if given.shape == (n,):
        if not (given == np.floor(given)).all() or given.min() < 0 or given.max() >= m:
            raise DataError(f"policy: expected numbers of actions from 0 to {m - 1}, got {given!r:.80}")
        p = np.eye(m)[given.astype(np.int64)]
    elif given.shape == (n, m):
        p = given.astype(np.float64)
    else:
        raise DataError(f"policy: got shape {given.shape}; expected ({n},) or ({n}, {m})")
    if not np.isfinite(p).all() or (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("policy: expected probabilities that add up to one in every state")
    if (p * (allowed == 0)).any():
        s, a = np.argwhere(p * (allowed == 0))[0]
        raise DataError(f"policy: action {a} is not available in state {s}")
    return np.asarray(p / p.sum(axis=1, keepdims=True))


@in_catalogue("rl", "G9", certificate="error of the values")
class TDPrediction(Prediction, TemporalDifferenceAgent):
    r"""Values of the states of a given policy by temporal differences.

    .. math:: V(s) \leftarrow V(s) + \alpha \big(r + \gamma V(s') - V(s)\big)

    With `n_steps` rewards before V takes over, or along traces with `trace_decay`
    :math:`\lambda`: 0 is TD(0), and with 1, offline and accumulating traces the changes are those of Monte Carlo.

    Parameters
    ----------
    trace : {"accumulating", "replacing", "dutch"}, default="accumulating"
        What a visit does to a trace: add 1, set it to 1, or shrink it by the learning rate and add 1.
    offline : bool, default=False
        Whether the values change at the end of an episode only, by the sum of all changes.

    Examples
    --------
    The symmetric random walk of five states ends on the right with probabilities 1/6, ..., 5/6:

    >>> from epicycle.control import worlds
    >>> from epicycle.rl import TDPrediction, VisitDecay
    >>> walk = worlds.random_walk(5)
    >>> agent = TDPrediction(learning_rate=VisitDecay(0.8), discount=1.0, random_state=0).learn(walk, 200_000)
    >>> agent.values_[1:-1].round(1).tolist()
    [0.2, 0.3, 0.5, 0.7, 0.8]
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {"offline": Boolean()}

    @stores_arguments(learning_rate=0.1, discount=0.99, initial_value=0.0, random_state=None)
    def __init__(
        self,
        policy: Any = None,
        *,
        n_steps: int = 1,
        trace_decay: float = 0.0,
        trace: str = "accumulating",
        offline: bool = False,
        **shared: Unpack[TableArguments],
    ) -> None: ...


@in_catalogue("rl", "G9", certificate="error of the values")
class MonteCarloPrediction(Prediction, MonteCarloAgent):
    r"""Values of the states of a given policy as means of the returns that followed them.

    .. math:: V(s) \leftarrow V(s) + \alpha_n \big(G - V(s)\big), \qquad
              G = r_1 + \gamma r_2 + \gamma^2 r_3 + \ldots

    With the default learning rate 1/n the value is the mean of all returns; a constant one forgets old returns.

    Parameters
    ----------
    learning_rate : float, LinearDecay, ExponentialDecay or VisitDecay, default=VisitDecay()
        Share of the way to a return.

    Examples
    --------
    >>> from epicycle.control import worlds
    >>> from epicycle.rl import MonteCarloPrediction
    >>> agent = MonteCarloPrediction(discount=1.0, random_state=0).learn(worlds.random_walk(5), 200_000)
    >>> agent.values_[1:-1].round(1).tolist()
    [0.2, 0.3, 0.5, 0.7, 0.8]
    """

    @stores_arguments(learning_rate=VisitDecay(), discount=0.99, initial_value=0.0, random_state=None)
    def __init__(
        self,
        policy: Any = None,
        *,
        visits: str = "first",
        **shared: Unpack[TableArguments],
    ) -> None: ...
