"""Mixtures of distributions, fitted by expectation maximisation."""

from epicycle.mixture._choose_k import ChosenK
from epicycle.mixture._gaussian_mixture import GaussianMixture

__all__ = ["ChosenK", "GaussianMixture"]
