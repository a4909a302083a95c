r"""Values of a policy from recorded steps that another one made: the fixed point of fitted Q evaluation.

    Q(s, a)  fitted to  r + discount V(s'),    V(s) = sum_a pi(a | s) Q(s, a),    V = 0 behind an end

With numbered states the fit is the mean of each pair, and the fixed point solves a linear system; otherwise any
regressor is fitted again and again, one for each action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from epicycle.control.continuous._fitting import predictions, regressor_of
from epicycle.core._exceptions import ParameterError

Array = np.ndarray
Policy = Callable[[Array], Array]


def values_of_table(
    x: Array, a: Array, r: Array, after: Array, ended: Array, table: Array, discount: float, weight: Array | None = None
) -> Array:
    """Q (S, A) of a policy (S, A) in the process of the observed frequencies; 0 for pairs that were never seen."""
    n_states, n_actions = table.shape
    pair = x * n_actions + a
    size = n_states * n_actions
    count = np.bincount(pair, weight, minlength=size)
    share = np.ones(len(r)) if weight is None else weight
    share = share / np.where(count > 0, count, 1.0)[pair]
    goes = ~ended
    # One row for each pair that was seen: mean reward, and where the policy goes on from the next state.
    follow = sp.csr_array((share[goes], (pair[goes], after[goes])), shape=(size, n_states))
    spread = sp.csr_array(
        (table.ravel(), (np.repeat(np.arange(n_states), n_actions), np.arange(size))), shape=(n_states, size)
    )
    reward = np.bincount(pair, share * r, minlength=size)
    system = sp.csc_array(sp.eye_array(size) - discount * (follow @ spread))
    try:
        return np.asarray(splu(system).solve(reward)).reshape(n_states, n_actions)
    except RuntimeError as error:  # singular: the policy stays for ever where no recorded episode ended
        raise ParameterError(
            f"discount={discount:g}: by what was recorded, episodes of the policy never end; expected less than 1"
        ) from error


def fitted_values(
    regressor: Any,
    x: Array,
    a: Array,
    r: Array,
    after: Array,
    ended: Array,
    policy: Policy,
    discount: float,
    rounds: int,
    seed: int,
) -> Callable[[Array], Array]:
    """Values (rows, A) of states by regressors, one for each action that was taken."""
    X, Y = (M.reshape(len(r), -1).astype(np.float64) for M in (x, after))
    ahead = policy(after)
    n_actions = ahead.shape[1]
    kinds = [(k, np.flatnonzero(a == k)) for k in range(n_actions) if (a == k).any()]
    models: dict[int, Any] = {}

    def q(Z: Array) -> Array:
        out = np.zeros((len(Z), n_actions))
        for k, model in models.items():
            out[:, k] = predictions(model, Z)
        return out

    for _ in range(rounds):
        future = (ahead * q(Y)).sum(axis=1) if models else np.zeros(len(r))
        target = r + discount * np.where(ended, 0.0, future)
        models = {k: regressor_of(regressor, seed + k).fit(X[rows], target[rows]) for k, rows in kinds}
    return lambda states: q(np.asarray(states).reshape(len(states), -1).astype(np.float64))
