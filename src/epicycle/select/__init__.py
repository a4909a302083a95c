"""Selection of models and features by scores on rows that were not used for the fit.

`k_fold`, `hold_out`, `leave_one_out` and `nested` compare models and fit the best; `ForwardSelection`,
`BackwardSelection` and `FilterSelection` choose features. `split_by_time` splits rows into earlier and later ones.
"""

from epicycle.select._filter_selection import FilterSelection
from epicycle.select._greedy_selection import BackwardSelection, ForwardSelection
from epicycle.select._procedures import hold_out, k_fold, leave_one_out, nested
from epicycle.select._scorers import TestScore
from epicycle.select._selection import Selection
from epicycle.select._time_split import split_by_time

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
    "split_by_time",
]
