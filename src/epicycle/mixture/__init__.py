"""Mixtures of distributions, fitted by expectation maximisation."""

from epicycle.mixture._bayesian_gaussian_mixture import BayesianGaussianMixture
from epicycle.mixture._choose_k import ChosenK
from epicycle.mixture._gaussian_mixture import GaussianMixture
from epicycle.mixture._linear_mixture import BernoulliMixture, MultinomialMixture, PoissonMixture

__all__ = [
    "BayesianGaussianMixture",
    "BernoulliMixture",
    "ChosenK",
    "GaussianMixture",
    "MultinomialMixture",
    "PoissonMixture",
]
