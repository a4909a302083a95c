"""Nearest neighbours, exactly."""

from epicycle.kernel.neighbours.classification import KNeighborsClassifier
from epicycle.kernel.neighbours.regression import KNeighborsRegressor
from epicycle.kernel.neighbours.unsupervised import NearestNeighbors

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"]
