"""Planning and control: decision processes, linear systems, and their solutions."""

from epicycle.control import worlds
from epicycle.control._backward_induction import BackwardInductionSolution, backward_induction
from epicycle.control._controllability import controllability
from epicycle.control._extended_kalman_filter import ExtendedKalmanFilter
from epicycle.control._kalman_filter import KalmanFilter
from epicycle.control._kalman_result import KalmanFilterResult, KalmanSmootherResult
from epicycle.control._linear_program import linear_program
from epicycle.control._linearize import linearize
from epicycle.control._lqr import LQR, LQRSolution
from epicycle.control._mdp import MDP
from epicycle.control._particle_filter import ParticleFilter
from epicycle.control._planning_solution import PlanningSolution
from epicycle.control._policy_evaluation import policy_evaluation
from epicycle.control._policy_iteration import (
    generalized_policy_iteration,
    modified_policy_iteration,
    policy_iteration,
)
from epicycle.control._unscented_kalman_filter import UnscentedKalmanFilter
from epicycle.control._value_iteration import value_iteration

__all__ = [
    "LQR",
    "MDP",
    "BackwardInductionSolution",
    "ExtendedKalmanFilter",
    "KalmanFilter",
    "KalmanFilterResult",
    "KalmanSmootherResult",
    "LQRSolution",
    "ParticleFilter",
    "PlanningSolution",
    "UnscentedKalmanFilter",
    "backward_induction",
    "controllability",
    "generalized_policy_iteration",
    "linear_program",
    "linearize",
    "modified_policy_iteration",
    "policy_evaluation",
    "policy_iteration",
    "value_iteration",
    "worlds",
]
