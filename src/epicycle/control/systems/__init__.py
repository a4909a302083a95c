"""Linear systems and their regulators."""

from epicycle.control.systems._controllability import controllability
from epicycle.control.systems._linearize import linearize
from epicycle.control.systems._lqr import LQR, LQRSolution

__all__ = ["LQR", "LQRSolution", "controllability", "linearize"]
