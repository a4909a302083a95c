"""Ensembles of any estimators: bagging, voting and stacking."""

from epicycle.ensemble._bagging import BaggingClassifier, BaggingRegressor
from epicycle.ensemble._stacking import StackingClassifier, StackingRegressor
from epicycle.ensemble._voting import VotingClassifier, VotingRegressor

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
]
