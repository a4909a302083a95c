"""Causal learning: graphs, identification, structural models, effects of treatments."""

from epicycle.causal.designs._confidence_set import ConfidenceSet
from epicycle.causal.designs._difference_in_differences import DifferenceInDifferences
from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._instrumental_variables import InstrumentalVariables
from epicycle.causal.designs._regression_discontinuity import RegressionDiscontinuity
from epicycle.causal.designs._synthetic_control import SyntheticControl
from epicycle.causal.discovery._discover import discover
from epicycle.causal.discovery._discovery import Discovery
from epicycle.causal.effects._treatment_effect import TreatmentEffect
from epicycle.causal.graph._causal_graph import CausalGraph
from epicycle.causal.graph._instrument import Instrument
from epicycle.causal.graph._markov_equivalence import MarkovEquivalence
from epicycle.causal.graph._path import Path
from epicycle.causal.sensitivity._e_value import EValue, e_value
from epicycle.causal.sensitivity._omitted_variable_bias import OmittedVariableBias, omitted_variable_bias
from epicycle.causal.sensitivity._refutation import Refutation, Refutations
from epicycle.causal.sensitivity._refute import refute
from epicycle.causal.sensitivity._rosenbaum_bounds import RosenbaumBounds, rosenbaum_bounds

__all__ = [
    "CausalGraph",
    "ConfidenceSet",
    "DifferenceInDifferences",
    "Discovery",
    "EValue",
    "HypothesisTest",
    "Instrument",
    "InstrumentalVariables",
    "MarkovEquivalence",
    "OmittedVariableBias",
    "Path",
    "Refutation",
    "Refutations",
    "RegressionDiscontinuity",
    "RosenbaumBounds",
    "SyntheticControl",
    "TreatmentEffect",
    "discover",
    "e_value",
    "omitted_variable_bias",
    "refute",
    "rosenbaum_bounds",
]
