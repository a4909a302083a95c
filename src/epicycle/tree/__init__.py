"""Trees and what is built of them."""

from epicycle.tree.adaboost import AdaBoostClassifier
from epicycle.tree.classifier import GradientBoostingClassifier
from epicycle.tree.regressor import GradientBoostingRegressor

__all__ = [
    "AdaBoostClassifier",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
]
