"""Gaussian processes."""

from epicycle.kernel.gp.classification import GaussianProcessClassifier
from epicycle.kernel.gp.regression import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
