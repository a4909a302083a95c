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
from epicycle.causal.identification._causal_estimate import CausalEstimate
from epicycle.causal.identification._check_implications import ImplicationCheck, check_implications
from epicycle.causal.identification._contrast import Contrast
from epicycle.causal.identification._hedge import Hedge
from epicycle.causal.identification._identification import Identification
from epicycle.causal.identification._identify import identify
from epicycle.causal.identification._independence import Independence, implied_independences
from epicycle.causal.identification._witness_model import WitnessModel
from epicycle.causal.sensitivity._e_value import EValue, e_value
from epicycle.causal.sensitivity._omitted_variable_bias import OmittedVariableBias, omitted_variable_bias
from epicycle.causal.sensitivity._refutation import Refutation, Refutations
from epicycle.causal.sensitivity._refute import refute
from epicycle.causal.sensitivity._rosenbaum_bounds import RosenbaumBounds, rosenbaum_bounds
from epicycle.causal.structural._additive_noise import AdditiveNoise
from epicycle.causal.structural._causation_bounds import CausationBounds, causation_bounds
from epicycle.causal.structural._causation_probabilities import CausationProbabilities
from epicycle.causal.structural._counterfactual import Counterfactual
from epicycle.causal.structural._effect_size import EffectSize
from epicycle.causal.structural._mediation_effects import MediationEffects
from epicycle.causal.structural._structural_causal_model import StructuralCausalModel

__all__ = [
    "AdditiveNoise",
    "CausalEstimate",
    "CausalGraph",
    "CausationBounds",
    "CausationProbabilities",
    "ConfidenceSet",
    "Contrast",
    "Counterfactual",
    "DifferenceInDifferences",
    "Discovery",
    "EValue",
    "EffectSize",
    "Hedge",
    "HypothesisTest",
    "Identification",
    "ImplicationCheck",
    "Independence",
    "Instrument",
    "InstrumentalVariables",
    "MarkovEquivalence",
    "MediationEffects",
    "OmittedVariableBias",
    "Path",
    "Refutation",
    "Refutations",
    "RegressionDiscontinuity",
    "RosenbaumBounds",
    "StructuralCausalModel",
    "SyntheticControl",
    "TreatmentEffect",
    "WitnessModel",
    "causation_bounds",
    "check_implications",
    "discover",
    "e_value",
    "identify",
    "implied_independences",
    "omitted_variable_bias",
    "refute",
    "rosenbaum_bounds",
]
