"""Markov decision processes and their planners."""

from epicycle.control.mdp._backward_induction import BackwardInductionSolution, backward_induction
from epicycle.control.mdp._linear_program import linear_program
from epicycle.control.mdp._mdp import MDP
from epicycle.control.mdp._planning_solution import PlanningSolution
from epicycle.control.mdp._policy_evaluation import policy_evaluation
from epicycle.control.mdp._policy_iteration import (
    generalized_policy_iteration,
    modified_policy_iteration,
    policy_iteration,
)
from epicycle.control.mdp._read_mdp import read_mdp
from epicycle.control.mdp._value_iteration import value_iteration

__all__ = [
    "MDP",
    "BackwardInductionSolution",
    "PlanningSolution",
    "backward_induction",
    "generalized_policy_iteration",
    "linear_program",
    "modified_policy_iteration",
    "policy_evaluation",
    "policy_iteration",
    "read_mdp",
    "value_iteration",
]
