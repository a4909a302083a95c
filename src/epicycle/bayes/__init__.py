"""Bayesian inference: conjugate models in closed form, approximations and samples of posteriors, normal vectors."""

from epicycle.bayes import conjugate

__all__ = ["conjugate"]
