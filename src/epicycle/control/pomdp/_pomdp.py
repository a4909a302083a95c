"""`POMDP`: a finite decision process whose state is not seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.mdp import _mdp_inputs as mdp_inputs
from epicycle.control.mdp._mdp import MDP
from epicycle.control.pomdp import _pomdp_inputs as inputs
from epicycle.core._checks import count, distribution
from epicycle.core._exceptions import DataError
from epicycle.core._parameters import Real, check_parameter
from epicycle.core._random import Seed, stream

if TYPE_CHECKING:
    from epicycle.hmm import HiddenMarkovModel

Array = np.ndarray


class POMDP:
    r"""Finite partially observed Markov decision process :math:`(S, A, Y, P_{sa}, O, \gamma, R)`.

    The state is not seen. After action :math:`a` has led to :math:`s'` an observation :math:`o` comes with probability
    :math:`O(o \mid s', a)`, and what is known of the state is a belief, updated by Bayes' rule:

    .. math:: b'(s') \propto O(o \mid s', a) \sum_s b(s) P_{sa}(s'), \qquad
              V^*(b) = \max_a \Big\{ \sum_s b(s) R(s, a) + \gamma \sum_o \Pr(o \mid b, a)\, V^*(b'_{ao}) \Big\} .

    Planners such as :func:`heuristic_search_value_iteration` take the process and return a :class:`POMDPSolution`.

    Parameters
    ----------
    transitions : array (S, A, S) or sequence of A matrices (S, S), dense or sparse
        Probabilities :math:`P_{sa}(s')`; every action is available in every state.
    observations : array (S, O) or (S, A, O), or sequence of A matrices (S, O)
        Probabilities of observations in the state that was reached, and under the action that led there.
    rewards : array (S,), (S, A), (S, A, S) or (S, A, S, O), or sequence of A matrices (S, S)
        :math:`R(s)`, :math:`R(s, a)`, :math:`R(s, a, s')` or :math:`R(s, a, s', o)`.
    discount : float, default=0.95
        :math:`\gamma`. It may be 1 for a finite horizon only.
    start : array (S,), optional
        Belief at the start; by default all states are equally probable.
    terminal : array of states (indices or labels) or mask (S,), optional
        States where the process ends, whatever the action. Their value is :math:`R(s)` where rewards depend on the
        state alone, otherwise 0. That it goes on says that it was in none of them.
    states, actions, observation_labels : sequences, optional
        Labels, for policies, errors and plots; by default 0, 1, ...

    Attributes
    ----------
    n_states, n_actions, n_observations : int
        Sizes.
    transitions_ : scipy.sparse.csr_array (A S, S)
        Probabilities, by action, then state; rows of terminal states are empty.
    rewards_ : array (A, S)
        Expected rewards.
    observations_ : array (A, S, O)
        Probabilities of observations.
    terminal_values_ : array (S,)
        Values of terminal states, zero elsewhere.

    See Also
    --------
    incremental_pruning, heuristic_search_value_iteration, point_based_value_iteration, online_search

    Examples
    --------
    Behind one of two doors there is a tiger; one can listen, or open a door:

    >>> import numpy as np
    >>> from epicycle.control import POMDP, heuristic_search_value_iteration, worlds
    >>> tiger = worlds.tiger()
    >>> tiger
    POMDP(2 states, 3 actions, 2 observations, discount=0.95)
    >>> belief = tiger.update(tiger.start, "listen", "hear left")
    >>> belief.round(2)
    array([0.85, 0.15])
    >>> solution = heuristic_search_value_iteration(tiger)
    >>> solution.action(tiger.update(belief, "listen", "hear left"))
    'open right'
    >>> lower, upper = solution.bounds(tiger.start)
    >>> bool(lower <= 19.3714 <= upper), bool(upper - lower < 0.1)
    (True, True)
    """

    def __init__(
        self,
        transitions: Any,
        observations: Any,
        rewards: Any,
        discount: float = 0.95,
        *,
        start: Any = None,
        terminal: Any = None,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
        observation_labels: Sequence[Hashable] | None = None,
    ) -> None:
        check_parameter("POMDP", "discount", discount, Real(0, 1))
        self.discount = float(discount)
        matrices = mdp_inputs.transition_matrices(transitions)
        n, m = matrices[0].shape[0], len(matrices)
        self.states, self.actions = mdp_inputs.labels("states", states, n), mdp_inputs.labels("actions", actions, m)
        table = inputs.observation_table(observations, n, m)
        self.observation_labels = mdp_inputs.labels("observation_labels", observation_labels, table.shape[2])
        self.observations_ = inputs.check_observations(table, self.states, self.actions, self.observation_labels)
        self.is_terminal = mdp_inputs.state_mask("terminal", terminal, n, self.states)
        rewards = inputs.expected_over_observations(rewards, self.observations_)
        self.transitions_, self.rewards_, self.terminal_values_ = inputs.by_action(
            matrices, rewards, self.is_terminal, self.states, self.actions
        )
        self.start = np.full(n, 1.0 / n) if start is None else distribution("start", start)
        if self.start.shape != (n,):
            raise DataError(f"start: got shape {self.start.shape}; expected ({n},)")

    @classmethod
    def from_hidden_markov_model(
        cls,
        model: HiddenMarkovModel,
        transitions: Mapping[Hashable, Any],
        rewards: Any,
        discount: float = 0.95,
        *,
        states: Sequence[Hashable] | None = None,
    ) -> POMDP:
        """Process whose chain and observations were learnt from sequences where nobody acted.

        Parameters
        ----------
        model : HiddenMarkovModel
            Fitted, with emission="categorical" and one column of codes.
        transitions : mapping
            Probabilities (S, S) of each action; None stands for the chain of the model, that of letting it run.
        rewards, discount, states
            As for the class.

        Returns
        -------
        POMDP
            The start is that of the model; observations have the probabilities of its categories.

        Examples
        --------
        >>> import numpy as np
        >>> from epicycle import HiddenMarkovModel
        >>> from epicycle.control import POMDP
        >>> rng = np.random.default_rng(0)
        >>> wear = np.repeat([0, 1, 0, 1, 0, 1], 60)
        >>> quality = np.where(wear, rng.random(360) < 0.7, rng.random(360) < 0.1).astype(int)[:, None]
        >>> model = HiddenMarkovModel(2, emission="categorical", random_state=0).fit(quality)
        >>> worn = int(np.argmax(model.emissionprob_[:, 1]))
        >>> replace = np.eye(2)[[1 - worn, 1 - worn]]
        >>> income = np.where(np.arange(2) == worn, -1.0, 1.0)
        >>> machine = POMDP.from_hidden_markov_model(
        ...     model, {"run": None, "replace": replace}, np.column_stack([income, [-5.0, -5.0]])
        ... )
        >>> machine
        POMDP(2 states, 2 actions, 2 observations, discount=0.95)
        """
        emission = getattr(model, "emissionprob_", None)
        if emission is None or len(getattr(model, "n_categories_", ())) != 1:
            raise DataError(
                "model: expected a fitted HiddenMarkovModel with emission='categorical' and one column of codes"
            )
        n = len(model.transmat_)
        matrices = []
        for label, P in transitions.items():
            given = np.asarray(model.transmat_ if P is None else P, dtype=np.float64)
            if given.shape != (n, n):
                raise DataError(f"transitions: action {label!r} has shape {given.shape}; expected ({n}, {n})")
            matrices.append(given)
        start = model.startprob_
        return cls(matrices, emission, rewards, discount, start=start, states=states, actions=list(transitions))

    # ------------------------------------------------------------------------------------------------ sizes

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def n_observations(self) -> int:
        """Number of observations."""
        return int(self.observations_.shape[2])

    def __repr__(self) -> str:
        return (
            f"POMDP({self.n_states} states, {self.n_actions} actions, {self.n_observations} observations, "
            f"discount={self.discount:g})"
        )

    def observed_mdp(self) -> MDP:
        """The process if its state were seen.

        Returns
        -------
        MDP
        """
        n = self.n_states
        matrices = [sp.csr_array(self.transitions_[a * n : (a + 1) * n]) for a in range(self.n_actions)]
        mdp = MDP(
            matrices,
            self.rewards_.T,
            self.discount,
            terminal=self.is_terminal,
            states=list(self.states),
            actions=list(self.actions),
        )
        mdp.terminal_values_[:] = self.terminal_values_
        return mdp

    # ------------------------------------------------------------------------------------------------ beliefs

    def observation_probabilities(self, belief: Any, action: Hashable) -> Array:
        """Probabilities of the observations that follow an action; what they miss of one is that the process ended.

        Parameters
        ----------
        belief : array (S,)
            What is known of the state.
        action : label
            The action.

        Returns
        -------
        array (O,)
        """
        a = self._index("action", self.actions, action)
        return np.asarray(self._moved(self._belief(belief), a) @ self.observations_[a])

    def update(self, belief: Any, action: Hashable, observation: Hashable) -> Array:
        """Belief after an action and an observation.

        Parameters
        ----------
        belief : array (S,)
            What was known of the state.
        action, observation : labels
            What was done and what was seen.

        Returns
        -------
        array (S,)
        """
        a = self._index("action", self.actions, action)
        o = self._index("observation", self.observation_labels, observation)
        after = self._moved(self._belief(belief), a) * self.observations_[a, :, o]
        if not after.sum() > 0:
            raise DataError(
                f"observation={observation!r}: it has probability 0 after action {action!r} with this belief; expected "
                "one that can come"
            )
        return np.asarray(after / after.sum())

    def filter(self, actions: Sequence[Hashable], observations: Sequence[Hashable], belief: Any = None) -> Array:
        """Beliefs along a sequence of actions and of the observations that followed them.

        Parameters
        ----------
        actions, observations : sequences of T labels
            What was done and what was seen.
        belief : array (S,), optional
            First belief; by default `start`.

        Returns
        -------
        array (T + 1, S)
        """
        if len(actions) != len(observations):
            raise DataError(f"observations: got {len(observations)} with {len(actions)} actions; expected as many")
        beliefs = [self.start if belief is None else self._belief(belief)]
        for action, observation in zip(actions, observations, strict=True):
            beliefs.append(self.update(beliefs[-1], action, observation))
        return np.array(beliefs)

    def simulate(
        self,
        policy: Callable[[Array], Any],
        *,
        n_episodes: int = 1000,
        n_steps: int = 100,
        belief: Any = None,
        random_state: Seed = None,
    ) -> Array:
        """Discounted sums of rewards of a policy that sees observations only.

        Parameters
        ----------
        policy : callable
            Gets beliefs (N, S) and gives N labels of actions, such as ``solution.action``.
        n_episodes : int, default=1000
            Number of episodes.
        n_steps : int, default=100
            Length of each, if it does not end before.
        belief : array (S,), optional
            Belief at the start, from which the first state is drawn; by default `start`.
        random_state : int, Generator, RandomState or None
            Seed.

        Returns
        -------
        array (n_episodes,)
        """
        episodes, steps = count("n_episodes", n_episodes, low=1), count("n_steps", n_steps, low=1)
        rng = stream(random_state, "pomdp")
        first = self.start if belief is None else self._belief(belief)
        beliefs, total, weight = np.tile(first, (episodes, 1)), np.zeros(episodes), 1.0
        state = rng.choice(self.n_states, size=episodes, p=first)
        going = np.arange(episodes)
        P = [self.transitions_[a * self.n_states : (a + 1) * self.n_states].toarray() for a in range(self.n_actions)]
        place = {label: a for a, label in enumerate(self.actions.tolist())}
        for _ in range(steps):
            labels = np.asarray(policy(beliefs[going])).tolist()
            action = np.array([place[label] for label in labels], dtype=np.int64)
            total[going] += weight * self.rewards_[action, state[going]]
            weight *= self.discount
            lives = ~self.is_terminal[state[going]]
            going, action = going[lives], action[lives]
            if going.size == 0:
                break
            for a in np.unique(action):
                rows = going[action == a]
                state[rows] = _draw(P[a][state[rows]], rng)
                seen = _draw(self.observations_[a, state[rows]], rng)
                after = (beliefs[rows] @ P[a]) * self.observations_[a, :, seen]
                beliefs[rows] = after / after.sum(axis=1, keepdims=True)
        return total

    # ------------------------------------------------------------------------------------------------ inside

    def _moved(self, belief: Array, a: int) -> Array:
        n = self.n_states
        return np.asarray(belief @ self.transitions_[a * n : (a + 1) * n])

    def _belief(self, belief: Any) -> Array:
        b = distribution("belief", belief)
        if b.shape != (self.n_states,):
            raise DataError(f"belief: got shape {b.shape}; expected ({self.n_states},)")
        return b

    @staticmethod
    def _index(name: str, labels: Array, label: Hashable) -> int:
        plain = label.item() if isinstance(label, np.generic) else label
        try:
            return int(labels.tolist().index(plain))
        except ValueError:
            raise DataError(f"{name}={label!r}: expected one of {labels.tolist()!r:.200}") from None


def _draw(p: Array, rng: np.random.Generator) -> Array:
    """One index of each row of probabilities."""
    edge = np.cumsum(p, axis=1)
    passed = (rng.random(len(p))[:, None] * edge[:, -1:] >= edge).sum(axis=1)
    return np.asarray(np.minimum(passed, p.shape[1] - 1))
