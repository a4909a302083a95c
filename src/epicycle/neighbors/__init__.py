"""Nearest neighbours, exactly."""

from epicycle.neighbors._classification import KNeighborsClassifier
from epicycle.neighbors._regression import KNeighborsRegressor
from epicycle.neighbors._unsupervised import NearestNeighbors

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"]
