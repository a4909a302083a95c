r"""Apprenticeship learning by projection (Abbeel and Ng).

From the feature expectations m of some mixture of policies, w = mu_E - m is the reward under which the expert is better
by most; the best policy for w has mu, and m goes to the point of the line from m to mu that is nearest to mu_E. Since
w'mu_E <= ||w|| ||.||, for every reward w'phi with ||w|| <= 1 the mixture is worth at most ||mu_E - m|| less than the
expert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epicycle.control import policy_iteration
from epicycle.core._monitor import Monitor
from epicycle.rl.inverse._expert_problem import ExpertProblem

Array = np.ndarray


@dataclass(frozen=True)
class Mixture:
    """Result of the projection: weights of the reward, occupancy (pairs,) of the mixture, its distance."""

    weights: Array
    occupancy: Array
    expectations: Array
    distance: float
    monitor: Monitor


def project(problem: ExpertProblem, tol: float, max_iter: int) -> Mixture:
    """Rounds until the feature expectations are within `tol` of the expert's, relative to these."""
    mdp, target = problem.mdp, problem.target
    owner = mdp._pair_state()
    size = max(float(np.linalg.norm(target)), np.finfo(float).tiny)
    policy = 1.0 / np.diff(mdp.pair_start_)[owner]  # any action at all
    d = problem.occupancy(policy)
    mixed, occupancy = problem.features.T @ d, policy * d[owner]
    weights, monitor = target - mixed, Monitor()
    distance = float(np.linalg.norm(weights)) / size
    for round_ in range(1, max_iter + 1):
        if distance <= tol:
            break
        weights = target - mixed
        choice = policy_iteration(problem.rewarded(problem.features @ weights)).choice
        policy = np.zeros(mdp.n_pairs)
        policy[choice[choice >= 0]] = 1.0
        d = problem.occupancy(policy)
        towards = problem.features.T @ d - mixed
        length = float(towards @ towards)
        step = float(np.clip(towards @ weights / length, 0.0, 1.0)) if length > 0 else 0.0
        mixed = mixed + step * towards
        occupancy = (1 - step) * occupancy + step * policy * d[owner]
        distance = float(np.linalg.norm(target - mixed)) / size
        if monitor(round_, weights, objective=distance, step=step) or step == 0.0:
            break
    return Mixture(weights, occupancy, mixed, distance, monitor)
