"""Linear models."""

from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso_paths import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.logistic_cv import LogisticRegressionCV
from epicycle.linear.one_vs_rest import OneVsRest
from epicycle.linear.ridge import Ridge

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "OneVsRest",
    "RegularizationPath",
    "Ridge",
    "enet_path",
    "lasso_path",
]
