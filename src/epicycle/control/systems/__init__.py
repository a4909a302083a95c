"""Linear systems and their regulators, learnt dynamics, and trajectories of nonlinear systems."""

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
    "LQR",
    "MPC",
    "FeatureDynamics",
    "LQRSolution",
    "LinearDynamics",
    "MPCRun",
    "QuadraticCost",
    "SmoothCost",
    "TrajectorySolution",
    "controllability",
    "iLQR",
    "linearize",
]
