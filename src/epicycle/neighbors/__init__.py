"""Nearest neighbours, exactly."""

from epicycle.neighbors._classification import KNeighborsClassifier, RadiusNeighborsClassifier
from epicycle.neighbors._graph import KNeighborsTransformer, RadiusNeighborsTransformer
from epicycle.neighbors._kernel_density import KernelDensity
from epicycle.neighbors._nearest_centroid import NearestCentroid
from epicycle.neighbors._regression import KNeighborsRegressor, RadiusNeighborsRegressor
from epicycle.neighbors._unsupervised import NearestNeighbors

__all__ = [
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "KernelDensity",
    "NearestCentroid",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
]
