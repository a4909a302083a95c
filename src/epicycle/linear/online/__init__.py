"""Linear models that learn row by row."""

from epicycle.linear.online._perceptron import Perceptron
from epicycle.linear.online._sgd_classifier import SGDClassifier
from epicycle.linear.online._sgd_regressor import SGDRegressor

__all__ = ["Perceptron", "SGDClassifier", "SGDRegressor"]
