"""Linear models that learn row by row."""

from epicycle.linear.online._passive_aggressive import PassiveAggressiveClassifier, PassiveAggressiveRegressor
from epicycle.linear.online._perceptron import Perceptron
from epicycle.linear.online._sgd_classifier import SGDClassifier
from epicycle.linear.online._sgd_one_class_svm import SGDOneClassSVM
from epicycle.linear.online._sgd_regressor import SGDRegressor

__all__ = [
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    "Perceptron",
    "SGDClassifier",
    "SGDOneClassSVM",
    "SGDRegressor",
]
