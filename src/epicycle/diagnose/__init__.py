"""What is wrong with a model, and what to try next.

Each function returns an object with a `verdict` in words, the numbers as a `table`, what to try as `next_steps`, and a
`plot`.
"""

from epicycle.diagnose.components import Ablation, ablation
from epicycle.diagnose.fits import BiasVariance, bias_variance
from epicycle.diagnose.operating_points import Threshold, threshold, threshold_of_scores
from epicycle.diagnose.plugged import OptimizerOrObjective, optimizer_or_objective
from epicycle.diagnose.stages import ErrorAnalysis, error_analysis
from epicycle.diagnose.weak_spots import Slices, slices

__all__ = [
    "Ablation",
    "BiasVariance",
    "ErrorAnalysis",
    "OptimizerOrObjective",
    "Slices",
    "Threshold",
    "ablation",
    "bias_variance",
    "error_analysis",
    "optimizer_or_objective",
    "slices",
    "threshold",
    "threshold_of_scores",
]
