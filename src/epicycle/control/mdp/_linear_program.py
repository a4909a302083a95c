"""`linear_program`: the best values as the least that satisfy Bellman's inequalities."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import PlanningSolution
from epicycle.control.mdp._policy_iteration import policy_iteration
from epicycle.control.mdp._value_iteration import check
from epicycle.core._exceptions import ConvergenceError, DataError, ParameterError
from epicycle.core.estimator import in_catalogue


@in_catalogue("control", "G1", certificate="loss of the policy")
def linear_program(mdp: MDP, *, tol: float = 1e-8) -> PlanningSolution:
    r"""Best policy by a linear program.

    .. math:: \min_V \sum_s V(s) \quad\text{subject to}\quad V(s) \ge R(s, a) + \gamma \sum_{s'} P_{sa}(s') V(s')
              \quad\text{for all } s, a

    The program is solved by HiGHS; its tight inequalities give a policy, whose values are then computed exactly.

    Parameters
    ----------
    mdp : MDP
        The process, with the discounted or the total criterion; up to some thousands of states.
    tol : float, default=1e-8
        Loss of the policy, relative to the largest value, at which the certificate holds.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.control import linear_program, policy_iteration, worlds
    >>> mdp = worlds.random_mdp(50, 3, random_state=0)
    >>> bool(np.allclose(linear_program(mdp).values, policy_iteration(mdp).values, rtol=1e-9))
    True
    """
    check("linear_program", mdp=mdp, tol=tol)
    if mdp.criterion == "average":
        raise ParameterError("linear_program: expected a discounted or total criterion; use value_iteration")
    began = perf_counter()
    acts, owner = ~mdp.is_terminal, mdp._pair_state()
    if not acts.any():
        return policy_iteration(mdp, tol=tol)
    own = sp.csr_array((np.ones(mdp.n_pairs), (np.arange(mdp.n_pairs), owner)), shape=mdp.transitions_.shape)
    A = sp.csr_array(mdp.discount * mdp.transitions_ - own)  # A V <= -R, over the states that act
    right = -(mdp.rewards_ + mdp.discount * (mdp.transitions_ @ mdp.terminal_values_))
    result = linprog(np.ones(int(acts.sum())), A_ub=A[:, acts], b_ub=right, bounds=(None, None), method="highs")
    if result.status == 2 and mdp.criterion == "total":  # no values satisfy all inequalities
        raise DataError(
            "rewards: the total reward has no upper bound: some policy goes on for ever and gains more the longer it "
            "does; expected rewards that do not add up to more than zero in rounds, or discount < 1"
        )
    if result.status != 0:
        raise ConvergenceError(f"linear_program: HiGHS ended with {result.message!r}; use policy_iteration")
    slack = result.slack
    policy = np.zeros(mdp.n_states, dtype=np.int64)
    for s in np.flatnonzero(acts):
        first, last = mdp.pair_start_[s], mdp.pair_start_[s + 1]
        policy[s] = mdp.pair_action_[first + np.argmin(slack[first:last])]
    solution = policy_iteration(mdp, tol=tol, initial_policy=mdp.actions[policy])
    solution.history["seconds"][:] = perf_counter() - began
    return solution
