"""Conjugate models: priors whose posteriors, evidence and predictions have closed forms.

An object is a distribution of the parameter of a likelihood, before or after data: ``update`` returns the one after.
"""

from epicycle.bayes.conjugate._bayes_factor import BayesFactor, bayes_factor
from epicycle.bayes.conjugate._beta import BetaBernoulli, BetaBinomial
from epicycle.bayes.conjugate._dirichlet import DirichletCategorical, DirichletMultinomial
from epicycle.bayes.conjugate._gamma import GammaExponential, GammaPoisson
from epicycle.bayes.conjugate._normal_inverse_gamma import NormalInverseGamma
from epicycle.bayes.conjugate._normal_inverse_wishart import NormalInverseWishart
from epicycle.bayes.conjugate._normal_known_variance import NormalKnownVariance

__all__ = [
    "BayesFactor",
    "BetaBernoulli",
    "BetaBinomial",
    "DirichletCategorical",
    "DirichletMultinomial",
    "GammaExponential",
    "GammaPoisson",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownVariance",
    "bayes_factor",
]
