"""Causal learning: graphs, identification, structural models, effects of treatments."""

from epicycle.causal.designs._confidence_set import ConfidenceSet
from epicycle.causal.designs._difference_in_differences import DifferenceInDifferences
from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._instrumental_variables import InstrumentalVariables
from epicycle.causal.designs._regression_discontinuity import RegressionDiscontinuity
from epicycle.causal.designs._synthetic_control import SyntheticControl

__all__ = [
    "ConfidenceSet",
    "DifferenceInDifferences",
    "HypothesisTest",
    "InstrumentalVariables",
    "RegressionDiscontinuity",
    "SyntheticControl",
]
