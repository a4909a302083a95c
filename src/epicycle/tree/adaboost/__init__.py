"""AdaBoost."""

from epicycle.tree.adaboost._adaboost import AdaBoostClassifier

__all__ = ["AdaBoostClassifier"]
