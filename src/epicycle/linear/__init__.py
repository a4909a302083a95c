"""Linear models."""

from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.ridge import Ridge

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "LogisticRegression", "Ridge"]
