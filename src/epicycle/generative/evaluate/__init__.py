"""Comparisons of the rows that a generative model draws with real ones: distances, tests, coverage, mode collapse."""

from epicycle.generative.evaluate._frechet_distance import frechet_distance
from epicycle.generative.evaluate._mode_collapse import ModeCollapse, mode_collapse
from epicycle.generative.evaluate._precision_recall import PrecisionRecall, coverage, precision_recall
from epicycle.generative.evaluate._two_sample_test import TwoSampleTest, two_sample_test

__all__ = [
    "ModeCollapse",
    "PrecisionRecall",
    "TwoSampleTest",
    "coverage",
    "frechet_distance",
    "mode_collapse",
    "precision_recall",
    "two_sample_test",
]
