"""Linear models that learn row by row."""

from epicycle.linear.online.perceptron import Perceptron
from epicycle.linear.online.stochastic_classifier import SGDClassifier
from epicycle.linear.online.stochastic_regressor import SGDRegressor

__all__ = ["Perceptron", "SGDClassifier", "SGDRegressor"]
