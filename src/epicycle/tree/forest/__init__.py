"""Random forests and extremely randomised trees."""

from epicycle.tree.forest._classifier import ExtraTreesClassifier, RandomForestClassifier
from epicycle.tree.forest._embedding import RandomTreesEmbedding
from epicycle.tree.forest._regressor import ExtraTreesRegressor, RandomForestRegressor

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
]
