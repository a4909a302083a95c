"""Diagnoses of models, with advice on the next steps.

Each function returns a finding with a `verdict` in words, the numbers as a `table`, advice as `next_steps`, and a
`plot`.
"""

from epicycle.diagnose._ablation import Ablation, ablation
from epicycle.diagnose._bias_variance import BiasVariance, bias_variance
from epicycle.diagnose._controller import ControllerDiagnosis, controller
from epicycle.diagnose._error_analysis import ErrorAnalysis, error_analysis
from epicycle.diagnose._optimizer_or_objective import OptimizerOrObjective, optimizer_or_objective
from epicycle.diagnose._slices import Slices, slices
from epicycle.diagnose._threshold import Threshold, threshold, threshold_of_scores

__all__ = [
    "Ablation",
    "BiasVariance",
    "ControllerDiagnosis",
    "ErrorAnalysis",
    "OptimizerOrObjective",
    "Slices",
    "Threshold",
    "ablation",
    "bias_variance",
    "controller",
    "error_analysis",
    "optimizer_or_objective",
    "slices",
    "threshold",
    "threshold_of_scores",
]
