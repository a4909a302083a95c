"""Linear systems and their regulators."""

from epicycle.control.systems._controllability import controllability
from epicycle.control.systems._feature_dynamics import FeatureDynamics
from epicycle.control.systems._linear_dynamics import LinearDynamics
from epicycle.control.systems._linearize import linearize
from epicycle.control.systems._lqr import LQR, LQRSolution

__all__ = ["LQR", "FeatureDynamics", "LQRSolution", "LinearDynamics", "controllability", "linearize"]
