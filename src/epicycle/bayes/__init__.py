"""Bayesian inference: conjugate models, draws from a posterior and how far they can be trusted."""

from epicycle.bayes import conjugate
from epicycle.bayes._ard import ARDRegression
from epicycle.bayes._bayesian_logistic_regression import BayesianLogisticRegression
from epicycle.bayes._bayesian_ridge import BayesianRidge
from epicycle.bayes._laplace import LaplaceApproximation, laplace
from epicycle.bayes._linear_regression import BayesianLinearRegression
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
from epicycle.bayes.sampling._draws import Draws
from epicycle.bayes.sampling._model import Model
from epicycle.bayes.sampling._native_models import (
    HierarchicalModel,
    LinearModel,
    LogisticModel,
    NormalModel,
    NormalVarianceModel,
    PoissonModel,
)
from epicycle.bayes.sampling._sample import sample
from epicycle.bayes.sampling._sampling_certificate import SamplingCertificate
from epicycle.stats._multivariate_normal import MultivariateNormal

__all__ = [
    "ARDRegression",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianRidge",
    "Constraint",
    "Correlation",
    "CorrelationCholesky",
    "Draws",
    "HierarchicalModel",
    "Interval",
    "LaplaceApproximation",
    "LinearModel",
    "LogisticModel",
    "LowerBounded",
    "Model",
    "MultivariateNormal",
    "NormalModel",
    "NormalVarianceModel",
    "Ordered",
    "PSISResult",
    "PoissonModel",
    "Positive",
    "Real",
    "SamplingCertificate",
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
    "sample",
    "variational",
]
