"""Planning and control: decision processes, linear systems, and their solutions."""

from epicycle.control import worlds
from epicycle.control.agents._environment import MDPEnvironment
from epicycle.control.agents._model_based_agent import ModelBasedAgent
from epicycle.control.continuous._discretize import discretize
from epicycle.control.continuous._fitted_q_iteration import FittedQIteration
from epicycle.control.continuous._fitted_value_iteration import FittedValueIteration
from epicycle.control.continuous._grid_solution import GridSolution
from epicycle.control.filters._extended_kalman_filter import ExtendedKalmanFilter
from epicycle.control.filters._kalman_filter import KalmanFilter
from epicycle.control.filters._kalman_result import KalmanFilterResult, KalmanSmootherResult
from epicycle.control.filters._lqg import LQG, LQGSolution
from epicycle.control.filters._particle_filter import ParticleFilter
from epicycle.control.filters._unscented_kalman_filter import UnscentedKalmanFilter
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
from epicycle.control.pomdp._heuristic_search import heuristic_search_value_iteration
from epicycle.control.pomdp._incremental_pruning import incremental_pruning
from epicycle.control.pomdp._informed_bound import fast_informed_bound
from epicycle.control.pomdp._online_search import OnlineSearchResult, online_search
from epicycle.control.pomdp._point_based import point_based_value_iteration
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import POMDPSolution
from epicycle.control.pomdp._qmdp import qmdp
from epicycle.control.simulators._bicycle import Bicycle
from epicycle.control.simulators._cart_pole import CartPole
from epicycle.control.simulators._environment import Environment
from epicycle.control.simulators._inverted_pendulum import InvertedPendulum
from epicycle.control.simulators._mountain_car import MountainCar
from epicycle.control.simulators._quadrotor_2d import Quadrotor2D
from epicycle.control.simulators._rollout import Rollout
from epicycle.control.simulators._simulator import Simulator
from epicycle.control.systems._controllability import controllability
from epicycle.control.systems._ddp import DDP
from epicycle.control.systems._feature_dynamics import FeatureDynamics
from epicycle.control.systems._ilqr import iLQR
from epicycle.control.systems._linear_dynamics import LinearDynamics
from epicycle.control.systems._linearize import linearize
from epicycle.control.systems._lqr import LQR, LQRSolution
from epicycle.control.systems._mpc import MPC, MPCRun
from epicycle.control.systems._quadratic_cost import QuadraticCost
from epicycle.control.systems._smooth_cost import SmoothCost
from epicycle.control.systems._trajectory_solution import TrajectorySolution

__all__ = [
    "DDP",
    "LQG",
    "LQR",
    "MDP",
    "MPC",
    "POMDP",
    "BackwardInductionSolution",
    "Bicycle",
    "CartPole",
    "Environment",
    "ExtendedKalmanFilter",
    "FeatureDynamics",
    "FittedQIteration",
    "FittedValueIteration",
    "GridSolution",
    "InvertedPendulum",
    "KalmanFilter",
    "KalmanFilterResult",
    "KalmanSmootherResult",
    "LQGSolution",
    "LQRSolution",
    "LinearDynamics",
    "MDPEnvironment",
    "MPCRun",
    "ModelBasedAgent",
    "MountainCar",
    "OnlineSearchResult",
    "POMDPSolution",
    "ParticleFilter",
    "PlanningSolution",
    "QuadraticCost",
    "Quadrotor2D",
    "Rollout",
    "Simulator",
    "SmoothCost",
    "TrajectorySolution",
    "UnscentedKalmanFilter",
    "backward_induction",
    "controllability",
    "discretize",
    "fast_informed_bound",
    "generalized_policy_iteration",
    "heuristic_search_value_iteration",
    "iLQR",
    "incremental_pruning",
    "linear_program",
    "linearize",
    "modified_policy_iteration",
    "online_search",
    "point_based_value_iteration",
    "policy_evaluation",
    "policy_iteration",
    "qmdp",
    "read_mdp",
    "value_iteration",
    "worlds",
]
