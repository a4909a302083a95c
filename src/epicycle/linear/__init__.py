"""Linear models."""

from epicycle.linear.basis import FourierFeatures, HingeFeatures, LinearSpline, PolynomialRegression
from epicycle.linear.epicycles import EpicycleRegression
from epicycle.linear.estimating_equations import EstimatingEquations
from epicycle.linear.glm import Family, GeneralizedLinearModel, families, links
from epicycle.linear.james_stein import JamesStein, ShrunkenMeans, shrink_means
from epicycle.linear.lars import Lars
from epicycle.linear.lasso import ElasticNet, Lasso
from epicycle.linear.lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso_paths import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares import LinearRegression
from epicycle.linear.local import LocallyWeightedRegression
from epicycle.linear.logistic import LogisticRegression
from epicycle.linear.logistic_cv import LogisticRegressionCV
from epicycle.linear.matching_pursuit import MatchingPursuit
from epicycle.linear.one_vs_rest import OneVsRest
from epicycle.linear.online import Perceptron, SGDClassifier, SGDRegressor
from epicycle.linear.ridge import Ridge
from epicycle.linear.ridge_cv import RidgeCV
from epicycle.linear.robust import HuberRegressor, QuantileRegressor
from epicycle.linear.stagewise import Stagewise
from epicycle.linear.support_vectors import LinearSVC, LinearSVR

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "EpicycleRegression",
    "EstimatingEquations",
    "Family",
    "FourierFeatures",
    "GeneralizedLinearModel",
    "HingeFeatures",
    "HuberRegressor",
    "JamesStein",
    "Lars",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LinearSpline",
    "LocallyWeightedRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MatchingPursuit",
    "OneVsRest",
    "Perceptron",
    "PolynomialRegression",
    "QuantileRegressor",
    "RegularizationPath",
    "Ridge",
    "RidgeCV",
    "SGDClassifier",
    "SGDRegressor",
    "ShrunkenMeans",
    "Stagewise",
    "enet_path",
    "families",
    "lasso_path",
    "links",
    "shrink_means",
]
