"""Discriminant analysis: classes that are normal distributions, with covariances that they share or not."""

from epicycle.discriminant._gaussian import GaussianDiscriminantAnalysis
from epicycle.discriminant._linear import LinearDiscriminantAnalysis
from epicycle.discriminant._quadratic import QuadraticDiscriminantAnalysis

__all__ = ["GaussianDiscriminantAnalysis", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]
