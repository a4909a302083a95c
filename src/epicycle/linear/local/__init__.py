"""Locally weighted regression."""

from epicycle.linear.local.estimator import LocallyWeightedRegression

__all__ = ["LocallyWeightedRegression"]
