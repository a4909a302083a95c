"""Linear models."""

from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.ridge import Ridge

__all__ = ["LinearRegression", "LogisticRegression", "Ridge"]
