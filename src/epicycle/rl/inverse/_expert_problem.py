r"""The behaviour of an expert in a process without rewards, and the values of policies there.

Features phi(s) (S, k); feature expectations of a policy from the starts p_0, with P the matrix of its chain,

    mu = Phi' d,    d = p_0 + discount P' d.

A reward Phi w gives the policy the value w'mu.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from epicycle.control import MDP
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.rl._episodes import Episodes, policy_table
from epicycle.rl.tabular._table_certificate import start_probabilities

Array = np.ndarray
_DENSE = 200  # states, up to which a dense solution is the faster one


@dataclass(frozen=True)
class ExpertProblem:
    """A process, features of its states, and an expert; the rewards of the process are not looked at.

    `policy` has the expert's probabilities by pair, NaN in states where nothing was seen.
    """

    mdp: MDP
    features: Array
    start: Array
    policy: Array
    target: Array

    def chain(self, policy: Array) -> sp.csc_array:
        """I - discount P of a policy, given by the probabilities of the pairs."""
        return chain_of(self.mdp, policy)

    def occupancy(self, policy: Array) -> Array:
        """Expected discounted number of visits to each state."""
        return solve(sp.csc_array(self.chain(policy).T), self.start)

    def expectations(self, policy: Array) -> Array:
        """Feature expectations of a policy."""
        return np.asarray(self.features.T @ self.occupancy(policy))

    def rewarded(self, reward: Array) -> MDP:
        """The process with rewards of its states."""
        mdp, other = self.mdp, MDP.__new__(MDP)
        pairs = reward[mdp._pair_state()]
        final = np.where(mdp.is_terminal, reward, 0.0)
        arrays = mdp.transitions_, pairs, mdp.pair_start_, mdp.pair_action_, final
        other._set(*arrays, mdp.discount, mdp.criterion, mdp.states, mdp.actions)
        return other


def solve(A: sp.csc_array, b: Array) -> Array:
    """Solution of a linear system, which is dense where it is small."""
    if A.shape[0] <= _DENSE:
        return np.asarray(np.linalg.solve(A.toarray(), b))
    return np.asarray(splu(A).solve(b))


def chain_of(mdp: MDP, policy: Array) -> sp.csc_array:
    """I - discount P of a policy, given by the probabilities of the pairs."""
    pairs = np.arange(mdp.n_pairs)
    choice = sp.csr_array((policy, (mdp._pair_state(), pairs)), shape=(mdp.n_states, mdp.n_pairs))
    return sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * (choice @ mdp.transitions_))


def expert_problem(mdp: Any, expert: Any, features: Any, start: Any) -> ExpertProblem:
    """Check what was given; demonstrations become frequencies, and policies what they are expected to do."""
    if not isinstance(mdp, MDP):
        raise DataError(f"mdp={mdp!r:.60}: expected an MDP, whose rewards are not looked at")
    if mdp.criterion != "discounted":
        raise ParameterError(f"mdp: criterion {mdp.criterion!r}; expected a discount below 1")
    phi = np.eye(mdp.n_states) if features is None else np.asarray(features, dtype=np.float64)
    if phi.ndim != 2 or len(phi) != mdp.n_states or not np.isfinite(phi).all():
        raise DataError(f"features: got shape {phi.shape}; expected finite numbers ({mdp.n_states}, k)")
    if isinstance(expert, Episodes):
        if start is not None:
            raise ParameterError("start: given together with episodes, which begin where they begin; expected None")
        return _from_episodes(mdp, expert, phi)
    p0 = _start(mdp, start)
    policy = _by_pair(mdp, expert)
    problem = ExpertProblem(mdp, phi, p0, policy, np.zeros(phi.shape[1]))
    return ExpertProblem(mdp, phi, p0, policy, problem.expectations(policy))


def _start(mdp: MDP, start: Any) -> Array:
    from epicycle.control import MDPEnvironment

    return start_probabilities(MDPEnvironment(mdp, start=start), mdp.n_states)


def _by_pair(mdp: MDP, expert: Any) -> Array:
    given = np.asarray(expert)
    if given.ndim == 1:  # labels of actions, as planners give them
        chosen = mdp.pair_index(given)
        policy = np.zeros(mdp.n_pairs)
        policy[chosen[chosen >= 0]] = 1.0
        return policy
    table = policy_table(given, mdp.n_states, mdp.n_actions, "expert")
    policy = table[mdp._pair_state(), mdp.pair_action_]
    total = np.bincount(mdp._pair_state(), policy, minlength=mdp.n_states)
    if not np.allclose(total[~mdp.is_terminal], 1, atol=1e-9):
        s = int(np.argmax((np.abs(total - 1) > 1e-9) & ~mdp.is_terminal))
        raise DataError(f"expert: takes actions in state {mdp.states[s]} that are not available there")
    return np.asarray(policy)


def _from_episodes(mdp: MDP, steps: Episodes, phi: Array) -> ExpertProblem:
    for name, limit in (
        ("observations", mdp.n_states),
        ("next_observations", mdp.n_states),
        ("actions", mdp.n_actions),
    ):
        column = getattr(steps, name)
        if column.ndim != 1 or column.dtype.kind not in "iu" or column.min() < 0 or column.max() >= limit:
            raise DataError(f"expert.{name}: expected whole numbers from 0 to {limit - 1}")
    s, a, fade = steps.observations, steps.actions, mdp.discount**steps.times
    pair = np.full((mdp.n_states, mdp.n_actions), -1)
    pair[mdp._pair_state(), mdp.pair_action_] = np.arange(mdp.n_pairs)
    if (pair[s, a] < 0).any():
        i = int(np.argmax(pair[s, a] < 0))
        raise DataError(f"expert: action {a[i]} of step {i} is not available in state {mdp.states[s[i]]}")
    counts = np.bincount(pair[s, a], minlength=mdp.n_pairs).astype(float)
    seen = np.bincount(s, minlength=mdp.n_states)[mdp._pair_state()]
    policy = np.divide(counts, seen, out=np.full(mdp.n_pairs, np.nan), where=seen > 0)
    # The state in which an episode ends is visited, too; where nothing follows a step there is none.
    last = steps.terminated & mdp.is_terminal[steps.next_observations]
    visits = np.bincount(s, fade, minlength=mdp.n_states)
    visits += np.bincount(steps.next_observations[last], mdp.discount * fade[last], minlength=mdp.n_states)
    start = np.bincount(s[steps.starts[:-1]], minlength=mdp.n_states) / steps.n_episodes
    return ExpertProblem(mdp, phi, start, policy, phi.T @ visits / steps.n_episodes)
