"""Expectation maximisation: maximum likelihood where part of what the model describes was not seen."""

from epicycle.em._elbo import elbo
from epicycle.em._expectation_maximization import ExpectationMaximization
from epicycle.em._latent_model import Expectation, LatentModel
from epicycle.em._run_em import EMSolution, run_em, run_starts

__all__ = ["EMSolution", "Expectation", "ExpectationMaximization", "LatentModel", "elbo", "run_em", "run_starts"]
