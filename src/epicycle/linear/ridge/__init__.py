"""Ridge regression."""

from epicycle.linear.ridge._ridge import Ridge
from epicycle.linear.ridge._ridge_classifier import RidgeClassifier, RidgeClassifierCV
from epicycle.linear.ridge._ridge_cv import RidgeCV

__all__ = ["Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"]
