"""Linear models."""

from epicycle.linear.glm import Family, GeneralizedLinearModel, families, links
from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso_paths import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.ridge import Ridge

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "Family",
    "GeneralizedLinearModel",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "RegularizationPath",
    "Ridge",
    "enet_path",
    "families",
    "lasso_path",
    "links",
]
