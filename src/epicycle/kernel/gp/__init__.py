"""Gaussian processes."""

from epicycle.kernel.gp.regression import GaussianProcessRegressor

__all__ = ["GaussianProcessRegressor"]
