"""Least angle regression, stagewise regression and matching pursuit."""

from epicycle.linear.lars._lars import Lars, LassoLars
from epicycle.linear.lars._lars_cv import LarsCV, LassoLarsCV
from epicycle.linear.lars._lars_path import lars_path, lars_path_gram
from epicycle.linear.lars._lasso_lars_ic import LassoLarsIC
from epicycle.linear.lars._matching_pursuit import MatchingPursuit
from epicycle.linear.lars._orthogonal_matching_pursuit import (
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    orthogonal_mp,
    orthogonal_mp_gram,
)
from epicycle.linear.lars._stagewise import Stagewise

__all__ = [
    "Lars",
    "LarsCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "MatchingPursuit",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "Stagewise",
    "lars_path",
    "lars_path_gram",
    "orthogonal_mp",
    "orthogonal_mp_gram",
]
