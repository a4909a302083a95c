"""From what users give to the arrays of a `POMDP`: checks that name state, action and observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.control.mdp import _mdp_inputs as mdp_inputs
from epicycle.core._exceptions import DataError

Array = np.ndarray


def observation_table(observations: Any, n: int, m: int) -> Array:
    """Probabilities (A, S, O) of observations, from (S, O), (S, A, O) or a matrix for each action."""
    if isinstance(observations, Sequence) and any(sp.issparse(M) for M in observations):
        observations = [np.asarray(M.todense()) if sp.issparse(M) else np.asarray(M) for M in observations]
    try:
        table = np.asarray(observations, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"observations: expected numbers in an array, got {type(observations).__name__}") from None
    by_action = isinstance(observations, Sequence) and isinstance(observations[0], np.ndarray)
    if table.ndim == 3 and not by_action:
        table = table.transpose(1, 0, 2)
    if table.ndim == 2:
        table = np.broadcast_to(table, (m, *table.shape))
    if table.ndim != 3 or table.shape[:2] != (m, n) or table.shape[2] == 0:
        raise DataError(
            f"observations: got shape {np.shape(observations)}; expected ({n}, O), ({n}, {m}, O) or {m} matrices of "
            f"shape ({n}, O)"
        )
    return np.ascontiguousarray(table)


def check_observations(table: Array, states: Array, actions: Array, observations: Array) -> Array:
    """The table, each row divided by its sum; an error names the first entry or row that is wrong."""
    shown = mdp_inputs.shown
    bad = ~np.isfinite(table) | (table < 0)
    if bad.any():
        a, s, o = np.argwhere(bad)[0]
        raise DataError(
            f"observations: state {shown(states, s)}, action {shown(actions, a)}, observation "
            f"{shown(observations, o)} has probability {table[a, s, o]:g}; expected none below 0"
        )
    total = table.sum(axis=2)
    wrong = np.abs(total - 1) > mdp_inputs.SUM_TOLERANCE
    if wrong.any():
        a, s = np.argwhere(wrong)[0]
        raise DataError(
            f"observations: the probabilities of state {shown(states, s)}, action {shown(actions, a)} add up to "
            f"{total[a, s]:.9g}; expected 1 ({int(wrong.sum())} such rows)"
        )
    return np.asarray(table / total[:, :, None])


def expected_over_observations(rewards: Any, table: Array) -> Any:
    """Rewards R(s, a, s', o) as R(s, a, s'); others as they are."""
    shape = np.shape(rewards) if not any(sp.issparse(R) for R in rewards) else ()
    if len(shape) != 4:
        return rewards
    m, n, k = table.shape
    if shape != (n, m, n, k):
        raise DataError(f"rewards: got shape {shape}; expected ({n}, {m}, {n}, {k})")
    given = np.asarray(rewards, dtype=np.float64)
    # A reward that is no number stays one here also where its observation cannot come, so that it is refused.
    return np.einsum("satk,atk->sat", given, table)


def by_action(matrices: list[sp.csr_array], rewards: Any, ends: Array, states: Array, actions: Array) -> Any:
    """Rows (A S, S) of probabilities, rewards (A, S), values of terminal states; a terminal row is empty."""
    n, m = len(states), len(actions)
    P, start, action = mdp_inputs.pairs_of(matrices, ends, states, actions)
    missing = (np.diff(start) < m) & ~ends
    if missing.any():
        s = int(np.argmax(missing))
        a = int(np.setdiff1d(np.arange(m), action[start[s] : start[s + 1]])[0])
        raise DataError(
            f"transitions: state {mdp_inputs.shown(states, s)}, action {mdp_inputs.shown(actions, a)} has no "
            "probabilities; expected every action in every state, since the state is not seen"
        )
    R, final = mdp_inputs.pair_rewards(rewards, P, start, action, ends, m)
    state = np.repeat(np.arange(n), np.diff(start))
    place = action * n + state
    pick = sp.csr_array((np.ones(len(place)), (place, np.arange(len(place)))), shape=(m * n, len(place)))
    rows = sp.csr_array(pick @ P)
    rows.sort_indices()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    table = np.tile(final, (m, 1))
    table[action, state] = R
    return rows, table, final
