"""Linear models."""

from epicycle.linear.basis import FourierFeatures, HingeFeatures, LinearSpline, PolynomialRegression
from epicycle.linear.epicycles import EpicycleRegression
from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso_paths import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.local import LocallyWeightedRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.ridge import Ridge

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "EpicycleRegression",
    "FourierFeatures",
    "HingeFeatures",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSpline",
    "LocallyWeightedRegression",
    "LogisticRegression",
    "PolynomialRegression",
    "RegularizationPath",
    "Ridge",
    "enet_path",
    "lasso_path",
]
