"""Epicycles: orbits as circles on circles."""

from epicycle.linear.epicycles.regressor import EpicycleRegression

__all__ = ["EpicycleRegression"]
