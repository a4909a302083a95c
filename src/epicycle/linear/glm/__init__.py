"""Generalized linear models."""

from epicycle.linear.glm import families, links
from epicycle.linear.glm.estimator import GeneralizedLinearModel
from epicycle.linear.glm.exponential_family import Family
from epicycle.linear.glm.links import Link
from epicycle.linear.glm.tests_of_models import TestResult

__all__ = ["Family", "GeneralizedLinearModel", "Link", "TestResult", "families", "links"]
