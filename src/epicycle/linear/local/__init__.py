"""Locally weighted regression."""

from epicycle.linear.local._locally_weighted_regression import LocallyWeightedRegression

__all__ = ["LocallyWeightedRegression"]
