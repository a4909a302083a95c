"""Linear models."""

from importlib import import_module
from typing import Any

from epicycle.linear._one_vs_rest import OneVsRest
from epicycle.linear.basis import FourierFeatures, HingeFeatures, LinearSpline, PolynomialRegression
from epicycle.linear.epicycles import EpicycleRegression
from epicycle.linear.glm import Family, GammaRegressor, GeneralizedLinearModel, PoissonRegressor, TweedieRegressor
from epicycle.linear.lars._lars import Lars, LassoLars
from epicycle.linear.lars._lars_cv import LarsCV, LassoLarsCV
from epicycle.linear.lars._lars_path import lars_path, lars_path_gram
from epicycle.linear.lars._lasso_lars_ic import LassoLarsIC
from epicycle.linear.lars._matching_pursuit import MatchingPursuit
from epicycle.linear.lars._orthogonal_matching_pursuit import (
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    orthogonal_mp,
    orthogonal_mp_gram,
)
from epicycle.linear.lars._stagewise import Stagewise
from epicycle.linear.lasso._lasso import ElasticNet, Lasso
from epicycle.linear.lasso._lasso_cv import ElasticNetCV, LassoCV
from epicycle.linear.lasso._multi_task import MultiTaskElasticNet, MultiTaskLasso
from epicycle.linear.lasso._multi_task_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
from epicycle.linear.lasso._path import RegularizationPath, enet_path, lasso_path
from epicycle.linear.least_squares._estimating_equations import EstimatingEquations
from epicycle.linear.least_squares._james_stein import JamesStein, ShrunkenMeans, shrink_means
from epicycle.linear.least_squares._linear_regression import LinearRegression
from epicycle.linear.local import LocallyWeightedRegression
from epicycle.linear.logistic._logistic_regression import LogisticRegression
from epicycle.linear.logistic._logistic_regression_cv import LogisticRegressionCV
from epicycle.linear.online import (
    PassiveAggressiveClassifier,
    PassiveAggressiveRegressor,
    Perceptron,
    SGDClassifier,
    SGDOneClassSVM,
    SGDRegressor,
)
from epicycle.linear.ridge import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV, ridge_regression
from epicycle.linear.robust import HuberRegressor, QuantileRegressor, RANSACRegressor, TheilSenRegressor
from epicycle.stats import families, links

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "EpicycleRegression",
    "EstimatingEquations",
    "Family",
    "FourierFeatures",
    "GammaRegressor",
    "GeneralizedLinearModel",
    "HingeFeatures",
    "HuberRegressor",
    "JamesStein",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "LinearSpline",
    "LocallyWeightedRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MatchingPursuit",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OneVsRest",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    "Perceptron",
    "PoissonRegressor",
    "PolynomialRegression",
    "QuantileRegressor",
    "RANSACRegressor",
    "RegularizationPath",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "SGDOneClassSVM",
    "SGDRegressor",
    "ShrunkenMeans",
    "Stagewise",
    "TheilSenRegressor",
    "TweedieRegressor",
    "enet_path",
    "families",
    "lars_path",
    "lars_path_gram",
    "lasso_path",
    "links",
    "orthogonal_mp",
    "orthogonal_mp_gram",
    "ridge_regression",
    "shrink_means",
]

#: Names that 0.1.0 had here, and the packages that they are in now.
_MOVED = {"LinearSVC": "svm", "LinearSVR": "svm"}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        return getattr(import_module(f"epicycle.{_MOVED[name]}"), name)
    raise AttributeError(f"module 'epicycle.linear' has no attribute {name!r}")
