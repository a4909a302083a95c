"""Logistic and softmax regression."""

from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.linear.logistic._logistic_regression_cv import LogisticRegressionCV

__all__ = ["LogisticRegression", "LogisticRegressionCV"]
