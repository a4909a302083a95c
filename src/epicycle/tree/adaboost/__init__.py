"""AdaBoost."""

from epicycle.tree.adaboost._adaboost import AdaBoostClassifier
from epicycle.tree.adaboost._regressor import AdaBoostRegressor

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor"]
