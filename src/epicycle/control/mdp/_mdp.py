"""`MDP`: a finite Markov decision process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.mdp import _mdp_inputs as inputs
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._parameters import Choice, Real, check_parameter

Array = np.ndarray
CRITERIA = ("discounted", "total", "average")


@documented({})
class MDP:
    r"""Finite Markov decision process :math:`(S, A, P_{sa}, \gamma, R)`.

    From state :math:`s` an action :math:`a` leads to state :math:`s'` with probability :math:`P_{sa}(s')`. A policy
    :math:`\pi` is measured by the value of its states,

    .. math:: V^\pi(s) = \mathrm{E}\Big[\sum_{t \ge 0} \gamma^t R(s_t, a_t) \,\Big|\, s_0 = s, \pi\Big],
              \qquad V^*(s) = \max_a \Big\{ R(s, a) + \gamma \sum_{s'} P_{sa}(s') V^*(s') \Big\} .

    Planners such as :func:`value_iteration` take the process and return a :class:`PlanningSolution`.

    Parameters
    ----------
    transitions : array (S, A, S) or sequence of A matrices (S, S), dense or sparse
        Probabilities :math:`P_{sa}(s')`; each row adds up to one. A row of zeros means that the action is not
        available in that state.
    rewards : array (S,), (S, A) or (S, A, S), or sequence of A matrices (S, S)
        :math:`R(s)`, :math:`R(s, a)` or :math:`R(s, a, s')`.
    discount : float, default=0.99
        :math:`\gamma`. It has to be 1 for the total reward and is not used for the average reward.
    terminal : array of states (indices or labels) or mask (S,), optional
        States where the process ends. Their value is :math:`R(s)` where rewards depend on the state alone, otherwise 0;
        their rows of probabilities are not used.
    criterion : {"discounted", "total", "average"}, optional
        The sum of discounted rewards, the sum up to the end (discount 1: terminal states have to be within reach), or
        the long-run mean for one step. None means "discounted", or "total" when the discount is 1.
    states, actions : sequences, optional
        Labels, for `policy`, errors and plots; by default 0, 1, ...

    Attributes
    ----------
    n_states, n_actions, n_pairs : int
        Sizes; a pair is a state with an action that is available in it.
    transitions_ : scipy.sparse.csr_array (n_pairs, S)
        Probabilities by pair, pairs in the order of states, then actions.
    rewards_ : array (n_pairs,)
        Expected reward of each pair.
    pair_start_ : array (S + 1,)
        Where the pairs of each state begin.
    pair_action_ : array (n_pairs,)
        Index of the action of each pair.
    terminal_values_ : array (S,)
        Values of terminal states, zero elsewhere.

    See Also
    --------
    value_iteration, policy_iteration, modified_policy_iteration, linear_program, backward_induction

    Examples
    --------
    Stay for 1, or risk everything for 3:

    >>> import numpy as np
    >>> from epicycle.control import MDP, value_iteration
    >>> P = np.array([[[1.0, 0.0], [0.4, 0.6]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> mdp = MDP(P, [[1.0, 3.0], [0.0, 0.0]], discount=0.9, actions=["stay", "risk"])
    >>> solution = value_iteration(mdp)
    >>> solution.policy
    array(['stay', 'stay'], dtype='<U4')
    >>> solution.values.round(6)
    array([10.,  0.])
    """

    _docs = {"discount": "discount, criterion\n    As for the class."}  # noqa: RUF012

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        discount: float = 0.99,
        *,
        terminal: Any = None,
        criterion: str | None = None,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
    ) -> None:
        matrices = inputs.transition_matrices(transitions)
        n, m = matrices[0].shape[0], len(matrices)
        labels = inputs.labels("states", states, n), inputs.labels("actions", actions, m)
        ends = inputs.state_mask("terminal", terminal, n, labels[0])
        P, start, action = inputs.pairs_of(matrices, ends, *labels)
        R, final = inputs.pair_rewards(rewards, P, start, action, ends, m)
        self._set(P, R, start, action, final, discount, criterion, *labels)

    def _set(
        self,
        P: sp.csr_array,
        R: Array,
        start: Array,
        action: Array,
        final: Array,
        discount: float,
        criterion: str | None,
        states: Array,
        actions: Array,
    ) -> None:
        check_parameter("MDP", "discount", discount, Real(0, 1))
        if criterion is None:
            criterion = "total" if discount == 1 else "discounted"
        check_parameter("MDP", "criterion", criterion, Choice(*CRITERIA))
        self.criterion, self.discount = criterion, 1.0 if criterion == "average" else float(discount)
        self.states, self.actions = states, actions
        self.transitions_, self.rewards_, self.pair_start_, self.pair_action_ = P, R, start, action
        self.terminal_values_ = final
        self._check_criterion(float(discount))

    @classmethod
    def from_function(
        cls,
        transitions: Callable[[Any, Any], Iterable[Sequence[Any]]],
        states: Iterable[Hashable],
        actions: Iterable[Hashable] | Callable[[Any], Iterable[Hashable]],
        discount: float = 0.99,
        *,
        criterion: str | None = None,
        explore: bool = False,
    ) -> MDP:
        """Process of a function that lists what can follow a state and an action.

        Parameters
        ----------
        transitions : callable
            ``transitions(s, a)`` gives tuples ``(probability, next state, reward)`` or ``(probability, next state,
            reward, done)``; with `done` the process ends with that step.
        states : iterable
            All states, or, with `explore`, those to start from.
        actions : iterable or callable
            The actions, or a function that gives those of a state; a state without actions is terminal.
        explore : bool, default=False
            Add the states that are reached from `states`.

        Examples
        --------
        >>> from epicycle.control import MDP, policy_iteration
        >>> step = lambda s, a: [(0.8, s + a, -1.0), (0.2, s, -1.0)]
        >>> walk = MDP.from_function(step, [2], lambda s: [-1, 1] if abs(s) < 3 else [], discount=1, explore=True)
        >>> sorted(walk.states.tolist())
        [-3, -2, -1, 0, 1, 2, 3]
        >>> policy_iteration(walk).values[0].round(6)
        np.float64(-1.25)
        """
        mdp = cls.__new__(cls)
        parts = inputs.pairs_of_function(transitions, states, actions, explore)
        mdp._set(*parts[:5], discount, criterion, *parts[5:])
        return mdp

    @classmethod
    def from_gymnasium(cls, env: Any, discount: float = 0.99, *, criterion: str | None = None) -> MDP:
        """Process of a Gymnasium environment that shows its table of transitions (``env.unwrapped.P``).

        Parameters
        ----------
        env : gymnasium.Env
            FrozenLake, Taxi, CliffWalking and others of its toy texts.
        """
        table = getattr(getattr(env, "unwrapped", env), "P", None)
        if table is None:
            raise DataError(
                f"env={env!r:.80}: expected an environment with a table of transitions, `P[state][action]`; learn "
                "dynamics from trajectories of others"
            )
        return cls.from_function(
            lambda s, a: table[s][a], list(table), lambda s: list(table[s]), discount, criterion=criterion
        )

    # ------------------------------------------------------------------------------------------------ sizes

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.transitions_.shape[1])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def n_pairs(self) -> int:
        """Number of states with an action that is available there."""
        return int(self.transitions_.shape[0])

    @property
    def is_terminal(self) -> Array:
        """Mask of the terminal states, those without actions."""
        return np.asarray(np.diff(self.pair_start_) == 0)

    def __repr__(self) -> str:
        terminal = int(self.is_terminal.sum())
        return (
            f"MDP({self.n_states} states, {self.n_actions} actions, {terminal} terminal, {self.criterion}, "
            f"discount={self.discount:g})"
        )

    # ------------------------------------------------------------------------------------------------ policies

    def pair_index(self, policy: Any) -> Array:
        """Pairs that a policy chooses, -1 in terminal states.

        Parameters
        ----------
        policy : array (S,)
            Labels of actions; entries of terminal states are not looked at.

        Returns
        -------
        array (S,) of int
        """
        given = np.asarray(policy)
        if given.shape != (self.n_states,):
            raise DataError(f"policy: expected an action for each of {self.n_states} states, got shape {given.shape}")
        place = {label: i for i, label in enumerate(self.actions.tolist())}
        owner = self._pair_state()
        lookup = {(int(s), int(a)): k for k, (s, a) in enumerate(zip(owner, self.pair_action_, strict=True))}
        chosen = np.full(self.n_states, -1, dtype=np.int64)
        for s in np.flatnonzero(~self.is_terminal):
            label = given[s].item() if isinstance(given[s], np.generic) else given[s]
            pair = lookup.get((int(s), place.get(label, -1)))
            if pair is None:
                raise DataError(f"policy: action {label!r} is not available in state {inputs.shown(self.states, s)}")
            chosen[s] = pair
        return chosen

    def policy_chain(self, choice: Array) -> tuple[sp.csr_array, Array]:
        """Transition matrix and rewards of the Markov chain under the chosen pairs; terminal rows are empty."""
        acts = choice >= 0
        chosen = sp.csr_array(self.transitions_[choice[acts]])
        lengths = np.zeros(self.n_states, dtype=chosen.indptr.dtype)
        lengths[acts] = np.diff(chosen.indptr)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(chosen.indptr.dtype)
        r = np.zeros(self.n_states)
        r[acts] = self.rewards_[choice[acts]]
        return sp.csr_array((chosen.data, chosen.indices, start), shape=(self.n_states, self.n_states)), r

    def action_labels(self, choice: Array) -> Array:
        """Labels of the actions of chosen pairs; a terminal state gets the first one."""
        action = np.zeros(self.n_states, dtype=np.int64)
        action[choice >= 0] = self.pair_action_[choice[choice >= 0]]
        return np.asarray(self.actions[action])

    def unreachable_states(self) -> Array:
        """States that no action of another state leads to: only a start can put the process there.

        Returns
        -------
        array of labels
        """
        P = self.transitions_.tocoo()
        others = (P.data > 0) & (self._pair_state()[P.row] != P.col)
        return np.asarray(self.states[np.bincount(P.col[others], minlength=self.n_states) == 0])

    def _pair_state(self) -> Array:
        return np.repeat(np.arange(self.n_states), np.diff(self.pair_start_))

    def _check_criterion(self, discount: float) -> None:
        ends = self.is_terminal
        if self.criterion == "discounted" and discount == 1:
            raise ParameterError(
                "discount=1 with criterion='discounted'; expected a discount below 1, or 'total' or 'average'"
            )
        if self.criterion == "average" and (ends.any() or self._stops().any()):
            raise DataError(
                "criterion='average': the process ends in terminal states, where the mean reward of a step has no "
                "meaning; expected none"
            )
        if self.criterion == "total":
            if discount != 1:
                raise ParameterError(f"discount={discount!r} with criterion='total'; expected 1")
            stuck = inputs.cannot_end(self.transitions_, self._pair_state(), ends, self._stops())
            if stuck.any():
                s = inputs.shown(self.states, np.argmax(stuck))
                raise DataError(
                    f"criterion='total': no terminal state can be reached from state {s} ({int(stuck.sum())} such "
                    "states), so that its sum of rewards does not end; expected terminal states or discount < 1"
                )

    @cached_property
    def _may_stop(self) -> Array:
        # Asked for after every sweep, and as dear as one.
        return np.asarray(self.transitions_.sum(axis=1)).ravel() < 1 - inputs.SUM_TOLERANCE

    def _stops(self) -> Array:
        """Pairs after which the process can end without a terminal state."""
        return self._may_stop
