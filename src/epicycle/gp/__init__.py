"""Gaussian processes."""

from epicycle.gp._gpc import GaussianProcessClassifier
from epicycle.gp._gpr import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
