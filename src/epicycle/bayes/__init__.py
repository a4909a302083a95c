"""Bayesian inference: conjugate models, draws from a posterior and how far they can be trusted."""

from epicycle.bayes import conjugate
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

__all__ = [
    "Constraint",
    "Correlation",
    "CorrelationCholesky",
    "Interval",
    "LowerBounded",
    "Ordered",
    "Positive",
    "Real",
    "Simplex",
    "UpperBounded",
    "bfmi",
    "conjugate",
    "effective_sample_size",
    "mcse",
    "r_hat",
]
