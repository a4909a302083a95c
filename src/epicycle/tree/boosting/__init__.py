"""Gradient boosting."""

from epicycle.tree.boosting._classifier import GradientBoostingClassifier
from epicycle.tree.boosting._hist_gradient_boosting import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from epicycle.tree.boosting._regressor import GradientBoostingRegressor

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
]
