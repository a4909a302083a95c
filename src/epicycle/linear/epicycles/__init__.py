"""Epicycles: orbits as circles on circles."""

from epicycle.linear.epicycles._epicycle_regression import EpicycleRegression

__all__ = ["EpicycleRegression"]
