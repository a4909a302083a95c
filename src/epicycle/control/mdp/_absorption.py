"""Duration of a process that ends: expected numbers of steps, of one policy and of any."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from epicycle.control.mdp import _mdp_inputs as inputs
from epicycle.control.mdp._chain_solver import solve_chain
from epicycle.control.mdp._mdp import MDP

Array = np.ndarray
_POLICIES = 1000


def run_length(mdp: MDP, choice: Array) -> Array | None:
    """Expected number of steps of a policy from each state, None where it may go on for ever."""
    P, _ = mdp.policy_chain(choice)
    acts = choice >= 0
    stops = np.zeros(mdp.n_states, dtype=bool)
    stops[acts] = mdp._stops()[choice[acts]]
    if inputs.cannot_end(P, np.arange(mdp.n_states), ~acts, stops).any():
        return None
    return _steps(P, acts)


def _steps(P: sp.csr_array, acts: Array) -> Array | None:
    """Expected numbers of steps, from above by as much as the solution of their system may be wrong.

    If (I - P) n = 1 - e with e at most c < 1, the true numbers are at most n / (1 - c). None where c is no such number.
    """
    n = solve_chain(P, acts.astype(float), 1.0)
    wrong = float(np.max(acts - (n - P @ n), initial=0.0))
    return np.asarray(n / (1 - wrong)) if wrong < 0.5 and np.isfinite(n).all() else None


def longest_run(mdp: MDP, value: Array | None) -> Array | None:
    """Bound on the expected number of steps of the best policy.

    Where each step costs at least c, a policy that is at least as good as one of the given values takes at most
    (largest terminal value - value) / c steps. Otherwise, where every policy ends, the longest of them.
    """
    cost = -mdp.rewards_.max()
    if cost > 0:
        if value is None:
            return None
        return np.asarray(np.maximum(mdp.terminal_values_.max(initial=0.0) - value, 0.0) / cost)
    return None if _endless(mdp).any() else _longest_of_all(mdp)


def _endless(mdp: MDP) -> Array:
    """States in which some policy can stay for ever: they have an action that leads to such states alone."""
    owner, stays = mdp._pair_state(), ~mdp._stops()
    inside = ~mdp.is_terminal
    while True:
        leaves = np.asarray(mdp.transitions_ @ (~inside).astype(float)).ravel() > 0
        kept = np.zeros(mdp.n_states, dtype=bool)
        kept[owner[stays & ~leaves & inside[owner]]] = True
        if np.array_equal(kept, inside):
            return inside
        inside = kept


def _longest_of_all(mdp: MDP) -> Array | None:
    """Largest expected number of steps, by policy iteration; every policy ends, so that it is finite.

    None where rounding does not let it settle: then the longest run is too long to be of use.
    """
    starts, acts = mdp.pair_start_, ~mdp.is_terminal
    choice = np.where(acts, starts[:-1], -1)
    for _ in range(_POLICIES):
        P, _ = mdp.policy_chain(choice)
        steps = _steps(P, acts)
        if steps is None:
            return None
        after = 1.0 + mdp.transitions_ @ steps
        better = choice.copy()
        for s in np.flatnonzero(acts):
            here = after[starts[s] : starts[s + 1]]
            k = int(np.argmax(here))
            # Only what exceeds rounding is a longer run: ties would go round for ever.
            if here[k] > after[choice[s]] * (1 + 1e-9):
                better[s] = starts[s] + k
        if np.array_equal(better, choice):
            return np.asarray(steps * (1 + 1e-8))
        choice = better
    return None
