"""Linear models."""

from epicycle.linear.estimating_equations import EstimatingEquations
from epicycle.linear.james_stein import JamesStein, ShrunkenMeans, shrink_means
from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso_paths import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.ridge import Ridge
from epicycle.linear.robust import HuberRegressor, QuantileRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "EstimatingEquations",
    "HuberRegressor",
    "JamesStein",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "QuantileRegressor",
    "RegularizationPath",
    "Ridge",
    "ShrunkenMeans",
    "enet_path",
    "lasso_path",
    "shrink_means",
]
