"""Generalized linear models."""

from epicycle.linear.glm._generalized_linear_model import GeneralizedLinearModel
from epicycle.linear.glm._inference import TestResult
from epicycle.linear.glm._regressors import GammaRegressor, PoissonRegressor, TweedieRegressor
from epicycle.stats import families, links
from epicycle.stats._family import Family
from epicycle.stats.links import Link

__all__ = [
    "Family",
    "GammaRegressor",
    "GeneralizedLinearModel",
    "Link",
    "PoissonRegressor",
    "TestResult",
    "TweedieRegressor",
    "families",
    "links",
]
