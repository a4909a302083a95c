r"""Maximum causal entropy (Ziebart): the policy of largest entropy that has the expert's feature expectations.

Its dual is  minimise  F(w) = p_0'V_w - w'mu_E + penalty/2 ||w||^2,  with the soft values

    V(s) = w'phi(s) + log sum_a exp(Q(s, a)),   Q(s, a) = discount sum_s' P_sa(s') V(s'),   pi(a | s) ~ exp(Q(s, a)),

convex in w, and with the gradient  mu(pi_w) - mu_E + penalty w.
"""

from __future__ import annotations

import numpy as np

from epicycle import optim
from epicycle.rl.inverse._expert_problem import ExpertProblem, solve

Array = np.ndarray
_ROUNDS = 200  # of Newton's method, which is quadratic near the end and safe before


class MaximumEntropy(optim.Objective):
    """The dual function of the weights."""

    def __init__(self, problem: ExpertProblem, penalty: float) -> None:
        self.problem, self.penalty = problem, penalty
        self.size, self.strong_convexity = len(problem.target), penalty
        self._values = np.zeros(problem.mdp.n_states)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """F(w) and its gradient."""
        problem = self.problem
        values, policy = self.soft(x)
        value = problem.start @ values - x @ problem.target + self.penalty / 2 * (x @ x)
        return float(value), problem.expectations(policy) - problem.target + self.penalty * x

    def soft(self, w: Array) -> tuple[Array, Array]:
        """Soft values of the states and the policy by pair, by policy iteration: Newton's method on V = soft max."""
        mdp, reward = self.problem.mdp, self.problem.features @ w
        V, before = self._values, np.inf
        for _ in range(_ROUNDS):
            policy, entropy = softmax_by_state(self.problem, mdp.discount * (mdp.transitions_ @ V))
            new = solve(self.problem.chain(policy), reward + entropy)
            change, V = float(np.abs(new - V).max()), new
            small = max(1.0, float(np.abs(V).max()))
            if change <= 1e-13 * small or before <= change <= 1e-8 * small:  # rounding is all that is left
                break
            before = change
        self._values = V
        return V, softmax_by_state(self.problem, mdp.discount * (mdp.transitions_ @ V))[0]


def softmax_by_state(problem: ExpertProblem, q: Array) -> tuple[Array, Array]:
    """Probabilities of the pairs proportional to exp(q), and the entropy in each state."""
    mdp = problem.mdp
    owner, acts = mdp._pair_state(), ~mdp.is_terminal
    first = mdp.pair_start_[:-1][acts]
    top = np.zeros(mdp.n_states)
    top[acts] = np.maximum.reduceat(q, first)
    z = q - top[owner]
    total = np.ones(mdp.n_states)
    total[acts] = np.add.reduceat(np.exp(z), first)
    log_policy = z - np.log(total)[owner]
    policy = np.exp(log_policy)
    return policy, -np.bincount(owner, policy * log_policy, minlength=mdp.n_states)
