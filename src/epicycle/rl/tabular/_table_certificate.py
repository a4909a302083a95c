"""Errors of tables of values, where the process behind an environment is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from epicycle.control import MDP, MDPEnvironment, policy_iteration
from epicycle.control.agents._environment import reference_process
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import EpicycleError

Array = np.ndarray
_KIND = "loss of the greedy policy"
_TOLERANCE = 0.01  # of the largest value
_LARGEST = 200_000  # pairs up to which the process is solved


def known_process(env: Any, discount: float) -> MDP | None:
    """The process behind an environment, if it is known and of a size that can be solved."""
    try:
        truth = reference_process(env, discount)
    except EpicycleError:  # with a discount of 1 and no end there are no values
        return None
    return truth if truth is not None and truth.n_pairs <= _LARGEST else None


def start_probabilities(env: Any, n_states: int) -> Array:
    """Probabilities of the first state; equal ones where they are not known."""
    inner = getattr(env, "unwrapped", env)
    given = inner._start_probabilities() if isinstance(inner, MDPEnvironment) else None
    given = getattr(inner, "initial_state_distrib", None) if given is None else given
    if given is None or len(given) != n_states:
        return np.full(n_states, 1 / n_states)
    return np.asarray(np.asarray(given, dtype=np.float64) / np.sum(given))


def loss_of_greedy_policy(env: Any, discount: float, q: Array, policy: Array, visits: Array) -> Certificate | None:
    """Loss of the greedy policy from the start, relative to the largest value; None where nothing is known."""
    truth = known_process(env, discount)
    if truth is None or (truth.n_states, truth.n_actions) != q.shape:
        return None
    best = policy_iteration(truth).values
    state, action = truth._pair_state(), truth.pair_action_
    future = discount * (truth.transitions_ @ np.where(truth.is_terminal, 0.0, np.nanmax(q, axis=1)))
    seen = visits[state, action] > 0
    target, own = truth.rewards_ + future, q[state, action]
    exact = truth.rewards_ + discount * (truth.transitions_ @ best)
    residual = float(np.abs(target - own)[seen].max(initial=0.0))
    distance = float(np.abs(exact - own)[seen].max(initial=0.0))
    start = start_probabilities(env, len(best))
    values = values_from(truth, policy, np.flatnonzero(start))
    if values is None:
        loss, words = np.inf, "the policy may never end, which the best one does"
    else:
        loss = float(start @ (best - values)) / max(float(np.abs(best).max()), 1e-300)
        words = f"from the start the policy is worth {100 * max(loss, 0):.3g}% of the largest value less than the best"
    return Certificate(
        _KIND,
        max(loss, 0.0),
        _TOLERANCE,
        f"{words}; over the pairs that were tried Bellman's residual is {residual:.3g}, and values are within "
        f"{distance:.3g} of the best ones",
    )


def values_from(truth: MDP, policy: Array, starts: Array) -> Array | None:
    """Values of a policy in the states that can follow some, zero elsewhere; None where they do not exist.

    That is with a discount of 1, where the policy may go on for ever.
    """
    pair = np.full((truth.n_states, truth.n_actions), -1, dtype=np.int64)
    pair[truth._pair_state(), truth.pair_action_] = np.arange(truth.n_pairs)
    P, r = truth.policy_chain(np.where(truth.is_terminal, -1, pair[np.arange(truth.n_states), policy]))
    seen = _reachable(sp.csr_array(P), starts)
    P, n = sp.csr_array(P[seen][:, seen]), len(seen)
    leaves = np.flatnonzero(np.asarray(P.sum(axis=1)).ravel() < 1 - 1e-9)
    if truth.discount == 1 and len(_reachable(sp.csr_array(P.T), leaves)) < n:
        return None
    values = np.zeros(truth.n_states)
    values[seen] = spsolve(sp.eye_array(n, format="csc") - truth.discount * sp.csc_array(P), r[seen])
    return values


def _reachable(P: sp.csr_array, starts: Array) -> Array:
    """States that can be reached from some of them, themselves included, in order."""
    seen = np.zeros(P.shape[0], dtype=bool)
    seen[starts], front = True, starts
    while len(front):
        after = np.unique(P[front].indices)
        front = after[~seen[after]]
        seen[front] = True
    return np.flatnonzero(seen)


def error_of_values(env: Any, discount: float, values: Array, policy: Array) -> Certificate | None:
    """Largest error of the values of a policy (S, A), relative to the largest value; None where nothing is known."""
    exact = exact_state_values(env, discount, policy)
    if exact is None or exact.shape != values.shape:
        return None
    scale = max(float(np.abs(exact).max()), 1e-300)
    error = float(np.abs(exact - values).max()) / scale
    words = f"values are within {100 * error:.3g}% of the largest one of those of the policy"
    return Certificate("error of the values", error, _TOLERANCE, words)


def exact_state_values(env: Any, discount: float, policy: Array) -> Array | None:
    """Values of a policy that draws actions (S, A), zero in terminal states."""
    truth = known_process(env, discount)
    if truth is None or (truth.n_states, truth.n_actions) != policy.shape:
        return None
    state, action = truth._pair_state(), truth.pair_action_
    chosen = sp.csr_array(
        (policy[state, action], (state, np.arange(truth.n_pairs))), shape=(truth.n_states, truth.n_pairs)
    )
    chain = sp.eye_array(truth.n_states, format="csc") - discount * sp.csc_array(chosen @ truth.transitions_)
    return np.asarray(spsolve(chain, chosen @ truth.rewards_))
