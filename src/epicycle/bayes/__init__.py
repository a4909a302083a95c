"""Bayesian inference: conjugate models, draws from a posterior and how far they can be trusted."""

from epicycle.bayes import conjugate
from epicycle.bayes._laplace import LaplaceApproximation, laplace
from epicycle.bayes._psis import PSISResult, psis
from epicycle.bayes._variational import VariationalApproximation, variational
from epicycle.bayes.sampling._constraints import (
    Constraint,
    Correlation,
    CorrelationCholesky,
    Interval,
    LowerBounded,
    Ordered,
    Positive,
    Real,
    Simplex,
    UpperBounded,
)
from epicycle.bayes.sampling._diagnostics import bfmi, effective_sample_size, mcse, r_hat
from epicycle.stats._multivariate_normal import MultivariateNormal

__all__ = [
    "Constraint",
    "Correlation",
    "CorrelationCholesky",
    "Interval",
    "LaplaceApproximation",
    "LowerBounded",
    "MultivariateNormal",
    "Ordered",
    "PSISResult",
    "Positive",
    "Real",
    "Simplex",
    "UpperBounded",
    "VariationalApproximation",
    "bfmi",
    "conjugate",
    "effective_sample_size",
    "laplace",
    "mcse",
    "psis",
    "r_hat",
    "variational",
]
