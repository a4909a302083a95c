"""Ridge regression."""

from epicycle.linear.ridge._ridge import Ridge
from epicycle.linear.ridge._ridge_classifier import RidgeClassifier, RidgeClassifierCV
from epicycle.linear.ridge._ridge_cv import RidgeCV
from epicycle.linear.ridge._ridge_regression import ridge_regression

__all__ = ["Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "ridge_regression"]
