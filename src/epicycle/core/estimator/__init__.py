"""The contract that every learner from tables keeps: `Estimator`, `fitting`, callbacks, the list of methods."""

from epicycle.core.estimator._callbacks import Checkpoint, EarlyStopping, TimeLimit
from epicycle.core.estimator._catalogue import MethodCard, MethodInfo, in_catalogue, methods
from epicycle.core.estimator._estimator import Estimator, fitting, stores_arguments

__all__ = [
    "Checkpoint",
    "EarlyStopping",
    "Estimator",
    "MethodCard",
    "MethodInfo",
    "TimeLimit",
    "fitting",
    "in_catalogue",
    "methods",
    "stores_arguments",
]
