r"""Rewards by linear programming (Ng and Russell): the expert's action is the best one, by as much as can be.

    maximise  sum_s min_{a != pi(s)} (P_s,pi(s) - P_s,a) V - penalty ||w||_1,   V = (I - discount P_pi)^-1 Phi w

over |w| <= 1, where no minimum may be below zero.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.linalg import splu

from epicycle.core._exceptions import ConvergenceError, DataError
from epicycle.rl.inverse._expert_problem import ExpertProblem

Array = np.ndarray
_MOST = 50_000_000  # entries of the program's matrix


def solve_program(problem: ExpertProblem, penalty: float) -> Array:
    """Weights of the reward."""
    mdp, policy = problem.mdp, problem.policy
    owner = mdp._pair_state()
    if np.isnan(policy).any():
        s = int(owner[np.argmax(np.isnan(policy))])
        raise DataError(
            f"expert: nothing was seen in state {mdp.states[s]}; method='linear_programming' needs the expert's action "
            "in every state, the other methods do not"
        )
    first = mdp.pair_start_[:-1][~mdp.is_terminal]
    mine = np.maximum.reduceat(policy, first)
    best = np.zeros(mdp.n_states, dtype=np.int64)
    # Of an expert who wavers the most frequent action is taken for the best, the first of equals.
    starred = np.flatnonzero(policy >= np.repeat(mine, np.diff(mdp.pair_start_)[~mdp.is_terminal]) - 1e-12)
    best[owner[starred[::-1]]] = starred[::-1]
    fixed = np.zeros(mdp.n_pairs)
    fixed[best[~mdp.is_terminal]] = 1.0
    others = np.flatnonzero(fixed == 0)
    if not len(others):
        raise DataError("mdp: no state has two actions; nothing can be learnt from what the expert does")
    n, k = mdp.n_states, problem.features.shape[1]
    if len(others) * k > _MOST:
        raise DataError(
            f"mdp: {len(others):,} rows of {k:,} features are too many for the linear program; expected at most "
            f"{_MOST:,} entries, from fewer features or by another method"
        )
    values = splu(problem.chain(fixed)).solve(problem.features)  # of each feature as a reward
    lead = (mdp.transitions_[best[owner[others]]] - mdp.transitions_[others]) @ values
    rows = np.arange(len(others))
    # x = (w, |w| or more, smallest lead of each state):  lead_s <= lead_sa w,  w <= u,  -w <= u.
    pick = sp.csr_array((np.ones(len(others)), (rows, owner[others])), shape=(len(others), n))
    one = sp.eye_array(k)
    A = sp.block_array(
        [[sp.csr_array(-lead), None, pick], [one, -one, None], [-one, -one, None]],
        format="csr",
    )
    free = np.bincount(owner[others], minlength=n) == 0  # nothing to choose: no lead
    cost = np.concatenate([np.zeros(k), np.full(k, penalty), np.where(free, 0.0, -1.0)])
    bounds = [(-1, 1)] * k + [(0, 1)] * k + [(0, 0) if f else (0, None) for f in free]
    result = linprog(cost, A_ub=A, b_ub=np.zeros(A.shape[0]), bounds=bounds, method="highs")
    if result.status != 0:
        raise ConvergenceError(f"InverseRL: HiGHS ended with {result.message!r}")
    return np.asarray(result.x[:k])
