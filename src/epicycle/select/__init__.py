"""Choosing models and features by scores on rows that were not learnt from.

`k_fold`, `hold_out`, `leave_one_out` and `nested` compare models and fit the best; `ForwardSelection`,
`BackwardSelection` and `FilterSelection` choose features.
"""

from epicycle.select.filters import FilterSelection
from epicycle.select.greedy import BackwardSelection, ForwardSelection
from epicycle.select.outcome import Selection
from epicycle.select.procedures import hold_out, k_fold, leave_one_out, nested
from epicycle.select.scorers import TestScore

__all__ = [
    "BackwardSelection",
    "FilterSelection",
    "ForwardSelection",
    "Selection",
    "TestScore",
    "hold_out",
    "k_fold",
    "leave_one_out",
    "nested",
]
